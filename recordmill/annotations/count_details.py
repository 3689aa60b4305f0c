"""Counts what describes objects besides their boxes: listed = written + dropped."""

from collections import Counter
from collections.abc import Mapping

from recordmill.annotations.annotation import (
    AnnotationOutcome,
    DroppedAnnotation,
    PlacedAnnotations,
    PlacedObjects,
    name_loss,
)
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, show_dropped
from recordmill.schemas.formatting import format_count
from recordmill.schemas.rejection import Rejected

_WITH_BOX = "without_box"


class DetailCount:
    """Counts the masks, or the key points, of one image.

    Args:
        objects: which objects are stored.
        unwanted: why objects are dropped because of another kind, by their place from 0.
        faults: the reasons that are faults: no setting asks for them.
    """

    def __init__(
        self, objects: PlacedObjects, unwanted: Mapping[int, str], faults: frozenset[str]
    ) -> None:
        self._objects, self._unwanted, self._faults = objects, unwanted, faults
        self._dropped: list[DroppedAnnotation] = []

    def drop(self, at: int, reason: str, count: int = 1) -> None:
        """Adds details of one object that are not stored; `at` is its place from 0."""
        is_faulty = reason in self._faults
        dropped = DroppedAnnotation(reason, self._objects.names[at], at + 1, is_faulty)
        self._dropped += [dropped] * count

    def drop_with_boxes(self, counts: Mapping[int, int]) -> None:
        """Adds the details of the objects that are not stored; `counts` are those of objects."""
        for at in sorted(counts.keys() - {*self._objects.stored}):
            self.drop(at, self._unwanted.get(at, _WITH_BOX), counts[at])

    def outcome(self, written: int) -> AnnotationOutcome:
        """Returns all counts for an image with this number of stored details."""
        reasons = Counter(each.reason for each in self._dropped)
        counts = AnnotationCounts(written + len(self._dropped), written, reasons)
        return AnnotationOutcome(counts, sorted(self._dropped, key=lambda each: each.place))


def drop_undecoded(listed: int) -> PlacedAnnotations:
    """Drops the details of an image that is not stored."""
    counts = AnnotationCounts(listed, dropped=+Counter(not_decoded=listed))
    return PlacedAnnotations({}, [], AnnotationOutcome(counts))


def lose_details(listed: int, rejected: Rejected) -> AnnotationOutcome | None:
    """Counts the details of an image that is not written; None if it has none."""
    if not listed:
        return None
    counts = AnnotationCounts(listed)
    counts.dropped[name_loss(rejected)] = listed
    return AnnotationOutcome(counts)


def describe_dropped(entry: AnnotationEntry) -> str | None:
    """Returns how many details were dropped, and why, apart from those whose box was; or None."""
    reasons = {
        why: classes for why, classes in (entry.dropped_classes or {}).items() if why != _WITH_BOX
    }
    count = sum(entry.dropped.get(why, 0) for why in reasons)
    if not count:
        return None
    return f"{count:,} of {format_count(entry.listed, entry.name)} ({show_dropped(reasons)})"
