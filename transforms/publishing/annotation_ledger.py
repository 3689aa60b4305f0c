"""What the marker says of annotations beside the ledger of images: dropped boxes, images without a box, labels."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from recordmill.schemas.annotation_totals import AnnotationTotals
from recordmill.schemas.show_count import show_count

MOST_CLASSES = 100
"""Classes that the marker lists under one reason; `more` counts the boxes of all others."""

MOST_NAMES = 5
"""Classes that a sentence names under one reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesWithoutBoxes:
    """Images that were written and have no box, by cause: `images_without_boxes` of the marker.

    Attributes:
        no_file: no file speaks of the image, which YOLO takes for one without objects.
        no_objects: its annotation names no object.
        all_dropped: all its boxes were dropped.
        dropped: the boxes of the images in `all_dropped`, by reason and class.
    """

    no_file: int = 0
    no_objects: int = 0
    all_dropped: int = 0
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def from_marker(cls, marker: Mapping[str, Any]) -> Self:
        """What a marker, or an outcome's numbers, say; nothing where they say nothing of it."""
        return cls(**marker.get("images_without_boxes", {}))

    @property
    def total(self) -> int:
        """All of them."""
        return self.no_file + self.no_objects + self.all_dropped

    def explain(self, unit: str = "image") -> str:
        """All causes in a sentence for people; the empty string where every image has a box."""
        causes = [
            (self.no_file, "has no annotation file", "have no annotation file"),
            (self.no_objects, "has an annotation without objects", "have annotations without objects"),
            (self.all_dropped, *2 * (f"lost all boxes ({show_dropped(self.dropped)})",)),
        ]
        said = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in causes if count)
        return f"{show_count(self.total, unit)} {'has' if self.total == 1 else 'have'} no box: {said}" if said else ""


def show_dropped(dropped: Mapping[str, Mapping[str, int]]) -> str:
    """Reasons with the classes of their boxes, most frequent first: `unknown_class: 7, 12; empty: cat`."""
    reasons = sorted(dropped.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    said = ((reason, show_names(most_frequent(counts))) for reason, counts in reasons)
    return "; ".join(f"{reason}: {names}" if names else reason for reason, names in said)


def show_names(names: Iterable[str]) -> str:
    """Some names, and that there are more."""
    shown = [name for name in names if name]
    return ", ".join(shown[:MOST_NAMES]) + (", ..." if len(shown) > MOST_NAMES else "")


def most_frequent(counts: Mapping[str, int]) -> list[str]:
    """Names by how often they are counted, then by code point."""
    return sorted(counts, key=lambda name: (-counts[name], name))


def describe_annotations(totals: AnnotationTotals, has_boxes: bool) -> dict[str, Any]:
    """The marker's keys on annotations; none for datasets without any.

    Args:
        totals: of all shards.
        has_boxes: whether any boxes were listed.
    """
    described: dict[str, Any] = {}
    if has_boxes or totals.without_boxes:
        without = ImagesWithoutBoxes(**totals.without_boxes, dropped=_cut(totals.emptied))
        described |= {"dropped_boxes": _cut(totals.dropped), "images_without_boxes": asdict(without)}
    if totals.labels:
        described["labels_of_images"] = dict(sorted(totals.labels.items()))
    return described


def _cut(by_reason: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """The counts, sorted, of so many classes as a marker can list."""
    cut = {}
    for reason, counts in sorted(by_reason.items()):
        kept = sorted(most_frequent(counts)[:MOST_CLASSES])
        more = sum(counts.values()) - sum(counts[name] for name in kept)
        cut[reason] = {name: counts[name] for name in kept} | ({"more": more} if more else {})
    return cut
