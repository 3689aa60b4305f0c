"""What contradicts the rest of the settings in an Example's features; each error begins with the YAML key."""

from recordmill.schemas.record_fields import BOX_FIELDS, IMAGE_FIELDS, MANY_LABELS_FIELDS, PIXEL_FIELDS, RECORD_FIELDS
from recordmill.schemas.reference_boxes import CARRIED
from recordmill.schemas.settings.custom_convention import CustomConvention, CustomFeature
from recordmill.schemas.settings.example_layout import ExampleLayout, explain_unstored_boxes
from recordmill.transforms.records.features.find_function import find_function

_ANNOTATIONS = {"boxes": ("boxes", BOX_FIELDS), "labels": ("several labels", MANY_LABELS_FIELDS)}

_NAMED_BY_KEY = ("key", "filename", "source_id")


def check_features(layout: ExampleLayout) -> None:
    """Checks what fills an Example's features.

    Raises:
        ValueError: a feature can never be filled, two have one name, or what the source gives has no place.
    """
    settings, convention = layout.settings, layout.convention
    if settings.source.contents == "images" and not layout.features:
        raise ValueError(
            f"the convention ({convention.title}) has no features of its own, and nothing adds any: "
            "name functions under features, or choose another convention"
        )
    check_fields(layout)
    pixels = [] if settings.holds_images else [each for each in convention.features if each.field in PIXEL_FIELDS]
    if pixels:
        why = "decode is none" if settings.decode == "none" else "the source holds no images"
        raise ValueError(f"the convention ({convention.title}) stores images ({pixels[0].key}), and {why}")
    _check_functions(layout)
    _check_source_features(layout)


def check_fields(layout: ExampleLayout) -> None:
    """Raises ValueError where a feature of the user's own can never be filled, or several labels have no place."""
    source, convention, custom = layout.settings.source, layout.convention, layout.settings.convention
    given = source.annotations()
    if isinstance(custom, CustomConvention):
        added = {feature.field for feature in source.features()} | set(layout.settings.features)
        lacking = [each for kind, each in _ANNOTATIONS.items() if kind not in given]
        absent = {name: what for what, names in lacking for name in names}
        for key, feature in custom.features.items():
            if feature.field and feature.field not in added:
                _check_field(key, feature, absent, {*RECORD_FIELDS, *added} - absent.keys())
    asked_by = given.get("labels")
    if asked_by and MANY_LABELS_FIELDS.isdisjoint(convention.fields):
        raise ValueError(
            f"{asked_by} gives several labels, and the convention ({convention.title}) stores one: name a column of "
            "one under label, or write a mapping with the fields labels and label_texts (docs/conventions.md)"
        )


def find_unstored_boxes(layout: ExampleLayout) -> str:
    """What surely has boxes and writes them nowhere, in a sentence; the empty string where nothing does."""
    source = layout.settings.source
    asked_by = source.annotations().get("boxes", "") or ("source.kind" if source.is_about_boxes else "")
    return explain_unstored_boxes(f"{asked_by} gives boxes") if asked_by and not layout.stores_boxes else ""


def _check_field(key: str, feature: CustomFeature, absent: dict[str, str], known: set[str]) -> None:
    where, field = f"convention.features.{key}", feature.field
    if field not in known:
        lacking = f"the source gives no {absent.get(field)}, and so no {field!r}"
        why = lacking if field in absent else f"there is no field {field!r}"
        raise ValueError(f"{where}.field: {why}, only {', '.join(sorted(known))}")
    wanted = RECORD_FIELDS[field]
    if (feature.type, bool(feature.shape)) != (wanted.kind, wanted.many):
        right = f"{{field: {field}, type: {wanted.kind}{', shape: [null]' if wanted.many else ''}}}"
        written, expected = _kind(feature.type, bool(feature.shape)), _kind(wanted.kind, wanted.many)
        raise ValueError(f"{where} is {written}, and the field {field!r} is {expected}: write {right}")


def _check_functions(layout: ExampleLayout) -> None:
    settings, convention = layout.settings, layout.convention
    functions, source = settings.features, settings.source
    if functions and source.contents == "rows":
        raise ValueError("features: functions take images or files, and the source holds neither")
    fields = {feature.field: feature for feature in convention.features}
    taken = {feature.key for feature in (*convention.features, *source.features())}
    for key, named in settings.user_functions.items():
        if ":" not in named:
            raise ValueError(f"{key}.function is {named!r}: write package.module:function")
        try:
            find_function(named)
        except ValueError as error:
            raise ValueError(f"{key}.{error}") from None
    for name, each in functions.items():
        feature, asked = each.as_feature(name), fields.get(name)
        if each.takes == "image" and not settings.holds_images:
            remedy = "choose file_sha256" if each.is_built_in else "set its of: file"
            raise ValueError(f"features.{name}: {each.function} takes images, and decode is none: {remedy}")
        if name in IMAGE_FIELDS or (asked is None and name in taken):
            raise ValueError(f"features.{name}: the name is taken: choose another, such as x/{name}")
        if asked is not None and (asked.kind, asked.many) != (feature.kind, feature.many):
            wanted = f"{asked.kind} of shape {'[null]' if asked.many else '[]'}"
            raise ValueError(f"features.{name}: the convention ({convention.title}) wants {wanted}")
    if "feature" in fields and "feature" not in {*functions, *(feature.field for feature in source.features())}:
        raise ValueError(f"features.feature is missing: the convention ({convention.title}) stores what it computes")


def _check_source_features(layout: ExampleLayout) -> None:
    source, convention = layout.settings.source, layout.convention
    reserved = IMAGE_FIELDS | BOX_FIELDS | MANY_LABELS_FIELDS | CARRIED
    if source.contents != "images":
        reserved = IMAGE_FIELDS - PIXEL_FIELDS
    stored = {feature.field: feature for feature in convention.features}
    taken = {*reserved, *(feature.key for feature in convention.features)}
    for feature in source.features():
        other = stored.get(feature.field)
        if feature.field in reserved or (other is None and feature.key in taken):
            own = next((each.field for each in convention.features if each.key == feature.key), "")
            advice = "; in a manifest the column under source.columns.key fills it" if own in _NAMED_BY_KEY else ""
            taken_by = f"source: the feature name {feature.key!r} is taken"
            raise ValueError(f"{taken_by}: choose another, such as x/{feature.key}{advice}")
        if other and (feature.kind, feature.many) != (other.kind, other.many):
            stores, gives = _kind(other.kind, other.many), _kind(feature.kind, feature.many)
            raise ValueError(
                f"convention: {other.key} is {stores}, and the source's field {feature.field!r} is {gives}"
            )


def _kind(kind: str, many: bool) -> str:
    return f"{kind}[]" if many else kind
