"""Settings that cannot act under the others, and those that could and acted on nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from recordmill.schemas.formatting import format_count
from recordmill.schemas.outcome import Outcome
from recordmill.transforms.dataset_settings import DatasetSettings

_ENCODING = ("images.quality", "images.subsampling")
_DECODING = ("images.formats", "images.max_pixels", "images.max_side", "images.moments", "images.near_duplicates")
_CONVERTING = ("images.store", "images.grayscale", "images.background", "images.resize", *_ENCODING)

_ID_FIELDS = frozenset(("label", "labels", "box_labels"))


@dataclass(frozen=True, slots=True)
class _Rule:
    """When settings cannot act, whatever their value.

    Attributes:
        keys: of the settings.
        holds: whether they cannot act under the others.
        reason: why, after "since"; `{0}` are the settings.
        remedy: what to do.
    """

    keys: tuple[str, ...]
    holds: Callable[[DatasetSettings], bool]
    reason: str
    remedy: str = "remove it"


_SPLITS_ARE_GIVEN = "the split of every {0.unit} is given"
_ONE_SPLIT = "there is one split, and every {0.unit} is in it"
_ADD_A_SPLIT = "remove it, or add a split to splits.fractions"


def _has_one_split(settings: DatasetSettings) -> bool:
    return not settings.splits.given and list(settings.splits.fractions.values()) == [1]


def _copies_files(settings: DatasetSettings) -> bool:
    return settings.holds_images and settings.images.reencode == "never" and not settings.source.may_give_pixels


def _shows_no_pixels(settings: DatasetSettings) -> bool:
    return _copies_files(settings) and not (settings.images.near_duplicates or settings.needs_pixels)


def _pads(settings: DatasetSettings) -> bool:
    resize = settings.images.resize
    return resize is not None and resize.exact is not None and resize.fit == "pad"


_RULES = (
    _Rule((*_DECODING, *_CONVERTING), lambda s: s.source.contents == "rows", "the source holds no images"),
    _Rule(
        (*_DECODING, *_CONVERTING),
        lambda s: s.source.contents == "images" and s.decode == "none",
        "decode is none, so that no image is decoded",
        "remove it, or remove decode",
    ),
    _Rule(
        ("images.reencode",),
        lambda s: not s.holds_images and s.images.reencode == "always" and not _asks_for_encoding(s),
        "no image is decoded",
    ),
    _Rule(
        _ENCODING,
        lambda s: s.holds_images and s.images.store not in ("auto", "jpeg"),
        "images are stored as {0.images.store}, and only JPEG has it",
    ),
    _Rule(
        _ENCODING,
        _copies_files,
        "images.reencode is never, so that every file is copied",
        "remove it, or set images.reencode=always",
    ),
    _Rule(
        ("images.background",),
        _shows_no_pixels,
        "images.reencode is never, so that every file is copied",
        "remove it, or set images.reencode=always",
    ),
    _Rule(
        ("images.background",),
        lambda s: s.holds_images and not _pads(s) and (s.source.gives_pixels or set(s.images.formats) == {"JPEG"}),
        "no image is transparent, and none is padded",
        "remove it, or set images.resize.fit=pad",
    ),
    _Rule(
        ("images.moments",),
        lambda s: s.images.check == "header" and s.images.reencode == "never" and not s.source.may_give_pixels,
        "images.check is header, so that no image is decoded",
        "remove it, or set images.check=decode",
    ),
    _Rule(
        ("images.formats", "images.check"),
        lambda s: s.source.gives_pixels,
        "the source gives pixels, not files of a format",
    ),
    _Rule(
        ("images.reencode",),
        lambda s: s.holds_images and s.source.gives_pixels and s.images.reencode == "never",
        "the source gives pixels, which are always encoded",
    ),
    _Rule(
        ("images.resize.fit",),
        lambda s: s.images.resize is not None and s.images.resize.exact is None,
        "images.resize.longest keeps the shape of images",
        "remove it, or set images.resize.exact",
    ),
    _Rule(
        ("boxes.drawn_on", "boxes.invalid", "max_rejected.boxes"),
        lambda s: not s.holds_images or "boxes" not in s.source.annotations(),
        "the source gives no boxes",
    ),
    _Rule(
        ("labels.offset",),
        lambda s: _ID_FIELDS.isdisjoint(feature.field for feature in s.example_features),
        "the convention ({0.layout.title}) stores no class ids",
    ),
    _Rule(
        ("labels.classes", "labels.catch_all", "labels.ids", "labels.offset", "max_rejected.lost_classes"),
        lambda s: not s.source.gives_labels,
        "the source gives no labels",
    ),
    _Rule(("max_rejected.labels",), lambda s: "labels" not in s.source.annotations(), "no {0.unit} has several labels"),
    _Rule(
        ("splits.group",),
        lambda s: bool(s.splits.given),
        _SPLITS_ARE_GIVEN,
        "remove it, or set splits.fractions instead of given splits",
    ),
    _Rule(("splits.stratify",), lambda s: _has_one_split(s), _ONE_SPLIT, _ADD_A_SPLIT),
    _Rule(("duplicates",), lambda s: s.duplicates == "together" and _has_one_split(s), _ONE_SPLIT, _ADD_A_SPLIT),
    _Rule(
        ("shards.size",),
        lambda s: s.shards.count is not None,
        "shards.count says how many files there are",
        "remove one of them",
    ),
)


def _asks_for_encoding(settings: DatasetSettings) -> bool:
    """Whether `reencode: auto` became `always`; then the settings that did it are the ones to name."""
    return any(_is_set(settings, key) for key in _ENCODING)


_DEFAULT = DatasetSettings()


def _is_set(settings: DatasetSettings, key: str) -> bool:
    """Whether a setting differs from its default."""
    parent = key.rpartition(".")[0]
    if parent and attrgetter(parent)(settings) is None:
        return False
    default = "crop" if key == "images.resize.fit" else attrgetter(key)(_DEFAULT)
    return bool(attrgetter(key)(settings) != default)


def find_idle(settings: DatasetSettings) -> list[str]:
    """A sentence for each setting that differs from its default and cannot act under the other settings.

    Args:
        settings: what the dataset is; its source knows all that its files tell.
    """
    found: dict[str, str] = {}
    for rule in _RULES:
        for key in rule.keys:
            if key not in found and _is_set(settings, key) and rule.holds(settings):
                found[key] = f"{key} has no effect, since {rule.reason.format(settings)}: {rule.remedy}"
    default = type(settings.source)()
    unlabelled = {} if settings.source.gives_labels else {"class_names": "the source gives no labels"}
    idle = {name: reason for name, reason in unlabelled.items() if hasattr(default, name)}
    for name, reason in (idle | dict(settings.source.idle_settings())).items():
        if getattr(settings.source, name) != getattr(default, name):
            found[f"source.{name}"] = f"source.{name} has no effect, since {reason}: remove it"
    group = settings.source.group_setting
    if group and attrgetter(group)(settings.source) and (settings.splits.given or _has_one_split(settings)):
        reason = (_SPLITS_ARE_GIVEN if settings.splits.given else _ONE_SPLIT).format(settings)
        found[f"source.{group}"] = f"source.{group} has no effect, since {reason}: remove it"
    return list(found.values())


def find_unused_words(settings: DatasetSettings) -> list[str]:
    """A note for each setting that finds words for splits, where nothing gives these words a split."""
    if settings.splits.from_source:
        return []
    source, default = settings.source, type(settings.source)()
    by = "splits.from_folders gives the splits" if settings.splits.from_folders else "splits.from_source is not set"
    words = [name for name in source.split_settings if attrgetter(name)(source) != attrgetter(name)(default)]
    return [f"source.{name} is not used, since {by}" for name in words]


def tell_acted(outcome: Outcome, settings: DatasetSettings) -> Outcome:
    """The outcome of a finished dataset with `acted` among its numbers, and a note for each setting that never acted.

    Args:
        outcome: how the run ended.
        settings: what the dataset is.
    """
    if outcome.status not in ("published", "kept"):
        return outcome
    numbers, written = outcome.numbers, outcome.numbers["ledger"]["written"]
    acted = count_acted(settings, numbers["changes"], numbers["ledger"]["left_out"])
    notes = tuple(say_idle(key, written, settings.unit) for key, count in acted.items() if not count)
    return replace(outcome, numbers={**numbers, "acted": acted}, notes=(*outcome.notes, *notes)) if acted else outcome


def say_idle(key: str, images: int, unit: str) -> str:
    """That a setting acted on none of so many images."""
    return f"{key} acted on 0 of {format_count(images, unit)}"


def count_acted(settings: DatasetSettings, changes: Mapping[str, int], left_out: Mapping[str, int]) -> dict[str, int]:
    """On how many images each setting acted, for those that differ from their default and leave a trace.

    Args:
        settings: what the dataset is.
        changes: images by what was changed, as in the marker.
        left_out: images by the reason for which they were left out.
    """
    return {key: count for key, count in _count_acted(settings, changes, left_out) if _is_set(settings, key)}


def _count_acted(
    settings: DatasetSettings, changes: Mapping[str, int], left_out: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    if settings.holds_images:
        counts: Mapping[str, Any] = {
            **dict.fromkeys(_ENCODING, ("reencoded",)),
            "images.grayscale": ("grayscale_expanded",),
            "images.background": ("flattened", *(("resized",) if _pads(settings) else ())),
            "images.resize": ("resized",),
        }
        for key, names in counts.items():
            yield key, max(changes.get(name, 0) for name in names)
    yield "limit", left_out.get("limit", 0)
    if settings.duplicates == "drop":
        yield "duplicates", left_out.get("duplicate", 0)
