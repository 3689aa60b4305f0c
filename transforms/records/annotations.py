"""Completes records with the annotations of their images, and counts these."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    DroppedAnnotation,
    PlacedAnnotations,
    ReadFile,
)
from recordmill.annotations.kinds import KINDS, list_stored
from recordmill.schemas.dataset.side_files import Row
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals, LostExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

Outcomes = dict[str, AnnotationOutcome]
"""How many annotations of an image were written and dropped, by kind."""

MOST_UNKNOWN = 100
"""The most unknown classes that one shard counts by name; a broken file could contain millions."""

OTHERS = "others"
"""The name under which other unknown classes are counted."""

_WITH_IMAGES = ("with_rejected_images", "with_left_out_images")
"""Reasons for which annotations are dropped with their image, whose class does not matter."""


def resolve_annotations(ref: ImageRef, on: AnnotatedImage) -> dict[str, PlacedAnnotations]:
    """Places the annotations that a reference carries.

    Args:
        ref: the reference.
        on: its image.

    Returns:
        The values for the record and their counts, by kind, in the order of `KINDS`.

    Raises:
        Rejected: stage `encode`: annotations are bad; see `AnnotationKind.place`.
    """
    if not ref.annotations:
        return {}
    carried = dict(ref.annotations)
    placed = _place_all(carried, on)
    unwanted = dict[int, str]()
    for each in placed.values():
        unwanted.update(each.unwanted)
    if unwanted:
        on.unwanted = unwanted
        placed = _place_all(carried, on)
    for each in placed.values():
        each.outcome.lacks_file = ref.lacks_file
    return placed


def _place_all(carried: Mapping[str, bytes], on: AnnotatedImage) -> dict[str, PlacedAnnotations]:
    """Places annotations of all kinds; kinds that describe objects come after those that list them.

    Args:
        carried: the packed annotations by kind.
        on: their image, whose `objects` are set.
    """
    placed = {}
    for name, kind in KINDS.items():
        if name in carried:
            placed[name] = kind.place(carried[name], on)
            on.objects = placed[name].objects or on.objects
    return placed


def fill_fields(
    placed: Mapping[str, PlacedAnnotations], on: AnnotatedImage, stored: Collection[str]
) -> dict[str, Any]:
    """Returns the fields of kinds that an image's objects have none of, as other images' do.

    Args:
        placed: what its objects have, by kind.
        on: the image.
        stored: the fields of a record.
    """
    found: dict[str, Any] = {}
    for kind in list_stored(stored):
        if kind.name not in placed:
            found |= kind.fill(on)
    return found


def lose_annotations(ref: ImageRef, rejected: Rejected, label_map: LabelMap) -> Outcomes:
    """Counts the annotations of an image that is not written.

    Args:
        ref: the image.
        rejected: why it is rejected or left out.
        label_map: class ids.
    """
    lost = {}
    for name, packed in ref.annotations:
        outcome = KINDS[name].lose(packed, rejected, label_map)
        if outcome is not None:
            lost[name] = outcome
    return lost


def describe_outcomes(outcomes: Outcomes) -> dict[str, dict[str, Any]] | None:
    """Returns the counts of an image's annotations for its row; None if it has none.

    With them are the files that annotations were read from.
    """
    described = {}
    for name, outcome in outcomes.items():
        described[name] = outcome.counts.as_row()
        if outcome.files:
            described[name]["files"] = [each._asdict() for each in outcome.files]
    return described or None


def describe_details(outcomes: Outcomes) -> dict[str, dict[str, Any]]:
    """Returns the details of the outcomes that a later run needs to copy the record."""
    details = {}
    for name, outcome in outcomes.items():
        detail: dict[str, Any] = {}
        if outcome.dropped:
            detail["dropped"] = outcome.dropped
        if outcome.located:
            detail["located"] = sorted(outcome.located.items())
        if outcome.lacks_file:
            detail["lacks_file"] = True
        if detail:
            details[name] = detail
    return details


def read_outcomes(row: Row, details: Mapping[str, Any]) -> Outcomes:
    """Returns the outcomes from a row of a sidecar, and from what `describe_details` gave."""
    outcomes = {}
    for name, stored in (row.annotations or {}).items():
        counts, detail = AnnotationCounts(), details.get(name, {})
        counts.add_row(stored)
        dropped = [DroppedAnnotation(*each) for each in detail.get("dropped", ())]
        files = [ReadFile(**each) for each in stored.get("files", ())]
        located = {place: sides and tuple(sides) for place, sides in detail.get("located", ())}
        outcomes[name] = AnnotationOutcome(
            counts, dropped, detail.get("lacks_file", False), files, located
        )
    return outcomes


def add_image(
    totals: dict[str, AnnotationTotals], key: str, outcomes: Outcomes, *, is_written: bool = True
) -> None:
    """Adds the annotations of the image with that key, written or rejected, by kind."""
    for name, outcome in outcomes.items():
        if any(outcome.counts.dropped[why] for why in _WITH_IMAGES):
            continue
        is_bare = is_written and not outcome.counts.written
        if is_bare or outcome.counts.dropped:
            own = totals.setdefault(name, AnnotationTotals())
            _add_dropped(own, key, KINDS[name].unit, outcome, is_bare)


def _add_dropped(
    totals: AnnotationTotals, key: str, unit: str, outcome: AnnotationOutcome, is_bare: bool
) -> None:
    """Adds an image's dropped annotations of one kind.

    Args:
        totals: those of the kind.
        key: the image's key.
        unit: what one annotation is called.
        outcome: the image's.
        is_bare: whether the image is written and has none left.
    """
    ledgers = [totals.dropped]
    if is_bare:
        totals.bare[_why_bare(outcome)] += 1
        ledgers.append(totals.emptied)
    if shapes := outcome.counts.dropped["other_shape"]:  # the source does not say their class
        for ledger in ledgers:
            ledger.setdefault("other_shape", Counter())[""] += shapes
    for each in outcome.dropped:
        name, reason = each.class_name, each.reason
        if reason == "unknown_class" and name not in (known := totals.dropped.get(reason, ())):
            name = name if len(known) < MOST_UNKNOWN else OTHERS
        for ledger in ledgers:
            ledger.setdefault(reason, Counter())[name] += 1
        if each.is_faulty:
            totals.faulty.setdefault(reason, Counter())[name] += 1
            of = f"{unit} {each.place} of {outcome.counts.listed} of {key} (class {name})"
            example = LostExample(key, each.place, of)
            totals.examples[reason] = min(example, totals.examples.get(reason, example))


def _why_bare(outcome: AnnotationOutcome) -> str:
    """Returns why an image has no annotation of a kind, as a key of `AnnotationTotals.bare`."""
    if outcome.counts.listed:
        return "all_dropped"
    if outcome.lacks_file:
        return "no_file"
    return "no_objects"
