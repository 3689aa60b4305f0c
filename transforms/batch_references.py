"""BatchReferences: references travel together from here on."""

from collections.abc import Iterator

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch

BATCH_SIZE = 1024
"""References in a batch at most: some 200 KB."""


class BatchReferences(beam.PTransform):
    """Puts the references of a PCollection into batches, each of one bundle."""

    def expand(self, refs: beam.PCollection[ImageRef]) -> beam.PCollection[ReferenceBatch]:
        """PCollection[ImageRef] -> PCollection[ReferenceBatch]."""
        return refs | beam.ParDo(_BatchReferences())


class _BatchReferences(beam.DoFn):
    def start_bundle(self) -> None:
        self._refs: list[ImageRef] = []

    def process(self, ref: ImageRef) -> Iterator[ReferenceBatch]:
        self._refs.append(ref)
        if len(self._refs) == BATCH_SIZE:
            refs, self._refs = self._refs, []
            yield ReferenceBatch(refs)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._refs:
            yield GlobalWindows.windowed_value(ReferenceBatch(self._refs))
