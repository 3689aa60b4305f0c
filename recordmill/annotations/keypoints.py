"""Key points of objects: named points such as joints, each of them visible, hidden or missing."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    Values,
)
from recordmill.annotations.boxes import list_classes
from recordmill.annotations.count_details import (
    DetailCount,
    describe_dropped,
    drop_undecoded,
    lose_details,
)
from recordmill.annotations.explain_losses import explain_faults
from recordmill.annotations.shapes import Shape, ShapePoint
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.features import RecordField
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

TOLERANCE = 1e-6
"""How far a point may be outside and still count as on the edge, as a fraction of the image."""

_FIELDS = {
    "keypoints_x": RecordField(
        "float",
        "key points of the boxes, object after object: from the left, 0 to 1; 0 if not labeled",
        many=True,
    ),
    "keypoints_y": RecordField("float", "the same from the top", many=True),
    "keypoints_visibility": RecordField(
        "int64", "0 for a point that is not labeled, 1 for a hidden one, 2 for a visible one", True
    ),
    "keypoints_text": RecordField("bytes", "the name of each key point, UTF-8", many=True),
    "keypoints_num": RecordField("int64", "the number of labeled points of each box", many=True),
    "keypoints": RecordField(
        "float",
        "key points of the boxes in one list: x and y, 0 to 1, and visibility of each; zeros if "
        "not labeled",
        many=True,
    ),
}

_SEPARATE = ("keypoints_x", "keypoints_y", "keypoints_visibility")
_PER_POINT = (*_SEPARATE, "keypoints_text")
_PER_BOX = ("xmin", "box_labels", "keypoints_num")
_LOADED = (frozenset({*_SEPARATE, "keypoints_num"}), frozenset({"keypoints", "box_labels"}))
_NUMBERS = 3
_VISIBLE = 2


@dataclass(frozen=True, slots=True)
class KeyPoints:
    """The key points of an image's objects, as its source gives them.

    Attributes:
        names: the names of the points, the same for all objects.
        points: for each box x, y and visibility of each point, in the order of the names; None for
            an object without any. Lists of another length are malformed.
        fractions: whether coordinates are in fractions of the image instead of pixels.
        lost: labeled points that are not among `points`, since it is not clear whose they are: the
            reason for each, and the place of an object to which it may belong, from 0.
    """

    kind: ClassVar[str] = "keypoints"

    names: Sequence[str]
    points: Sequence[Sequence[float | None] | None]
    fractions: bool = False
    lost: Sequence[tuple[str, int]] = ()

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries; what is not finite becomes null."""
        packed = [self.names, self.points, self.fractions]
        return as_kept_json([*packed, self.lost] if self.lost else packed)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the key points that a reference carries."""
        return cls(*orjson.loads(packed))

    def read(self, at: int) -> "list[KeyPoint] | None":
        """Returns the points of an object, None if they are malformed, by its place from 0."""
        own = self.points[at]
        if own is None:
            return [_NOT_LABELED] * len(self.names)
        if len(own) != _NUMBERS * len(self.names):
            return None
        numbers = [math.nan if number is None else number for number in own]
        return [
            KeyPoint(*numbers[start : start + _NUMBERS])
            for start in range(0, len(numbers), _NUMBERS)
        ]

    def count(self, at: int) -> int:
        """Returns how many labeled points an object has; of malformed ones, all count."""
        points = self.read(at)
        if points is None:
            return len(self.names)
        return sum(point.is_labeled for point in points)


class KeyPoint(NamedTuple):
    """A point of an object: its place in pixels or fractions, and COCO's code of visibility."""

    x: float
    y: float
    visibility: float

    @property
    def is_labeled(self) -> bool:
        """Tells if an annotator has placed the point; some tools write a negative code if not."""
        return not self.visibility <= 0  # NaN is faulty, and not unlabeled


_NOT_LABELED = KeyPoint(0.0, 0.0, 0)


class KeyPointKind(AnnotationKind):
    """Key points of the objects in boxes."""

    name: ClassVar[str] = KeyPoints.kind
    unit: ClassVar[str] = "key point"
    stored_by: ClassVar[Sequence[str]] = ("tf_object_detection", "tfds")
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    compared: ClassVar[frozenset[str]] = frozenset({"xmin", "box_labels"})
    loaded: ClassVar[Sequence[frozenset[str]]] = _LOADED
    loaded_type: ClassVar[str] = "float32"
    is_always_loaded: ClassVar[bool] = True
    follows_pixels: ClassVar[bool] = True
    has_lines: ClassVar[bool] = True

    def __init__(self) -> None:
        """Knows no lines; see `join_parts`."""
        self._skeleton: Mapping[str, Sequence[str]] = {}

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the number of labeled points; their classes are those of the boxes."""
        given = KeyPoints.unpack(packed)
        labeled = sum(map(given.count, range(len(given.points))))
        return ListedLabels((), labeled + len(given.lost), tuple(given.names))

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Moves the points of the objects that are stored to the stored image.

        A point that is not on it becomes one that is not labeled.
        """
        given = KeyPoints.unpack(packed)
        if on.objects is None:
            return drop_undecoded(self.list_labels(packed).total)
        count = DetailCount(on.objects, on.unwanted, _FAULTS)
        rows = [_place_points(given, at, on, count) for at in on.objects.stored]
        for reason, at in given.lost:
            count.drop(at, reason)
        count.drop_with_boxes({at: given.count(at) for at in range(len(given.points))})
        names = on.label_map.parts.get(self.name, given.names)
        if list(names) != list(given.names):  # other images have other points
            rows = [_order_points(row, given.names, names) for row in rows]
        fields = _as_fields(rows, names)
        return PlacedAnnotations(fields, [], count.outcome(sum(fields["keypoints_num"])))

    def fill(self, on: AnnotatedImage) -> Values:
        """Returns that no point of an image's objects is labeled."""
        names = on.label_map.parts.get(self.name, ())
        if on.objects is None or not names:
            return {}
        return _as_fields([[_NOT_LABELED] * len(names) for _ in on.objects.stored], names)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the labeled points of an image that is not written."""
        return lose_details(self.list_labels(packed).total, rejected)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many key points are faulty; None if they are not."""
        limits, faulty = settings.max_rejected.keypoints, lost.totals.faulty
        remedies = (text for reason, text in _REMEDIES.items() if reason in faulty)
        remedy = next(remedies, "correct these points")
        return explain_faults("key points", "max_rejected.keypoints", limits, lost, remedy)

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of key points that may end up in no record."""
        return contract.lost_keypoints

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields a remark on dropped points."""
        if dropped := describe_dropped(entry):
            yield f"Dropped: {dropped}. In Examples, these points are not labeled."

    def find_tfds_type(
        self, field: str, classes: int, parts: Sequence[str], recipe: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Returns the type of the points of one box, if all boxes have the same."""
        if field != "keypoints" or not parts:
            return None
        return {
            "pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor",
            "description": f"x, y, visibility of {', '.join(parts)}",
            "tensor": {
                "shape": {"dimensions": [str(len(parts)), str(_NUMBERS)]},
                "dtype": "float32",
                "encoding": "none",
            },
        }

    def check(self, values: Values) -> str | None:
        """Returns the problem with the key points in an Example.

        Each box has the same points, which are on the image.
        """
        if len(together := values.get("keypoints", ())) % _NUMBERS:
            return f"its {len(together)} numbers of key points are not three for each point"
        values = _separate(values)
        counts = {name: len(values[name]) for name in _PER_POINT if name in values}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{count} in {name}" for name, count in counts.items())
            return f"its lists of key points differ in length: {said}"
        points = max(counts.values(), default=0)
        for name in _PER_BOX:
            boxes = len(values.get(name, ()))
            if points and name in values and (not boxes or points % boxes):
                return f"it has {points} key points for {boxes} boxes"
        sides = [*values.get("keypoints_x", ()), *values.get("keypoints_y", ())]
        if not all(0 <= side <= 1 for side in sides):
            return "one of its key points is not on the image"
        codes = values.get("keypoints_visibility", ())
        if not {*codes} <= {0, 1, 2}:
            return f"the visibility of a key point is {max(codes)}, and should be 0, 1 or 2"
        return _check_objects(values)

    def as_array(
        self, values: Values, size: tuple[int, int], resized: tuple[int, int] | None = None
    ) -> "NDArray[np.float32]":
        """Returns x and y, 0 to 1, and visibility as float32 of shape (boxes, points, 3)."""
        import numpy as np

        values = _separate(values)
        columns = [np.asarray(values[field], np.float32) for field in _SEPARATE]
        boxes = _count_boxes(values)
        return np.stack(columns, axis=1).reshape(boxes, len(columns[0]) // max(boxes, 1), _NUMBERS)

    def join_parts(self, skeleton: Mapping[str, Sequence[str]]) -> Self:
        """Returns the kind for a dataset with this skeleton."""
        joined = type(self)()
        joined._skeleton = skeleton
        return joined

    def trace(self, values: Values, names: Mapping[int, str]) -> list[Shape]:
        """Returns the labeled points of each object in an Example that has some as a shape.

        Lines join those that the skeleton joins.
        """
        values = _separate(values)
        count = _count_boxes(values)
        xs, ys = values.get("keypoints_x", ()), values.get("keypoints_y", ())
        if not count or not xs or not ys:
            return []
        codes = values.get("keypoints_visibility") or [_VISIBLE] * len(xs)
        points = [
            ShapePoint(x, y, code == _VISIBLE) if code else None
            for x, y, code in zip(xs, ys, codes, strict=True)
        ]
        each = len(xs) // count
        point_names = self._name_points(values, each)
        shapes = []
        for place, (class_id, class_name) in enumerate(list_classes(values, names, count)):
            own = points[place * each : (place + 1) * each]
            labeled = tuple(filter(None, own))
            named = [name for name, point in zip(point_names, own, strict=False) if point]
            if labeled:
                lines = self._find_lines(named)
                shapes.append(Shape(class_id, class_name, points=labeled, lines=lines))
        return shapes

    def _name_points(self, values: Values, count: int) -> Sequence[str]:
        """Returns the names of the points of each object in an Example; empty if not known."""
        if "keypoints_text" in values:
            return [name.decode(errors="replace") for name in values["keypoints_text"][:count]]
        return [*self._skeleton] if len(self._skeleton) == count else ()

    def _find_lines(self, names: Iterable[str]) -> tuple[tuple[int, int], ...]:
        """Returns the pairs of places that lines join, among points with these names."""
        places = {name: place for place, name in enumerate(names)}
        joined = (
            (places.get(start), places.get(end))
            for start, ends in self._skeleton.items()
            for end in ends
        )
        return tuple((start, end) for start, end in joined if start is not None and end is not None)


KEY_POINTS = KeyPointKind()


def _order_points(
    points: Sequence[KeyPoint], own: Sequence[str], names: Sequence[str]
) -> list[KeyPoint]:
    """Returns the points with some names, in their order, of an object whose points have others."""
    named = dict(zip(own, points, strict=True))
    return [named.get(name, _NOT_LABELED) for name in names]


def _as_fields(rows: Sequence[Sequence[KeyPoint]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the fields of objects with these points, whose names are the same for each."""
    points = list(chain.from_iterable(rows))
    return {
        "keypoints_x": [point.x for point in points],
        "keypoints_y": [point.y for point in points],
        "keypoints_visibility": [int(point.visibility) for point in points],
        "keypoints_text": [name.encode() for name in names] * len(rows),
        "keypoints_num": [sum(point.is_labeled for point in row) for row in rows],
        "keypoints": [float(number) for point in points for number in point],
    }


def _separate(values: Values) -> Values:
    """Returns the values of an Example with a list for each number of the points."""
    if "keypoints" not in values:
        return values
    columns = {name: values["keypoints"][at::_NUMBERS] for at, name in enumerate(_SEPARATE)}
    return {**columns, **values}


def _count_boxes(values: Values) -> int:
    """Returns the number of boxes that may have points."""
    return max(len(values.get(name, ())) for name in _PER_BOX)


def _check_objects(values: Values) -> str | None:
    """Returns the problem with the names and numbers of the points of each object."""
    numbers = values.get("keypoints_num")
    if not numbers:
        return None
    names, codes = values.get("keypoints_text", ()), values.get("keypoints_visibility", ())
    each = max(len(names), len(codes)) // len(numbers)
    for at, number in enumerate(numbers):
        start = at * each
        if [*names[start : start + each]] != [*names[:each]]:
            return f"the key points of box {at + 1} have other names than those of box 1"
        labeled = sum(code > 0 for code in codes[start : start + each])
        if codes and labeled != number:
            return f"box {at + 1} has {labeled} labeled key points, and its number says {number}"
    return None


def _place_points(
    given: KeyPoints, at: int, on: AnnotatedImage, count: DetailCount
) -> list[KeyPoint]:
    """Returns the points of a stored object, in fractions of the stored image.

    Args:
        given: the points of all objects.
        at: the object's place among those listed.
        on: their image.
        count: gets the points that are not stored.
    """
    points, placed = given.read(at), list[KeyPoint]()
    if points is None:
        count.drop(at, "bad_points", len(given.names))
        points = [_NOT_LABELED] * len(given.names)
    for point in points:
        moved, fault = _NOT_LABELED, None
        if point.is_labeled:
            moved, fault = _place_point(point, given.fractions, on)
        if fault:
            count.drop(at, fault)
        placed.append(moved)
    return placed


_REMEDIES = {
    "bad_points": "give each object three numbers for every point that its category names",
    "repeated": "give the points of an object different labels, or, if each point outside all "
    "regions is an object, add --set source.points=objects",
    "several_regions": "attach each point to its region (parentID)",
}
"""What to do about points that are dropped for a reason."""

_FAULTS = frozenset({"bad_points", "not_finite", "outside", "repeated", "several_regions"})
"""Why points are dropped, if no setting asks for it."""


def _place_point(
    point: KeyPoint, is_fraction: bool, on: AnnotatedImage
) -> tuple[KeyPoint, str | None]:
    """Moves a labeled point to the stored image; the text says why it is not on it."""
    assert on.objects is not None
    width, height = (1, 1) if is_fraction else on.geometry.frame_size(on.objects.drawn_on)
    x, y = point.x / width, point.y / height
    if not all(map(math.isfinite, (x, y, point.visibility))):
        return _NOT_LABELED, "not_finite"
    if not _is_inside(x, y):
        return _NOT_LABELED, "outside"
    x, y = on.geometry.place((x, y, x, y), on.objects.drawn_on)[:2]
    if not _is_inside(x, y):
        return _NOT_LABELED, "cropped_away"
    visibility = 1 if point.visibility == 1 else 2
    return KeyPoint(min(1.0, max(0.0, x)), min(1.0, max(0.0, y)), visibility), None


def _is_inside(x: float, y: float) -> bool:
    return all(-TOLERANCE <= side <= 1 + TOLERANCE for side in (x, y))
