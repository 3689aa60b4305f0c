"""Runs a step without a runner."""

import apache_beam as beam
import pytest
from eager_beam import assert_that, new_pipeline


@pytest.fixture
def run_step():
    """`run_step(elements, step)`: the good elements, and the rejected ones."""

    def run(elements, step):
        good, rejected = [], []
        with new_pipeline() as pipeline:
            images = pipeline | beam.Create(elements) | step
            assert_that(images, good.extend)
            assert_that(images.rejected, rejected.extend)
        return good, rejected

    return run
