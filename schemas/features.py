"""Features: the named, typed values of an Example, stated once.

A `Feature` says its key, its kind, which field of a record fills it, and what it means. That one statement encodes
(`encode_example`), parses (`parse_example`, `tensorflow_features`), documents (`describe_features`) and describes
(`feature_schema`, and back: `features_from_schema`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schemas.coercion import COERCE, FeatureValueError, Value
from schemas.example_proto import Example

Kind = Literal["bytes", "float", "int64"]

_LISTS = {"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}


@dataclass(frozen=True, slots=True)
class Feature:
    """One named value of an Example.

    Attributes:
        key: the name in the Example, e.g. `image/encoded`.
        kind: `bytes`, `float` or `int64`: which of Example's three lists holds it.
        field: the field of the record that fills it, e.g. `encoded`; docs/conventions.md lists them.
            Empty where it is `constant`.
        meaning: one line for people.
        many: False for exactly one value (shape `[]`), True for any number of values.
        default: what a reader takes where the key is absent; None where it must be present.
        constant: the value that every Example has; None where the record has it.
    """

    key: str
    kind: Kind
    field: str
    meaning: str
    many: bool = False
    default: bytes | float | int | None = None
    constant: bytes | float | int | None = None


def encode_example(features: Sequence[Feature], record: Mapping[str, Any]) -> bytes:
    """Serialises one `tf.train.Example`; the same values give the same bytes in every process and order.

    Args:
        features: what to write; a feature whose field is absent from the record, or None, is left out.
        record: values by field name: one value, or a sequence of values where the feature is `many`.

    Raises:
        FeatureValueError: a value is not of its feature's kind (see `schemas.coercion`), or a feature that holds
            one value is given none or several.
    """
    example = Example()
    entries = example.features.feature
    for feature in features:
        value = record.get(feature.field) if feature.constant is None else feature.constant
        if value is None:
            continue
        coerce = COERCE[feature.kind]
        try:
            if feature.many:
                coerced = [coerce(each) for each in _values_of(value)]
                getattr(entries[feature.key], _LISTS[feature.kind]).value.extend(coerced)
            else:
                getattr(entries[feature.key], _LISTS[feature.kind]).value.append(coerce(value))
        except FeatureValueError as error:
            raise FeatureValueError(f"feature {feature.key}: {error}") from None
    # Map entries have no order of their own: without `deterministic`, 50 insertion orders gave 4 byte strings.
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def _values_of(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise FeatureValueError(f"holds many values, and {value!r:.60} is no list of them")
    return value


def parse_example(features: Iterable[Feature], record: bytes) -> dict[str, Any]:
    """Reads one serialised Example back: values by feature key.

    A scalar feature gives its value, a `many` feature a list. Keys that no feature names are left out.

    Raises:
        FeatureValueError: a feature is missing without a default, is of another kind, or a scalar has not one value.
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


def feature_schema(features: Iterable[Feature]) -> dict[str, dict[str, Any]]:
    """The features as JSON for a dataset's description, by key.

    Each has its kind, its shape (`[]` or `[null]`), the field that fills it, its meaning, and the default that a reader
    takes where there is one (of bytes as UTF-8 text).
    """
    return {
        feature.key: {
            "kind": feature.kind,
            "shape": [None] if feature.many else [],
            "field": feature.field,
            "meaning": feature.meaning,
            **({} if feature.default is None else {"default": _as_text(feature.default)}),
        }
        for feature in sorted(features, key=lambda feature: feature.key)
    }


def features_from_schema(schema: Mapping[str, Mapping[str, Any]]) -> tuple[Feature, ...]:
    """The features that a dataset's description states, in its order: what `feature_schema` was given, sorted by key.

    Readers need no constants; these have the empty field.

    Raises:
        KeyError: the description lacks something that `feature_schema` states.
    """
    return tuple(
        Feature(
            key,
            stated["kind"],
            field=stated["field"],
            meaning=stated["meaning"],
            many=stated["shape"] != [],
            default=_from_text(stated.get("default")),
        )
        for key, stated in schema.items()
    )


def _as_text(default: bytes | float | int) -> str | float | int:
    return default.decode() if isinstance(default, bytes) else default


def _from_text(default: str | float | int | None) -> bytes | float | int | None:
    return default.encode() if isinstance(default, str) else default


def describe_features(features: Iterable[Feature]) -> str:
    """The features as a Markdown table for people."""
    rows = ["| key | type | meaning |", "|---|---|---|"]
    for feature in features:
        rows.append(f"| `{feature.key}` | {feature.kind}{'[]' if feature.many else ''} | {feature.meaning} |")
    return "\n".join(rows)
