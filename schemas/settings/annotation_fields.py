"""The fields of annotations that Examples have only under some settings, or of some sources."""

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
