"""Counts of boxes and of images without boxes, as in the marker, and sentences about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recordmill.schemas.formatting import format_count, show_names

NOT_DROPPED = frozenset({"listed", "written", "clipped", "enclosed"})
"""Counts of boxes that are not reasons for dropping them: `clipped` are some of those written, `enclosed` some of those
listed."""


def count_dropped(boxes: Mapping[str, int]) -> dict[str, int]:
    """Of boxes by outcome, those that were dropped, by reason."""
    return {what: count for what, count in boxes.items() if what not in NOT_DROPPED and count}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesWithoutBoxes:
    """Images that were written and have no box, by cause.

    Attributes:
        no_file: no file describes the image; for YOLO, it is an image without objects.
        no_objects: its annotation has no objects.
        all_dropped: all its boxes were dropped.
        dropped: the boxes of the images in `all_dropped`, by reason and class.
    """

    no_file: int = 0
    no_objects: int = 0
    all_dropped: int = 0
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of them."""
        return self.no_file + self.no_objects + self.all_dropped

    def explain(self, unit: str = "image") -> str:
        """All causes in a sentence for people; the empty string if every image has a box."""
        causes = [
            (self.no_file, "has no annotation file", "have no annotation file"),
            (self.no_objects, "has an annotation without objects", "have annotations without objects"),
            (self.all_dropped, *2 * (f"lost all boxes ({show_dropped(self.dropped)})",)),
        ]
        said = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in causes if count)
        return f"{format_count(self.total, unit)} {'has' if self.total == 1 else 'have'} no box: {said}" if said else ""


def show_dropped(dropped: Mapping[str, Mapping[str, int]]) -> str:
    """Reasons with the classes of their boxes, most frequent first: `unknown_class: 7, 12; empty: cat`."""
    reasons = sorted(dropped.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    said = ((reason, show_names(most_frequent(counts))) for reason, counts in reasons)
    return "; ".join(f"{reason}: {names}" if names else reason for reason, names in said)


def most_frequent(counts: Mapping[str, int]) -> list[str]:
    """Names by how often they are counted, then by code point."""
    return sorted(counts, key=lambda name: (-counts[name], name))
