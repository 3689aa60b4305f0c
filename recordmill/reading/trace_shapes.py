"""Gives the annotations in Examples as shapes, for pages that draw them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from recordmill.annotations.annotation import AnnotationKind
from recordmill.annotations.kinds import KINDS
from recordmill.annotations.shapes import Shape
from recordmill.reading.example import ParsedExample, annotation_keys_of, values_of
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.features import Feature


class ShapeTracer:
    """Gives the annotations in the Examples of a dataset as shapes.

    Attributes:
        kinds: the kinds of annotations that have a place on their image, and in the Examples.
    """

    def __init__(
        self,
        features: Iterable[Feature],
        labels: Mapping[str, int],
        marker: Marker | None,
    ) -> None:
        """Finds the annotations that Examples have.

        Args:
            features: the features of the Examples.
            labels: class ids by name.
            marker: the marker of the dataset; None without one.
        """
        keys = annotation_keys_of(features)
        self.kinds = [KINDS[name] for name in keys if KINDS[name].follows_pixels]
        if marker is not None and marker.skeleton:
            self.kinds = [kind.join_parts(marker.skeleton) for kind in self.kinds]
        self._keys = dict(chain.from_iterable(own.items() for own in keys.values()))
        self._names = {class_id: name for name, class_id in labels.items()}
        self._names_pixel_ids = marker is not None and bool(marker.names_pixel_ids)

    def trace(self, example: ParsedExample, kind: AnnotationKind) -> Sequence[Shape]:
        """Returns the shapes of one kind in an Example."""
        names = self._names if self._names_pixel_ids or not kind.id_images else {}
        return kind.trace(values_of(example, self._keys), names)

    def trace_all(self, example: ParsedExample) -> list[Shape]:
        """Returns the shapes of all kinds in an Example."""
        return [*chain.from_iterable(self.trace(example, kind) for kind in self.kinds)]

    def list_objects(self, example: ParsedExample) -> Sequence[Shape]:
        """Returns one shape for each object: those of the first kind that the Example has."""
        shapes = (self.trace(example, kind) for kind in self.kinds)
        return next(filter(None, shapes), ())
