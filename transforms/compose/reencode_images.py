"""ReencodeImages: bytes are checked, decoded and, where needed, re-encoded to JPEG."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import apache_beam as beam

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.image_record import reencode_image


@dataclass
class ReencodeImages(beam.PTransform):
    """Prepares each image of a PCollection of references and bytes; bad images are left out.

    For pipelines of your own; see `ReadImages`.

    Attributes:
        settings: how images are checked, decoded and re-encoded.
    """

    settings: ImageSettings = field(default_factory=ImageSettings)

    def expand(
        self, images: beam.PCollection[tuple[ImageRef, bytes]]
    ) -> beam.PCollection[tuple[ImageRef, PreparedImage]]:
        """PCollection[tuple[ImageRef, bytes]] -> PCollection[tuple[ImageRef, PreparedImage]]."""
        return images | beam.FlatMapTuple(self._prepare).with_output_types(tuple[ImageRef, PreparedImage])

    def _prepare(self, ref: ImageRef, data: bytes) -> Iterator[tuple[ImageRef, PreparedImage]]:
        try:
            yield ref, reencode_image(data, self.settings)
        except Rejected:
            beam.metrics.Metrics.counter("recordmill", "undecoded").inc()
