"""Attributes of objects, such as their color: one whole number for each box and attribute."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

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
from recordmill.annotations.count_details import DetailCount, drop_undecoded, lose_details
from recordmill.schemas.attribute_words import AttributeText, find_number
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.features import ATTRIBUTE, EACH_ATTRIBUTE, RecordField
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

if TYPE_CHECKING:
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

NO_VALUE = -1
"""What a box without an attribute has in its place."""

_FIELDS = {
    EACH_ATTRIBUTE: RecordField(
        "int64",
        "each attribute of the boxes, with `*` in the feature's name for the attribute's; "
        "`attribute:NAME` is a single one: a whole number, 0 or 1, or the id of a word; -1 for "
        "none",
        many=True,
    )
}


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of an image's objects, as its source gives them.

    Attributes:
        values: for each box, its values by the names of its attributes; see `read_attribute`.
    """

    kind: ClassVar[str] = "attributes"

    values: Sequence[Mapping[str, str]]

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries; names get no line breaks."""
        values = list(map(_on_one_line, self.values))
        return as_kept_json(values, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the attributes that a reference carries."""
        return cls(orjson.loads(packed))


def _on_one_line(values: Mapping[str, str]) -> Mapping[str, str]:
    return {" ".join(name.split()): text for name, text in values.items()}


def read_attribute(value: Any) -> str | None:
    """Returns a truth value, a number or a text as text; None if there is none.

    Lists and objects, which are not one value, are none, too.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    return None


class AttributeKind(AnnotationKind):
    """Attributes of the objects in boxes."""

    name: ClassVar[str] = Attributes.kind
    unit: ClassVar[str] = "attribute"
    stored_by: ClassVar[Sequence[str]] = ("tf_object_detection",)
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    compared: ClassVar[frozenset[str]] = frozenset({"xmin", "box_labels"})

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the number of values; their classes are those of the boxes."""
        return ListedLabels((), sum(map(len, Attributes.unpack(packed).values)))

    def list_attributes(self, packed: bytes) -> Iterator[AttributeText]:
        """Yields each value of the objects, with the name of its attribute."""
        for own in Attributes.unpack(packed).values:
            for name, text in own.items():
                yield AttributeText(name, text)

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Gives the attributes of the objects that are stored their numbers."""
        given = Attributes.unpack(packed).values
        if on.objects is None:
            return drop_undecoded(self.list_labels(packed).total)
        known, written = on.label_map.attributes, 0
        count = DetailCount(on.objects, on.unwanted, frozenset())
        columns: dict[str, list[int]] = {name: [] for name in known}
        for at in on.objects.stored:
            own, found = given[at], 0
            for name, column in columns.items():
                number = find_number(own.get(name), known[name])
                column.append(NO_VALUE if number is None else number)
                found += number is not None
            written += found
            count.drop(at, "not_stored", len(own) - found)
        count.drop_with_boxes({at: len(own) for at, own in enumerate(given) if own})
        fields = {f"{ATTRIBUTE}{name}": column for name, column in columns.items()}
        return PlacedAnnotations(fields, [], count.outcome(written))

    def fill(self, on: AnnotatedImage) -> Mapping[str, Sequence[int]]:
        """Returns that each object of an image has no value."""
        if on.objects is None:
            return {}
        missing = [NO_VALUE] * len(on.objects.stored)
        return {f"{ATTRIBUTE}{name}": missing for name in on.label_map.attributes}

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the attributes of an image that is not written."""
        return lose_details(self.list_labels(packed).total, rejected)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> None:
        """Returns None: no attribute is faulty."""

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of attributes that may end up in no record."""
        return contract.lost_attributes

    def check(self, values: Values) -> str | None:
        """Returns the problem with the attributes in an Example: each box has one number."""
        for name in ("xmin", "box_labels"):
            for field in values.keys() - self.compared:
                if name in values and len(values[field]) != len(values[name]):
                    of = f"{len(values[field])} of {field.removeprefix(ATTRIBUTE)}"
                    return f"it has {of} for {len(values[name])} boxes"
        return None


ATTRIBUTES = AttributeKind()
