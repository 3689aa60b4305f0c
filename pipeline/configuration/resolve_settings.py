"""Fills in the settings that follow from others or from the inputs' files.

It also refuses contradictions and idle settings.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from recordmill import storage
from recordmill.imaging import find_missing_decoder
from recordmill.pipeline.configuration.unmoved_features import find_unmoved
from recordmill.schemas.conventions import Convention, ConventionFeature, convention_names
from recordmill.schemas.dataset.file_names import check_file_name
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.errors import RecordmillError, SettingError, UsageError
from recordmill.schemas.features import (
    BOX_FIELDS,
    IMAGE_FIELDS,
    MANY_LABELS_FIELDS,
    PIXEL_FIELDS,
    RECORD_FIELDS,
)
from recordmill.schemas.image_ref import CARRIED, ImageRef, Notice
from recordmill.schemas.rejection import Exclusions
from recordmill.schemas.settings.dataset import (
    DatasetSettings,
    ExampleLayout,
    explain_unstored_boxes,
)
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.recipe import Recipe, list_changed_settings, list_settings
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.schemas.yaml_core import write_yaml
from recordmill.storage.dataset_files import find_marker, version_names
from recordmill.transforms.inputs.patterns import compile_pattern
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.records.image_functions import digest_code, find_function

_ANNOTATION_FIELDS = {"boxes": BOX_FIELDS, "labels": MANY_LABELS_FIELDS}


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
        for kind, names in _ANNOTATION_FIELDS.items():
            known -= frozenset() if kind in given else names
        for key, feature in custom.features.items():
            if feature.field and feature.field not in added:
                _check_field(f"convention.features.{key}", feature, known)
    asked_by = given.get("labels")
    if asked_by and MANY_LABELS_FIELDS.isdisjoint(convention.fields):
        raise SettingError(
            asked_by,
            f"gives several labels, and the convention ({convention.title}) stores one: name a "
            "column of one, or store the field labels (docs/conventions.md)",
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
    asked_by = source.annotations().get("boxes", "")
    if source.is_about_boxes:
        asked_by = asked_by or "source.kind"
    if not names_convention:
        if asked_by and not layout.stores_boxes:
            raise explain_unstored_boxes(f"{asked_by} gives boxes", flag)
        return
    if isinstance(settings.convention, Convention) or not layout.stores_boxes:
        return
    stores_class = not ({"label", "label_text"} | MANY_LABELS_FIELDS).isdisjoint(layout.fields)
    if not stores_class and source.gives_labels and "boxes" not in source.annotations():
        raise SettingError(
            "convention",
            f"({layout.convention.title}) stores the classes of boxes only, and the images have a "
            "class and no boxes: choose another convention, such as default or slim",
        )


def _check_field(where: str, feature: ConventionFeature, known: set[str]) -> None:
    field = feature.field
    if field not in known:
        raise SettingError(
            f"{where}.field", f": the source gives no {field!r}, only {', '.join(sorted(known))}"
        )
    wanted = RECORD_FIELDS[field]
    if (feature.type, bool(feature.shape)) != (wanted.kind, wanted.many):
        right = f"{{field: {field}, type: {wanted.kind}{', shape: [null]' if wanted.many else ''}}}"
        raise SettingError(where, f"does not have the type of the field {field!r}: write {right}")


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
    reserved = IMAGE_FIELDS | BOX_FIELDS | MANY_LABELS_FIELDS | CARRIED
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


def complete_settings(settings: DatasetSettings) -> DatasetSettings:
    """Fills in the settings that follow from others, whatever the inputs are.

    Raises:
        SettingError: two contradict each other.
    """
    layout = ExampleLayout(settings)
    _check_convention(settings)
    check_features(layout)
    images = _complete_images(settings.images, layout.convention)
    if missing := find_missing_decoder(images.formats):
        raise SettingError("images.formats", f": {missing}")
    compression = (
        layout.convention.compression if settings.compression == "auto" else settings.compression
    )
    if settings.analyze:
        _check_analysis(settings, images, layout)
        images = replace(images, moments=True)
    if settings.splits.group:
        compile_pattern(settings.splits.group, "splits.group", "group")
    for key in settings.kept_together if settings.splits.given else ():
        raise SettingError(key, ": together contradicts splits that are given: remove it")
    if settings.splits.stratify and settings.source.late_labels:
        raise SettingError(
            "splits.stratify",
            "needs labels that are known before the images are read: remove it",
        )
    if settings.limit_per_class is not None:
        _check_class_limit(settings)
    if settings.index_files and compression != "none":
        raise SettingError(
            "index_files", "needs compression: none, since readers seek in the files"
        )
    for key in settings.expect.images:
        if (split := key.partition("/")[0]) not in ("*", *settings.splits.names):
            raise SettingError(
                f"expect.images.{key}",
                f"names the split {split}, which does not exist: correct it",
            )
    completed = replace(settings, images=images, compression=compression)
    _check_file_names(ExampleLayout(completed))
    return completed


def _check_convention(settings: DatasetSettings) -> None:
    """Raises SettingError if no convention has the name."""
    if isinstance(settings.convention, str) and settings.convention not in convention_names():
        known = ", ".join(convention_names())
        raise SettingError(
            "convention", f": there is no convention {settings.convention!r}: choose one of {known}"
        )


def resolve_settings(
    settings: DatasetSettings, inputs: Sequence[Input], output: str, note: Callable[[str], None]
) -> DatasetSettings:
    """Fills in what only the inputs and the output's name determine.

    Args:
        settings: as `complete_settings` returns them.
        inputs: what to read; listed if the source asks for its files.
        output: the output folder, whose name is used if files need one and the settings have none.
        note: called with each note for the user.

    Raises:
        UsageError: the files do not determine a setting, or a setting has no effect.
    """
    try:
        settings = replace(
            settings, source=settings.source.settle(_list_files(inputs, settings.listing), note)
        )
        check_features(ExampleLayout(settings))
        if not settings.name and "{name" in ExampleLayout(settings).shard_name:
            settings = _name_after_output(output, settings)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if idle := find_idle(settings):
        raise UsageError("\n".join(idle))
    for sentence in (*find_unused_words(settings), *find_unmoved(settings)):
        note(sentence)
    return settings


def make_recipe(
    settings: DatasetSettings, comment: str = "", exclusions: Exclusions | None = None
) -> Recipe:
    """Makes the recipe of a dataset; `config.yaml` begins with the comment.

    The text begins with the comment. Functions have a digest of their code, so changed code makes
    another dataset. The file of `exclude` is replaced by a digest of what it names.
    """
    values = list_changed_settings(settings)
    functions = {name: digest_code(each.function) for name, each in settings.features.items()}
    hooks = {key: digest_code(name) for key, name in settings.hooks.items()}
    values |= {key: codes for key, codes in (("functions", functions), ("hooks", hooks)) if codes}
    values.pop("exclude", None)
    if exclusions:
        values["exclude"] = exclusions.digest
    in_use = to_json(list_settings(settings))
    written = comment + write_yaml(in_use)
    return Recipe(values, in_use | {"exclude": values.get("exclude", "")}, written)


def _check_class_limit(settings: DatasetSettings) -> None:
    source = settings.source
    # If only the files show whether there are boxes, the plan fails when there are.
    several = [
        kind
        for kind, key in source.annotations().items()
        if key or source.is_about_boxes or kind == "labels"
    ]
    if source.late_labels or several or settings.labels.catch_all:
        needs = "one label for each image, known before it is read, and no labels.catch_all"
        raise SettingError("limit_per_class", f"needs {needs}: remove it")


def _complete_images(images: ImageSettings, convention: Convention) -> ImageSettings:
    """Replaces `store: auto` by the convention's form, unless that is JPEG.

    It also resolves `reencode: auto`.
    """
    asked, named = convention.stores, f"the convention ({convention.title})"
    if asked != "jpeg" and images.reencode == "never":
        raise SettingError(
            "images.reencode",
            f"is never, and {named} stores {asked} pixels: remove one of them",
        )
    if images.function and images.reencode == "when_needed":
        raise SettingError(
            "images.reencode",
            "is when_needed, and images.function changes every image: remove one of them",
        )
    store = asked if asked != "jpeg" and images.store == "auto" else images.store
    if store != "raw" and "pixels_base64" in convention.fields:
        raise SettingError("images.store", f"is {store}, and {named} holds pixels: set it to raw")
    return replace(images, store=store, reencode=images.reencoding)


def _check_analysis(
    settings: DatasetSettings, images: ImageSettings, layout: ExampleLayout
) -> None:
    stores_files = (
        images.store != "raw" and settings.holds_images and "encoded" in layout.convention.fields
    )
    decodes = images.reencode != "never" or {"JPEG", "PNG"}.issuperset(images.formats)
    for is_met, needs in (
        (stores_files, "encoded images: set decode: images, and a convention that stores them"),
        (images.check != "header", "every image's pixels: remove images.check: header"),
        (
            decodes,
            "images that TensorFlow decodes: remove images.reencode: never, or set images.formats: "
            "[JPEG, PNG]",
        ),
        (
            "train" in settings.splits.names,
            "a split train: without one, run recordmill analyze PATH --split NAME",
        ),
    ):
        if not is_met:
            raise SettingError("analyze", f"needs {needs}")


def _check_file_names(layout: ExampleLayout) -> None:
    settings = layout.settings
    count = settings.shards.count or 12  # enough to compare indices of two digits with those of one
    indices = range(min(count, 12))
    names = [
        layout.file_name(split, index, count, 1)
        for split in settings.splits.names
        for index in indices
    ]
    own = isinstance(settings.convention, Convention) and not settings.shards.name
    key = "convention.shard_name" if own else "shards.name"
    if len(set(names)) < len(names):
        raise SettingError(
            key,
            f"{layout.shard_name!r} gives several files one name: add {{split}} and {{index}}",
        )
    for name in names:
        check_file_name(name, layout.shard_name, key)


def _name_after_output(output: str, settings: DatasetSettings) -> DatasetSettings:
    """Sets the dataset's name to the output folder's, in letters that file names may have."""
    name = (
        re.sub(r"[^A-Za-z0-9._-]", "_", output.rstrip("/").rpartition("/")[2]).lstrip("._-")
        or "dataset"
    )
    named = replace(settings, name=name)
    _check_file_names(ExampleLayout(named))
    return named


def _list_files(inputs: Sequence[Input], listing: ListingSettings) -> Iterator[ImageRef]:
    # Imports Beam, which most sources do not need here.
    from recordmill.transforms.list_images import (
        list_images,
    )

    # Only the selection of files matters here, not their splits and labels.
    patterns = ListingSettings(include=listing.include, ignore=listing.ignore)
    source = ClassFolders(class_from="none")
    for each in inputs:
        for ref in list_images(each, source, patterns):
            if type(ref) is ImageRef:
                yield ref
            elif isinstance(ref, Notice) and ref.reason == "not_an_image":
                yield ref  # a table or the like


_ENCODING = ("images.quality", "images.subsampling")
_PIXELS = (
    *(
        "images.formats",
        "images.max_pixels",
        "images.max_side",
        "images.moments",
        "images.near_duplicates",
    ),
    *("images.store", "images.bits", "images.grayscale", "images.background", "images.resize"),
    *_ENCODING,
    *("images.function", "images.metadata", "keep"),
)
_OF_FILES = ("images.formats", "images.check", "images.metadata")
_LABELS = (
    *("labels.classes", "labels.catch_all", "labels.ids", "labels.offset"),
    *("limit_per_class", "max_rejected.lost_classes"),
)
_BOXES = ("boxes.drawn_on", "boxes.invalid", "max_rejected.boxes")

_NOT_BEAMS = (
    *("images.moments", "images.near_duplicates", "index_files", "analyze", "exclude", "expect"),
    *("license", "creator", "version", "citation", "shards.cuts"),
)
"""Settings that need a marker or sidecars, or records in a certain order."""

_Rule = tuple[object, Sequence[str], str]
"""Whether settings have no effect, their keys, and the reason."""


def find_idle(settings: DatasetSettings) -> list[str]:
    """Returns a sentence for each setting that has no effect because of others.

    Only settings that differ from their default are named.

    Args:
        settings: what the dataset is, with a source that `settle` has completed.
    """
    found: dict[str, str] = {}
    for applies, keys, reason in (*_image_rules(settings), *_other_rules(settings)):
        for key in keys if applies else ():
            if settings.differs(key):
                found.setdefault(key, reason)
    source = settings.source
    idle = dict(source.idle_settings())
    if not source.gives_labels and hasattr(source, "class_names"):
        idle.setdefault("class_names", "the source gives no labels")
    if source.group_setting and (why := _why_no_group(settings)):
        idle[source.group_setting] = why
    found |= {
        f"source.{name}": why for name, why in idle.items() if settings.differs(f"source.{name}")
    }
    return [f"{key} has no effect, since {why}: remove it" for key, why in found.items()]


def check_beams_writer(settings: DatasetSettings, output: str, here: bool) -> str:
    """A note on what `--writer=beam` leaves out; `here` is as for `preflight.find_folder`.

    Raises:
        UsageError: a setting has no effect with it, or one that it needs is missing.
        RecordmillError: the output holds a dataset.
    """
    # analyze sets images.moments: name only analyze. together takes effect before records are
    # written.
    acts = {
        "images.moments": settings.analyze,
        "images.near_duplicates": settings.images.near_duplicates == "together",
    }
    why = (
        "has no effect with --writer=beam, which writes records in random order, and no "
        "recordmill.json: remove it"
    )
    problems = [f"{key} {why}" for key in _NOT_BEAMS if settings.differs(key) and not acts.get(key)]
    if settings.shards.count is None:
        problems.append(
            "shards.count is not set, and --writer=beam needs the number of each split's files: "
            "set it"
        )
    if problems:
        raise UsageError("\n".join(problems))
    with suppress(OSError):  # left to the job, which may have other permissions
        if (here or storage.is_local(output)) and (find_marker(output) or version_names(output)):
            raise RecordmillError(
                f"--writer=beam replaces no dataset, and {output} holds one: choose another output"
            )
    return (
        "--writer=beam writes no recordmill.json, sidecars or report; another run starts over, "
        "in another order"
    )


def find_unused_words(settings: DatasetSettings) -> list[str]:
    """Returns a note for each setting that finds words for splits, if none maps them to splits."""
    keys = (
        ()
        if settings.splits.from_source
        else [f"source.{name}" for name in settings.source.split_settings]
    )
    return [
        f"{key} is not used, since splits.from_source is not set"
        for key in keys
        if settings.differs(key)
    ]


def _image_rules(settings: DatasetSettings) -> Sequence[_Rule]:
    images, source, resize = settings.images, settings.source, settings.images.resize
    if not settings.holds_images:
        # If quality or subsampling turned `auto` into `always`, name those instead.
        asked = images.reencode == "always" and not any(map(settings.differs, _ENCODING))
        keys = (*_PIXELS, "images.reencode") if asked else _PIXELS
        return ((True, keys, "no image is decoded"),)
    never = images.reencode == "never"
    copies = never and not source.may_give_pixels
    shown = images.near_duplicates or ExampleLayout(settings).needs_pixels
    opaque = not (resize and resize.pads) and (
        source.gives_pixels or set(images.formats) == {"JPEG"}
    )
    bare = images.reencoding == "always" or images.store == "raw"
    return (
        (images.store not in ("auto", "jpeg"), _ENCODING, f"images are stored as {images.store}"),
        (copies, _ENCODING, "images.reencode is never"),
        (copies and not shown, ("images.background",), "images.reencode is never"),
        (opaque, ("images.background",), "no image is transparent, and none is padded"),
        (
            never and source.gives_pixels,
            ("images.reencode",),
            "the source gives pixels, which are always encoded",
        ),
        (copies and images.check == "header", ("images.moments",), "images.check is header"),
        (bare, ("images.metadata",), "every image is encoded again, without metadata"),
        (resize and resize.exact is None, ("images.resize.fit",), "images.resize.exact is not set"),
    )


def _other_rules(settings: DatasetSettings) -> Sequence[_Rule]:
    layout, source, splits = ExampleLayout(settings), settings.source, settings.splits
    annotations, why = source.annotations(), _why_no_group(settings)
    no_ids = layout.fields.isdisjoint(("label", "labels", "box_labels"))
    grouped = ("splits.group",) if splits.given else ("splits.stratify", *settings.kept_together)
    return (
        (source.contents == "rows", ("features",), "the source holds neither images nor files"),
        (
            not settings.holds_images or "boxes" not in annotations,
            # Configurations of earlier datasets name what was the default.
            _BOXES[settings.boxes.drawn_on == "displayed" :],
            "the source gives no boxes",
        ),
        (
            no_ids,
            ("labels.offset",),
            f"the convention ({layout.convention.title}) stores no class ids",
        ),
        (source.gives_pixels, _OF_FILES, "the source gives pixels"),
        (not source.gives_labels, _LABELS, "the source gives no labels"),
        (
            "labels" not in annotations,
            ("max_rejected.labels",),
            f"no {settings.unit} has several labels",
        ),
        (why, grouped, why),
        (settings.shards.count, ("shards.size",), "shards.count says how many files there are"),
    )


def _why_no_group(settings: DatasetSettings) -> str:
    """Why nothing has to be kept in one split; empty if something may have to be."""
    if settings.splits.given:
        return f"the split of every {settings.unit} is given"
    one = list(settings.splits.fractions.values()) == [1]
    return f"there is one split, and every {settings.unit} is in it" if one else ""
