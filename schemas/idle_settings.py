"""Rules on settings that have no effect under the others. Each stands at its field.

A rule marks the type of a field, as in `quality: Annotated[int, IdleIf(not_encoded)]`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the source, the convention, the splits and the flags say.

    Attributes:
        holds_images: whether Examples contain images.
        holds_rows: whether the source has neither images nor files.
        gives_pixels: whether the source gives pixels, so that there is nothing to decode.
        may_give_pixels: whether it does so for some images.
        gives_labels: whether any image may have a class, or an annotation of one.
        annotations: the kinds of annotations that images may have.
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


@cache
def rules_of(kind: Any) -> Mapping[str, tuple[IdleIf, ...]]:
    """Returns the rules of each field of a class of settings."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for each in fields(kind):
        marks = getattr(hints[each.name], "__metadata__", ())
        found[each.name] = tuple(mark for mark in marks if isinstance(mark, IdleIf))
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
