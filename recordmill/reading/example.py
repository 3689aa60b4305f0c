"""Parses serialised Examples: keys, kinds, numbers of values, and values."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from google.protobuf.message import DecodeError

from recordmill.schemas.errors import LoadError
from recordmill.schemas.example_proto import Example
from recordmill.schemas.features import Kind

_KINDS: dict[str, Kind] = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}

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

    def items(self) -> Iterator[tuple[str, Kind | None, Sequence[Any]]]:
        """Key, kind and values of each feature, sorted by key; the kind is None if no list is set."""
        for key, feature in sorted(self._features.items(), key=itemgetter(0)):
            name = feature.WhichOneof("kind")
            yield (key, _KINDS[name], getattr(feature, name).value) if name else (key, None, ())

    @property
    def profile(self) -> Profile:
        """Key, kind and number of values of each feature, sorted by key."""
        return tuple((key, kind, len(values)) for key, kind, values in self.items())

    def values(self, key: str) -> Sequence[Any] | None:
        """The values of one feature; None if the record does not have it."""
        if key not in self._features:
            return None
        feature = self._features[key]
        name = feature.WhichOneof("kind")
        return getattr(feature, name).value if name else ()
