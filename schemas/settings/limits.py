"""When losses fail a run."""

from dataclasses import dataclass, field

from recordmill.schemas.bounds import Count, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLimits:
    """When faulty boxes, or labels, fail the run: the YAML keys under `max_rejected.boxes:` and `max_rejected.labels:`.

    Attributes:
        share: share of them that may be lost; the run fails if both this and `count` are exceeded.
        count: how many may be lost, whatever their share.
    """

    share: Share = 0.01
    count: Count = 10

    def are_passed(self, lost: int, kept: int) -> bool:
        """Whether this number is too large."""
        return lost > self.count and lost / (lost + kept) > self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionLimits:
    """When rejected images fail the run: the YAML keys under `max_rejected:`.

    Attributes:
        share: share of the images that may be rejected; the run fails if both this and `count` are exceeded.
        count: how many may be rejected, whatever their share.
        lost_classes: how many classes may lose all their images. A run without any image left always fails.
        boxes: when faulty boxes fail the run. A run always fails if all boxes are faulty, or all boxes of a class.
        labels: when labels without an id fail the run, for images that may have several labels.
    """

    share: Share = 0.01
    count: Count = 10
    lost_classes: Count = 0
    boxes: LossLimits = field(default_factory=LossLimits)
    labels: LossLimits = field(default_factory=LossLimits)
