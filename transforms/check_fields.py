"""Whether a convention's features can be filled, and hold what the source gives."""

from collections.abc import Collection, Iterable

from recordmill.schemas.conventions import Convention
from recordmill.schemas.features import Feature
from recordmill.schemas.record_fields import BOX_FIELDS, MANY_LABELS_FIELDS, RECORD_FIELDS
from recordmill.schemas.settings.custom_convention import CustomConvention, CustomFeature
from recordmill.transforms.inputs.sources import Source

_ANNOTATIONS = {"boxes": BOX_FIELDS, "labels": MANY_LABELS_FIELDS}


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
