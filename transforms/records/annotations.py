"""Completes records with the annotations of their images, and counts these."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    DroppedAnnotation,
    PlacedAnnotations,
)
from recordmill.annotations.kinds import KINDS
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals, BoxExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

Outcomes = dict[str, AnnotationOutcome]
"""How many annotations of an image were written and dropped, by kind."""

MOST_UNKNOWN = 100
"""The most unknown classes that one shard counts by name; a broken file could contain millions."""

OTHERS = "others"
"""The name under which other unknown classes are counted."""


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
    carried, placed = dict(ref.annotations), {}
    for name, kind in KINDS.items() if carried else ():
        if name in carried:
            placed[name] = kind.place(carried[name], on)
            placed[name].outcome.lacks_file = ref.lacks_file
    return placed


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


def read_outcomes(stored: Mapping[str, Any]) -> Outcomes:
    """The outcomes from the values that `RowOrigin.as_line` writes."""
    return {name: _read_outcome(values) for name, values in stored.items()}


def _read_outcome(values: Mapping[str, Any]) -> AnnotationOutcome:
    given = values["counts"]
    counts = AnnotationCounts(
        given["listed"], given["written"], Counter(given["dropped"]), Counter(given["noted"])
    )
    dropped = [DroppedAnnotation(*each) for each in values["dropped"]]
    return AnnotationOutcome(counts, dropped, values["lacks_file"])


def _why_without_boxes(outcome: AnnotationOutcome) -> str:
    """Why an image has no box, as a key of `AnnotationTotals.without_boxes`."""
    if outcome.counts.listed:
        return "all_dropped"
    if outcome.lacks_file:
        return "no_file"
    return "no_objects"


def add_image(totals: AnnotationTotals, key: str, outcomes: Outcomes) -> None:
    """Adds the counts of the image with that key, written or rejected."""
    if labels := outcomes.get("labels"):
        totals.labels.update(labels.counts.flatten())
    boxes = outcomes.get("boxes")
    is_rejected = boxes is not None and any(
        boxes.counts.dropped[why] for why in ("with_rejected_images", "with_left_out_images")
    )
    if boxes is None or is_rejected:
        return
    listed = boxes.counts.listed
    ledgers = [totals.dropped]
    if not boxes.counts.written and not boxes.counts.dropped["without_image"]:
        totals.without_boxes[_why_without_boxes(boxes)] += 1
        ledgers.append(totals.emptied)
    if shapes := boxes.counts.dropped["other_shape"]:  # the source does not say their class
        for ledger in ledgers:
            ledger.setdefault("other_shape", Counter())[""] += shapes
    for box in boxes.dropped:
        name, reason = box.class_name, box.reason
        if reason == "unknown_class" and name not in (known := totals.dropped.get(reason, ())):
            name = name if len(known) < MOST_UNKNOWN else OTHERS
        for ledger in ledgers:
            ledger.setdefault(reason, Counter())[name] += 1
        if box.is_faulty:
            totals.faulty.setdefault(reason, Counter())[name] += 1
            example = BoxExample(
                key, box.place, f"box {box.place} of {listed} of {key} (class {name})"
            )
            totals.examples[reason] = min(example, totals.examples.get(reason, example))
