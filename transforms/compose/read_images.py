"""ReadImages: references become bytes."""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.record_coder import register_record
from recordmill.schemas.rejection import Rejected
from recordmill.storage.read_image import read_image

register_record(ImageRef)


@dataclass
class ReadImages(beam.PTransform):
    """Reads each image of a PCollection of references; those that cannot be read are left out.

    For pipelines of your own. Recordmill itself reads in the step that writes, so that pixels are never shuffled.

    Attributes:
        max_bytes: longer images are left out.
    """

    max_bytes: int = 256 * 2**20

    def expand(self, refs: beam.PCollection[ImageRef]) -> beam.PCollection[tuple[ImageRef, bytes]]:
        """PCollection[ImageRef] -> PCollection[tuple[ImageRef, bytes]]."""
        return refs | beam.FlatMap(self._read).with_output_types(tuple[ImageRef, bytes])

    def _read(self, ref: ImageRef) -> Iterator[tuple[ImageRef, bytes]]:
        try:
            yield ref, read_image(ref, self.max_bytes)
        except Rejected:
            beam.metrics.Metrics.counter("recordmill", "unread").inc()
