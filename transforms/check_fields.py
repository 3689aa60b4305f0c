"""Whether a convention's features can be filled, and hold what the source gives."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from recordmill.imaging import ImageSettings
from recordmill.schemas.conventions import Convention
from recordmill.schemas.features import Feature
from recordmill.schemas.record_fields import BOX_FIELDS, IMAGE_FIELDS, MANY_LABELS_FIELDS, PIXEL_FIELDS, RECORD_FIELDS
from recordmill.schemas.settings.custom_convention import CustomConvention, CustomFeature
from recordmill.transforms.inputs.sources import Source

_ANNOTATIONS = {"boxes": BOX_FIELDS, "labels": MANY_LABELS_FIELDS}

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


def check_fields(own: CustomConvention | None, layout: Convention, source: Source, functions: Collection[str]) -> None:
    """Raises ValueError, beginning with the YAML key, where a feature can never be filled, or labels have no place.

    Args:
        own: the convention, where it is a mapping of the user's.
        layout: the convention.
        source: what is read.
        functions: names of the features that functions compute.
    """
    given = source.annotations()
    if own is not None:
        added = {feature.field for feature in source.features()} | set(functions)
        absent = {name: kind for kind, names in _ANNOTATIONS.items() if kind not in given for name in names}
        for key, feature in own.features.items():
            if feature.field and feature.field not in added:
                _check_field(key, feature, absent, {*RECORD_FIELDS, *added} - absent.keys())
    asked_by = given.get("labels")
    if asked_by and MANY_LABELS_FIELDS.isdisjoint(layout.fields):
        raise ValueError(
            f"{asked_by} gives several labels, and the convention ({layout.title}) stores one: name a column of one "
            "under label, or write a mapping with the fields labels and label_texts (docs/conventions.md)"
        )


def find_unstored_boxes(layout: Convention, source: Source) -> str:
    """What surely has boxes and writes them nowhere, in a sentence; the empty string where nothing does.

    Args:
        layout: the convention, where the settings do not name one.
        source: what is read.
    """
    asked_by = source.annotations().get("boxes", "") or ("source.kind" if source.is_about_boxes else "")
    return explain_unstored_boxes(f"{asked_by} gives boxes") if asked_by and not stores_boxes(layout.features) else ""


def stores_boxes(features: Iterable[Feature]) -> bool:
    """Whether Examples of these features have a place for boxes."""
    return any(feature.field in BOX_FIELDS for feature in features)


def explain_unstored_boxes(what: str) -> str:
    """Why a run fails that would lose boxes because nobody named a convention."""
    return (
        f"convention is not set: {what}, and the default convention stores none: "
        "set convention=tf_object_detection or convention=tfds; convention=default leaves the boxes out"
    )


def _check_field(key: str, feature: CustomFeature, absent: dict[str, str], known: set[str]) -> None:
    where, field = f"convention.features.{key}", feature.field
    if field in absent:
        what = {"boxes": "boxes", "labels": "several labels"}[absent[field]]
        others = ", ".join(sorted(known))
        raise ValueError(f"{where}.field: the source gives no {what}, and so no {field!r}, only {others}")
    if field not in known:
        raise ValueError(f"{where}.field: there is no field {field!r}, only {', '.join(sorted(known))}")
    wanted = RECORD_FIELDS[field]
    if (feature.type, bool(feature.shape)) != (wanted.kind, wanted.many):
        stated = f"{feature.type}{'[]' if feature.shape else ''}"
        right = f"{{field: {field}, type: {wanted.kind}{', shape: [null]' if wanted.many else ''}}}"
        is_kind = f"{wanted.kind}{'[]' if wanted.many else ''}"
        raise ValueError(f"{where} is {stated}, and the field {field!r} is {is_kind}: write {right}")


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
