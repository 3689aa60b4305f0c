"""Batches of references as one element, since runners have a cost per element."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders

from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Notice
from recordmill.schemas.record_coder import RecordCoder

_FIELDS = {each: [attrgetter(field.name) for field in fields(each)] for each in (ImageRef, Notice, ClassNames)}


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    """Some of what was listed, each type in an order that means nothing."""

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


def encode_batch(batch: ReferenceBatch) -> bytes:
    """A batch's columns as JSON; one whose values are all the same is written as one value."""
    parts: list[Any] = []
    lists: list[Any] = [batch.refs, batch.notices, batch.classes]
    for values, items in zip(_FIELDS.values(), lists, strict=True):
        count = len(items)
        columns = [list(map(value, items)) for value in values] if items else []
        parts += count, [column[:1] if column.count(column[0]) == count else column for column in columns]
    return orjson.dumps(parts)


def decode_batch(data: bytes) -> ReferenceBatch:
    """The inverse of `encode_batch`."""
    parts = orjson.loads(data)
    lists: list[Any] = []
    for record, count, columns in zip(_FIELDS, parts[::2], parts[1::2], strict=True):
        values = (repeat(column[0], count) if len(column) == 1 else column for column in columns)
        lists.append(list(map(record, *values)) if count else [])
    batch = ReferenceBatch(*lists)
    if batch.classes:  # JSON has no tuples
        batch.classes[:] = [ClassNames(each.uri, tuple(each.names), tuple(each.numbers)) for each in batch.classes]
    return batch


class ReferenceBatchCoder(RecordCoder):
    """Beam's coder for batches."""

    def encode(self, value: ReferenceBatch) -> bytes:
        """Encodes a batch."""
        return encode_batch(value)

    def decode(self, encoded: bytes) -> ReferenceBatch:
        """Decodes a batch."""
        return decode_batch(encoded)

    def estimate_size(self, value: ReferenceBatch) -> int:
        """The approximate size in bytes; otherwise Beam would encode a batch to estimate it."""
        return 100 * len(value)


coders.registry.register_coder(ReferenceBatch, ReferenceBatchCoder)
