"""Features: the named, typed values of an Example, defined once.

A `Feature` has a key, a kind, the field of a record that fills it, and a meaning. This one definition is used to encode
(`ExampleEncoder`), parse (`parse_example`, `tensorflow_features`), document (`describe_features`) and describe
(`feature_schema`, and back: `FeatureEntry.feature`).
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from recordmill.schemas.coercion import COERCE, FeatureValueError, Value
from recordmill.schemas.digests import STORED_IMAGE
from recordmill.schemas.example_proto import Example

Kind = Literal["bytes", "float", "int64"]

_PLACEHOLDERS: dict[Kind, Value] = {"bytes": b"", "float": 0.0, "int64": 0}

MESSAGE_BYTES = 1 << 20
"""The memory that a message may hold before it is replaced."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One named value of an Example.

    Attributes:
        key: the name in the Example, e.g. `image/encoded`.
        kind: `bytes`, `float` or `int64`: which of Example's three lists holds it.
        field: the field of the record that fills it, e.g. `encoded`; docs/conventions.md lists them.
            Empty for a `constant`.
        meaning: one line for people.
        many: False for exactly one value (shape `[]`), True for any number of values.
        default: the value that a reader uses if the key is absent; None if it must be present.
        constant: the value that every Example has; None if the record has it.
    """

    key: str
    kind: Kind
    field: str
    meaning: str
    many: bool = False
    default: bytes | float | int | None = None
    constant: bytes | float | int | None = None


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """A feature as the marker of a dataset describes it.

    Attributes:
        kind: `bytes`, `float` or `int64`.
        shape: empty for exactly one value, one null for any number of values.
        field: the field that fills it, see docs/conventions.md; empty for a constant.
        meaning: one line for people.
        default: the value that a reader uses if the key is absent, as UTF-8 text for bytes; absent if it must be
            present.
    """

    kind: Kind
    shape: tuple[Any, ...]
    field: str
    meaning: str
    default: Any = None

    @classmethod
    def of(cls, feature: Feature) -> Self:
        """The description of a feature."""
        default = feature.default.decode() if isinstance(feature.default, bytes) else feature.default
        return cls(feature.kind, (None,) if feature.many else (), feature.field, feature.meaning, default)

    def feature(self, key: str) -> Feature:
        """The described feature, without its constant, which readers do not need."""
        default = self.default.encode() if isinstance(self.default, str) else self.default
        return Feature(key, self.kind, self.field, self.meaning, self.shape != (), default)


class ExampleEncoder:
    """Serialises records with the same features.

    The message is created once and refilled for each record, which takes half the time (eight features: 6 instead of
    12 us). Each thread has its own messages.

    Args:
        features: what to write; a feature whose field is absent from a record, or None, is left out.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._features = tuple(features)
        self._fields = [feature.field for feature in features]
        self._messages = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExampleEncoder, (self._features,)

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """Serialises one `tf.train.Example`; the same values always give the same bytes, in any process and order.

        Args:
            record: values by field name: one value, or a sequence of values if the feature is `many`.

        Raises:
            FeatureValueError: a value is not of its feature's kind (see `schemas.coercion`), or a feature that holds
                one value is given none or several.
        """
        return self._fill(record).serialize()

    def encode_with_rest(self, record: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Serialises the record as `encode` does, and again with an empty image."""
        message = self._fill(record)
        return message.serialize(), message.serialize_rest()

    def _fill(self, record: Mapping[str, Any]) -> "_Message":
        values = list(map(record.get, self._fields))
        absent = [value is None for value in values]
        message: _Message | None = getattr(self._messages, "message", None)
        if message is None or message.absent != absent or message.held_bytes > MESSAGE_BYTES:
            message = self._messages.message = _Message(self._features, absent)
        message.fill(values)
        return message


class _Message:
    """A reusable Example, which holds a list for each feature that is present; `fill` replaces the values.

    `held_bytes` is its size in memory: protobuf frees replaced values only with the message.
    """

    def __init__(self, features: Sequence[Feature], absent: list[bool]) -> None:
        self.absent = absent
        self.held_bytes = 0
        self._example = Example()
        self._places: list[tuple[int, Feature, Callable[[Any], Value], Any]] = []
        self._images: list[Any] = []
        entries = self._example.features.feature
        for index, (feature, is_absent) in enumerate(zip(features, absent, strict=True)):
            if feature.constant is None and is_absent:
                continue
            values = getattr(entries[feature.key], f"{feature.kind}_list").value
            coerce = COERCE[feature.kind]
            if feature.constant is not None:
                values.append(coerce(feature.constant))
                continue
            values.append(_PLACEHOLDERS[feature.kind])
            self._places.append((index, feature, coerce, values))
            if feature.field in STORED_IMAGE:
                self._images.append(values)

    def fill(self, values: Sequence[Any]) -> None:
        """Replaces the values, one per feature."""
        try:
            for index, feature, coerce, place in self._places:
                if feature.many:
                    place[:] = [coerce(each) for each in _values_of(values[index])]
                else:
                    place[0] = coerce(values[index])
        except FeatureValueError as error:
            raise FeatureValueError(f"feature {feature.key}: {error}") from None

    def serialize(self) -> bytes:
        """The bytes of the message."""
        # Map entries are unordered: without `deterministic`, 50 insertion orders gave 4 different byte strings.
        serialized: bytes = self._example.SerializeToString(deterministic=True)
        self.held_bytes += len(serialized)
        return serialized

    def serialize_rest(self) -> bytes:
        """Empties the image in the message, and returns its bytes."""
        for place in self._images:
            place[0] = b""
        return self.serialize()


def encode_example(features: Sequence[Feature], record: Mapping[str, Any]) -> bytes:
    """Serialises one `tf.train.Example`, see `ExampleEncoder.encode`."""
    return ExampleEncoder(features).encode(record)


def _values_of(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise FeatureValueError(f"holds many values, but {value!r:.60} is not a list")
    return value


def parse_example(features: Iterable[Feature], record: bytes) -> dict[str, Any]:
    """Reads one serialised Example back: values by feature key.

    A scalar feature gives its value, a `many` feature a list. Keys that no feature names are left out.

    Raises:
        FeatureValueError: a required feature is missing, one is of another kind, or a scalar does not have one value.
    """
    entries = Example.FromString(record).features.feature
    parsed: dict[str, Any] = {}
    for feature in features:
        if feature.key not in entries:
            if feature.default is None and not feature.many:
                raise FeatureValueError(f"feature {feature.key} is missing and has no default")
            parsed[feature.key] = [] if feature.many else feature.default
            continue
        entry = entries[feature.key]
        if entry.WhichOneof("kind") != f"{feature.kind}_list":
            raise FeatureValueError(f"feature {feature.key} is a {entry.WhichOneof('kind')}, not a {feature.kind}_list")
        values: list[Value] = list(getattr(entry, f"{feature.kind}_list").value)
        if not feature.many and len(values) != 1:
            raise FeatureValueError(f"feature {feature.key} holds {len(values)} values where one is expected")
        parsed[feature.key] = values if feature.many else values[0]
    return parsed


def tensorflow_features(features: Iterable[Feature]) -> dict[str, Any]:
    """The feature description that `tf.io.parse_example` takes. Needs TensorFlow."""
    import tensorflow as tf

    dtypes = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}
    return {
        feature.key: tf.io.VarLenFeature(dtypes[feature.kind])
        if feature.many
        else tf.io.FixedLenFeature([], dtypes[feature.kind], feature.default)
        for feature in features
    }


def feature_schema(features: Iterable[Feature]) -> dict[str, FeatureEntry]:
    """The features as the marker describes them, sorted by key."""
    return {each.key: FeatureEntry.of(each) for each in sorted(features, key=lambda each: each.key)}


def describe_features(features: Iterable[Feature]) -> str:
    """The features as a Markdown table for people."""
    rows = (f"| `{each.key}` | {each.kind}{'[]' if each.many else ''} | {each.meaning} |" for each in features)
    return "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])
