"""What a dataset is: everything that decides its bytes. These are the YAML keys that users write."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

from recordmill.schemas.conventions import Convention, load_convention
from recordmill.schemas.features import ExampleEncoder, Feature
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.record_fields import PIXEL_FIELDS
from recordmill.schemas.settings.boxes import BoxSettings
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.limits import RejectionLimits
from recordmill.schemas.settings.listing import ListingSettings
from recordmill.schemas.settings.shards import ShardSettings
from recordmill.schemas.settings.splits import SplitSettings
from recordmill.schemas.shard_name import check_file_name, fill_pattern
from recordmill.transforms.check_fields import check_fields, check_source_features, choose_store
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.sources import Source
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.records.features.check_functions import check_functions
from recordmill.transforms.records.features.settings import FeatureFunction


@dataclass(frozen=True, kw_only=True)
class DatasetSettings:
    """What the dataset is. Where it is read from and written to is said by flags, not here.

    Attributes:
        name: the dataset's name, for conventions that put it into file names; empty: the output folder's.
        source: what the files mean, and its settings.
        include: patterns (gitignore's syntax) of the files to read; empty: all.
        ignore: patterns of files and folders to leave alone, beside hidden ones and those that systems leave behind.
        decode: `images`, or `none` for files of any kind, of which only features that need no pixels are made.
        images: how images are checked, decoded and re-encoded.
        boxes: how boxes are taken, from sources that have them.
        labels: how classes get their ids.
        duplicates: what becomes of images with the same bytes: `report` counts them; `together` keeps them in one
            split, and groups that share one too; `drop` leaves out all but the first by key. The last two read every
            image twice.
        splits: how images are split.
        shards: how many files.
        convention: which features an Example has: a name, or a mapping of your own; see docs/conventions.md.
        features: features that functions compute, by name: `package.module:function` of your own, which is given the
            image and gives a list of floats; or one that comes with Recordmill. See docs/features.md.
        compression: of the files: `none` or `gzip`; `auto`, what the convention asks for, which is `none` unless its
            own files are gzipped. JPEG does not compress further, and indexes need plain files.
        index_files: whether each shard gets an index for readers that seek: NVIDIA DALI, PyTorch's `tfrecord` package.
        seed: other seeds give other splits, another order and another `limit`.
        limit: at most this many images, chosen by hash.
        max_rejected: when rejected images fail the run.
        analyze: whether `transform_fn/`, for training and serving with TensorFlow, is made once the dataset is there.
            Sets `images.moments`; needs `images.check: decode` and a split called `train`.
        report: whether `report.html`, a page for people to look at, is put beside the dataset.
    """

    # Read by pydantic on the launcher: an unknown key anywhere below is an error.
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "arbitrary_types_allowed": True}

    name: str = ""
    source: Source = field(default_factory=ClassFolders)
    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
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
    limit: int | None = None
    max_rejected: RejectionLimits = field(default_factory=RejectionLimits)
    analyze: bool = False
    report: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError where a setting is impossible."""
        if self.splits.group:
            compile_pattern(self.splits.group, "splits.group", "group")
        self._check_convention()
        object.__setattr__(self, "images", choose_store(self.images, self.layout))
        if self.compression == "auto":
            object.__setattr__(self, "compression", self.layout.compression)
        if not self.holds_images:
            self._check_needs_no_image()
        check_functions(self.features, self.layout, self.source, self.holds_images)
        check_source_features(self.source.features(), self.source.contents == "images", self.layout)
        if self.duplicates == "together" and self.splits.given:
            raise ValueError("duplicates: together contradicts splits that are given: use duplicates: drop, or report")
        if self.splits.stratify and self.source.late_labels:
            raise ValueError("splits.stratify needs labels that are known before the images are read: remove it")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit is {self.limit}: give at least 1, or leave it out")
        if self.index_files and self.compression != "none":
            raise ValueError("index_files needs compression: none, since readers seek in the files")
        if self.name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"name {self.name!r} cannot name files: use letters, digits, - and _")
        self._check_file_names()
        if self.analyze:
            self._check_analysis()
            object.__setattr__(self, "images", replace(self.images, moments=True))

    def _check_analysis(self) -> None:
        if (
            self.images.store == "raw"
            or not self.holds_images
            or all(feature.field != "encoded" for feature in self.layout.features)
        ):
            raise ValueError("analyze needs encoded images: set decode: images, and a convention that stores them")
        if self.images.check == "header":
            raise ValueError("analyze needs every image's pixels: remove images.check: header")
        if self.images.reencode == "never" and not {"JPEG", "PNG"}.issuperset(self.images.formats):
            raise ValueError(
                "analyze needs images that TensorFlow decodes: with images.reencode: never "
                "set images.formats to [JPEG, PNG]"
            )
        if "train" not in self.splits.names:
            raise ValueError(
                "analyze learns from the split train, which is none of the splits: name one so, "
                "or run recordmill analyze PATH --split NAME afterwards"
            )

    def _check_convention(self) -> None:
        if self.source.contents == "images" and not self.example_features:
            raise ValueError(
                f"the convention ({self.layout.title}) has no features of its own, and nothing adds any: "
                "name functions under features, or choose another convention"
            )
        own = self.convention if isinstance(self.convention, CustomConvention) else None
        check_fields(own, self.layout, self.source, self.features)

    def _check_needs_no_image(self) -> None:
        for feature in self.layout.features:
            if feature.field in PIXEL_FIELDS:
                why = "decode is none" if self.decode == "none" else "the source holds no images"
                raise ValueError(f"the convention ({self.layout.title}) stores images ({feature.key}), and {why}")

    def _check_file_names(self) -> None:
        count = self.shards.count or 12  # enough for indices of two digits to meet those of one
        indices = range(min(count, 12))
        names = [self.file_name(split, index, count, 1) for split in self.splits.names for index in indices]
        key = "convention.shard_name" if isinstance(self.convention, CustomConvention) else "shards.name"
        pattern, key = (self.shards.name, "shards.name") if self.shards.name else (self.layout.shard_name, key)
        if len(set(names)) < len(names):
            raise ValueError(f"{key} {pattern!r} gives several files one name: put {{split}} and {{index}} into it")
        for name in names:
            check_file_name(name, pattern, key)

    @property
    def holds_images(self) -> bool:
        """Whether Examples have images in them."""
        return self.decode == "images" and self.source.contents == "images"

    @property
    def unit(self) -> Literal["image", "file", "row"]:
        """What an Example is made of, in a word for people."""
        if self.source.contents == "rows":
            return "row"
        return "image" if self.decode == "images" else "file"

    @property
    def listing(self) -> ListingSettings:
        """What of the inputs is read."""
        classes_known = bool(self.labels.classes)
        return ListingSettings(
            include=self.include or self.source.files,
            not_included="not_included" if self.include else self.source.other_files,
            ignore=self.ignore,
            from_folders=self.splits.from_folders,
            from_source=self.splits.from_source,
            group=self.splits.group,
            classes_known=classes_known,
        )

    @cached_property
    def layout(self) -> Convention:
        """The convention itself."""
        if isinstance(self.convention, CustomConvention):
            return self.convention.as_convention()
        return load_convention(self.convention)

    @property
    def convention_name(self) -> str:
        """The convention's name; `own` for one of the user's own."""
        return self.convention if isinstance(self.convention, str) else "own"

    @property
    def label_offset(self) -> int:
        """The id of the first class: the user's, or the convention's own."""
        return self.layout.label_offset if self.labels.offset is None else self.labels.offset

    @cached_property
    def example_features(self) -> tuple[Feature, ...]:
        """The features of an Example: the convention's, the source's own, then what functions compute."""
        filled = self.layout.fields
        computed = (each.as_feature(name) for name, each in self.features.items() if name not in filled)
        added = (feature for feature in self.source.features() if feature.field not in filled)
        return (*self.layout.features, *added, *computed)

    @cached_property
    def optional_features(self) -> tuple[Feature, ...]:
        """Those of one value that an Example may lack; a constant is in every one."""
        features = (each for each in self.example_features if each.constant is None)
        return tuple(each for each in features if each.default is not None and not each.many)

    @cached_property
    def encoder(self) -> ExampleEncoder:
        """What serialises the dataset's records."""
        return ExampleEncoder(self.example_features)

    @cached_property
    def needs_pixels(self) -> bool:
        """Whether a function takes images."""
        return any(each.takes == "image" for each in self.features.values())

    def file_name(self, split: str, index: int, count: int, records: int) -> str:
        """The name of a published shard, one of `count` in its split, with so many records."""
        pattern = self.shards.name or self.layout.shard_name
        word = split if self.shards.name else self.layout.split_words.get(split, split)
        own = self.name or "dataset"  # the output folder's name comes later, before there are files
        name = fill_pattern(pattern, name=own, split=word, index=index, count=count, records=records)
        return f"{name}.gz" if self.compression == "gzip" and not name.endswith(".gz") else name
