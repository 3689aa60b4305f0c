"""Totals of annotations: boxes and labels that are in no Example, and images without a box."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

MOST_UNKNOWN = 100
"""Unknown classes that one shard counts by name; a broken file could number millions."""

OTHERS = "others"
"""The name under which further unknown classes are counted."""


@dataclass(slots=True)
class AnnotationTotals:
    """Counts of one shard, or of several.

    Boxes are those of images that were written. A class without a name goes by its number; the empty
    name stands for any class.

    Attributes:
        dropped: boxes that are in no Example, by reason and class.
        faulty: those of them that `max_rejected.boxes` limits. The settings did not ask for their loss.
        emptied: those of them whose images lost all their boxes.
        without_boxes: images without a box, by cause: `no_file` describes the image, its annotation has `no_objects`,
            or `all_dropped`.
        labels: labels of images that may have several, by outcome: `listed`, `written`, `unknown_label`,
            `not_chosen` (`labels.classes` leaves it out) and `with_rejected_images`, all others of the same images.
        examples: for each reason the first box of `faulty`, in words.
    """

    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    faulty: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    emptied: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    without_boxes: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Self) -> Self:
        """The sum of both; commutative."""
        examples = dict(sorted((*self.examples.items(), *other.examples.items()), reverse=True))
        return type(self)(
            dropped=_add_counts(self.dropped, other.dropped),
            faulty=_add_counts(self.faulty, other.faulty),
            emptied=_add_counts(self.emptied, other.emptied),
            without_boxes=dict(Counter(self.without_boxes) + Counter(other.without_boxes)),
            labels=dict(Counter(self.labels) + Counter(other.labels)),
            examples=examples,
        )


def _add_counts(
    one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    return {reason: dict(Counter(one.get(reason)) + Counter(other.get(reason))) for reason in {**one, **other}}
