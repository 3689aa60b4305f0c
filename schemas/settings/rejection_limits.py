"""The limits above which what is rejected fails the run."""

from dataclasses import dataclass, field
from typing import Annotated

from recordmill.schemas.idle_settings import (
    IdleIf,
    Situation,
    without_annotations,
    without_labels,
)
from recordmill.schemas.setting_fields import Count, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLimits:
    """The limits above which faulty annotations of one kind fail the run.

    These are the YAML keys under `max_rejected.boxes:` and the like.

    Attributes:
        share: share that may be lost; the run fails if both this and `count` are exceeded.
        count: how many may be lost, whatever their share.
    """

    share: Share = 0.01
    count: Count = 10


def _one_label(_: "RejectionLimits", now: Situation) -> str | None:
    return None if "labels" in now.annotations else f"no {now.unit} has several labels"


def _no_masks_stored(_: "RejectionLimits", now: Situation) -> str | None:
    return None if "masks" in now.annotations else "masks is none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionLimits(LossLimits):
    """When rejected images fail the run: the YAML keys under `max_rejected:`.

    Attributes:
        share: share of the images that may be rejected; the run fails if both this and `count` are
            exceeded.
        count: how many may be rejected, whatever their share.
        lost_classes: how many classes may lose all their images, and how many splits because of
            `keep` or `exclude`. A run without any image left always fails.
        boxes: when faulty boxes fail the run; it always fails if all boxes, or all boxes of a
            class, are faulty.
        labels: when labels without an id fail the run, for images that may have several.
        masks: when faulty masks of objects fail the run.
        keypoints: when faulty key points of objects fail the run.
        segmentation: when images with a faulty semantic mask fail the run.
        containers: how many files of many images (TFRecords, archives, arrays, Parquet, COCO) may
            be missing or damaged. They do not count as images.
    """

    lost_classes: Annotated[Count, IdleIf(without_labels)] = 0
    boxes: Annotated[LossLimits, IdleIf(without_annotations("boxes"))] = field(
        default_factory=LossLimits
    )
    labels: Annotated[LossLimits, IdleIf(_one_label)] = field(default_factory=LossLimits)
    masks: Annotated[LossLimits, IdleIf(_no_masks_stored)] = field(default_factory=LossLimits)
    keypoints: Annotated[LossLimits, IdleIf(without_annotations("keypoints"))] = field(
        default_factory=LossLimits
    )
    segmentation: Annotated[LossLimits, IdleIf(without_annotations("segmentation"))] = field(
        default_factory=LossLimits
    )
    containers: Count = 0
