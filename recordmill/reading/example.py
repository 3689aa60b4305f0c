"""Parses serialised Examples: keys, kinds, numbers of values, and values."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from recordmill.schemas.errors import LoadError
from recordmill.schemas.example_proto import Example
from recordmill.schemas.features import Kind

_KINDS: dict[str | None, Kind] = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}

Profile = tuple[tuple[str, Kind | None, int], ...]


class DamagedExampleError(LoadError):
    """A record is not a `tf.train.Example`; the message says so."""


class ParsedExample:
    """One record, as protobuf reads it: if a key occurs twice, the last one counts."""

    __slots__ = ("_features",)

    def __init__(self, data: bytes | memoryview) -> None:
        """Parses a record.

        Raises:
            DamagedExampleError: it cannot be parsed.
        """
        try:
            self._features = Example.FromString(data).features.feature
        except DecodeError:
            raise DamagedExampleError("the data cannot be parsed as a tf.train.Example") from None

    @property
    def profile(self) -> Profile:
        """Key, kind and number of values of each feature, sorted by key; the kind is None if no list is set."""
        found = []
        for key, feature in self._features.items():
            name = feature.WhichOneof("kind")
            found.append((key, _KINDS.get(name), len(getattr(feature, name).value) if name else 0))
        found.sort(key=lambda item: item[0])
        return tuple(found)

    def values(self, key: str) -> Sequence[Any] | None:
        """The values of one feature; None if the record does not have it."""
        if key not in self._features:
            return None
        feature = self._features[key]
        name = feature.WhichOneof("kind")
        return getattr(feature, name).value if name else ()
