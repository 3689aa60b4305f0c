"""Reads existing Examples: fields, boxes and image, by a convention that is declared or found by its keys."""

import base64
import binascii
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from google.protobuf.message import DecodeError

from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.digests import STORED_IMAGE
from recordmill.schemas.example_proto import Example
from recordmill.schemas.features import Feature, Kind
from recordmill.schemas.image_ref import Pixels, boxes_of
from recordmill.schemas.record_fields import IMAGE_FIELDS
from recordmill.schemas.rejection import Rejected

KeptType = Literal["bytes", "float", "int64", "bytes[]", "float[]", "int64[]"]
"""The type of a feature to copy: one value, or a list."""


_SIDES = ("xmin", "ymin", "xmax", "ymax")

bad_example = partial(Rejected, "read", "bad_example")
"""The record is not an Example of the convention."""


def parse_entries(record: bytes) -> Mapping[str, Any]:
    """Parses a serialised Example into its protobuf features, by key.

    Raises:
        Rejected: it is not an Example, or an empty one.
    """
    try:
        entries: Mapping[str, Any] = Example.FromString(record).features.feature
    except DecodeError:
        raise bad_example("the record is not a tf.train.Example") from None
    if not entries:
        raise bad_example("the record is not a tf.train.Example, or it has no features")
    return entries


def values_of(entries: Mapping[str, Any], key: str, kind: Kind) -> list[Any] | None:
    """The values of one feature; None if there is no such feature.

    Raises:
        Rejected: it is of another kind.
    """
    if key not in entries:
        return None
    found = entries[key].WhichOneof("kind")
    if found is None:
        return []
    if found != f"{kind}_list":
        raise bad_example(f"feature {key} is a {found}, not a {kind}_list")
    return list(getattr(entries[key], found).value)


def read_fields(entries: Mapping[str, Any], convention: Convention) -> dict[str, Any]:
    """The values of an Example by the convention's fields: one value, or a list if the feature is `many`.

    Fields that the Example lacks are left out, and so are scalars without a value.

    Raises:
        Rejected: a feature is of another kind, a scalar has several values, or there is no image; for a convention
            without images, a feature other than the label is missing.
    """
    fields: dict[str, Any] = {}
    for feature in convention.features:
        values = values_of(entries, feature.key, feature.kind) if feature.field else None
        if values is None or (not feature.many and not values):
            continue
        if not feature.many and len(values) > 1:
            raise bad_example(f"feature {feature.key} holds {len(values)} values where one is expected")
        fields[feature.field] = values if feature.many else values[0]
    images = [feature.key for feature in convention.features if feature.field in STORED_IMAGE]
    if images and not fields.keys() & set(STORED_IMAGE):
        raise bad_example(f"it has no image: there is no feature {' or '.join(images)}")
    if lacking := [feature.key for feature in own_features(convention) if feature.key not in entries]:
        raise bad_example(f"there is no feature {lacking[0]}")
    return fields


def holds_images(convention: Convention) -> bool:
    """Whether the convention's Examples have images."""
    return any(feature.field in STORED_IMAGE for feature in convention.features)


def own_features(convention: Convention) -> tuple[Feature, ...]:
    """The features, such as a vector, that distinguish a convention without images; empty if it has images."""
    if holds_images(convention):
        return ()
    return tuple(feature for feature in convention.features if feature.field not in {"", *IMAGE_FIELDS})


def find_convention(entries: Mapping[str, Any]) -> Convention:
    """Finds the convention that fits an Example's keys and kinds, and names most of them.

    Never guessed: conventions without images, or with raw pixels in a feature that could be an encoded image.

    Raises:
        Rejected: no convention fits.
    """
    kinds = frozenset((key, entry.WhichOneof("kind")) for key, entry in entries.items())
    name = _find_name(kinds)
    if not name:
        keys = ", ".join(sorted(entries))
        others = [each for each in convention_names() if _fits_without_image(load_convention(each), kinds)]
        hint = f": {others[0]}" if others else ""
        raise bad_example(f"its keys are those of no known convention ({keys:.200}): set source.convention{hint}")
    return load_convention(name)


def _fits_without_image(convention: Convention, kinds: Collection[tuple[str, str | None]]) -> bool:
    declared = {(feature.key, f"{feature.kind}_list") for feature in convention.features}
    return bool(own_features(convention)) and declared <= set(kinds)


@lru_cache(maxsize=1024)
def _find_name(kinds: frozenset[tuple[str, str | None]]) -> str:
    found = dict(kinds)
    fits: list[tuple[int, int, str]] = []
    for name in sorted(convention_names()):  # of the best, the first is used
        convention = load_convention(name)
        known = {feature.key: f"{feature.kind}_list" for feature in convention.features}
        images = [feature for feature in convention.features if feature.field in STORED_IMAGE]
        scalars = [feature for feature in convention.features if not feature.many and feature.constant is None]
        needed = {feature.key for feature in scalars if feature.default is None}
        is_raw = convention.stores == "raw" and any(feature.field == "encoded" for feature in images)
        contradicted = any(found.get(key) not in (None, kind) for key, kind in known.items())
        if images and needed <= found.keys() and not is_raw and not contradicted:
            present = len(known.keys() & found.keys())
            fits.append((present, present - len(known), name))
    return max(fits, default=(0, 0, ""), key=lambda fit: fit[:2])[2]


def read_kept(entries: Mapping[str, Any], keep: Mapping[str, KeptType]) -> dict[str, Any]:
    """The values of the features to copy, by key; absent lists are empty.

    Raises:
        Rejected: a feature is of another kind, or has no value or several where one is expected.
    """
    kept: dict[str, Any] = {}
    for key, declared in keep.items():
        values = values_of(entries, key, kind_of(declared)) or []
        if declared.endswith("[]"):
            kept[key] = values
        elif len(values) == 1:
            (kept[key],) = values
        else:
            raise bad_example(f"feature {key} holds {len(values)} values where source.keep expects one")
    return kept


def kind_of(declared: KeptType) -> Kind:
    """The kind of a feature to copy."""
    kind: Kind = declared.removesuffix("[]")  # type: ignore[assignment]
    return kind


def text_in(entries: Mapping[str, Any], key: str) -> str:
    """The text in NFC, or the integer in decimal, of a feature that every Example must have.

    Raises:
        Rejected: it is missing, empty or of another kind.
    """
    kind: Kind = "int64" if key in entries and entries[key].WhichOneof("kind") == "int64_list" else "bytes"
    values = values_of(entries, key, kind) or [b""]
    text = text_of(values[0], f"feature {key}") if kind == "bytes" else str(values[0])
    if not text:
        raise bad_example(f"feature {key} is missing or empty")
    return unicodedata.normalize("NFC", text)


def text_of(value: bytes | None, what: str) -> str:
    """Decodes a text; empty if there is none.

    Raises:
        Rejected: it is not UTF-8.
    """
    try:
        return (value or b"").decode()
    except UnicodeDecodeError:
        raise bad_example(f"{what} is not UTF-8") from None


def class_of(number: int, names: Mapping[int, str], where: str) -> str:
    """The class of a number: its name, or the number in decimal if there are no names.

    Args:
        number: in the Example.
        names: the classes' names by number.
        where: where the names come from, for messages.

    Raises:
        Rejected: there are names, but none for the number.
    """
    if not names:
        return str(number)
    if number not in names:
        raise bad_example(f"its label is {number}, where {where} names those of {min(names)} to {max(names)}")
    return names[number]


def read_boxes(fields: Mapping[str, Any], name_of: Callable[[str, int | None], str]) -> dict[str, Any]:
    """The result of `schemas.image_ref.boxes_of` for an Example's boxes; empty if it has none.

    Args:
        fields: the Example's values by field, with sides as fractions of the image.
        name_of: returns the class for a name and a number.

    Raises:
        Rejected: the lists do not fit together.
    """
    boxes = _boxes(fields)
    if boxes is None:
        return {}
    texts = [text_of(text, "the class of a box") for text in fields.get("box_label_texts", ())]
    numbers = list(fields.get("box_labels", ()))
    for what, each in (("classes' names", texts), ("labels", numbers)):
        if each and len(each) != len(boxes):
            raise bad_example(f"it has {len(boxes)} boxes and {len(each)} {what} of boxes")
    if boxes and not texts and not numbers:
        raise bad_example(f"it has {len(boxes)} boxes without labels")
    labels = list(map(name_of, texts or [""] * len(boxes), numbers or [None] * len(boxes)))
    values = {key: fields[key] for key in ("is_crowd", "area") if key in fields and len(fields[key]) == len(boxes)}
    return boxes_of(boxes, labels, values=values, fractions=True)


def _boxes(fields: Mapping[str, Any]) -> list[list[float]] | None:
    if "bbox" in fields:
        flat = fields["bbox"]
        if len(flat) % 4:
            raise bad_example(f"its boxes have {len(flat)} sides, which is not a multiple of 4")
        return [[flat[at + 1], flat[at], flat[at + 3], flat[at + 2]] for at in range(0, len(flat), 4)]
    sides = [fields.get(side) for side in _SIDES]
    if all(side is None for side in sides):
        return None
    lengths = {0 if side is None else len(side) for side in sides}
    if len(lengths) > 1:
        raise bad_example("its lists of boxes' sides differ in length")
    return [list(box) for box in zip(*(side or () for side in sides), strict=True)]


def read_image_of(fields: Mapping[str, Any], is_raw: bool, shape: Sequence[int]) -> tuple[bytes, bytes | Pixels]:
    """The stored bytes of the image, and the image.

    Args:
        fields: the Example's values by field.
        is_raw: whether the image is stored as pixels, not encoded: height x width x channels bytes, red first.
        shape: height, width and channels of raw pixels, if the Example does not give them.

    Raises:
        Rejected: raw pixels have no shape, or the wrong number of bytes.
    """
    if "pixels_base64" in fields:
        try:
            data = base64.b64decode(fields["pixels_base64"], altchars=b"-_", validate=True)
        except binascii.Error as error:
            raise bad_example(f"its image is not url-safe base64 ({error})") from None
    else:
        data = fields["encoded"]
        if not is_raw:
            return data, data
    declared = [fields.get(side) for side in ("height", "width", "channels")]
    height, width, channels = declared if None not in declared else (tuple(shape) or (None, None, None))
    if height is None or width is None or channels is None:
        raise bad_example("its image is raw pixels of unknown height, width and channels: set source.shape")
    if channels not in (1, 3):
        raise bad_example(f"its image has {channels} channels, where 1 or 3 can be stored")
    if min(height, width) < 1 or height * width * channels != len(data):
        raise bad_example(f"its image has {len(data)} bytes, where {height} x {width} x {channels} are declared")
    return data, np.frombuffer(data, np.uint8).reshape(height, width, channels)
