"""The fields of one record: its image, prepared, its class, and what its reference says."""

import base64
import hashlib
from typing import Any

import orjson

from recordmill.imaging import ImageSettings, PreparedImage, prepare_image, prepare_pixels
from recordmill.imaging.prepare import NO_HOOKS, Hooks
from recordmill.schemas.content import Pixels
from recordmill.schemas.conventions import Convention
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected


def reencode_image(
    image: bytes | Pixels,
    settings: ImageSettings,
    keep_pixels: bool = False,
    encode: bool = True,
    hooks: Hooks = NO_HOOKS,
) -> PreparedImage:
    """Prepares one image, encoded or decoded, as `imaging.prepare_image` and `prepare_pixels` do.

    Raises:
        Rejected: stage `decode`, with the reason that the decoder found; or whatever a hook raises.
    """
    try:
        if isinstance(image, bytes):
            return prepare_image(image, settings, keep_pixels, encode, hooks)
        return prepare_pixels(image, settings, keep_pixels, encode, hooks)
    except Rejected as rejected:
        rejected.sha256 = hashlib.sha256(image if isinstance(image, bytes) else image.tobytes()).hexdigest()
        raise


def find_class(label: str | int, label_map: LabelMap) -> tuple[str | None, int | None]:
    """The class name and id of an image's label; (None, None) for an image without a label.

    Args:
        label: a class name, or the number that the source gave the class.
        label_map: class ids.

    Raises:
        Rejected: stage `encode`, `unknown_label`: the label map has no place for it.
    """
    if label == "":
        return None, None
    name = label_map.name_for(label)
    if name is None:
        if isinstance(label, int):
            raise Rejected("encode", "unknown_label", f"the label number {label} is not one of the classes")
        bare = label.strip()
        why = f", but {bare!r:.200} is: there are blanks around it" if label_map.name_for(bare) else ""
        raise Rejected("encode", "unknown_label", f"the label {label!r:.200} is not one of the classes{why}")
    return name, label_map.ids[name]


def image_record(
    ref: ImageRef,
    image: PreparedImage,
    class_name: str | None,
    class_id: int | None,
    convention: Convention,
    sha256: str,
    split: str = "",
) -> dict[str, Any]:
    """The fields that a convention's features are filled from; `sha256` is the stored image's, in hex.

    Returns:
        `encoded` (bytes), `format` (as the convention names it), `height`, `width`, `channels` (of the encoded image),
        `label` (id) and `label_text` (name; both None without a label), `filename` (base name), `source_id` (the same,
        unless the source gives one), `key`, `split`, `split_upper` (the same in upper case), and the reference's own
        features; `sha256` (of `encoded`, in hex); and, where the convention asks for it, `pixels_base64` (url-safe
        base64 of `encoded`). Texts are UTF-8 bytes.
    """
    fields = {
        "encoded": image.encoded,
        "format": convention.format_names.get(image.format, image.format.lower()).encode(),
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        "sha256": sha256.encode(),
        **reference_record(ref, class_name, class_id, split),
    }
    if "pixels_base64" in convention.fields:
        fields["pixels_base64"] = base64.urlsafe_b64encode(image.encoded)
    return fields


def reference_record(ref: ImageRef, class_name: str | None, class_id: int | None, split: str = "") -> dict[str, Any]:
    """The fields that need no image: `schemas.record_fields.REFERENCE_FIELDS` and the reference's own features."""
    filename = ref.key.rpartition("/")[2].encode()
    fields: dict[str, Any] = {
        "label": class_id,
        "label_text": None if class_name is None else class_name.encode(),
        "filename": filename,
        "source_id": filename,
        "key": ref.key.encode(),
        "split": split.encode(),
        "split_upper": split.upper().encode(),
    }
    if ref.features:
        fields.update((key, _as_bytes(value)) for key, value in orjson.loads(ref.features).items())
    return fields


def _as_bytes(value: Any) -> Any:
    """Texts as UTF-8, which is what Examples hold; all other values as they are."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {key: _as_bytes(each) for key, each in value.items()}
    return [_as_bytes(each) for each in value] if isinstance(value, list) else value
