import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline

from recordmill.schemas.digests import ReferenceHashes
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.transforms.hash_references import HashReferences, hash_batch

REFS = [ImageRef(f"cat/{number}.jpg", f"/x/{number}.jpg", 10) for number in range(5)]


@pytest.mark.runner
def test_batches_get_their_hashes():
    batch = ReferenceBatch.of([*REFS, REFS[0].notice("rejected", "empty")])
    hashes = ReferenceHashes.of([*REFS, batch.notices[0]], 3)
    assert hash_batch(batch, 3) == ReferenceBatch(REFS, batch.notices, [], hashes)
    with new_pipeline() as root:
        hashed = root | beam.Create([batch]) | HashReferences(3)
        assert_that(hashed | beam.Map(lambda each: each.hashes), equal_to([hashes]))
