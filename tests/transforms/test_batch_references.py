import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms import batch_references
from recordmill.transforms.batch_references import BatchReferences, _BatchReferences

REFS = [ImageRef(f"{number}.jpg", "/x", size=number) for number in range(20)]


@pytest.mark.parametrize(("size", "expected"), [(8, [8, 8, 4]), (10, [10, 10]), (100, [20])])
def test_a_bundle_becomes_full_batches_and_a_rest(monkeypatch, size, expected):
    monkeypatch.setattr(batch_references, "BATCH_SIZE", size)
    step = _BatchReferences()
    step.start_bundle()
    batches = [batch for ref in REFS for batch in step.process(ref)]
    batches += [each.value for each in step.finish_bundle()]
    assert [len(batch.refs) for batch in batches] == expected
    assert [ref for batch in batches for ref in batch.refs] == REFS


def test_an_empty_bundle_gives_none():
    step = _BatchReferences()
    step.start_bundle()
    assert list(step.finish_bundle()) == []


@pytest.mark.runner
def test_no_reference_is_lost_or_doubled():
    with new_pipeline() as root:
        batches = root | beam.Create(REFS) | beam.Reshuffle() | BatchReferences()
        assert_that(batches | beam.FlatMap(lambda batch: batch.refs), equal_to(REFS))
