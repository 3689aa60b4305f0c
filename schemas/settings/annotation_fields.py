"""The fields of annotations that Examples have only under some settings, or of some sources."""

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from recordmill.schemas.features import Feature

CLASS_FIELDS = frozenset({"label", "label_text", "labels", "label_texts"})
"""The fields of the class or the classes of an image."""

MASK_FIELDS = frozenset({"masks"})
"""The fields that the setting `masks` stores."""

CORNER_FIELDS = frozenset({"corners", "angle"})
"""The fields of oriented boxes, which references carry only if Examples have them."""

KEY_POINT_FIELDS = frozenset(
    {
        "keypoints_x",
        "keypoints_y",
        "keypoints_visibility",
        "keypoints_text",
        "keypoints_num",
        "keypoints",
    }
)
"""The fields that Examples have only if the source gives key points."""

SEGMENTATION_FIELDS = frozenset({"segmentation", "segmentation_format"})
"""The fields that Examples have only if the source gives semantic masks."""


def find_unfilled(
    annotations: Collection[str], masks: Literal["none", "png", "png16"]
) -> frozenset[str]:
    """Returns the fields that no Example has.

    Args:
        annotations: the kinds that the source gives.
        masks: the setting.
    """
    unfilled = set[str]()
    if masks == "none":
        unfilled |= MASK_FIELDS
    if "keypoints" not in annotations:
        unfilled |= KEY_POINT_FIELDS
    if "segmentation" not in annotations:
        unfilled |= SEGMENTATION_FIELDS
    return frozenset(unfilled)


def describe_16_bits(feature: Feature) -> Feature:
    """Returns a feature of a shipped convention, which says so if it has a mask of 16 bits."""
    if feature.field not in SEGMENTATION_FIELDS:
        return feature
    meaning = feature.meaning.replace("8 bits", "16 bits").replace("255 is", "65,535 is")
    return replace(feature, meaning=meaning)
