"""Settings that cannot act under the others."""

from collections.abc import Iterator
from operator import attrgetter

from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout

_ENCODING = ("images.quality", "images.subsampling")
_PIXELS = (
    *("images.formats", "images.max_pixels", "images.max_side", "images.moments", "images.near_duplicates"),
    *("images.store", "images.grayscale", "images.background", "images.resize", *_ENCODING),
)
_REENCODE = "remove it, or set images.reencode=always"
_ADD_A_SPLIT = "remove it, or add a split to splits.fractions"

_Idle = Iterator[tuple[tuple[str, ...], str, str]]
"""Settings, why they cannot act, and what to do."""


def find_idle(settings: DatasetSettings) -> list[str]:
    """A sentence for each setting that differs from its default and cannot act under the other settings.

    Args:
        settings: what the dataset is; its source knows all that its files tell.
    """
    found: dict[str, str] = {}
    for keys, reason, remedy in (*_idle_pixels(settings), *_idle_images(settings), *_idle_others(settings)):
        for key in keys:
            if settings.differs(key):
                found.setdefault(key, f"{key} has no effect, since {reason}: {remedy}")
    source, default = settings.source, type(settings.source)()
    unnamed = not source.gives_labels and hasattr(default, "class_names")
    idle = {**({"class_names": "the source gives no labels"} if unnamed else {}), **source.idle_settings()}
    if source.group_setting and (reason := _why_no_group(settings)):
        idle[source.group_setting] = reason
    for name, reason in idle.items():
        if attrgetter(name)(source) != attrgetter(name)(default):
            found[f"source.{name}"] = f"source.{name} has no effect, since {reason}: remove it"
    return list(found.values())


def find_unused_words(settings: DatasetSettings) -> list[str]:
    """A note for each setting that finds words for splits, where nothing gives these words a split."""
    if settings.splits.from_source:
        return []
    source, default = settings.source, type(settings.source)()
    by = "splits.from_folders gives the splits" if settings.splits.from_folders else "splits.from_source is not set"
    words = [name for name in source.split_settings if attrgetter(name)(source) != attrgetter(name)(default)]
    return [f"source.{name} is not used, since {by}" for name in words]


def _idle_pixels(settings: DatasetSettings) -> _Idle:
    """Settings of pixels, where no image is decoded."""
    if settings.holds_images:
        return
    if settings.source.contents == "rows":
        yield _PIXELS, "the source holds no images", "remove it"
    else:
        yield _PIXELS, "decode is none, so that no image is decoded", "remove it, or remove decode"
    # Where quality or subsampling made `always` of `auto`, those are the ones to name.
    if settings.images.reencode == "always" and not any(map(settings.differs, _ENCODING)):
        yield ("images.reencode",), "no image is decoded", "remove it"


def _idle_images(settings: DatasetSettings) -> _Idle:
    images, source, resize = settings.images, settings.source, settings.images.resize
    never, copies = images.reencode == "never", images.reencode == "never" and not source.may_give_pixels
    if settings.holds_images:
        if images.store not in ("auto", "jpeg"):
            yield _ENCODING, f"images are stored as {images.store}, and only JPEG has it", "remove it"
        if copies:
            shown = images.near_duplicates or ExampleLayout(settings).needs_pixels
            keys = _ENCODING if shown else (*_ENCODING, "images.background")
            yield keys, "images.reencode is never, so that every file is copied", _REENCODE
        if not (resize and resize.pads) and (source.gives_pixels or set(images.formats) == {"JPEG"}):
            reason = "no image is transparent, and none is padded"
            yield ("images.background",), reason, "remove it, or set images.resize.fit=pad"
        if never and source.gives_pixels:
            yield ("images.reencode",), "the source gives pixels, which are always encoded", "remove it"
    if copies and images.check == "header":
        reason = "images.check is header, so that no image is decoded"
        yield ("images.moments",), reason, "remove it, or set images.check=decode"
    if source.gives_pixels:
        keys = ("images.formats", "images.check")
        yield keys, "the source gives pixels, not files of a format", "remove it"
    if resize and resize.exact is None:
        reason = "images.resize.longest keeps the shape of images"
        yield ("images.resize.fit",), reason, "remove it, or set images.resize.exact"


def _idle_others(settings: DatasetSettings) -> _Idle:
    layout, annotations = ExampleLayout(settings), settings.source.annotations()
    if not settings.holds_images or "boxes" not in annotations:
        yield ("boxes.drawn_on", "boxes.invalid", "max_rejected.boxes"), "the source gives no boxes", "remove it"
    if layout.fields.isdisjoint(("label", "labels", "box_labels")):
        yield ("labels.offset",), f"the convention ({layout.convention.title}) stores no class ids", "remove it"
    if not settings.source.gives_labels:
        keys = ("labels.classes", "labels.catch_all", "labels.ids", "labels.offset", "max_rejected.lost_classes")
        yield keys, "the source gives no labels", "remove it"
    if "labels" not in annotations:
        yield ("max_rejected.labels",), f"no {settings.unit} has several labels", "remove it"
    if reason := _why_no_group(settings):
        if settings.splits.given:
            yield ("splits.group",), reason, "remove it, or set splits.fractions instead of given splits"
        else:
            together = ("duplicates",) if settings.duplicates == "together" else ()
            yield ("splits.stratify", *together), reason, _ADD_A_SPLIT
    if settings.shards.count is not None:
        yield ("shards.size",), "shards.count says how many files there are", "remove one of them"


def _why_no_group(settings: DatasetSettings) -> str:
    """Why nothing needs to stay in one split; the empty string where something may."""
    if settings.splits.given:
        return f"the split of every {settings.unit} is given"
    one = list(settings.splits.fractions.values()) == [1]
    return f"there is one split, and every {settings.unit} is in it" if one else ""
