"""Rules on settings that have no effect under the others, or had none. Each stands at its field.

A rule marks the type of a field, as in `quality: Annotated[int, IdleIf(not_encoded)]`. Another
mark, `NoteIfIdle`, counts after a run the images on which the setting acted.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the source, the convention, the splits and the flags say.

    Attributes:
        holds_images: whether Examples contain images.
        holds_rows: whether the source has neither images nor files.
        gives_pixels: whether the source gives pixels, so that there is nothing to decode.
        may_give_pixels: whether it does so for some images.
        gives_labels: whether any image may have a class, or an annotation of one.
        annotations: the kinds of annotations that images may have, and that settings do not leave
            out.
        needs_pixels: whether a function or a filter takes images as they are stored.
        unit: what an Example is made from.
        convention: the title of the convention.
        stores_ids: whether Examples have class ids.
        split: how the splits come about: `given`, `one` for all, or `drawn`.
        analyzes: whether the dataset is analyzed.
        beam_writes: whether the files are those of `--writer=beam`.
    """

    holds_images: bool
    holds_rows: bool
    gives_pixels: bool
    may_give_pixels: bool
    gives_labels: bool
    annotations: frozenset[str]
    needs_pixels: bool
    unit: Literal["image", "file", "row"]
    convention: str
    stores_ids: bool
    split: Literal["given", "one", "drawn"]
    analyzes: bool
    beam_writes: bool


@dataclass(frozen=True, slots=True)
class IdleIf:
    """Marks a field that may have no effect; of several marks, the first that applies counts.

    Attributes:
        rule: takes the settings that have the field, and the situation; returns why the field has
            no effect, as the end of a sentence; None if it has one.
    """

    rule: Callable[[Any, Situation], str | None]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run did to images.

    Attributes:
        changes: the number of images by change, as in `schemas.settings.images.CHANGES`.
        left_out: the number of images that were left out, by reason.
    """

    changes: Counter[str]
    left_out: Counter[str]


@dataclass(frozen=True, slots=True)
class NoteIfIdle:
    """Marks a field that a note names after a run in which it acted on no image.

    Attributes:
        count: takes the settings that have the field, and what the run did; returns the number of
            images on which the field acted, or None if its value does not act on images.
    """

    count: Callable[[Any, Effects], int | None]


def note_unless_changed(*names: str) -> NoteIfIdle:
    """Returns the mark of a setting that makes these changes of images."""
    return NoteIfIdle(lambda _, effects: sum(effects.changes[name] for name in names))


def note_unless_left_out(*reasons: str) -> NoteIfIdle:
    """Returns the mark of a setting that leaves images out for these reasons."""
    return NoteIfIdle(lambda _, effects: sum(effects.left_out[reason] for reason in reasons))


_Mark = TypeVar("_Mark")


@cache
def marks_of(kind: Any, mark: type[_Mark]) -> Mapping[str, tuple[_Mark, ...]]:
    """Returns the marks of one type of each field of a class of settings."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for each in fields(kind):
        marks = getattr(hints[each.name], "__metadata__", ())
        found[each.name] = tuple(one for one in marks if isinstance(one, mark))
    return found


def not_decoded(_: Any, now: Situation) -> str | None:
    """Returns a reason if Examples contain no images."""
    return None if now.holds_images else "no image is decoded"


def without_labels(_: Any, now: Situation) -> str | None:
    """Returns a reason if no image has a class."""
    return None if now.gives_labels else "the source gives no labels"


@cache
def without_annotations(kind: str) -> Callable[[Any, Situation], str | None]:
    """Returns the rule that gives a reason if no image has annotations of a kind."""

    def rule(_: Any, now: Situation) -> str | None:
        if now.holds_images and kind in now.annotations:
            return None
        return f"the source gives no {kind}"

    return rule


def without_marker(_: Any, now: Situation) -> str | None:
    """Returns a reason if there is no marker, and no sidecar; records are in random order then."""
    if now.beam_writes:
        return "--writer=beam writes records in random order, and no recordmill.json"
    return None


def why_no_group(now: Situation) -> str | None:
    """Returns why nothing has to be kept in one split; None if something may have to be."""
    if now.split == "given":
        return f"the split of every {now.unit} is given"
    if now.split == "one":
        return f"there is one split, and every {now.unit} is in it"
    return None
