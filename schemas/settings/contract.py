"""What a dataset must be like to be published: the YAML keys under `expect:`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from recordmill.schemas.bounds import Count, Percent, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """How many images there may be: the YAML keys under `expect.images.NAME:`.

    Attributes:
        at_least: the fewest images.
        at_most: the most images.
        change: the largest change from the previous dataset, up or down, in percent of its images.
    """

    at_least: Count | None = None
    at_most: Count | None = None
    change: Percent | None = None

    def __post_init__(self) -> None:
        """Raises ValueError if no number of images is within the limits."""
        if self.at_most is not None and (least := self.at_least or 0) > self.at_most:
            raise ValueError(f"at_least is {least:,}, and at_most is {self.at_most:,}: correct one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What the dataset must be like; nothing is published if it is not.

    Attributes:
        classes: the classes that have images, no more and no fewer: a list, or `as_before` for those of the previous
            dataset.
        images: limits by split (`train`) or by class in a split (`train/cat`); `*` stands for each split or each class.
            If records have boxes or several labels, those are counted by class.
        rejected: largest share of images that may be rejected.
        lost_boxes: largest share of boxes that may be in no record.
        lost_labels: largest share of labels, of images that may have several, that may be in no record.
        duplicates_across_splits: how many images may have copies of the same bytes in another split.
        class_drift: largest share of images that may belong to other classes than in the previous dataset: half the sum
            of the differences between the shares of each class.
    """

    classes: tuple[str, ...] | Literal["as_before"] = ()
    images: Mapping[str, ImageLimits] = field(default_factory=dict)
    rejected: Share | None = None
    lost_boxes: Share | None = None
    lost_labels: Share | None = None
    duplicates_across_splits: Count | None = None
    class_drift: Share | None = None

    @property
    def compares(self) -> bool:
        """Whether any of it depends on the previous dataset."""
        changes = any(limits.change is not None for limits in self.images.values())
        return self.classes == "as_before" or self.class_drift is not None or changes
