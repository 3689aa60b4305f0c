"""The settings as keywords of `recordmill.convert`, for type checkers.

A test compares these classes with the dataclasses of the settings, whose docstrings say what the
keys mean. Those of images are next to their dataclasses.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from recordmill.schemas.settings.images import ImageKeywords
from recordmill.schemas.str_path import StrPath


class BoxKeywords(TypedDict, total=False):
    """The keys of `BoxSettings`."""

    drawn_on: Literal["auto", "displayed", "stored"]
    invalid: Literal["clip", "drop", "reject"]


class LabelKeywords(TypedDict, total=False):
    """The keys of `LabelSettings`."""

    classes: Sequence[str]
    offset: int | None
    catch_all: str | None
    ids: Literal["names", "integers", "raised"]
    rename: Mapping[str, str | None]


class SplitKeywords(TypedDict, total=False):
    """The keys of `SplitSettings`."""

    fractions: Mapping[str, float]
    stratify: bool
    group: str | None
    from_folders: Mapping[str, str]
    from_source: Mapping[str, str]


class ShardKeywords(TypedDict, total=False):
    """The keys of `ShardSettings`."""

    size: int | str
    count: int | None
    name: str | None
    cuts: Literal["even", "fixed"]


class ConventionFeatureKeywords(TypedDict, total=False):
    """The keys of `ConventionFeature`."""

    type: Literal["bytes", "float", "int64"]
    field: str
    shape: Sequence[None]
    default: str | float | int | None
    value: str | float | int | None
    meaning: str


class ConventionKeywords(TypedDict, total=False):
    """The keys of `Convention`."""

    features: Mapping[str, ConventionFeatureKeywords]
    title: str
    shard_name: str
    split_words: Mapping[str, str]
    label_offset: int
    label_lines: Literal["id:name", "name"]
    label_map_file: Literal["", "label_map.pbtxt"]
    compression: Literal["none", "gzip"]
    stores: Literal["jpeg", "raw"]
    format_names: Mapping[str, str]


class FeatureFunctionKeywords(TypedDict, total=False):
    """The keys of `FeatureFunction`."""

    function: str
    type: Literal["bytes", "float", "int64"] | None
    shape: Sequence[None] | None
    of: Literal["image", "file"] | None
    meaning: str


class KeepKeywords(TypedDict, total=False):
    """The keys of `KeepSettings`."""

    min_side: int | None
    max_aspect: float | None
    min_sharpness: float | None
    min_brightness: float | None
    function: str | None


class LossLimitsKeywords(TypedDict, total=False):
    """The keys of `LossLimits`."""

    share: float
    count: int


class RejectionLimitsKeywords(TypedDict, total=False):
    """The keys of `RejectionLimits`."""

    share: float
    count: int
    lost_classes: int
    boxes: LossLimitsKeywords
    labels: LossLimitsKeywords
    masks: LossLimitsKeywords
    keypoints: LossLimitsKeywords
    segmentation: LossLimitsKeywords
    containers: int


class ImageLimitsKeywords(TypedDict, total=False):
    """The keys of `ImageLimits`."""

    at_least: int | None
    at_most: int | None
    change: float | None


class ContractKeywords(TypedDict, total=False):
    """The keys of `Contract`."""

    classes: Sequence[str] | Literal["as_before"]
    images: Mapping[str, ImageLimitsKeywords]
    rejected: float | None
    lost_boxes: float | None
    lost_labels: float | None
    lost_masks: float | None
    lost_keypoints: float | None
    lost_attributes: float | None
    lost_segmentation: float | None
    duplicates_across_splits: int | None
    class_drift: float | None


class DatasetKeywords(TypedDict, total=False):
    """The keys of `DatasetSettings`."""

    name: str
    source: Mapping[str, Any]
    include: Sequence[str]
    ignore: Sequence[str]
    exclude: StrPath
    corrections: StrPath
    decode: Literal["images", "none"]
    images: ImageKeywords
    boxes: BoxKeywords
    masks: Literal["none", "png", "png16"]
    masks_required: bool
    labels: LabelKeywords
    duplicates: Literal["report", "together", "drop"]
    splits: SplitKeywords
    shards: ShardKeywords
    convention: str | ConventionKeywords
    features: Mapping[str, str | FeatureFunctionKeywords]
    compression: Literal["auto", "none", "gzip"]
    index_files: bool
    seed: int
    limit: int | None
    limit_per_class: int | None
    keep: str | KeepKeywords
    max_rejected: RejectionLimitsKeywords
    expect: ContractKeywords
    analyze: bool
    report: bool
    license: str
    creator: str
    version: str
    citation: str
