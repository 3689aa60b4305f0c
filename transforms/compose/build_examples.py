"""BuildExamples: a prepared image becomes a serialised `tf.train.Example`."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import apache_beam as beam

from recordmill.imaging import PreparedImage
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.image_record import find_class, image_record


@dataclass
class BuildExamples(beam.PTransform):
    """Serialises each prepared image of a PCollection; images whose label has no id are left out.

    An image without a label has no label features. For pipelines of your own; see `ReadImages`.

    Attributes:
        label_ids: class ids by name.
        convention: which features an Example has.
    """

    label_ids: dict[str, int]
    convention: str = "default"
    _label_map: LabelMap = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises ValueError where there is no such convention."""
        load_convention(self.convention)
        self._label_map = LabelMap(dict(self.label_ids))

    def expand(self, images: beam.PCollection[tuple[ImageRef, PreparedImage]]) -> beam.PCollection[tuple[str, bytes]]:
        """PCollection[tuple[ImageRef, PreparedImage]] -> PCollection[tuple[key, serialised Example]]."""
        return images | beam.FlatMapTuple(self._build).with_output_types(tuple[str, bytes])

    def _build(self, ref: ImageRef, image: PreparedImage) -> Iterator[tuple[str, bytes]]:
        convention = load_convention(self.convention)
        try:
            name, label_id = find_class(ref.label, self._label_map)
        except Rejected:
            beam.metrics.Metrics.counter("recordmill", "unlabelled").inc()
            return
        yield ref.key, encode_example(convention.features, image_record(ref, image, name, label_id, convention))
