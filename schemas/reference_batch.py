"""Carries references and other records through Beam as JSON, and decodes them to their own class in any process.

References travel in batches, since runners have a cost per element.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import repeat
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders

from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Notice

_FIELDS = {each: [attrgetter(field.name) for field in fields(each)] for each in (ImageRef, Notice, ClassNames)}


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    """A part of what was listed; the order within each type means nothing."""

    refs: list[ImageRef] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    classes: list[ClassNames] = field(default_factory=list)

    @classmethod
    def of(cls, listed: Iterable[Listed]) -> "ReferenceBatch":
        """A batch of what was listed."""
        batch = cls()
        lists = {ImageRef: batch.refs, Notice: batch.notices, ClassNames: batch.classes}
        for each in listed:
            lists[type(each)].append(each)  # type: ignore[attr-defined]  # a list of that type
        return batch

    def __len__(self) -> int:
        return len(self.refs) + len(self.notices) + len(self.classes)


class RecordCoder(coders.Coder):
    """Encodes a dataclass as the list of its fields' values.

    Beam's own coder for rows knows a record's class only in the process that built the pipeline: a worker elsewhere
    gets a tuple without its methods. This one is pickled with the class's name, so unpickling it imports the class.

    Args:
        record: a dataclass at the top of an importable module, with two or more fields whose values JSON can hold.
    """

    def __init__(self, record: type) -> None:
        self._record = record

    @classmethod
    def from_type_hint(cls, typehint: type, unused_registry: object) -> "RecordCoder":  # type: ignore[override]
        """The coder of a record's class."""
        return cls(typehint)

    def to_type_hint(self) -> type:
        """The record's class."""
        return self._record

    def is_deterministic(self) -> bool:
        """True: equal records always give the same bytes."""
        return True

    def encode(self, value: Any) -> bytes:
        """Encodes a record."""
        return orjson.dumps(_values_of(self._record)(value))

    def decode(self, encoded: bytes) -> Any:
        """Decodes a record."""
        return self._record(*orjson.loads(encoded))


@cache
def _values_of(record: type) -> Callable[[Any], Any]:
    return attrgetter(*(each.name for each in fields(record)))


class ReferenceBatchCoder(RecordCoder):
    """Encodes a batch as columns; a column of equal values is written as one value."""

    def encode(self, value: ReferenceBatch) -> bytes:
        """Encodes a batch."""
        parts: list[Any] = []
        lists: list[Any] = [value.refs, value.notices, value.classes]
        for getters, items in zip(_FIELDS.values(), lists, strict=True):
            count = len(items)
            columns = [list(map(get, items)) for get in getters] if items else []
            parts += count, [column[:1] if column.count(column[0]) == count else column for column in columns]
        return orjson.dumps(parts)

    def decode(self, encoded: bytes) -> ReferenceBatch:
        """Decodes a batch."""
        parts = orjson.loads(encoded)
        lists: list[Any] = []
        for record, count, columns in zip(_FIELDS, parts[::2], parts[1::2], strict=True):
            values = (repeat(column[0], count) if len(column) == 1 else column for column in columns)
            lists.append(list(map(record, *values)) if count else [])
        batch = ReferenceBatch(*lists)
        if batch.classes:  # JSON has no tuples
            batch.classes[:] = [ClassNames(each.uri, tuple(each.names), tuple(each.numbers)) for each in batch.classes]
        return batch

    def estimate_size(self, value: ReferenceBatch) -> int:
        """The approximate size in bytes; otherwise Beam would encode a batch to estimate it."""
        return 100 * len(value)


# Registered here, because the modules of these classes are imported without Beam.
coders.registry.register_coder(ImageRef, RecordCoder)
coders.registry.register_coder(ReferenceBatch, ReferenceBatchCoder)
