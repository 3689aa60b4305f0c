"""Carries references through Beam as JSON, and decodes them to their own class in any process.

References travel in batches, since runners have a cost per element.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders

from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Notice

_FIELDS = {
    each: [attrgetter(field.name) for field in fields(each)]
    for each in (ImageRef, Notice, ClassNames)
}


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


class ReferenceBatchCoder(coders.Coder):
    """Encodes a batch as columns; a column of equal values is written as one value."""

    def to_type_hint(self) -> type:
        """The class of what it encodes."""
        return ReferenceBatch

    def is_deterministic(self) -> bool:
        """True: equal batches always give the same bytes."""
        return True

    def encode(self, value: ReferenceBatch) -> bytes:
        """Encodes a batch."""
        parts: list[Any] = []
        lists: list[Any] = [value.refs, value.notices, value.classes]
        for getters, items in zip(_FIELDS.values(), lists, strict=True):
            count = len(items)
            columns = [list(map(get, items)) for get in getters] if items else []
            parts += (
                count,
                [column[:1] if column.count(column[0]) == count else column for column in columns],
            )
        return orjson.dumps(parts)

    def decode(self, encoded: bytes) -> ReferenceBatch:
        """Decodes a batch."""
        parts = orjson.loads(encoded)
        lists: list[Any] = []
        for record, count, columns in zip(_FIELDS, parts[::2], parts[1::2], strict=True):
            values = (
                repeat(column[0], count) if len(column) == 1 else column for column in columns
            )
            lists.append(list(map(record, *values)) if count else [])
        batch = ReferenceBatch(*lists)
        if batch.classes:  # JSON has no tuples
            batch.classes[:] = [
                ClassNames(each.uri, tuple(each.names), tuple(each.numbers))
                for each in batch.classes
            ]
        return batch

    def estimate_size(self, value: ReferenceBatch) -> int:
        """The approximate size in bytes; otherwise Beam would encode a batch to estimate it."""
        return 100 * len(value)


# Beam's own coder for dataclasses knows their class only in the process that built the pipeline:
# workers elsewhere get tuples. Registered here, because the modules of these classes are imported
# without Beam.
coders.registry.register_coder(ImageRef, coders.PickleCoder)
coders.registry.register_coder(ReferenceBatch, ReferenceBatchCoder)
