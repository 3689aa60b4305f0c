"""`recordmill.json`, the marker: the content of a dataset, and how it was made.

Only complete datasets have a marker.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, Self

from recordmill.schemas.dataset.file_names import SIDECARS, VERSIONS
from recordmill.schemas.dataset.json_values import MisfitError, from_json, hash_json
from recordmill.schemas.dataset.price import ComparedPrice
from recordmill.schemas.dataset.totals import AnnotationCounts, BareImages, RowTotals, add_hex
from recordmill.schemas.digests import find_images
from recordmill.schemas.earlier_names import with_annotation_entries, with_license
from recordmill.schemas.features import Feature, FeatureEntry
from recordmill.schemas.formatting import plural_of
from recordmill.schemas.rejection import Fate

MARKER_FORMAT = 3
"""Increased when readers of the previous format would misunderstand the files of a dataset."""

EARLIER_FORMAT = 2
"""The earlier format that is still read: `schemas/earlier_names.py` has its keys."""

POINTER_FORMAT = 2
"""The format of pointers, which is the same in both."""

PLAN_VERSION = 4
"""Increased when the same settings and images would give other bytes than before."""

LABEL_FIELDS = frozenset(("label", "label_text"))
"""The fields that the Example of an image without a label lacks."""


def plan_id_of(recipe: Mapping[str, Any]) -> str:
    """Returns the id of a dataset's content: equal recipes, equal bytes."""
    return hash_json(recipe)[:16]


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """The settings of images that readers need."""

    max_pixels: int = 0
    store: str = ""
    check: str = ""
    moments: bool = False
    near_duplicates: Any = False  # false, true or "together"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """The part of a plan that readers need; see `PlanEntry`."""

    compression: str
    images: ImageRecipe = field(default_factory=ImageRecipe)
    labels: Mapping[str, Any] = field(default_factory=dict)
    split_order: tuple[str, ...] | None = None
    listing: Mapping[str, Any] = field(default_factory=dict)
    plan_version: int = 0
    seed: int = 0

    @property
    def is_raw(self) -> bool:
        """Whether images are stored as their pixels, not encoded."""
        return self.images.store == "raw"


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """What decides the dataset's bytes.

    Attributes:
        id: the first 16 hex digits of the SHA-256 of `recipe` as JSON with sorted keys and no
            spaces.
        recipe: the settings that differ from their defaults, what follows from settings and
            listing, a digest of what was listed, and the versions of the image libraries.
        settings: all settings in use, for readers; absent in datasets of plan version 2, whose
            recipes list them.
    """

    id: str
    recipe: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings_in_use(self) -> Mapping[str, Any]:
        """All settings that the dataset was made with, by their YAML keys."""
        return self.settings or self.recipe

    @property
    def version(self) -> int:
        """The plan version: plans of different versions are never equal."""
        return int(self.recipe.get("plan_version", 0))

    @property
    def for_readers(self) -> ReaderSettings:
        """The part that readers need.

        Raises:
            MisfitError: it is not as Recordmill writes it.
        """
        return from_json(ReaderSettings, {**self.recipe, **self.settings}, "plan.recipe")


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One TFRecord file.

    Attributes:
        name: its path below the dataset's folder.
        records: number of records.
        bytes: its size.
        sha256: its SHA-256, in hex.
        sidecar: the path of its sidecar below the dataset's folder.
        sidecar_sha256: the sidecar's SHA-256, in hex.
    """

    name: str
    records: int
    bytes: int
    sha256: str
    sidecar: str
    sidecar_sha256: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Sums over the records, independent of shards, order, runner and path.

    Attributes:
        dataset: of all records, in hex.
        splits: the same by split.
        classes: the same by class name; the empty name for records without one label.
    """

    dataset: str
    splits: Mapping[str, str]
    classes: Mapping[str, str]

    @classmethod
    def of(cls, splits: Mapping[str, RowTotals]) -> Self:
        """Returns the sums of a dataset with these totals of rows."""
        rows = RowTotals.sum_of(splits.values())
        sums = {name: add_hex(*each.fingerprints.values()) for name, each in splits.items()}
        return cls(add_hex(*sums.values()), sums, dict(sorted(rows.fingerprints.items())))


def _by_name(counts: Mapping[str, int]) -> dict[str, int]:
    # In forged rows, names may not be text.
    return dict(sorted(counts.items(), key=lambda item: str(item[0])))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry:
    """One split.

    Attributes:
        records: number of records.
        bytes: the size of its files.
        classes: records by class name; the empty name for records without one label.
        instances: annotations of the kind that the marker's `counted` names, by class name; absent
            if there are none.
        shards: its files, in the order of their names.
    """

    records: int
    bytes: int
    classes: Mapping[str, int]
    instances: Mapping[str, int] | None = None
    shards: tuple[ShardEntry, ...]

    @classmethod
    def of(cls, rows: RowTotals, shards: tuple[ShardEntry, ...], has_instances: bool) -> Self:
        """Returns a split with the totals of its rows.

        `has_instances` says whether records of any split may have several classes.
        """
        return cls(
            records=rows.records,
            bytes=sum(shard.bytes for shard in shards),
            classes=_by_name(rows.classes),
            instances=_by_name(rows.instances) if has_instances else None,
            shards=shards,
        )

    @property
    def class_counts(self) -> Mapping[str, int]:
        """The number of annotations (if records may have several) or records by class."""
        if self.instances is None:
            return self.classes
        return self.instances


@dataclass(frozen=True, slots=True)
class Ledger:
    """What happened to everything that was listed: the sum of all others but `corrections`.

    Attributes:
        listed: everything that was found.
        written: records, read back from the finished files.
        rejected: by reason.
        ignored: by reason.
        left_out: by reason.
        corrections: lines of `corrections` by what happened to them, all three; absent without any.
            `corrected` counts records that have the class of a line, `stale` records whose source
            has another digest than their line, and `no_match` all other lines.
    """

    listed: int
    written: int
    rejected: Mapping[str, int]
    ignored: Mapping[str, int]
    left_out: Mapping[str, int]
    corrections: Mapping[str, int] | None = None

    def by_fate(self) -> dict[Fate, Mapping[str, int]]:
        """Returns what is not in the dataset: counts by fate and reason."""
        return {"rejected": self.rejected, "ignored": self.ignored, "left_out": self.left_out}

    @property
    def accounted(self) -> int:
        """The sum of everything whose fate is known."""
        return self.written + sum(sum(counts.values()) for counts in self.by_fate().values())


NOT_LOST = frozenset({"not_chosen", "renamed_alike", "renamed_away", "with_left_out_images"})
"""Reasons for which annotations are dropped because the user's settings ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationEntry:
    """The ledger of one kind of annotations: `listed` is `written` and all of `dropped`.

    Attributes:
        unit: what one of them is called, such as `label`; absent if it has no name.
        listed: all that were listed.
        written: those that are in a record.
        dropped: those that are in none, by reason.
        noted: some of those listed, by what is worth a note; absent if there is nothing.
        dropped_classes: dropped ones by reason and class; absent if none is known.
        images_without: images that have none; absent if there is no such image.
    """

    unit: str | None = None
    listed: int
    written: int
    dropped: Mapping[str, int]
    noted: Mapping[str, int] | None = None
    dropped_classes: Mapping[str, Mapping[str, int]] | None = None
    images_without: BareImages | None = None

    @classmethod
    def of(cls, unit: str, counts: AnnotationCounts, **details: Any) -> Self:
        """Makes an entry with these counts; `details` are the optional attributes."""
        dropped, noted = _by_name(+counts.dropped), _by_name(+counts.noted)
        given = {name: each for name, each in details.items() if each}
        return cls(
            unit=unit,
            listed=counts.listed,
            written=counts.written,
            dropped=dropped,
            noted=noted or None,
            **given,
        )

    def recount(self, counts: AnnotationCounts) -> Self:
        """Returns the entry with other counts."""
        other = AnnotationEntry.of(self.name, counts)
        return replace(
            self,
            listed=other.listed,
            written=other.written,
            dropped=other.dropped,
            noted=other.noted,
        )

    @property
    def name(self) -> str:
        """What one of them is called."""
        return self.unit or "annotation"

    def name_all(self, kind: str) -> str:
        """Returns what they are called together: the name of their kind if they have no other."""
        if self.unit is None:
            return kind
        return plural_of(self.unit)

    @property
    def lost(self) -> int:
        """The number of those that were dropped although no setting asks for it."""
        return sum(count for reason, count in self.dropped.items() if reason not in NOT_LOST)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One of the sources from which the dataset was made.

    Attributes:
        kind: the kind of source, such as `coco`.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Images that were found through files that name them.

    Attributes:
        images: number of images.
        files: number of files that name them.
    """

    images: int
    files: int


@dataclass(slots=True)
class SameBytes:
    """Images of the same bytes, as `duplicates.jsonl` lists them.

    Attributes:
        groups: groups of at least two images.
        images: the images of all groups, except one of each.
        across_splits: groups in several splits.
        conflicting: groups in several classes.
        conflicting_annotations: groups whose images have other annotations than each other; absent
            if there are none.
    """

    groups: int = 0
    images: int = 0
    across_splits: int = 0
    conflicting: int = 0
    conflicting_annotations: int | None = None

    def add(
        self,
        count: int,
        splits: Sequence[str],
        classes: Sequence[str],
        annotations: Sequence[str] | None = None,
    ) -> None:
        """Adds a group of `count` images, with their splits and classes.

        Images without a class, which is the empty name, contradict nothing. `annotations` are the
        kinds of annotations in which the images differ.
        """
        if annotations:
            self.conflicting_annotations = (self.conflicting_annotations or 0) + 1
        self.groups += 1
        self.images += count - 1
        self.across_splits += len(splits) > 1
        self.conflicting += len({*classes} - {""}) > 1


@dataclass(frozen=True, slots=True)
class LookAlikes:
    """Pairs of images that look alike, as `duplicates.jsonl` lists them.

    Attributes:
        pairs: number of pairs.
        across_splits: pairs in two splits.
        conflicting: pairs in two classes.
        bits: the number of bits, of 64, by which the difference hashes of a pair may differ.
        complete: whether all pairs are listed.
    """

    pairs: int
    across_splits: int
    conflicting: int
    bits: int
    complete: bool

    @classmethod
    def of(cls, pairs: SameBytes, bits: int, complete: bool) -> Self:
        """Returns the totals of pairs that were counted as groups."""
        return cls(pairs.groups, pairs.across_splits, pairs.conflicting, bits, complete)


@dataclass(frozen=True, slots=True)
class DuplicateCounts:
    """Duplicates in the dataset.

    Attributes:
        same_bytes: images of the same bytes.
        look_alike: pairs that look alike; null if `images.near_duplicates` is off.
    """

    same_bytes: SameBytes
    look_alike: LookAlikes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """The run that published the dataset.

    Everything else in the marker is the same for the same dataset.

    Attributes:
        recordmill: the version of Recordmill.
        beam: the version of Beam.
        runner: the name of Beam's runner.
        started: time in UTC.
        seconds: the duration of each stage, by name; absent unless one process ran all of them.
        price: what the plan predicted, and what the run cost; absent if it made no prediction.
        id: the run's id.
        inputs: folders or files by input name; the empty name for one without a name.
        versions: a digest of the times and sizes of all files that were listed.
        finished: time in UTC.
        shards_reused: shards that an earlier run had finished.
        images_reused: images that were taken from earlier datasets.
        images_disputed: images on which earlier datasets disagreed; absent if there are none.
        notes: messages about the run, for people; absent if there are none.
        file_versions: path of the digests of the files' versions.
        digests: the SHA-256 of each file in `files`, in hex.
    """

    recordmill: str | None = None
    beam: str | None = None
    runner: str | None = None
    started: str | None = None
    seconds: Mapping[str, float] | None = None
    price: ComparedPrice | None = None
    id: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    versions: str = ""
    finished: str = ""
    shards_reused: int = 0
    images_reused: int = 0
    images_disputed: int | None = None
    notes: tuple[str, ...] | None = None
    file_versions: str = VERSIONS
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Switch:
    """The move of a complete dataset from staging into its folder.

    It is the key `switch` of the marker in staging.

    Attributes:
        moves: pairs of a file's name in staging and its path in the dataset's folder.
        removes: paths of files of the replaced dataset.
    """

    moves: tuple[tuple[str, ...], ...]
    removes: tuple[str, ...]

    @property
    def targets(self) -> dict[str, str]:
        """Names in staging by path in the dataset's folder."""
        return {target: source for source, target in self.moves}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """`recordmill.json` of a folder with versions: only this one has the key `current`.

    Attributes:
        format: the format's version. The key is `recordmill`.
        current: name of the folder with the current version.
        previous: name of the folder with the version that was current before; absent if there was
            none.
    """

    format: int = field(default=POINTER_FORMAT, metadata={"key": "recordmill"})
    current: str
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts that only the user knows; empty if not given.

    Attributes:
        license: a name, an SPDX identifier or a URL.
        creator: a person or an organization.
        version: three numbers, such as 1.2.0.
        citation: how to cite it: text or BibTeX.
    """

    license: str = ""
    creator: str = ""
    version: str = ""
    citation: str = ""


def in_present_format(value: Any) -> Any:
    """Returns the JSON of a marker; one of an earlier format with the keys of the present one."""
    present = with_license(value)
    if isinstance(present, dict) and present.get("recordmill") == EARLIER_FORMAT:
        present = {**with_annotation_entries(present), "recordmill": MARKER_FORMAT}
    return present


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """`recordmill.json`.

    Attributes:
        format: the format's version. The key is `recordmill`.
        name: the setting `name`; empty if it is not set.
        plan: what decides the dataset's bytes.
        convention: the convention's name; `own` for one that the settings declare.
        unit: what a record is: `image`, `row` or `file`.
        features: the features of records, by their keys in the Example.
        labels: class ids by class name.
        names_pixel_ids: whether these are also those of pixels that are ids; absent if not, or if
            that is not known.
        attributes: the ids of the words of each attribute of objects, by its name; empty for truth
            values and whole numbers. Absent if no attribute is stored.
        skeleton: the names of the parts that lines join to each part of an object, by its name, in
            the order of Examples if all objects have the same parts. Absent without lines.
        splits: by name, in the order of the settings.
        fingerprint: identifies the records.
        ledger: what happened to everything that was listed.
        named: absent if no file names images.
        annotations: the ledgers of annotations, by kind. Kinds that this version does not know may
            be among them.
        counted: the kind whose classes `SplitEntry.instances` counts; absent if there is none.
        made_from: the sources of the records.
        gps_positions: stored images with a GPS position in their metadata; absent if there are
            none.
        changes: records by change.
        duplicates: duplicates in the dataset.
        input_bytes: bytes of the sources of all records.
        output_bytes: bytes of all shards.
        files: paths of all files besides shards, their sidecars and the marker.
        index: path of the index.
        notes: notes of the conversion, for people.
        remarks: observations that are worth a look.
        about: what people want to know of the dataset; absent if the settings say nothing.
        run: the run that published the dataset.
    """

    format: int = field(default=MARKER_FORMAT, metadata={"key": "recordmill"})
    name: str
    plan: PlanEntry
    convention: str
    unit: Literal["image", "row", "file"]
    features: Mapping[str, FeatureEntry]
    labels: Mapping[str, int]
    names_pixel_ids: bool | None = None
    attributes: Mapping[str, Mapping[str, int]] | None = None
    skeleton: Mapping[str, tuple[str, ...]] | None = None
    splits: Mapping[str, SplitEntry]
    fingerprint: Fingerprint
    ledger: Ledger
    named: NamedImages | None = None
    annotations: Mapping[str, AnnotationEntry] = field(default_factory=dict)
    counted: str | None = None
    made_from: tuple[SourceEntry, ...] = ()
    gps_positions: int | None = None
    changes: Mapping[str, int]
    duplicates: DuplicateCounts
    input_bytes: int
    output_bytes: int
    files: tuple[str, ...]
    index: str
    notes: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    about: About | None = None
    run: RunEntry = field(default_factory=RunEntry)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Returns the marker that a file's JSON describes.

        One of an earlier format in the present one.

        Raises:
            MisfitError: it is not a marker, or one of another format; the message says why.
        """
        if isinstance(value, dict):
            form = value.get("recordmill")
        else:
            form = None
        if type(form) is int and form not in (EARLIER_FORMAT, MARKER_FORMAT):
            raise MisfitError("", f"has format {form}, which another version of Recordmill reads")
        marker = from_json(cls, in_present_format(value))
        for key in ("recordmill", "run"):
            if key not in value:
                raise MisfitError(key, "is missing")
        _ = marker.plan.for_readers  # raises if it cannot be read
        return marker

    @property
    def shards(self) -> Iterator[ShardEntry]:
        """All shards, split by split."""
        return chain.from_iterable(split.shards for split in self.splits.values())

    @property
    def sidecars_without_records(self) -> list[str]:
        """Returns the paths of the sidecars of shards without a record.

        The references of these shards were all rejected or left out.
        """
        return [
            name
            for name in self.files
            if name.startswith(f"{SIDECARS}/") and name.endswith(".jsonl")
        ]

    @property
    def renamed_classes(self) -> Mapping[str, str | None]:
        """The new names that `labels.rename` gave, by those in the source; None: dropped."""
        labels = self.plan.recipe.get("labels") or {}
        return labels.get("rename") or {}

    @property
    def example_features(self) -> tuple[Feature, ...]:
        """Returns the features that Examples have, sorted by key.

        The label's features are left out if no Example has a label.
        """
        names = {*chain.from_iterable(split.classes for split in self.splits.values())}
        features = (entry.feature(key) for key, entry in self.features.items())
        return tuple(each for each in features if names != {""} or each.field not in LABEL_FIELDS)

    @property
    def images(self) -> dict[str, str]:
        """The features that hold the image, see `find_images`."""
        return find_images((key, each.field) for key, each in self.features.items())

    @property
    def counted_unit(self) -> str:
        """What `SplitEntry.class_counts` counts: annotations if records may have several."""
        if self.counted is not None and self.counted in self.annotations:
            return self.annotations[self.counted].name
        return self.unit

    @property
    def class_counts(self) -> Counter[str]:
        """Returns the counts of all splits by class of the label map.

        Records without a class are counted under the empty name.
        """
        counts = Counter(dict.fromkeys(self.labels, 0))
        for split in self.splits.values():
            counts.update(split.class_counts)
        return counts
