"""Worth a look: what to know about a dataset before training on it.

It is found once for the terminal, the card and the report. The module also notes settings that
had no effect on any image.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any
from unicodedata import normalize

from recordmill.annotations.kinds import KINDS
from recordmill.annotations.labels import LABELS
from recordmill.schemas.dataset.marker import Marker, SameBytes
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.dataset.side_files import Remark
from recordmill.schemas.dataset.totals import (
    ImageTotals,
)
from recordmill.schemas.formatting import agree, format_count, say_count, show_names
from recordmill.schemas.idle_settings import Effects, NoteIfIdle, marks_of
from recordmill.schemas.label_map import is_integer_label
from recordmill.schemas.rejection import OF_WHOLE_FILES
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.recipe import judge_changed_settings
from recordmill.schemas.yaml_core import write_yaml_line
from recordmill.transforms.inputs.class_names import NO_CLASS_NUMBER
from recordmill.transforms.inputs.listed_pairs import NUMBERS_IN_NAMES
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.unlikely_classes import (
    SELDOM_CLASS,
    UNSORTED,
    name_of_original,
)
from recordmill.transforms.planning.explain_pairs import describe_pairs
from recordmill.transforms.planning.explain_unclaimed import describe_unclaimed
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publishing.loss_remarks import find_losses

LARGE_IMBALANCE = 10
"""The least ratio of the largest class to the smallest that is worth a look."""

LARGE_LOSS = 0.25
"""The least share of rejected images that comes first of all remarks."""

LARGE_GROWTH = 1.5
"""Re-encoded images are worth a look if they are more than this many times as large as their
files."""


def find_remarks(
    marker: Marker,
    images: ImageTotals,
    settings: DatasetSettings,
    listed: Summary | None = None,
) -> list[Remark]:
    """Makes the remarks, the worst first, which are the same for the same input.

    They do not include the marker's notes.

    Args:
        marker: the dataset's marker.
        images: what was done to the images.
        settings: what the dataset is.
        listed: what was listed: files that may carry labels and were not read, and pairs.
    """
    listed = listed or Summary()
    return [
        *_find_large_loss(marker, settings),
        *_find_duplicates(marker),
        *_find_classes(marker, settings),
        *_find_stray(marker, settings),
        *_find_numbers(marker, listed),
        *_find_annotations(marker, settings),
        *_find_positions(marker),
        *find_losses(images.losses, settings.images.bits),
        *_find_lossy(images, settings),
        *_find_rejected(marker),
        *(Remark(text, "") for text in describe_unclaimed(listed.unclaimed)),
        *(Remark(text, "") for text in describe_pairs(listed.second_images)),
    ]


def _find_duplicates(marker: Marker) -> Iterator[Remark]:
    unit = marker.unit
    same, alike = marker.duplicates.same_bytes, marker.duplicates.look_alike or SameBytes()
    for numbers, one, many in (
        (same, f"{unit} is", f"{unit}s are"),
        (alike, "pair of images that look alike is", "pairs of images that look alike are"),
    ):
        where = {
            "class": numbers.conflicting,
            "split: scores will look too good": numbers.across_splits,
        }
        for place, count in where.items():
            if count:
                yield Remark(
                    f"{count:,} {one if count == 1 else many} in more than one {place}.",
                    "duplicates",
                )
    if differing := same.conflicting_annotations:
        yield Remark(
            f"{say_count(differing, unit, 'has')} copies with other annotations.", "duplicates"
        )


def _find_few_classes(marker: Marker, classes: Sequence[str]) -> Iterator[Remark]:
    """Yields that there is one class, or none and no other annotation either."""
    if len(classes) == 1:
        yield Remark(f"All labels are one class, {show_names(classes)}.", "classes")
    elif not classes and not any(each.written for each in marker.annotations.values()):
        yield Remark("No image has a label.", "classes")


def _find_classes(marker: Marker, settings: DatasetSettings) -> Iterator[Remark]:
    of, counts = marker.counted_unit, marker.class_counts
    classes, unlabeled = len(marker.labels), counts.pop("", 0)
    filled = {name: count for name, count in counts.items() if count}
    if marker.unit == "image" and marker.counted in (None, LABELS.name):
        yield from _find_few_classes(marker, [*filled])
    if not filled:
        return
    for name, split in marker.splits.items():
        own = split.class_counts
        if lacking := [each for each in filled if not own.get(each)]:
            what = f"Split {name} lacks {len(lacking):,} of {len(filled):,} classes"
            share = settings.splits.fractions.get(name, 0)
            is_enough = all(share * filled[each] >= 1 for each in lacking)
            advice = ""
            if marker.counted is None and is_enough and _can_stratify(settings):
                advice = ": set splits.stratify=true to give each split its share of every class"
            yield Remark(f"{what}{advice}.", "classes")
    yield from _find_similar(marker.labels)
    none = str(NO_CLASS_NUMBER)
    if filled.get(none) and len(filled) > 1 and all(map(is_integer_label, filled)):
        has = format_count(filled[none], of)
        yield Remark(f"Class {none} has {has}: this number often stands for no label.", "classes")
    if unused := sorted(name for name, count in counts.items() if not count):
        what = (
            f"{len(unused):,} of {format_count(classes, 'class')} "
            f"{agree(len(unused), 'has')} no {of}"
        )
        yield Remark(f"{what} at all: {show_names(unused)}.", "classes")
    if unlabeled:
        whole = format_count(sum(split.records for split in marker.splits.values()), marker.unit)
        yield Remark(f"{unlabeled:,} of {whole} {agree(unlabeled, 'has')} no label.", "classes")
    least, most = min(filled.values()), max(filled.values())
    if len(filled) > 1 and most >= LARGE_IMBALANCE * least:
        what = f"The largest class has {format_count(most, of)}, the smallest {least:,}"
        yield Remark(
            f"{what}: weigh the classes, or the small ones will not be learned.", "classes"
        )


def _can_stratify(settings: DatasetSettings) -> bool:
    """Returns whether the setting that divides each class alike may be added to the others."""
    splits = settings.splits
    return not (splits.given or splits.stratify or settings.source.late_labels)


def _find_stray(marker: Marker, settings: DatasetSettings) -> Iterator[Remark]:
    """Yields a remark on folders such as `docs`, `unsorted` and `cat copy` that became classes."""
    counts = {name: count for name, count in marker.class_counts.items() if name and count}
    if not settings.source.labels_from_folders or len(counts) < 2:
        return
    usual = median(counts.values())
    for name, count in sorted(counts.items()):
        what = f"Class {name} has {format_count(count, marker.unit)}, and a name"
        leave_out = f"leave it out with {_leave_out_folder(name, settings)}"
        original = name_of_original(name)
        if original in counts:
            text = (
                f"Class {name} has {format_count(count, marker.unit)}, and the name of a copy of "
                f"{original}: if it is one, {leave_out}."
            )
            yield Remark(text, "classes")
        elif UNSORTED.fullmatch(name.lower()):
            text = f"{what} of images without a class: if they have none, {leave_out}."
            yield Remark(text, "classes")
        elif SELDOM_CLASS.fullmatch(name.lower()) and 4 * count <= usual:
            yield Remark(f"{what} that seldom is a class: if it is none, {leave_out}.", "classes")


def _leave_out_folder(name: str, settings: DatasetSettings) -> str:
    """Returns the flags that leave out the folder of a class."""
    pattern = f"{escape_glob(name)}/"
    if not settings.splits.from_folders:
        pattern = f"/{pattern}"
    ignored = write_yaml_line([*settings.ignore, pattern])
    return shlex.join(["--set", f"ignore={ignored}"])


def _find_numbers(marker: Marker, listed: Summary) -> Iterator[Remark]:
    """Yields a remark on names of several numbers, if there is no other label."""
    filled = [name for name, count in marker.class_counts.items() if name and count]
    if listed.noted[NUMBERS_IN_NAMES] and len(filled) < 2:
        yield Remark(
            "The images' names are several numbers each, and may hold labels: "
            "source.kind=filename_labels reads these by a pattern (source.pattern).",
            "classes",
        )


def _find_annotations(marker: Marker, settings: DatasetSettings) -> Iterator[Remark]:
    for name, kind in KINDS.items():
        if name not in marker.annotations:
            continue
        entry = marker.annotations[name]
        for text in kind.find_remarks(entry, marker.unit, settings):
            yield Remark(text, name if entry.listed else "")  # else it has no section


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_NO_VALUE = frozenset({"NaN", "nan", "None", "NULL", "null", "N/A", "NA", "<NA>", "NaT"})
"""What programs write for no value."""


def _find_similar(labels: Collection[str]) -> Iterator[Remark]:
    """Yields remarks on classes that may be meant as one, or as no class."""
    alike: dict[str, list[str]] = {}
    for name in sorted(labels):
        alike.setdefault("".join(normalize("NFC", name).casefold().split()), []).append(name)
    pairs = [" and ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    if pairs:
        what = f"The classes {show_names(pairs)} differ in case or blanks only"
        yield Remark(f"{what}: they may be meant as one.", "classes")
    numbers: dict[float, list[str]] = {}
    for name in sorted(filter(_NUMBER.fullmatch, labels)):
        numbers.setdefault(float(name), []).append(name)
    pairs = [" and ".join(map(repr, names)) for names in numbers.values() if len(names) > 1]
    if pairs:
        what = f"The classes {show_names(pairs)} are the same number"
        yield Remark(f"{what}: they may be meant as one.", "classes")
    if unknown := [name for name in sorted(labels) if name in _NO_VALUE]:
        word = agree(len(unknown), "class")
        what = f"The {word} {show_names(map(repr, unknown))} may stand for no value"
        yield Remark(f"{what}: leave such cells empty if so.", "classes")


def _find_positions(marker: Marker) -> Iterator[Remark]:
    if count := marker.gps_positions:
        what = f"{say_count(count, 'image', 'has')} a GPS position"
        yield Remark(f"{what}: images.metadata: strip removes all metadata.", "")


def _find_lossy(images: ImageTotals, settings: DatasetSettings) -> Iterator[Remark]:
    if settings.images.store not in ("auto", "jpeg"):
        return
    if count := images.lossless.images:
        named = f"{format_count(count, 'image')} with a lossless extension, such as .png,"
        yield Remark(
            f"{named} became JPEG, which is lossy: set images.store=png to keep every pixel.",
            "changes",
        )
    changed = images.reencoded
    if changed.after > LARGE_GROWTH * changed.before > 0:
        what = f"{say_count(changed.images, 'image', 'was')} encoded again"
        yield Remark(
            f"{what} and {changed.after / changed.before:.1f} times as large as before.", "changes"
        )


def _find_rejected(marker: Marker) -> Iterator[Remark]:
    rejected = marker.ledger.rejected
    for reason in sorted(OF_WHOLE_FILES & rejected.keys()):
        count, whole = rejected[reason], f"of the {marker.unit}s in such files"
        files = f"{say_count(count, 'file', 'was')} rejected"
        if reason == "missing_shard":
            files = f"{say_count(count, 'file', 'is')} missing"
        lost = f"all {whole} are lost"
        if reason in ("bad_archive", "bad_tfrecord"):
            lost = f"an unknown number {whole} is lost"
        yield Remark(f"{files} ({reason}): {lost}.", "rejected")
    count = _count_rejected(marker)
    if count and not _is_large(count, marker):
        thing = "row" if marker.unit == "row" else "file"
        yield Remark(f"{say_count(count, thing, 'was')} rejected.", "rejected")


def _find_large_loss(marker: Marker, settings: DatasetSettings) -> Iterator[Remark]:
    """Yields a remark if a large part was rejected, and the count of these alone is allowed."""
    count, limit = _count_rejected(marker), settings.max_rejected.count
    if count and _is_large(count, marker):
        whole = format_count(count + marker.ledger.written, marker.unit)
        allowed = f"max_rejected.share ({settings.max_rejected.share:.0%}) allows it."
        if count <= limit:
            allowed = (
                f"max_rejected.count ({limit}) allows it: set max_rejected.count=0 to fail such a "
                "run."
            )
        was = "was" if count == 1 else "were"
        yield Remark(f"{count:,} of {whole} {was} rejected, since {allowed}", "rejected")


def _count_rejected(marker: Marker) -> int:
    """Returns how many images were rejected; files of many images are counted apart."""
    rejected = marker.ledger.rejected
    return sum(rejected[reason] for reason in rejected.keys() - OF_WHOLE_FILES)


def _is_large(count: int, marker: Marker) -> bool:
    return count >= LARGE_LOSS * (count + marker.ledger.written)


def note_idle(outcome: Outcome, settings: DatasetSettings) -> Outcome:
    """Adds a note on each setting that had no effect on any image to a finished dataset's outcome.

    Only settings that differ from their defaults count.

    Args:
        outcome: how the run ended.
        settings: what the dataset is.
    """
    numbers = outcome.dataset
    if numbers is None:
        return outcome
    effects = Effects(Counter(numbers.changes), Counter(numbers.ledger.left_out))
    images = format_count(numbers.ledger.written, settings.unit)
    idle = judge_changed_settings(settings, partial(_say_idle, effects, images))
    notes = [f"{path} {what}" for path, what in idle]
    return replace(outcome, notes=(*outcome.notes, *notes))


def _say_idle(effects: Effects, images: str, section: Any, name: str) -> str | None:
    """Returns what to say of a field that acted on no image; None if nothing is to be said."""
    kind: Any = type(section)
    marks = marks_of(kind, NoteIfIdle)[name]
    if any(mark.count(section, effects) == 0 for mark in marks):
        return f"had no effect on any of {images}"
    return None
