"""The fields of an Example that exists already: by a convention that is declared, or found by its keys."""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from google.protobuf.message import DecodeError

from schemas.conventions import Convention, convention_names, load_convention
from schemas.example_proto import Example
from schemas.features import Kind

IMAGE_FIELDS = ("encoded", "pixels_base64")
"""The fields that hold an image."""


KeptType = Literal["bytes", "float", "int64", "bytes[]", "float[]", "int64[]"]
"""What a feature that is passed on holds: one value, or a list."""


class BadExampleError(Exception):
    """A record is no Example of the convention; the message says why."""


def parse_entries(record: bytes) -> Mapping[str, Any]:
    """The features of a serialised Example by key, as protobuf has them.

    Raises:
        BadExampleError: it is none, or an empty one.
    """
    try:
        entries: Mapping[str, Any] = Example.FromString(record).features.feature
    except DecodeError:
        raise BadExampleError("the record is no tf.train.Example") from None
    if not entries:
        raise BadExampleError("the record is no tf.train.Example, or one without features")
    return entries


def values_of(entries: Mapping[str, Any], key: str, kind: Kind) -> list[Any] | None:
    """The values of one feature; None where there is no such feature.

    Raises:
        BadExampleError: it is of another kind.
    """
    if key not in entries:
        return None
    found = entries[key].WhichOneof("kind")
    if found is None:
        return []
    if found != f"{kind}_list":
        raise BadExampleError(f"feature {key} is a {found}, not a {kind}_list")
    return list(getattr(entries[key], found).value)


def read_fields(entries: Mapping[str, Any], convention: Convention) -> dict[str, Any]:
    """The values of an Example by the convention's fields: one value, or a list where the feature is `many`.

    What the Example lacks is left out, and so are scalars without a value.

    Raises:
        BadExampleError: a feature is of another kind, a scalar has several values, or there is no image.
    """
    fields: dict[str, Any] = {}
    for feature in convention.features:
        values = values_of(entries, feature.key, feature.kind) if feature.field else None
        if values is None or (not feature.many and not values):
            continue
        if not feature.many and len(values) > 1:
            raise BadExampleError(f"feature {feature.key} holds {len(values)} values where one is expected")
        fields[feature.field] = values if feature.many else values[0]
    if not fields.keys() & set(IMAGE_FIELDS):
        keys = [feature.key for feature in convention.features if feature.field in IMAGE_FIELDS]
        raise BadExampleError(f"it has no image: there is no feature {' or '.join(keys)}")
    return fields


def find_convention(entries: Mapping[str, Any]) -> Convention:
    """The convention that an Example's keys and kinds are those of: the one that names most of them.

    Raw pixels in a feature that could as well be an encoded image are never guessed.

    Raises:
        BadExampleError: none fits.
    """
    kinds = frozenset((key, entry.WhichOneof("kind")) for key, entry in entries.items())
    name = _find_name(kinds)
    if not name:
        keys = ", ".join(sorted(entries))
        raise BadExampleError(f"its keys are those of no known convention ({keys:.200}): set source.convention")
    return load_convention(name)


@lru_cache(maxsize=1024)
def _find_name(kinds: frozenset[tuple[str, str | None]]) -> str:
    found = dict(kinds)
    fits: list[tuple[int, int, str]] = []
    for name in convention_names():
        convention = load_convention(name)
        known = {feature.key: f"{feature.kind}_list" for feature in convention.features}
        images = [feature for feature in convention.features if feature.field in IMAGE_FIELDS]
        needed = {
            feature.key
            for feature in convention.features
            if feature.default is None and not feature.many and feature.constant is None
        }
        is_raw = convention.stores == "raw" and any(feature.field == "encoded" for feature in images)
        contradicted = any(found.get(key) not in (None, kind) for key, kind in known.items())
        if images and needed <= found.keys() and not is_raw and not contradicted:
            present = len(known.keys() & found.keys())
            fits.append((present, present - len(known), name))
    return max(fits, default=(0, 0, ""), key=lambda fit: (fit[0], fit[1], [-ord(letter) for letter in fit[2]]))[2]


def read_kept(entries: Mapping[str, Any], keep: Mapping[str, KeptType]) -> dict[str, Any]:
    """The values of features that are passed on, by key; absent lists are empty.

    Raises:
        BadExampleError: one is of another kind, or has not one value where one is expected.
    """
    kept: dict[str, Any] = {}
    for key, stated in keep.items():
        values = values_of(entries, key, kind_of(stated)) or []
        if stated.endswith("[]"):
            kept[key] = values
        elif len(values) == 1:
            (kept[key],) = values
        else:
            raise BadExampleError(f"feature {key} holds {len(values)} values where source.keep expects one")
    return kept


def kind_of(stated: KeptType) -> Kind:
    """The kind of a feature that is passed on."""
    kind: Kind = stated.removesuffix("[]")  # type: ignore[assignment]
    return kind


def text_in(entries: Mapping[str, Any], key: str) -> str:
    """The text in NFC, or the integer in decimal, of a feature that every Example must have.

    Raises:
        BadExampleError: it is missing, empty or of another kind.
    """
    kind: Kind = "int64" if key in entries and entries[key].WhichOneof("kind") == "int64_list" else "bytes"
    values = values_of(entries, key, kind) or [b""]
    text = text_of(values[0], f"feature {key}") if kind == "bytes" else str(values[0])
    if not text:
        raise BadExampleError(f"feature {key} is missing or empty")
    return unicodedata.normalize("NFC", text)


def text_of(value: bytes | None, what: str) -> str:
    """A text; the empty string where there is none.

    Raises:
        BadExampleError: it is no UTF-8.
    """
    try:
        return (value or b"").decode()
    except UnicodeDecodeError:
        raise BadExampleError(f"{what} is no UTF-8") from None


def class_of(name: str, number: int | None, names: Sequence[str], first: int) -> str:
    """The class of an Example.

    Args:
        name: the class's name in the Example; the empty string where it has none.
        number: its number there; None likewise.
        names: the classes' names by number.
        first: the number of the first of them.

    Returns:
        The Example's own name, that of the number, or the number in decimal; the empty string for no class.

    Raises:
        BadExampleError: there is no name for the number.
    """
    if name or number is None:
        return name
    if not names:
        return str(number)
    if not first <= number < first + len(names):
        last = first + len(names) - 1
        raise BadExampleError(f"its label is {number}, where source.class_names are those of {first} to {last}")
    return names[number - first]
