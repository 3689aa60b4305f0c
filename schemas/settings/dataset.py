"""What a dataset is: everything that decides its bytes. These are the YAML keys that users write."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal

from recordmill.schemas.added_setting import added_setting
from recordmill.schemas.bounds import AtLeastOne, Count, Share
from recordmill.schemas.dataset.about import About
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.settings.contract import Contract
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.keep import KeepSettings
from recordmill.schemas.settings.listing import ListingSettings
from recordmill.schemas.settings.shards import ShardSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.schemas.settings.splits import SplitSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSettings:
    """How boxes are read: the YAML keys under `boxes:`.

    Attributes:
        drawn_on: the orientation of the image when boxes were drawn on it: `displayed`, as its EXIF orientation says,
            or `stored`, as its bytes are. If the annotations contain the image's size, that decides where it can.
        invalid: what happens to boxes that extend beyond the image, are empty or have an unknown class. `clip` clips
            the first and drops the others, `drop` drops them all, `reject` rejects the image. All are counted.
    """

    drawn_on: Literal["displayed", "stored"] = "displayed"
    invalid: Literal["clip", "drop", "reject"] = "clip"


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
class RejectionLimits(LossLimits):
    """When rejected images fail the run: the YAML keys under `max_rejected:`.

    Attributes:
        share: share of the images that may be rejected; the run fails if both this and `count` are exceeded.
        count: how many may be rejected, whatever their share.
        lost_classes: how many classes may lose all their images, and how many splits may do so because of `keep` or
            `exclude`. A run without any image left always fails.
        boxes: when faulty boxes fail the run. A run always fails if all boxes are faulty, or all boxes of a class.
        labels: when labels without an id fail the run, for images that may have several labels.
    """

    lost_classes: Count = 0
    boxes: LossLimits = field(default_factory=LossLimits)
    labels: LossLimits = field(default_factory=LossLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSettings:
    """The description of a dataset. Flags, not settings, name its inputs and its output.

    Attributes:
        name: the dataset's name, for conventions that put it into file names; empty: the output folder's.
        source: what the files mean, and its settings.
        include: patterns (gitignore's syntax) of the files to read; empty: all.
        ignore: patterns of files and folders to ignore, in addition to hidden ones and those created by operating
            systems.
        exclude: a file that names images to leave out, with `key:KEY` or `sha256:DIGEST` in each line; see
            docs/change.md.
        decode: `images`, or `none` for files of any kind, which get only features that need no pixels.
        images: how images are checked, decoded and re-encoded.
        boxes: how boxes are read, from sources that have them.
        labels: how classes get their ids.
        duplicates: what happens to images with the same bytes: `report` counts them; `together` keeps them in one
            split, and groups that share one too; `drop` leaves out all but the first by key. The last two read every
            image twice.
        splits: how images are split.
        shards: number and names of the files.
        convention: which features an Example has: a name, or a mapping of your own; see docs/conventions.md.
        features: features that functions compute, by name: `package.module:function` of your own, which takes the
            image and returns a list of floats; or one that comes with Recordmill. See docs/features.md.
        compression: compression of the files: `none` or `gzip`; `auto`, as the convention requires, which is `none`
            unless its own files are gzipped. JPEG does not compress further, and indexes need plain files.
        index_files: whether each shard gets an index for readers that seek: NVIDIA DALI, PyTorch's `tfrecord` package.
        seed: other seeds give other splits, another order and another choice for `limit` and `limit_per_class`.
        limit: at most this many images, chosen by hash.
        limit_per_class: at most this many images of each class, chosen by hash. Images without a label count as a
            class. It is applied before `limit`, and before any image is rejected.
        keep: which images are kept; the name of a function stands for `keep.function` alone. See docs/functions.md.
        max_rejected: when rejected images fail the run.
        expect: what the dataset must be like to be published; see docs/change.md.
        analyze: whether `transform_fn/`, for training and serving with TensorFlow, is made once the dataset is
            finished. Sets `images.moments`; needs `images.check: decode` and a split called `train`.
        report: whether `report.html`, a page for people, is added to the dataset.
        licence: the dataset's licence, for README.md, Croissant and TensorFlow Datasets: a name, an SPDX identifier
            or a URL.
        creator: who made the dataset: a person or an organization.
        version: the dataset's version, three numbers such as `1.2.0`.
        citation: how to cite the dataset, as text or BibTeX.
    """

    # Read by pydantic on the launcher: an unknown key anywhere below is an error.
    short_forms: ClassVar[Mapping[str, str]] = {"features": "function"}
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "arbitrary_types_allowed": True}

    name: str = ""
    source: SourceSettings
    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: str = added_setting("")
    decode: Literal["images", "none"] = "images"
    images: ImageSettings = field(default_factory=ImageSettings)
    boxes: BoxSettings = field(default_factory=BoxSettings)
    labels: LabelSettings = field(default_factory=LabelSettings)
    duplicates: Literal["report", "together", "drop"] = "report"
    splits: SplitSettings = field(default_factory=SplitSettings)
    shards: ShardSettings = field(default_factory=ShardSettings)
    convention: str | CustomConvention = "default"
    features: Mapping[str, FeatureFunction] = field(default_factory=dict)
    compression: Literal["auto", "none", "gzip"] = "auto"
    index_files: bool = False
    seed: int = 0
    limit: AtLeastOne | None = None
    limit_per_class: AtLeastOne | None = added_setting(None)
    keep: KeepSettings = added_setting(default_factory=KeepSettings)
    max_rejected: RejectionLimits = field(default_factory=RejectionLimits)
    expect: Contract = added_setting(default_factory=Contract)
    analyze: bool = False
    report: bool = True
    licence: str = added_setting("")
    creator: str = added_setting("")
    version: str = added_setting("")
    citation: str = added_setting("")

    def __post_init__(self) -> None:
        """Raises ValueError where a setting is impossible, whatever the others are."""
        if self.name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"name {self.name!r} cannot name files: use letters, digits, - and _")
        if self.version and not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", self.version, re.ASCII):
            raise ValueError(f"version is {self.version!r}: write three numbers, such as 1.2.0")

    @property
    def decodes_nothing(self) -> bool:
        """Whether images are stored as they are, and only their headers are read."""
        images = self.images
        if self.features or images.function or self.keep.needs_pixels:  # features may want pixels
            return False
        if self.source.gives_pixels:
            return images.store == "raw" and images.resize is None
        return images.check == "header" and images.reencoding != "always" and images.store in ("auto", "jpeg")

    @property
    def user_functions(self) -> dict[str, str]:
        """The functions of the user's own code that are called while images are converted, by what names them."""
        own = {f"features.{name}": each.function for name, each in self.features.items() if not each.is_built_in}
        return {**own, **self.hooks}

    @property
    def holds_images(self) -> bool:
        """Whether Examples have images in them."""
        return self.decode == "images" and self.source.contents == "images"

    @property
    def hooks(self) -> dict[str, str]:
        """Those of them that decide what is stored."""
        named = {"images": self.images.function, "keep": self.keep.function}
        return {key: name for key, name in named.items() if name}

    @property
    def kept_together(self) -> list[str]:
        """The keys of the settings that keep duplicates in one split."""
        values = {"duplicates": self.duplicates, "images.near_duplicates": self.images.near_duplicates}
        return [key for key, value in values.items() if value == "together"]

    @property
    def unit(self) -> Literal["image", "file", "row"]:
        """What an Example is made of, in a word for people."""
        if self.source.contents == "rows":
            return "row"
        return "image" if self.decode == "images" else "file"

    @property
    def about(self) -> About:
        """What people want to know of it, which changes no shard."""
        return About(licence=self.licence, creator=self.creator, version=self.version, citation=self.citation)

    @property
    def listing(self) -> ListingSettings:
        """Selects the files to read, and gives them splits and groups."""
        return ListingSettings(
            include=self.include or self.source.files,
            not_included="not_included" if self.include else self.source.other_files,
            ignore=self.ignore,
            from_folders=self.splits.from_folders,
            from_source=self.splits.from_source,
            group=self.splits.group,
            classes_known=bool(self.labels.classes),
        )

    def differs(self, key: str) -> bool:
        """Whether a setting, by its path in YAML, has another value than its default."""
        parent = key.rpartition(".")[0]
        if parent and attrgetter(parent)(self) is None:
            return False
        # `images.resize` is absent by default, and has no default of its own there.
        default = "crop" if key == "images.resize.fit" else attrgetter(key)(DatasetSettings(source=type(self.source)()))
        return bool(attrgetter(key)(self) != default)


def as_yaml_dict(settings: DatasetSettings, as_plain: Callable[[Any], dict[str, Any]] = asdict) -> dict[str, Any]:
    """The settings as plain values by `as_plain`, in the shape of their YAML, without those that have no effect."""
    plain = as_plain(settings)
    plain["source"] = {"kind": settings.source.kind, **plain["source"]}
    if settings.splits.given:
        del plain["splits"]["fractions"]
    return plain


@dataclass(frozen=True, slots=True)
class Recipe:
    """A dataset's settings as text and plain values.

    Attributes:
        values: what decides the dataset's bytes.
        config_text: all of them as YAML: the content of `config.yaml`.
    """

    values: Mapping[str, Any]
    config_text: str = ""
