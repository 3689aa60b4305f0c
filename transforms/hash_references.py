"""HashReferences: computes the hashes of references once; they travel with the references."""

from dataclasses import dataclass, replace

import apache_beam as beam

from recordmill.schemas.reference_batch import ReferenceBatch


def hash_batch(batch: ReferenceBatch, seed: int) -> ReferenceBatch:
    """Returns a batch with its hashes; `seed` is the dataset's."""
    return replace(batch, hashes=batch.hash_with(seed))


@dataclass
class HashReferences(beam.PTransform):
    """Computes the hashes of a PCollection of batches of references.

    Its place is after the last step that changes references.

    Attributes:
        seed: the dataset's seed.
    """

    seed: int

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[ReferenceBatch]:
        """PCollection[ReferenceBatch] -> the same with hashes."""
        return batches | beam.Map(hash_batch, self.seed).with_output_types(ReferenceBatch)
