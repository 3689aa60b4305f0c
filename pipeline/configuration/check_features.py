"""Checks that what the source gives has a place in an Example, and that each feature is filled."""

from recordmill.annotations.boxes import BOXES
from recordmill.annotations.kinds import ANNOTATION_FIELDS, KINDS, RECORD_FIELDS, list_stored
from recordmill.annotations.labels import LABELS
from recordmill.annotations.segmentation import SEGMENTATION
from recordmill.schemas.conventions import Convention, ConventionFeature, is_shipped
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import EACH_ATTRIBUTE, IMAGE_FIELDS, PIXEL_FIELDS, family_of
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.pages import find_page
from recordmill.schemas.settings.annotation_fields import MASK_FIELDS
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.records.image_functions import find_function


def check_features(layout: ExampleLayout) -> None:
    """Checks what fills an Example's features.

    Raises:
        SettingError: a feature can never be filled, two share a name, or a value of the source
            has no place.
    """
    settings, convention = layout.settings, layout.convention
    if settings.source.contents == "images" and not layout.features:
        raise SettingError(
            "features",
            f"is empty, and the convention ({convention.title}) has no features: name functions "
            "under features",
        )
    check_fields(layout)
    pixels = [each for each in convention.example_features if each.field in PIXEL_FIELDS]
    if pixels and not settings.holds_images:
        raise SettingError(
            "convention",
            f"({convention.title}) stores images ({pixels[0].key}), and none is decoded: choose "
            "another convention, or remove decode: none",
        )
    _check_functions(layout)
    _check_source_features(layout)


def check_fields(layout: ExampleLayout) -> None:
    """Checks that the user's own features can be filled, and that several labels have a place.

    Raises:
        SettingError: a feature can never be filled, or several labels have no place.
    """
    source, convention, custom = (
        layout.settings.source,
        layout.convention,
        layout.settings.convention,
    )
    given = source.annotations()
    if isinstance(custom, Convention):
        added = {feature.field for feature in source.features()} | set(layout.settings.features)
        known = {*RECORD_FIELDS, *added}
        for kind in KINDS.values():
            if kind.name not in given:
                known -= kind.fields.keys()
        for key, feature in custom.features.items():
            if is_shipped(feature.as_feature(key)):
                continue
            if feature.field and feature.field not in added:
                _check_field(f"convention.features.{key}", feature, known)
                _check_star(f"convention.features.{key}", key, feature)
            if feature.field in MASK_FIELDS and layout.settings.masks == "none":
                raise SettingError(
                    f"convention.features.{key}",
                    "stores masks, and masks is none: add --set masks=png, or remove it",
                )
    asked_by = given.get("labels")
    if asked_by and LABELS not in list_stored(convention.fields):
        raise SettingError(
            asked_by,
            f"gives several labels, and the convention ({convention.title}) stores one: name a "
            f"column of one, or store the field labels ({find_page('conventions.md')})",
        )
    _check_semantic_masks(layout)
    _check_second_images(layout.settings)


def _check_second_images(settings: DatasetSettings) -> None:
    """Checks that second images can be stored.

    Raises:
        SettingError: they cannot.
    """
    if "pairs" not in settings.source.annotations():
        return
    if not settings.holds_images:
        raise SettingError(
            "source.pairs", "needs images that are decoded: remove it, or decode: none"
        )
    if settings.images.store == "raw":
        raise SettingError(
            "source.pairs",
            "needs encoded images, since raw pixels do not say their size: set images.store to "
            "png, with a convention of encoded images",
        )


def _check_semantic_masks(layout: ExampleLayout) -> None:
    """Checks that semantic masks are given if, and only if, the convention stores them.

    Raises:
        SettingError: they are not.
    """
    given, convention = layout.settings.source.annotations(), layout.convention
    stores = SEGMENTATION in list_stored(convention.fields)
    requires = any(
        each.default is None
        for each in convention.example_features
        if each.field in SEGMENTATION.fields
    )
    if layout.settings.masks == "png16" and "segmentation" not in given:
        raise SettingError(
            "masks",
            "is png16, which is for ids over 255 in semantic masks, and the source gives none; "
            "those of objects are 0 and 1: set masks=png",
        )
    if "segmentation" in given and not stores:
        raise SettingError(
            given["segmentation"] or "source.kind",
            f"gives semantic masks, and the convention ({convention.title}) stores none: set "
            "convention=deeplab or convention=tfds",
        )
    if requires and "segmentation" not in given:
        raise SettingError(
            "convention",
            f"({convention.title}) stores semantic masks, and the source gives none: choose "
            "another convention, or name a manifest's column of masks in source.columns.mask",
        )
    if layout.settings.source.names_pixel_ids:
        _check_ids_of_masks(layout.settings.labels)


def _check_ids_of_masks(labels: LabelSettings) -> None:
    """Raises SettingError unless classes keep the ids that masks have."""
    if labels.classes:
        raise SettingError(
            "labels.classes",
            "gives classes new ids, and they have the ids that are in masks: remove it and set "
            "labels.ids=integers; labels.rename={NAME: null} leaves a class out",
        )
    if labels.ids != "integers":
        raise SettingError(
            "labels.ids",
            f"is {labels.ids}, and classes have the ids that are in masks: set labels.ids=integers",
        )


def check_what_is_stored(
    settings: DatasetSettings, names_convention: bool, flag: str = "--set "
) -> None:
    """Checks that the convention has a place for what the source surely gives.

    Args:
        settings: what the dataset is.
        names_convention: whether the user or the layout chose the convention, and so may leave
            boxes out.
        flag: what the user writes before a setting.

    Raises:
        SettingError: boxes would be lost without the user's choice; or images have a class and no
            boxes, and the convention is for boxes.
    """
    source, layout = settings.source, ExampleLayout(settings)
    stored = list_stored(layout.fields)
    asked_by = source.annotations().get("boxes", "")
    if source.is_about_boxes:
        asked_by = asked_by or "source.kind"
    if not names_convention:
        if asked_by and BOXES not in stored:
            raise BOXES.refuse_unstored(f"{asked_by} gives boxes", flag)
        return
    if BOXES not in stored:
        return
    if not layout.stores_classes and source.gives_labels and "boxes" not in source.annotations():
        raise SettingError(
            "convention",
            f"({layout.convention.title}) stores the classes of boxes only, and the images have a "
            "class and no boxes: choose another convention, such as default or slim",
        )


def _check_field(where: str, feature: ConventionFeature, known: set[str]) -> None:
    field = family_of(feature.field)
    if field not in known:
        raise SettingError(
            f"{where}.field",
            f": the source gives no {feature.field!r}, only {', '.join(sorted(known))}",
        )
    wanted = RECORD_FIELDS[field]
    if (feature.type, bool(feature.shape)) != (wanted.kind, wanted.many):
        shape = ", shape: [null]" if wanted.many else ""
        right = f"{{field: {feature.field}, type: {wanted.kind}{shape}}}"
        raise SettingError(
            where, f"does not have the type of the field {feature.field!r}: write {right}"
        )


def _check_star(where: str, key: str, feature: ConventionFeature) -> None:
    """Checks that the name of a feature of every attribute says where that of each stands."""
    if feature.field == EACH_ATTRIBUTE and key.count("*") != 1:
        raise SettingError(
            where,
            f"stores every attribute, each under a key of its own: put one * into {key!r}, such as "
            f"{key}/*",
        )


def _check_functions(layout: ExampleLayout) -> None:
    settings, convention, functions = layout.settings, layout.convention, layout.settings.features
    given = {feature.field for feature in layout.settings.source.features()}
    taken = {feature.key for feature in (*convention.example_features, *settings.source.features())}
    for key, named in settings.user_functions.items():
        if ":" not in named:
            raise SettingError(f"{key}.function", f"is {named!r}: write package.module:function")
        try:
            find_function(named)
        except SettingError as error:
            raise error.at(key) from None
    for name, each in functions.items():
        feature, asked = each.as_feature(name), convention.fields.get(name)
        if each.signature.of == "image" and not settings.holds_images:
            raise SettingError(
                f"features.{name}",
                f": {each.function} takes images, and none is decoded: set its of: file",
            )
        if name in IMAGE_FIELDS or (asked is None and name in taken):
            raise SettingError(
                f"features.{name}", f": the name is taken: choose another, such as x/{name}"
            )
        if asked is not None and (asked.kind, asked.many) != (feature.kind, feature.many):
            wanted = _kind(asked.kind, asked.many)
            raise SettingError(
                f"features.{name}", f": the convention ({convention.title}) wants {wanted}"
            )
    if "feature" in convention.fields and "feature" not in given | functions.keys():
        raise SettingError(
            "features.feature",
            f"is missing: the convention ({convention.title}) stores what it computes",
        )


def _check_source_features(layout: ExampleLayout) -> None:
    source, convention = layout.settings.source, layout.convention
    reserved = IMAGE_FIELDS | ANNOTATION_FIELDS
    if source.contents != "images":
        reserved = IMAGE_FIELDS - PIXEL_FIELDS
    taken = {*reserved, *(feature.key for feature in convention.example_features)}
    for feature in source.features():
        other = convention.fields.get(feature.field)
        if feature.field in reserved or (other is None and feature.key in taken):
            raise SettingError(
                "source",
                f": the feature name {feature.key!r} is taken: choose another, such as "
                f"x/{feature.key}",
            )
        if other and (feature.kind, feature.many) != (other.kind, other.many):
            stores, gives = _kind(other.kind, other.many), _kind(feature.kind, feature.many)
            raise SettingError(
                "convention",
                f": {other.key} is {stores}, and the source's {feature.field!r} is {gives}",
            )


def _kind(kind: str, many: bool) -> str:
    return f"{kind}[]" if many else kind
