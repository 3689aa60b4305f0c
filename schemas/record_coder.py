"""Carries Recordmill's records through Beam as JSON, and decodes them to their own class in any process."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders


class RecordCoder(coders.Coder):
    """Encodes a dataclass as the list of its fields' values.

    Beam's own coder for rows knows a record's class only in the process that built the pipeline: a worker elsewhere
    gets a tuple without its methods. This one is pickled with the class's name, so that reading it imports the class.

    Args:
        record: the dataclass, of two fields or more, whose values JSON can hold.
    """

    def __init__(self, record: type) -> None:
        self._record = record
        self._values: Callable[[Any], Any] = attrgetter(*(each.name for each in fields(record)))

    @classmethod
    def from_type_hint(cls, typehint: type, unused_registry: object) -> "RecordCoder":  # type: ignore[override]
        """The coder of a record's class."""
        return cls(typehint)

    def to_type_hint(self) -> type:
        """The record's class."""
        return self._record

    def is_deterministic(self) -> bool:
        """Equal records are always the same bytes."""
        return True

    def encode(self, value: Any) -> bytes:
        """Encodes a record."""
        return orjson.dumps(self._values(value))

    def decode(self, encoded: bytes) -> Any:
        """Decodes a record."""
        return self._record(*orjson.loads(encoded))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, RecordCoder) and self._record is other._record

    def __hash__(self) -> int:
        return hash(self._record)


def register_record(record: type) -> None:
    """Registers this coder with Beam for a dataclass. Steps call this: records themselves are read without Beam.

    Args:
        record: the class, defined at the top of an importable module.
    """
    coders.registry.register_coder(record, RecordCoder)
