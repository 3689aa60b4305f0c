"""What a dataset is: everything that decides its bytes. These are the YAML keys that users write.

`ExampleLayout` says what Examples and files look like according to them.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Interval

from recordmill.schemas.attribute_words import WordIds
from recordmill.schemas.conventions import Convention, load_convention
from recordmill.schemas.dataset.file_names import check_pattern, fill_pattern
from recordmill.schemas.dataset.marker import About
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import ExampleEncoder, Feature
from recordmill.schemas.idle_settings import (
    Effects,
    IdleIf,
    NoteIfIdle,
    Situation,
    not_decoded,
    note_unless_left_out,
    why_no_group,
    without_annotations,
    without_labels,
    without_marker,
)
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.rejection import NOT_KEPT
from recordmill.schemas.setting_fields import (
    STRICT,
    AtLeastOne,
    Count,
    Percent,
    PositiveShare,
    Share,
)
from recordmill.schemas.settings.annotation_fields import (
    CLASS_FIELDS,
    CORNER_FIELDS,
    MASK_FIELDS,
    describe_16_bits,
    find_unfilled,
)
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.schemas.settings.source import ListingSettings, SourceSettings


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
        """Raises SettingError if no number of images is within the limits."""
        if self.at_most is not None and (least := self.at_least or 0) > self.at_most:
            raise SettingError(
                "at_least", f"is {least:,}, and at_most is {self.at_most:,}: correct one of them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What the dataset must be like to be published.

    Attributes:
        classes: the classes that have images: a list, or `as_before` for those of the previous
            dataset.
        images: limits by split (`train`) or by class in a split (`train/cat`); `*` stands for each.
            Boxes or several labels are counted in place of images.
        rejected: largest share of images that may be rejected.
        lost_boxes: largest share of boxes that may be in no record.
        lost_labels: largest share of labels that may be in no record, if images may have several.
        lost_masks: largest share of the masks of objects that may be in no record.
        lost_keypoints: largest share of the key points of objects that may be in no record.
        lost_attributes: largest share of the attributes of objects that may be in no record.
        lost_segmentation: largest share of semantic masks that may be in no record.
        duplicates_across_splits: how many groups of identical images may be in several splits.
        class_drift: largest share of images that may belong to other classes than in the previous
            dataset: half the sum of the differences of the classes' shares.
    """

    classes: tuple[str, ...] | Literal["as_before"] = ()
    images: Mapping[str, ImageLimits] = field(default_factory=dict)
    rejected: Share | None = None
    lost_boxes: Share | None = None
    lost_labels: Share | None = None
    lost_masks: Share | None = None
    lost_keypoints: Share | None = None
    lost_attributes: Share | None = None
    lost_segmentation: Share | None = None
    duplicates_across_splits: Count | None = None
    class_drift: Share | None = None

    @property
    def compares(self) -> bool:
        """Whether any of it depends on the previous dataset."""
        changes = any(limits.change is not None for limits in self.images.values())
        return self.classes == "as_before" or self.class_drift is not None or changes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSettings:
    """The conditions for images to be kept, which are checked while they are converted.

    An image is left out unless it meets all conditions.

    Attributes:
        min_side: minimum length of the shorter side of the source image, in pixels.
        max_aspect: how many times as long as the shorter side the longer side of the source image
            may be.
        min_sharpness: minimum variance of the Laplacian of the gray values (0 to 255) of the image
            as it is stored; 100 is a common choice for photographs.
        min_brightness: minimum mean of these gray values.
        function: `package.module:function` of your own, which takes the image as it is stored and
            returns whether to keep it.
    """

    short_form: ClassVar[str] = "function"

    min_side: AtLeastOne | None = None
    max_aspect: Annotated[float, Ge(1)] | None = None
    min_sharpness: Annotated[float, Ge(0)] | None = None
    min_brightness: Annotated[float, Interval(ge=0, le=255)] | None = None
    function: str | None = None

    @property
    def needs_pixels(self) -> bool:
        """Whether images must be decoded to decide."""
        return (
            bool(self.function) or self.min_sharpness is not None or self.min_brightness is not None
        )


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _counted(shards: "ShardSettings", _: Situation) -> str | None:
    return "shards.count says how many files there are" if shards.count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSettings:
    """Number and names of a split's files: the YAML keys under `shards:`.

    Attributes:
        size: the target size of a file, e.g. `128MiB`; ignored if `count` is given.
        count: the number of files per split; lowered, with a note, if there are fewer images.
        name: pattern of file names, instead of the convention's: `{name}`, `{split}`, `{index}`
            (from 0), `{number}` (from 1), `{count}`, `{records}`, with Python's format codes. With
            `count: 1`, `{split}.record` is allowed.
        cuts: how images are assigned to shards. `even`: shards of about equal size. `fixed`: by
            hash of the image key, so a new image changes one shard only; the number of shards is a
            power of two.
    """

    size: Annotated[int | str, IdleIf(_counted)] = "128MiB"
    count: AtLeastOne | None = None
    name: str | None = None
    cuts: Annotated[Literal["even", "fixed"], IdleIf(without_marker)] = "even"

    def __post_init__(self) -> None:
        """Raises SettingError if a setting is impossible."""
        if self.target_bytes < 1:
            raise SettingError("shards.size", f"is {self.size!r}: give at least 1B")
        if self.cuts == "fixed" and self.count is not None and self.count.bit_count() > 1:
            example = 1 << self.count.bit_length()
            raise SettingError(
                "shards.count",
                f"is {self.count}: with cuts: fixed, give a power of two such as {example}",
            )
        if self.name is not None:
            check_pattern(self.name, "shards.name")

    @property
    def target_bytes(self) -> int:
        """`size` in bytes."""
        match = re.fullmatch(r"\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([A-Za-z]*)\s*", str(self.size))
        if not match or match[2].upper() not in _UNITS:
            raise SettingError(
                "shards.size", f"is {self.size!r:.80}: write a number and a unit, such as 128MiB"
            )
        return int(float(match[1]) * _UNITS[match[2].upper()])


SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
    "eval": "eval",
    "holdout": "holdout",
}
"""Split names by the words, in lower case, that mean a split rather than a class; in the order of
splits."""


def _one_split(_: "SplitSettings", now: Situation) -> str | None:
    return why_no_group(now) if now.split == "one" else None


def _given_split(_: "SplitSettings", now: Situation) -> str | None:
    return why_no_group(now) if now.split == "given" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How images are split: the YAML keys under `splits:`.

    Attributes:
        fractions: share of the images by split, e.g. `{train: 0.8, validation: 0.1, test: 0.1}`; a
            remainder is left out. A hash of the image key decides, so images added later do not
            move others.
        stratify: gives each class those shares exactly; new images may move others at the
            boundaries.
        group: a regular expression (RE2) searched for in each image key: images with the same text
            in its group `group` stay in one split.
        from_folders: the first folder below the input gives the split: `{train: train, val:
            validation}`; or a longer path: `images/train`. Files elsewhere may name images in it.
        from_source: the source gives the split (a manifest's column, a file's name): `{TRAIN:
            train, TEST: test}`.
    """

    fractions: Mapping[str, PositiveShare] = field(
        default_factory=lambda: {"train": 0.9, "test": 0.1}
    )
    stratify: Annotated[bool, IdleIf(_one_split)] = False
    group: Annotated[str | None, IdleIf(_given_split)] = None
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises SettingError if the settings are impossible or contradict each other."""
        for key in ("fractions", "from_folders", "from_source"):
            self._check_names(key)
        if sum(self.fractions.values()) > 1 + 1e-9:
            total = f"{sum(self.fractions.values()):.6g}"
            raise SettingError("splits.fractions", f"sum to {total}, which is over 1: lower them")
        ways = [
            f"splits.{key}"
            for key in ("stratify", "from_folders", "from_source")
            if getattr(self, key)
        ]
        if len(ways) > 1:
            raise SettingError(ways[0], f"and {ways[1]} contradict each other: remove one of them")
        if not self.fractions and not self.given:
            raise SettingError(
                "splits.fractions", "is empty: give at least one split, such as {train: 1.0}"
            )

    def _check_names(self, key: Literal["fractions", "from_folders", "from_source"]) -> None:
        """Raises SettingError if a split has a name that files cannot have."""
        names = self.fractions if key == "fractions" else getattr(self, key).values()
        for name in names:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
                raise SettingError(
                    f"splits.{key}",
                    f": {name!r} cannot be a split's name: use letters, digits, - and _ (it names "
                    "files)",
                )

    @property
    def given(self) -> Mapping[str, str]:
        """Returns the mapping from folders' or the source's words to split names.

        It is empty if splits are not given.
        """
        return self.from_folders or self.from_source

    @property
    def names(self) -> tuple[str, ...]:
        """The configured splits, in the order in which the user wrote them."""
        return tuple(dict.fromkeys(self.given.values())) or tuple(self.fractions)


def _drawn_on_nothing(boxes: "BoxSettings", now: Situation) -> str | None:
    if boxes.drawn_on == "displayed":
        return None  # configurations of earlier datasets name what was the default
    if without_annotations("segmentation")(boxes, now) is None:
        return None  # it also says how masks in files were drawn
    return without_annotations("boxes")(boxes, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSettings:
    """How boxes are read: the YAML keys under `boxes:`.

    Attributes:
        drawn_on: how the image was oriented when boxes or masks were drawn on it: `displayed`, by
            its EXIF orientation, or `stored`, as its bytes are. `auto`: the one that all boxes fit,
            else the one that has the annotated size, else `displayed`.
        invalid: boxes that extend beyond the image, are empty or have an unknown class. `clip`
            clips the first and drops the others, `drop` drops them all, `reject` rejects the image.
    """

    drawn_on: Annotated[Literal["auto", "displayed", "stored"], IdleIf(_drawn_on_nothing)] = "auto"
    invalid: Annotated[Literal["clip", "drop", "reject"], IdleIf(without_annotations("boxes"))] = (
        "clip"
    )


def _without_masks_to_store(settings: "DatasetSettings", now: Situation) -> str | None:
    if "segmentation" not in now.annotations or "masks" in now.annotations:
        return without_annotations("masks")(settings, now)
    if settings.masks == "png16":
        return None
    return "semantic masks are stored without it, and the source gives no others"


def _without_masks(settings: "DatasetSettings", _: Situation) -> str | None:
    return "masks is none" if settings.masks == "none" else None


def _together_in_one_split(settings: "DatasetSettings", now: Situation) -> str | None:
    is_idle = settings.duplicates == "together" and now.split == "one"
    return why_no_group(now) if is_idle else None


def _count_dropped(settings: "DatasetSettings", effects: Effects) -> int | None:
    """Returns the number of dropped copies; None if copies are not dropped."""
    return effects.left_out["duplicate"] if settings.duplicates == "drop" else None


def _of_rows(_: "DatasetSettings", now: Situation) -> str | None:
    return "the source holds neither images nor files" if now.holds_rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSettings:
    """The description of a dataset. Flags, not settings, name its inputs and its output.

    Attributes:
        name: the dataset's name, for conventions that put it into file names; empty: the output
            folder's name.
        source: the input format.
        include: patterns (gitignore's syntax) of the files to read; empty: all.
        ignore: patterns of files and folders to ignore, in addition to hidden and system files.
        exclude: a file that lists images to leave out, as `key:KEY` or `sha256:DIGEST`; see
            docs/change.md.
        corrections: a table with tabs (`key`, `sha256`, `class`) that gives images other classes
            than their sources do; see docs/change.md.
        decode: `images`, or `none` for files of any kind, without features that need pixels.
        images: how images are checked, decoded and re-encoded.
        boxes: how boxes are read, from sources that have them.
        masks: whether the masks of objects are stored: `none`, or `png`, an image of 0 and 1 in 8
            bits of gray for each object, of the size of the stored image. `png16` also stores
            semantic masks in 16 bits, for ids over 255.
        masks_required: drops each object whose mask is empty or missing, with its box. Otherwise,
            it keeps its box, and its mask is all 0.
        labels: how classes get their ids.
        duplicates: images with the same bytes: `report` counts them; `together` keeps them, and
            groups that share one, in one split; `drop` leaves out all but the first by image key.
            The last two read every image twice.
        splits: how images are split.
        shards: number and names of the files.
        convention: the feature layout: a name, or a mapping of your own; see docs/conventions.md.
        features: computed features, by name: `package.module:function`, or a function of
            Recordmill; see docs/features.md.
        compression: `none`, `gzip`, or `auto`: as the convention requires. Indexes need `none`.
        index_files: whether each shard gets an index for NVIDIA DALI and PyTorch's `tfrecord`
            package.
        seed: changes the split assignment, the order, and which images `limit` and
            `limit_per_class` pick.
        limit: at most this many images, chosen by hash.
        limit_per_class: at most this many images of each class, chosen by hash, before `limit` and
            before any image is rejected. Images without a label count as a class.
        keep: conditions for images to be kept, or the name of a function; see docs/functions.md.
        max_rejected: when rejected images fail the run.
        expect: what the dataset must be like to be published; see docs/change.md.
        analyze: whether `transform_fn/` is made, for training and serving with TensorFlow. Needs
            `images.check: decode` and a split called `train`.
        report: whether `report.html`, and pictures for the data card, are added to the dataset.
        license: the dataset's license: a name, an SPDX identifier or a URL.
        creator: the person or organization that made the dataset.
        version: the dataset's version, three numbers such as `1.2.0`.
        citation: how to cite the dataset, as text or BibTeX.
    """

    __pydantic_config__: ClassVar[Mapping[str, object]] = STRICT

    name: str = ""
    source: SourceSettings
    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: Annotated[str, IdleIf(without_marker)] = ""
    corrections: Annotated[str, IdleIf(without_marker), IdleIf(without_labels)] = ""
    decode: Literal["images", "none"] = "images"
    images: ImageSettings = field(default_factory=ImageSettings)
    boxes: BoxSettings = field(default_factory=BoxSettings)
    masks: Annotated[Literal["none", "png", "png16"], IdleIf(_without_masks_to_store)] = "none"
    masks_required: Annotated[bool, IdleIf(_without_masks)] = False
    labels: LabelSettings = field(default_factory=LabelSettings)
    duplicates: Annotated[
        Literal["report", "together", "drop"],
        IdleIf(_together_in_one_split),
        NoteIfIdle(_count_dropped),
    ] = "report"
    splits: SplitSettings = field(default_factory=SplitSettings)
    shards: ShardSettings = field(default_factory=ShardSettings)
    convention: str | Convention = "default"
    features: Annotated[Mapping[str, FeatureFunction], IdleIf(_of_rows)] = field(
        default_factory=dict
    )
    compression: Literal["auto", "none", "gzip"] = "auto"
    index_files: Annotated[bool, IdleIf(without_marker)] = False
    seed: int = 0
    limit: Annotated[AtLeastOne | None, note_unless_left_out("limit")] = None
    limit_per_class: Annotated[
        AtLeastOne | None, IdleIf(without_labels), note_unless_left_out("limit_per_class")
    ] = None
    keep: Annotated[KeepSettings, IdleIf(not_decoded), note_unless_left_out(*NOT_KEPT)] = field(
        default_factory=KeepSettings
    )
    max_rejected: RejectionLimits = field(default_factory=RejectionLimits)
    expect: Annotated[Contract, IdleIf(without_marker)] = field(default_factory=Contract)
    analyze: Annotated[bool, IdleIf(without_marker)] = False
    report: bool = True
    license: Annotated[str, IdleIf(without_marker)] = ""
    creator: Annotated[str, IdleIf(without_marker)] = ""
    version: Annotated[str, IdleIf(without_marker)] = ""
    citation: Annotated[str, IdleIf(without_marker)] = ""

    def __post_init__(self) -> None:
        """Raises SettingError if a setting is impossible, whatever the others are."""
        if self.name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise SettingError(
                "name", f"{self.name!r} cannot name files: use letters, digits, - and _"
            )
        if self.version and not re.fullmatch(
            r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", self.version, re.ASCII
        ):
            raise SettingError(
                "version", f"is {self.version!r}: write three numbers, such as 1.2.0"
            )

    def complete(self, convention: Convention) -> "DatasetSettings":
        """Replaces `auto`, and sets what `analyze` needs.

        Args:
            convention: the one that the settings name.

        Raises:
            SettingError: the images cannot have the convention's form.
        """
        images, compression = self.images.complete(convention), self.compression
        if self.analyze:
            images = replace(images, moments=True)
        if compression == "auto":
            compression = convention.compression
        return replace(self, images=images, compression=compression)

    def check(self) -> None:
        """Checks completed settings with each other.

        Raises:
            SettingError: two contradict each other.
        """
        if self.analyze:
            self._check_analysis()
        convention = ExampleLayout(self).convention
        gives_masks = "masks" in self.source.annotations()
        if self.masks == "png" and gives_masks and MASK_FIELDS.isdisjoint(convention.fields):
            raise SettingError(
                "masks",
                f"is {self.masks}, and the convention ({convention.title}) stores no masks: remove "
                "it, or set convention=tf_object_detection",
            )
        if self.splits.given and self.kept_together:
            raise SettingError(
                self.kept_together[0], ": together contradicts splits that are given: remove it"
            )
        if self.splits.stratify and self.source.late_labels:
            raise SettingError(
                "splits.stratify",
                "needs labels that are known before the images are read: remove it",
            )
        if self.limit_per_class is not None:
            self._check_class_limit()
        if self.corrections and self._gives_several_classes:
            raise SettingError(
                "corrections",
                "needs one class for each image, and these have annotations: remove it, and "
                "correct the annotations",
            )
        if self.index_files and self.compression != "none":
            raise SettingError(
                "index_files", "needs compression: none, since readers seek in the files"
            )
        for key in self.expect.images:
            split = key.partition("/")[0]
            if split not in ("*", *self.splits.names):
                raise SettingError(
                    f"expect.images.{key}",
                    f"names the split {split}, which does not exist: correct it",
                )

    @property
    def _gives_several_classes(self) -> bool:
        """Whether images may have several classes.

        If only the files show whether there are boxes, the plan fails when there are.
        """
        return any(
            key or self.source.is_about_boxes or kind == "labels"
            for kind, key in self.source.annotations().items()
            if kind != "pairs"
        )

    def _check_class_limit(self) -> None:
        if self.source.late_labels or self._gives_several_classes or self.labels.catch_all:
            needs = "one label for each image, known before it is read, and no labels.catch_all"
            raise SettingError("limit_per_class", f"needs {needs}: remove it")

    def _check_analysis(self) -> None:
        images, convention = self.images, ExampleLayout(self).convention
        stores_files = images.store != "raw" and "encoded" in convention.fields
        if not (stores_files and self.holds_images):
            raise SettingError(
                "analyze",
                "needs encoded images: set decode: images, and a convention that stores them",
            )
        if images.check == "header":
            raise SettingError("analyze", "needs every image's pixels: remove images.check: header")
        if images.reencode == "never" and not {"JPEG", "PNG"}.issuperset(images.formats):
            raise SettingError(
                "analyze",
                "needs images that TensorFlow decodes: remove images.reencode: never, or set "
                "images.formats: [JPEG, PNG]",
            )
        if "train" not in self.splits.names:
            raise SettingError(
                "analyze",
                "needs a split train: without one, run recordmill analyze PATH --split NAME",
            )

    @property
    def decodes_nothing(self) -> bool:
        """Whether images are stored as they are, and only their headers are read."""
        images = self.images
        if self.features or images.function or self.keep.needs_pixels:  # these may need pixels
            return False
        if self.source.gives_pixels:
            return images.store == "raw" and images.resize is None
        return (
            images.check == "header"
            and images.reencoding != "always"
            and images.store in ("auto", "jpeg")
        )

    @property
    def user_functions(self) -> dict[str, str]:
        """Returns the user's functions that conversion calls, by the settings that name them."""
        own = {
            f"features.{name}": each.function
            for name, each in self.features.items()
            if not each.is_built_in
        }
        return {**own, **self.hooks}

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns how to store values of these kinds, as the end of a sentence; None: no way."""
        has_place = not MASK_FIELDS.isdisjoint(ExampleLayout(self).convention.fields)
        can_store = has_place and self.masks == "none" and "masks" in self.source.annotations()
        if "masks" in not_stored and can_store:
            return self.source.remedy_for_masks(not_stored)
        if "oriented boxes" in not_stored and "corners" in self.source.annotations():
            return "the fields corners and angle of a convention of your own store oriented boxes"
        return self.source.remedy_for(not_stored)

    @property
    def holds_images(self) -> bool:
        """Whether Examples contain images."""
        return self.decode == "images" and self.source.contents == "images"

    @property
    def hooks(self) -> dict[str, str]:
        """Those of `user_functions` that decide what is stored."""
        named = {"images": self.images.function, "keep": self.keep.function}
        return {key: name for key, name in named.items() if name}

    @property
    def kept_together(self) -> list[str]:
        """The keys of the settings that keep duplicates in one split."""
        values = {
            "duplicates": self.duplicates,
            "images.near_duplicates": self.images.near_duplicates,
        }
        return [key for key, value in values.items() if value == "together"]

    @property
    def unit(self) -> Literal["image", "file", "row"]:
        """What an Example is made from, as a word for people."""
        if self.source.contents == "rows":
            return "row"
        if self.decode == "images":
            return "image"
        return "file"

    @property
    def about(self) -> About:
        """Facts about the dataset for people, which change no shard."""
        return About(
            license=self.license, creator=self.creator, version=self.version, citation=self.citation
        )

    @property
    def listing(self) -> ListingSettings:
        """Selects the files to read, and gives them splits and groups."""
        not_included, left_by_user = self.source.other_files, frozenset[str]()
        without = frozenset[str]()
        has_no_place = CORNER_FIELDS.isdisjoint(ExampleLayout(self).convention.fields)
        if has_no_place and "corners" in self.source.annotations():
            without = frozenset(("corners",))
        if self.include:
            not_included, left_by_user = "not_included", frozenset(("not_included",))
        return ListingSettings(
            include=self.include or self.source.files,
            not_included=not_included,
            ignore=self.ignore,
            from_folders=self.splits.from_folders,
            from_source=self.splits.from_source,
            group=self.splits.group,
            classes_known=bool(self.labels.classes),
            left_by_user=left_by_user,
            only_images=self.unit == "image",
            with_outlines=self.masks != "none",
            without=without,
            rename=self.labels.rename,
        )

    def differs(self, key: str) -> bool:
        """Returns whether a setting, given by its path in YAML, differs from its default."""
        parent = key.rpartition(".")[0]
        if parent and attrgetter(parent)(self) is None:
            return False
        # `images.resize` is None by default, so its default of `fit` is not there.
        if key == "images.resize.fit":
            default = "crop"
        else:
            default = attrgetter(key)(DatasetSettings(source=type(self.source)()))
        return bool(attrgetter(key)(self) != default)


@dataclass(frozen=True)
class ExampleLayout:
    """The features of a dataset's Examples, their encoder, and the names of its files.

    Attributes:
        settings: what the dataset is.
        attributes: the ids of the words of each attribute of objects that is stored, by its name.
            None are known before the input is listed.
    """

    settings: DatasetSettings
    attributes: Mapping[str, WordIds] = field(default_factory=dict)

    @cached_property
    def convention(self) -> Convention:
        """The convention of the settings."""
        convention = self.settings.convention
        if isinstance(convention, Convention):
            return convention
        return load_convention(convention)

    @property
    def label_offset(self) -> int:
        """The id of the first class: the user's, or the convention's own."""
        offset = self.settings.labels.offset
        if offset is None:
            return self.convention.label_offset
        return offset

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Returns the features of an Example.

        The convention's come first, then the source's own, then those that functions compute, then
        those of attributes of objects. Those for masks are left out unless `masks` is set, and
        those for key points and semantic masks unless the source gives them.
        """
        filled = self.convention.fields
        unfilled = find_unfilled(self.settings.source.annotations(), self.settings.masks)
        own = [each for each in self.convention.example_features if each.field not in unfilled]
        if self.settings.masks == "png16":
            own = list(map(describe_16_bits, own))
        computed = (
            each.as_feature(name)
            for name, each in self.settings.features.items()
            if name not in filled
        )
        added = [
            feature for feature in self.settings.source.features() if feature.field not in filled
        ]
        taken = {each.key for each in added}
        named = self.convention.name_attributes(self.attributes, taken)
        return (*own, *added, *computed, *named)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of a record that its features are filled from."""
        return frozenset(feature.field for feature in self.features)

    @cached_property
    def optional_fields(self) -> tuple[tuple[str, str], ...]:
        """Returns the key and field of each single-valued feature that an Example may lack.

        Constants are not among them, since all Examples have them.
        """
        features = (each for each in self.features if each.constant is None)
        return tuple(
            (each.key, each.field)
            for each in features
            if each.default is not None and not each.many
        )

    @property
    def stores_classes(self) -> bool:
        """Whether Examples have a place for the classes of images."""
        return not self.fields.isdisjoint(CLASS_FIELDS)

    @cached_property
    def encoder(self) -> ExampleEncoder:
        """The encoder of the dataset's records."""
        return ExampleEncoder(self.features)

    @cached_property
    def needs_pixels(self) -> bool:
        """Whether a function or a filter takes images as they are stored."""
        taken = {each.signature.of for each in self.settings.features.values()}
        return self.settings.keep.needs_pixels or "image" in taken

    @property
    def shard_name(self) -> str:
        """The pattern of the files' names: the user's, or the convention's."""
        return self.settings.shards.name or self.convention.shard_name

    def file_name(self, split: str, index: int, count: int, records: int) -> str:
        """Returns the name of a published shard with this number of records.

        It is one of `count` shards in its split.
        """
        if self.settings.shards.name:
            word = split
        else:
            word = self.convention.split_words.get(split, split)
        # The output folder's name is filled in before there are files.
        own = self.settings.name or "dataset"
        name = fill_pattern(
            self.shard_name, name=own, split=word, index=index, count=count, records=records
        )
        if self.settings.compression == "gzip" and not name.endswith(".gz"):
            return f"{name}.gz"
        return name
