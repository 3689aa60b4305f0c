"""Finds settings that have no effect because of others."""

from collections.abc import Sequence
from contextlib import suppress

from recordmill import storage
from recordmill.schemas.errors import RecordmillError, UsageError
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import find_marker
from recordmill.storage.versions import version_names

_ENCODING = ("images.quality", "images.subsampling")
_PIXELS = (
    *("images.formats", "images.max_pixels", "images.max_side", "images.moments", "images.near_duplicates"),
    *("images.store", "images.grayscale", "images.background", "images.resize", *_ENCODING),
    *("images.function", "images.metadata", "keep"),
)
_LABELS = (
    *("labels.classes", "labels.catch_all", "labels.ids", "labels.offset"),
    *("limit_per_class", "max_rejected.lost_classes"),
)
_BOXES = ("boxes.drawn_on", "boxes.invalid", "max_rejected.boxes")

_NOT_BEAMS = (
    *("images.moments", "images.near_duplicates", "index_files", "analyze", "exclude", "expect"),
    *("licence", "creator", "version", "citation", "shards.cuts"),
)
"""Settings that need a marker or sidecars, or records in a certain order."""

_Rule = tuple[object, Sequence[str], str]
"""Whether settings have no effect, their keys, and the reason with what to do."""


def find_idle(settings: DatasetSettings) -> list[str]:
    """A sentence for each setting that differs from its default and has no effect because of others.

    Args:
        settings: what the dataset is, with a source that `settle` has completed.
    """
    found: dict[str, str] = {}
    for applies, keys, reason in (*_pixel_rules(settings), *_image_rules(settings), *_other_rules(settings)):
        for key in keys if applies else ():
            if settings.differs(key):
                found.setdefault(key, f"{key} has no effect, since {reason}")
    source = settings.source
    unnamed = not source.gives_labels and hasattr(source, "class_names")
    idle = {**({"class_names": "the source gives no labels"} if unnamed else {}), **source.idle_settings()}
    if source.group_setting and (why := _why_no_group(settings)):
        idle[source.group_setting] = why
    for name, why in idle.items():
        if settings.differs(f"source.{name}"):
            found[f"source.{name}"] = f"source.{name} has no effect, since {why}: remove it"
    return list(found.values())


def check_beams_writer(settings: DatasetSettings, output: str, here: bool) -> str:
    """A note on what `--writer=beam` leaves out; `here` is as for `preflight.find_folder`.

    Raises:
        UsageError: a setting has no effect with it, or one that it needs is missing.
        RecordmillError: the output holds a dataset.
    """
    # analyze sets images.moments: name only analyze. together takes effect before records are written.
    acts = {"images.moments": settings.analyze, "images.near_duplicates": settings.images.near_duplicates == "together"}
    why = "has no effect with --writer=beam, which writes records in random order, and no recordmill.json: remove it"
    problems = [f"{key} {why}" for key in _NOT_BEAMS if settings.differs(key) and not acts.get(key)]
    if settings.shards.count is None:
        problems.append("shards.count is not set, and --writer=beam needs the number of each split's files: set it")
    if problems:
        raise UsageError("\n".join(problems))
    with suppress(OSError):  # left to the job, which may have other permissions
        if (here or storage.is_local(output)) and (find_marker(output) or version_names(output)):
            raise RecordmillError(f"--writer=beam replaces no dataset, and {output} holds one: choose another output")
    return "--writer=beam writes no recordmill.json, sidecars or report; another run starts over, in another order"


def find_unused_words(settings: DatasetSettings) -> list[str]:
    """A note for each setting that finds words for splits, if no setting maps these words to splits."""
    by = "splits.from_folders gives the splits" if settings.splits.from_folders else "splits.from_source is not set"
    keys = () if settings.splits.from_source else [f"source.{name}" for name in settings.source.split_settings]
    return [f"{key} is not used, since {by}" for key in keys if settings.differs(key)]


def _pixel_rules(settings: DatasetSettings) -> Sequence[_Rule]:
    """Rules about settings of pixels if no image is decoded."""
    if settings.holds_images:
        return ()
    rows = settings.source.contents == "rows"
    # If quality or subsampling turned `auto` into `always`, name those instead.
    asked = settings.images.reencode == "always" and not any(map(settings.differs, _ENCODING))
    return (
        (rows, _PIXELS, "the source holds no images: remove it"),
        (not rows, _PIXELS, "decode is none, so that no image is decoded: remove it, or remove decode"),
        (asked, ("images.reencode",), "no image is decoded: remove it"),
    )


def _image_rules(settings: DatasetSettings) -> Sequence[_Rule]:
    images, source, resize, holds = settings.images, settings.source, settings.images.resize, settings.holds_images
    never = images.reencode == "never"
    copies = never and not source.may_give_pixels
    shown = images.near_duplicates or ExampleLayout(settings).needs_pixels
    kept = _ENCODING if shown else (*_ENCODING, "images.background")
    copied = "images.reencode is never, so that every file is copied: remove it, or set images.reencode=always"
    opaque = not (resize and resize.pads) and (source.gives_pixels or set(images.formats) == {"JPEG"})
    margin = "no image is transparent, and none is padded: remove it, or set images.resize.fit=pad"
    unseen = "images.check is header, so that no image is decoded: remove it, or set images.check=decode"
    lossless = f"images are stored as {images.store}, and only JPEG has it: remove it"
    encoded = "the source gives pixels, which are always encoded: remove it"
    bare = "every image is re-encoded, and such images never have metadata: remove it"
    limit = "shortest" if resize and resize.shortest else "longest"
    shape = f"images.resize.{limit} keeps the shape of images: remove it, or set images.resize.exact"
    files = "the source gives pixels, not files of a format: remove it"
    return (
        (holds and images.store not in ("auto", "jpeg"), _ENCODING, lossless),
        (holds and copies, kept, copied),
        (holds and opaque, ("images.background",), margin),
        (holds and never and source.gives_pixels, ("images.reencode",), encoded),
        (copies and images.check == "header", ("images.moments",), unseen),
        (source.gives_pixels, ("images.formats", "images.check", "images.metadata"), files),
        (holds and (images.reencoding == "always" or images.store == "raw"), ("images.metadata",), bare),
        (resize and resize.exact is None, ("images.resize.fit",), shape),
    )


def _other_rules(settings: DatasetSettings) -> Sequence[_Rule]:
    layout, annotations, splits = ExampleLayout(settings), settings.source.annotations(), settings.splits
    boxless = not settings.holds_images or "boxes" not in annotations
    no_ids = layout.fields.isdisjoint(("label", "labels", "box_labels"))
    why = _why_no_group(settings)
    fractions = f"{why}: remove it, or set splits.fractions instead of given splits"
    second = f"{why}: remove it, or add a split to splits.fractions"
    return (
        (boxless, _BOXES, "the source gives no boxes: remove it"),
        (no_ids, ("labels.offset",), f"the convention ({layout.convention.title}) stores no class ids: remove it"),
        (not settings.source.gives_labels, _LABELS, "the source gives no labels: remove it"),
        ("labels" not in annotations, ("max_rejected.labels",), f"no {settings.unit} has several labels: remove it"),
        (why and splits.given, ("splits.group",), fractions),
        (why and not splits.given, ("splits.stratify", *settings.kept_together), second),
        (settings.shards.count, ("shards.size",), "shards.count says how many files there are: remove one of them"),
    )


def _why_no_group(settings: DatasetSettings) -> str:
    """Why nothing has to be kept in one split; empty if something may have to be."""
    if settings.splits.given:
        return f"the split of every {settings.unit} is given"
    one = list(settings.splits.fractions.values()) == [1]
    return f"there is one split, and every {settings.unit} is in it" if one else ""
