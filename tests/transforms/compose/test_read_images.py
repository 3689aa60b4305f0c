from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.compose.read_images import ReadImages


@pytest.fixture
def ref(tmp_path):
    path = tmp_path / "a[1].gz"
    path.write_bytes(b"0123456789")
    return ImageRef("a", str(path), 10)


def test_in_a_pipeline_bad_ones_are_left_out_and_counted(ref):
    refs = [ref, replace(ref, key="gone", uri=f"{ref.uri}x")]
    pipeline = beam.Pipeline(runner=FnApiRunner())
    assert_that(pipeline | beam.Create(refs) | ReadImages(), equal_to([(ref, b"0123456789")]))
    result = pipeline.run()
    (counter,) = result.metrics().query(beam.metrics.MetricsFilter().with_name("unread"))["counters"]
    assert counter.committed == 1
