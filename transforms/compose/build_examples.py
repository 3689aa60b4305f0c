"""BuildExamples: a prepared image becomes a serialised `tf.train.Example`."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import apache_beam as beam
import orjson

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.schemas.conventions import Convention, load_convention
from recordmill.schemas.features import Feature, encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.record_fields import BOX_FIELDS, IMAGE_FIELDS, MANY_LABELS_FIELDS, PIXEL_FIELDS
from recordmill.schemas.rejection import Rejected

ANNOTATION_FIELDS = (
    BOX_FIELDS
    | MANY_LABELS_FIELDS
    | {
        "boxes",
        "boxes_labels",
        "boxes_values",
        "boxes_size",
        "boxes_fractions",
        "boxes_shapes",
    }  # as references carry them
)
"""The fields that annotations of images take, which a source's own features cannot be called either."""


_NAMED_BY_KEY = ("key", "filename", "source_id")


def choose_store(images: ImageSettings, convention: Convention) -> ImageSettings:
    """The settings with the convention's form in place of `store: auto`, unless that is JPEG.

    Raises:
        ValueError: images cannot be stored in the form that the convention needs.
    """
    asked, named = convention.stores, f"the convention ({convention.title})"
    if asked != "jpeg" and images.reencode == "never":
        raise ValueError(f"images.reencode is never, and {named} stores {asked} pixels: remove one of them")
    if asked != "jpeg" and images.store == "auto":
        images = replace(images, store=asked)
    if images.store != "raw" and "pixels_base64" in convention.fields:
        raise ValueError(f"images.store is {images.store}, and {named} holds pixels: set it to raw")
    return images


def check_source_features(features: Iterable[Feature], holds_images: bool, convention: Convention) -> None:
    """Raises ValueError where a feature that a source adds has another's name, or fills one of another kind.

    Args:
        features: the source's own.
        holds_images: whether it gives images.
        convention: what is written.
    """
    reserved = IMAGE_FIELDS | ANNOTATION_FIELDS if holds_images else IMAGE_FIELDS - PIXEL_FIELDS
    stored = {feature.field: feature for feature in convention.features}
    taken = {*reserved, *(feature.key for feature in convention.features)}
    for feature in features:
        other = stored.get(feature.field)
        if feature.field in reserved or (other is None and feature.key in taken):
            own = next((each.field for each in convention.features if each.key == feature.key), "")
            raise ValueError(
                f"source: the feature name {feature.key!r} is taken: choose another, such as x/{feature.key}"
                + ("; in a manifest the column under source.columns.key fills it" if own in _NAMED_BY_KEY else "")
            )
        if other and (feature.kind, feature.many) != (other.kind, other.many):
            kinds = [f"{each.kind}{'[]' if each.many else ''}" for each in (other, feature)]
            raise ValueError(
                f"convention: {other.key} is {kinds[0]}, and the source's field {feature.field!r} is {kinds[1]}"
            )


def find_class(label: str | int, label_map: LabelMap) -> tuple[str | None, int | None]:
    """The class name and id of an image's label; (None, None) for an image without a label.

    Args:
        label: a class name, or the number that the source gave the class.
        label_map: class ids.

    Raises:
        Rejected: stage `encode`, `unknown_label`: the label map has no place for it.
    """
    if isinstance(label, int):
        name = label_map.name_for_number(label)
        if name is None:
            raise Rejected("encode", "unknown_label", f"the label number {label} is not one of the classes")
        return name, label_map.ids[name]
    if not label:
        return None, None
    name = label_map.name_for(label)
    if name is None:
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
    split: str = "",
) -> dict[str, Any]:
    """The fields that a convention's features are filled from.

    Returns:
        `encoded` (bytes), `format` (as the convention names it), `height`, `width`, `channels` (of the encoded image),
        `label` (id) and `label_text` (name; both None without a label), `filename` (base name), `source_id` (the same,
        unless the source gives one), `key`, `split`, `split_upper` (the same in upper case), and the reference's own
        features; and, where the convention asks for them, `sha256` (of `encoded`, in hex) and `pixels_base64` (url-safe
        base64 of `encoded`). Texts are UTF-8 bytes.
    """
    fields = {
        "encoded": image.encoded,
        "format": convention.format_names.get(image.format, image.format.lower()).encode(),
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        **reference_record(ref, class_name, class_id, split),
    }
    if "sha256" in convention.fields:
        fields["sha256"] = hashlib.sha256(image.encoded).hexdigest().encode()
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


@dataclass
class BuildExamples(beam.PTransform):
    """Serialises each prepared image of a PCollection; images whose label has no id are left out.

    An image without a label has no label features. For pipelines of your own; see `ReadImages`.

    Attributes:
        label_ids: class ids by name.
        convention: which features an Example has.
    """

    label_ids: dict[str, int]
    convention: str = "default"
    _label_map: LabelMap = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises ValueError where there is no such convention."""
        load_convention(self.convention)
        self._label_map = LabelMap(dict(self.label_ids))

    def expand(self, images: beam.PCollection[tuple[ImageRef, PreparedImage]]) -> beam.PCollection[tuple[str, bytes]]:
        """PCollection[tuple[ImageRef, PreparedImage]] -> PCollection[tuple[key, serialised Example]]."""
        return images | beam.FlatMapTuple(self._build).with_output_types(tuple[str, bytes])

    def _build(self, ref: ImageRef, image: PreparedImage) -> Iterator[tuple[str, bytes]]:
        convention = load_convention(self.convention)
        try:
            name, label_id = find_class(ref.label, self._label_map)
        except Rejected:
            beam.metrics.Metrics.counter("recordmill", "unlabelled").inc()
            return
        yield ref.key, encode_example(convention.features, image_record(ref, image, name, label_id, convention))
