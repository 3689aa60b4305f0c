"""Features: the named, typed values of an Example, defined once.

A `Feature` has a key, a kind, the field of a record that fills it, and a meaning. This one
definition is used to encode (`ExampleEncoder`), parse (`parse_example`, `tensorflow_features`),
document (`describe_features`) and describe (`feature_schema`, and back: `FeatureEntry.feature`).
`recordmill.annotations.kinds.RECORD_FIELDS` has the fields, whatever the source.

Values are coerced by the rules of TensorFlow's tutorial "TFRecord and tf.train.Example", made
strict: a value of another kind raises. Nothing is rounded, parsed or encoded.

| kind  | takes                                    | raises on                                     |
|-------|------------------------------------------|-----------------------------------------------|
| bytes | bytes, bytearray, memoryview, np.bytes_, | text (encode it as UTF-8 where it is read),   |
|       | a tensor of one string (TensorFlow's)    | numbers                                       |
| float | float, np.floating                       | bool, int (declare `int64`), text             |
| int64 | bool, int, IntEnum, np.integer, np.bool_ | float (1.0 too), text, anything outside int64 |

`tf.train.Example`'s messages are declared here from
tensorflow/core/example/{feature,example}.proto: importing TensorFlow costs seconds and half a
gigabyte in every process. They are in a separate descriptor pool, so that they never clash with
TensorFlow's when a user imports both. The wire format is the same: a test checks that the bytes
equal TensorFlow's.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from recordmill.schemas.example_bytes import insert_images

_Field = descriptor_pb2.FieldDescriptorProto
_KINDS = {"Bytes": _Field.TYPE_BYTES, "Float": _Field.TYPE_FLOAT, "Int64": _Field.TYPE_INT64}


def _declare_messages() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="recordmill/example.proto", package="tensorflow", syntax="proto3"
    )
    feature, features, example = (
        file.message_type.add(name=name) for name in ("Feature", "Features", "Example")
    )
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate(_KINDS.items(), start=1):
        values = file.message_type.add(name=f"{name}List").field.add(
            name="value", number=1, type=kind
        )
        values.label = _Field.LABEL_REPEATED
        if kind != _Field.TYPE_BYTES:
            values.options.packed = True
        _add_message(feature, f"{name.lower()}_list", number, f"{name}List").oneof_index = 0
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    _add_message(entry, "value", 2, "Feature")
    _add_message(features, "feature", 1, "Features.FeatureEntry").label = _Field.LABEL_REPEATED
    _add_message(example, "features", 1, "Features")
    return file


def _add_message(
    message: Any, name: str, number: int, kind: str
) -> descriptor_pb2.FieldDescriptorProto:
    field: descriptor_pb2.FieldDescriptorProto = message.field.add(
        name=name,
        number=number,
        label=_Field.LABEL_OPTIONAL,
        type=_Field.TYPE_MESSAGE,
        type_name=f".tensorflow.{kind}",
    )
    return field


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_declare_messages())

Example: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))
"""The message class of `tf.train.Example`: `Example.FromString(record)`,
`example.features.feature["label"]`."""


_FEATURE_LISTS = 2  # the number of this field of a SequenceExample


def list_feature_lists(example: Any) -> list[str]:
    """Returns the keys of a SequenceExample's `feature_lists`, sorted; an Example has none.

    A SequenceExample can be parsed as an Example: its context has the same place as the features
    there, and its `feature_lists` are a field that an Example does not have.
    """
    keys: set[str] = set()
    unknown = UnknownFieldSet(example)
    for number in range(len(unknown)):
        field = unknown[number]
        if field.field_number == _FEATURE_LISTS and isinstance(field.data, bytes):
            with suppress(DecodeError):  # maps are alike, whatever their values
                keys.update(type(example.features).FromString(field.data).feature)
    return sorted(keys)


Value = bytes | float | int

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class FeatureValueError(ValueError):
    """A value that does not fit its feature; the message says which value and which kind."""


def coerce_bytes(value: Any) -> bytes:
    """Returns a value of a bytes_list."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if callable(numpy := getattr(value, "numpy", None)) and isinstance(inside := numpy(), bytes):
        # Accepts EagerTensors, as TensorFlow's tutorial does, without importing TensorFlow.
        return inside
    raise FeatureValueError(f"{_named(value)} is not bytes: encode text as UTF-8 where it is read")


def coerce_float(value: Any) -> float:
    """Returns a value of a float_list.

    An Example stores 32 bits, and protobuf rounds a double to the nearest value. A finite double
    beyond float32's range would become infinite in the file, so it raises, too.
    """
    if not isinstance(value, float | np.floating):
        raise FeatureValueError(f"{_named(value)} is not a float")
    as_double = float(value)
    # Cheap test first: vectors have thousands.
    if abs(as_double) > _FLOAT32_MAX and math.isfinite(as_double):
        raise FeatureValueError(f"{_named(value)} is outside the range of a 32-bit float")
    return as_double


def coerce_int64(value: Any) -> int:
    """Returns a value of an int64_list.

    Bool and integer types, and enums whose value is an integer.
    """
    if type(value) is not int:
        if isinstance(value, Enum):
            return coerce_int64(value.value)
        if not isinstance(value, Integral | np.bool_):
            raise FeatureValueError(f"{_named(value)} is not an integer")
        value = int(value)
    if not INT64_MIN <= value <= INT64_MAX:
        raise FeatureValueError(f"{value} is outside the range of a 64-bit signed integer")
    return value


_FLOAT32_MAX = float(np.finfo(np.float32).max)

COERCE: dict[str, Callable[[Any], Value]] = {
    "bytes": coerce_bytes,
    "float": coerce_float,
    "int64": coerce_int64,
}
"""The coercion of each kind of feature."""


def coerce_setting(value: bool | int | float | str | None, kind: str) -> Value | None:
    """Coerces a value that is written in YAML.

    A string is stored as UTF-8, and an integer may stand for a float.

    Raises:
        FeatureValueError: it is of another kind.
    """
    if isinstance(value, str):
        value = value.encode()  # type: ignore[assignment]
    elif kind == "float" and type(value) is int:
        value = float(value)
    if value is None:
        return None
    return COERCE[kind](value)


def _named(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"


FeatureKind = Literal["bytes", "float", "int64"]

MESSAGE_BYTES = 1 << 20
"""The memory that a message may hold before it is replaced: protobuf frees replaced values only
with the message."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One named value of an Example.

    Attributes:
        key: the name in the Example, e.g. `image/encoded`.
        kind: `bytes`, `float` or `int64`: which of Example's three lists holds it.
        field: the field of the record that fills it, e.g. `encoded`; docs/conventions.md lists
            them. Empty for a `constant`.
        meaning: one line for people.
        many: False for exactly one value (shape `[]`), True for any number of values.
        default: the value that a reader uses if the key is absent; None if it must be present.
        constant: the value that every Example has; None if the record has it.
    """

    key: str
    kind: FeatureKind
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
        default: the value that a reader uses if the key is absent, as UTF-8 text for bytes; absent
            if it must be present.
    """

    kind: FeatureKind
    shape: tuple[Any, ...]
    field: str
    meaning: str
    default: Any = None

    @classmethod
    def of(cls, feature: Feature) -> Self:
        """Returns the description of a feature."""
        default: Any = feature.default
        if isinstance(default, bytes):
            default = default.decode()
        return cls(
            feature.kind, (None,) if feature.many else (), feature.field, feature.meaning, default
        )

    def feature(self, key: str) -> Feature:
        """Returns the described feature, without its constant, which readers do not need."""
        default = self.default
        if isinstance(default, str):
            default = default.encode()
        return Feature(key, self.kind, self.field, self.meaning, self.shape != (), default)


class ExampleEncoder:
    """Serializes records with the same features.

    Each thread fills one message again and again: at 50 KB, a new one for each record takes 20 us
    more.

    Args:
        features: what to write; a feature whose field is absent from a record, or None, is left
            out.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._features = tuple(features)
        self._thread = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExampleEncoder, (self._features,)

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """Serializes one `tf.train.Example`.

        The same values always give the same bytes, in any process and order.

        Args:
            record: values by field name: one value, or a sequence of values if the feature is
                `many`.

        Raises:
            FeatureValueError: a value is not of its feature's kind (see `COERCE`), or a feature
                of one value is given none or several.
        """
        thread = self._thread
        given, present = [], []
        for feature in self._features:
            if feature.constant is None:
                value = record.get(feature.field)
            else:
                value = feature.constant
            if value is not None:
                given.append(value)
                present.append(feature)
        if getattr(thread, "present", None) != present or thread.held_bytes > MESSAGE_BYTES:
            thread.example, thread.present, thread.held_bytes = Example(), present, 0
            entries = thread.example.features.feature
            thread.places = [
                getattr(entries[each.key], f"{each.kind}_list").value for each in present
            ]
        try:
            for feature, value, place in zip(present, given, thread.places, strict=True):
                coerce = COERCE[feature.kind]
                if feature.many:
                    place[:] = [coerce(each) for each in _values_of(value)]
                else:
                    place[:] = (coerce(value),)
        except FeatureValueError as error:
            raise FeatureValueError(f"feature {feature.key}: {error}") from None
        return self._serialize()

    def encode_with_rest(self, record: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Serializes the record as `encode` does, and again with an empty image."""
        images = {
            each.key: record[each.field]
            for each in self._features
            if each.field in STORED_IMAGE and isinstance(record.get(each.field), bytes)
        }
        if images and max(map(len, images.values())) > MESSAGE_BYTES:
            empty = {field: b"" for field in STORED_IMAGE if field in record}
            rest = self.encode({**record, **empty})
            return insert_images(rest, images), rest
        whole = self.encode(record)
        for feature, place in zip(self._thread.present, self._thread.places, strict=True):
            if feature.field in STORED_IMAGE:
                place[0] = b""
        return whole, self._serialize()

    def _serialize(self) -> bytes:
        # Map entries are unordered: without `deterministic`, 50 insertion orders gave 4 different
        # byte strings.
        serialized: bytes = self._thread.example.SerializeToString(deterministic=True)
        self._thread.held_bytes += len(serialized)
        return serialized


def encode_example(features: Sequence[Feature], record: Mapping[str, Any]) -> bytes:
    """Serializes one `tf.train.Example`, see `ExampleEncoder.encode`.

    Example:
        features = [recordmill.Feature("image/class/label", "int64", "label", "class id")]
        record = recordmill.encode_example(features, {"label": 3})
    """
    return ExampleEncoder(features).encode(record)


def _values_of(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise FeatureValueError(f"holds many values, but {value!r:.60} is not a list")
    return value


def parse_example(features: Iterable[Feature], record: bytes) -> dict[str, Any]:
    """Reads one serialized Example back: values by feature key.

    A scalar feature gives its value, a `many` feature a list. Keys that no feature names are left
    out.

    Example:
        features = [recordmill.Feature("image/class/label", "int64", "label", "class id")]
        record = recordmill.encode_example(features, {"label": 3})
        label = recordmill.parse_example(features, record)["image/class/label"]

    Raises:
        FeatureValueError: a required feature is missing, one is of another kind, or a scalar does
            not have one value.
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
            raise FeatureValueError(
                f"feature {feature.key} is of type {entry.WhichOneof('kind')}, not "
                f"{feature.kind}_list"
            )
        values: list[Value] = list(getattr(entry, f"{feature.kind}_list").value)
        if not feature.many and len(values) != 1:
            raise FeatureValueError(
                f"feature {feature.key} holds {len(values)} values where one is expected"
            )
        parsed[feature.key] = values if feature.many else values[0]
    return parsed


def tensorflow_features(features: Iterable[Feature]) -> dict[str, Any]:
    """Returns the feature description that `tf.io.parse_example` takes. Needs TensorFlow.

    Example:
        convention = recordmill.load_convention("slim")
        spec = recordmill.tensorflow_features(convention.example_features)
        parsed = tf.data.TFRecordDataset(files).map(lambda x: tf.io.parse_example(x, spec))
    """
    import tensorflow as tf

    dtypes = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}
    described = {}
    for feature in features:
        dtype = dtypes[feature.kind]
        if feature.many:
            described[feature.key] = tf.io.VarLenFeature(dtype)
        else:
            described[feature.key] = tf.io.FixedLenFeature([], dtype, feature.default)
    return described


def feature_schema(features: Iterable[Feature]) -> dict[str, FeatureEntry]:
    """Returns the features as the marker describes them, sorted by key."""
    return {each.key: FeatureEntry.of(each) for each in sorted(features, key=lambda each: each.key)}


def describe_features(features: Iterable[Feature]) -> str:
    """Returns the features as a Markdown table for people.

    Example:
        convention = recordmill.load_convention("slim")
        print(recordmill.describe_features(convention.example_features))
    """
    rows = []
    for each in features:
        kind = f"{each.kind}[]" if each.many else each.kind
        key, meaning = (text.replace("|", "\\|") for text in (each.key, each.meaning))
        rows.append(f"| `{key}` | {kind} | {meaning} |")
    return "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field: the kind of feature that it fills, and what it means."""

    kind: FeatureKind
    meaning: str
    many: bool = False


ATTRIBUTE = "attribute:"
"""What the field of an attribute of objects begins with; its name follows."""

EACH_ATTRIBUTE = f"{ATTRIBUTE}*"
"""The field of every attribute that no other feature stores."""


def family_of(field: str) -> str:
    """Returns the field that stands for a field: all attributes have the same."""
    return EACH_ATTRIBUTE if field.startswith(ATTRIBUTE) else field


_REFERENCE = {
    "label": RecordField("int64", "class id"),
    "label_text": RecordField("bytes", "class name, UTF-8"),
    "filename": RecordField("bytes", "the file's name: last part of `key`"),
    "key": RecordField("bytes", "the image key, UTF-8: by default the path below the input"),
    "source_id": RecordField(
        "bytes", "the image's id in COCO or in an existing Example; otherwise its file name"
    ),
    "split": RecordField("bytes", "the split's name"),
    "split_upper": RecordField("bytes", "the split's name in upper case"),
}
_PIXELS = {
    "encoded": RecordField("bytes", "the encoded image, or the pixels with `images.store: raw`"),
    "format": RecordField("bytes", "the image's format"),
    "height": RecordField("int64", "rows of pixels"),
    "width": RecordField("int64", "columns of pixels"),
    "channels": RecordField("int64", "3, or 1 for grayscale"),
    "pixels_base64": RecordField("bytes", "pixels in url-safe base64, with `images.store: raw`"),
}
_DIGESTS = {
    "sha256": RecordField("bytes", "SHA-256 of `encoded` in hex; without an image, of the file"),
    "file_sha256": RecordField("bytes", "SHA-256 of the original file in hex"),
}
STORED_IMAGE = ("encoded", "pixels_base64")
"""The fields that hold an image as it is stored."""

REFERENCE_FIELDS = frozenset(_REFERENCE)
"""The fields of every reference."""

PIXEL_FIELDS = frozenset(_PIXELS)
"""The fields that only images have."""

IMAGE_FIELDS = frozenset((*_REFERENCE, *_PIXELS, *_DIGESTS))
"""The fields of every image; a source's own features cannot have these names."""

OWN_FIELDS: Mapping[str, RecordField] = _PIXELS | _DIGESTS | _REFERENCE
"""The fields of every image, in the order in which they are documented; `recordmill.annotations`
has those of annotations."""
