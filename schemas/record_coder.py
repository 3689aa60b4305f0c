"""Encodes Recordmill's records for Beam, field by field, and decodes them to their own class in any process."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_type_hints

from apache_beam import coders
from apache_beam.coders.coder_impl import AbstractComponentCoderImpl, CoderImpl
from apache_beam.coders.coders import FastCoder

_TEXT = coders.StrUtf8Coder()

FIELD_CODERS: dict[Any, coders.Coder] = {
    bool: coders.BooleanCoder(),
    int: coders.VarIntCoder(),
    str: _TEXT,
    bytes: coders.BytesCoder(),
}


class RecordCoder(FastCoder):
    """Encodes a dataclass by its fields, in their order.

    Beam's own coder for rows knows a record's class only in the process that built the pipeline: a worker elsewhere
    gets a tuple without its methods. This one is pickled with the class's name, so that reading it imports the class.

    Args:
        record: the dataclass, of two fields or more; each is of a type in `FIELD_CODERS`.
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
        """Whether equal records are always the same bytes."""
        return all(coder.is_deterministic() for coder in self._field_coders())

    def _field_coders(self) -> list[coders.Coder]:
        types = get_type_hints(self._record)
        return [FIELD_CODERS[types[field.name]] for field in fields(self._record)]

    def _create_impl(self) -> CoderImpl:
        return _RecordCoderImpl(self._record, [coder.get_impl() for coder in self._field_coders()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordCoder) and self._record is other._record

    def __hash__(self) -> int:
        return hash(self._record)


class _RecordCoderImpl(AbstractComponentCoderImpl):
    def __init__(self, record: type, field_coders: list[CoderImpl]) -> None:
        super().__init__(field_coders)
        self._construct = record
        self._extract = attrgetter(*(field.name for field in fields(record)))

    def _extract_components(self, value: Any) -> tuple[Any, ...]:
        return self._extract(value)

    def _construct_from_components(self, components: Sequence[Any]) -> Any:
        return self._construct(*components)


def register_record(record: type) -> None:
    """Registers this coder with Beam for a dataclass. Steps call this: records themselves are read without Beam.

    Args:
        record: the class, defined at the top of an importable module.
    """
    coders.registry.register_coder(record, RecordCoder)
