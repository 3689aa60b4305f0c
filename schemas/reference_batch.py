"""Batches of references as one element, since runners have a cost per element."""

from dataclasses import dataclass, fields
from itertools import repeat
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders

from recordmill.schemas.image_ref import ImageRef

_FIELDS = [attrgetter(field.name) for field in fields(ImageRef)]


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    """References in arbitrary order."""

    refs: list[ImageRef]


def encode_batch(batch: ReferenceBatch) -> bytes:
    """A batch's columns as JSON; one whose values are all the same is written as one value."""
    columns = [list(map(field, batch.refs)) for field in _FIELDS] if batch.refs else []
    count = len(batch.refs)
    return orjson.dumps([count, [column[:1] if column.count(column[0]) == count else column for column in columns]])


def decode_batch(data: bytes) -> ReferenceBatch:
    """The inverse of `encode_batch`."""
    count, columns = orjson.loads(data)
    values = (repeat(column[0], count) if len(column) == 1 else column for column in columns)
    return ReferenceBatch(list(map(ImageRef, *values)) if count else [])


class ReferenceBatchCoder(coders.Coder):
    """Beam's coder for batches."""

    def encode(self, value: ReferenceBatch) -> bytes:
        """Encodes a batch."""
        return encode_batch(value)

    def decode(self, encoded: bytes) -> ReferenceBatch:
        """Decodes a batch."""
        return decode_batch(encoded)

    def estimate_size(self, value: ReferenceBatch) -> int:
        """The approximate size in bytes; otherwise Beam would encode a batch to estimate it."""
        return 100 * len(value.refs)

    def is_deterministic(self) -> bool:
        """Equal batches are always the same bytes."""
        return True

    def to_type_hint(self) -> type:
        """The batch's class."""
        return ReferenceBatch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceBatchCoder)

    def __hash__(self) -> int:
        return hash(type(self))

    @classmethod
    def from_type_hint(cls, unused_typehint: Any, unused_registry: Any) -> "ReferenceBatchCoder":  # type: ignore[override]
        """The coder itself."""
        return cls()


coders.registry.register_coder(ReferenceBatch, ReferenceBatchCoder)
