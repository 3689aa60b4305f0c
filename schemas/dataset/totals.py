"""Counts of rows, images and annotations, and the reports of shards that contain them.

Counts are merged in any order.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import orjson

from recordmill.schemas.dataset.side_files import RejectedRow, Row, SidecarRow
from recordmill.schemas.digests import add_digests, record_digest_of
from recordmill.schemas.formatting import (
    format_count,
    most_frequent,
    plural_of,
    say_count,
    show_names,
)


class Totals:
    """A dataclass of counts that can be merged, in any order.

    Numbers, counters and lists are added, and digests in hex modulo 2**256; of two examples, the
    first is kept, and of distinct values the first two.
    """

    __slots__ = ()

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Returns the counts of several together."""
        total = cls()
        for part in parts:
            total.merge(part)
        return total

    def merge(self, other: Self) -> None:
        """Adds the counts of another one, which stays as it is."""
        for each in fields(self):  # type: ignore[arg-type]  # all subclasses are dataclasses
            setattr(self, each.name, _merge(getattr(self, each.name), getattr(other, each.name)))


def _merge(mine: Any, others: Any) -> Any:
    if isinstance(mine, LostExample):
        return min(mine, others)
    if isinstance(mine, int | list):
        return mine + others
    if isinstance(mine, tuple):
        return tuple(dict.fromkeys((*mine, *others)))[:2]
    if isinstance(mine, str):
        return add_hex(mine, others)
    if isinstance(mine, Totals):
        mine.merge(others)
    elif isinstance(mine, Counter):
        mine.update(others)
    else:
        for key, each in others.items():
            if key in mine:
                mine[key] = _merge(mine[key], each)
            else:
                mine[key] = deepcopy(each)
    return mine


def add_hex(*digests: str) -> str:
    """Returns the sum of digests modulo 2**256, in hex."""
    return f"{add_digests(*(int(each, 16) for each in digests)):064x}"


def digest_rejected(*values: str | int | None) -> str:
    """Returns the digest of a rejected reference, in hex.

    Args:
        values: its key, stage, reason, detail, bytes, sha256 and class, as in `RejectedFile`.
    """
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def sum_rejected(rows: Iterable[Row]) -> str:
    """Returns the sum of the digests of the rejected references among rows, in hex."""
    digests = [
        digest_rejected(
            row.key, row.stage, row.reason, row.detail, row.bytes, row.sha256, row.class_name
        )
        for row in rows
        if isinstance(row, RejectedRow) and row.reason is not None
    ]
    return add_hex("0", *digests)


@dataclass(slots=True)
class AnnotationCounts(Totals):
    """Annotations of one kind by outcome: listed = written + dropped.

    Attributes:
        listed: all of them.
        written: those that are in an Example.
        dropped: those that are in none, by reason.
        noted: some of those listed, by what is worth a note, such as `clipped`.
    """

    listed: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)

    def add_row(self, counts: Mapping[str, Any]) -> None:
        """Adds the counts of one image, as its row in the sidecar has them."""
        self.listed += counts["listed"]
        self.written += counts["written"]
        if dropped := counts.get("dropped"):
            self.dropped.update(dropped)
        if noted := counts.get("noted"):
            self.noted.update(noted)

    def as_row(self) -> dict[str, Any]:
        """Returns the counts of one image for its row in the sidecar, without what is 0."""
        row: dict[str, Any] = {"listed": self.listed, "written": self.written}
        for name, counts in (("dropped", +self.dropped), ("noted", +self.noted)):
            if counts:
                row[name] = dict(counts)
        return row

    @property
    def adds_up(self) -> bool:
        """Whether listed = written + dropped."""
        return self.listed == self.written + self.dropped.total()


@dataclass(slots=True)
class RowAnnotations(Totals):
    """Annotations of one kind in a sidecar's rows.

    Attributes:
        counts: those of all references.
        dropped_of_records: the dropped ones of records, and those without an image, by reason.
        dropped_of_bare: the dropped ones of records that have none left, by reason.
        bare: records that may have annotations of the kind and have none.
    """

    counts: AnnotationCounts = field(default_factory=AnnotationCounts)
    dropped_of_records: Counter[str] = field(default_factory=Counter)
    dropped_of_bare: Counter[str] = field(default_factory=Counter)
    bare: int = 0

    def add(self, counts: Mapping[str, Any], is_record: bool) -> None:
        """Adds the counts in one row."""
        self.counts.add_row(counts)
        dropped = counts.get("dropped", {})
        if not is_record:
            if "without_image" in dropped:
                self.dropped_of_records["without_image"] += dropped["without_image"]
            return
        self.dropped_of_records.update(dropped)
        if not counts["written"]:
            self.bare += 1
            self.dropped_of_bare.update(dropped)


@dataclass(slots=True)
class RowTotals(Totals):
    """Totals of a sidecar's rows, one per reference.

    Attributes:
        records: rows of records.
        input_bytes: bytes of their sources.
        classes: records by class name; the empty name for those without a class of their own.
        rejected: rejected references by reason code.
        rejected_when_listed: those of them that were never read as images.
        left_out: references that were left out while they were converted, by reason code.
        changes: records by change (`rotated`, `reencoded`, ...).
        annotations: annotations of all references, by kind; without the kinds that no reference
            has.
        instances: annotations of one kind by class name, if records may have several; empty if
            there are none.
        fingerprints: the sum of the records' digests by class name, in hex, see `record_digest_of`.
    """

    records: int = 0
    input_bytes: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_when_listed: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    annotations: dict[str, RowAnnotations] = field(default_factory=dict)
    instances: Counter[str] = field(default_factory=Counter)
    fingerprints: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Iterable[Row], split: str) -> Self:
        """Returns the totals of rows of a split.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: Recordmill did not write them.
        """
        totals = cls()
        totals.add(rows, split)
        return totals

    def add(self, rows: Iterable[Row], split: str) -> None:
        """Adds rows of a split."""
        # Sums of integers: in hex, each addition takes a microsecond.
        digests: Counter[str] = Counter()
        for row in rows:
            self._add(row)
            if isinstance(row, SidecarRow) and row.record:
                digests[row.class_name or ""] += record_digest_of(split, row.key, row.record)
        for name, digest in digests.items():
            self.fingerprints[name] = add_hex(self.fingerprints.get(name, "0"), f"{digest:x}")

    def _add(self, row: Row) -> None:
        is_record = isinstance(row, SidecarRow)
        for kind, counts in (row.annotations or {}).items():
            if kind not in self.annotations:
                self.annotations[kind] = RowAnnotations()
            self.annotations[kind].add(counts, is_record)
        if isinstance(row, RejectedRow):
            if row.reason is None:
                self.left_out[str(row.left_out)] += 1
            else:
                self.rejected[row.reason] += 1
            self.rejected_when_listed += row.stage == "list"
            return
        self.records += 1
        self.input_bytes += row.bytes
        self.classes[row.class_name or ""] += 1
        for change in row.changes:  # of one or two: `update` takes six times as long
            self.changes[change] += 1
        if row.classes:
            self.instances.update(row.classes)

    @property
    def references(self) -> int:
        """The number of rows."""
        return self.records + self.rejected.total() + self.left_out.total()

    @property
    def class_counts(self) -> Counter[str]:
        """By class name: annotations if records may have several, otherwise records."""
        return self.instances or self.classes


@dataclass(frozen=True, slots=True, order=True)
class LostExample:
    """Something that is lost, for messages: its image's key, its place there, and a description.

    Examples are ordered by key and place.
    """

    key: str
    place: int
    text: str


@dataclass(slots=True)
class AnnotationTotals(Totals):
    """Annotations of one kind that are in no Example, and images without any.

    They are those of images that were written. A class without a name goes by its number; the empty
    name stands for any class.

    Attributes:
        dropped: those that are in no Example, by reason and class.
        faulty: those of them that `max_rejected` limits, since no setting asks to drop them.
        emptied: those of them whose images lost all their annotations of this kind.
        bare: images without any, by cause: `no_file` describes the image, its annotation has
            `no_objects`, or `all_dropped`.
        examples: the first one of `faulty` for each reason.
    """

    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    faulty: dict[str, Counter[str]] = field(default_factory=dict)
    emptied: dict[str, Counter[str]] = field(default_factory=dict)
    bare: Counter[str] = field(default_factory=Counter)
    examples: dict[str, LostExample] = field(default_factory=dict)


LOSSLESS = (".bmp", ".gif", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff")
"""File extensions of formats that are nearly always lossless: sidecars do not say the format."""


@dataclass(slots=True)
class Reencoded(Totals):
    """Images whose bytes were changed: how many, the bytes of their files, and of their records."""

    images: int = 0
    before: int = 0
    after: int = 0

    def add(self, row: SidecarRow) -> None:
        """Counts one image."""
        self.images += 1
        self.before += row.bytes
        self.after += row.length


@dataclass(slots=True)
class LossTotals(Totals):
    """What of the images' files is not stored, see `imaging.depth.Losses`.

    Attributes:
        documents: images with further pages.
        pages: their further pages.
        animations: images with further frames.
        deep: images that were reduced to 8 bits per channel.
        brightest: those of them with 16 bits per channel and no `images.bits`, by the largest value
            that is stored.
        ranges: images of 32-bit or float values, by the range that they were taken to have.
    """

    documents: int = 0
    pages: int = 0
    animations: int = 0
    deep: int = 0
    brightest: Counter[str] = field(default_factory=Counter)
    ranges: Counter[str] = field(default_factory=Counter)

    def add(self, row: SidecarRow) -> None:
        """Counts an image that was changed."""
        losses = dict(row.losses or {})
        pages = losses.pop("pages", 0)
        self.documents += pages > 0
        self.pages += pages
        self.animations += "first_frame" in row.changes and not pages
        self.deep += "depth_reduced" in row.changes
        if "brightest" in losses:
            self.brightest[str(losses.pop("brightest"))] += 1
        self.ranges.update(losses.keys())


@dataclass(slots=True)
class ImageTotals(Totals):
    """Facts about the images of one shard, or of all shards.

    Attributes:
        sizes: the first two distinct widths and heights of the images.
        channels: the first two distinct numbers of channels.
        reencoded: images that were re-encoded.
        lossless: those of them in lossless formats, judging by their names.
        losses: what of their files is not stored.
    """

    sizes: tuple[tuple[int, ...], ...] = ()
    channels: tuple[int, ...] = ()
    reencoded: Reencoded = field(default_factory=Reencoded)
    lossless: Reencoded = field(default_factory=Reencoded)
    losses: LossTotals = field(default_factory=LossTotals)

    def add(self, row: Row) -> None:
        """Adds the next row of a shard."""
        if isinstance(row, SidecarRow) and row.height and row.width:
            self.sizes = _merge(self.sizes, ((row.width, row.height),))
            self.channels = _merge(self.channels, (row.channels or 0,))
            if "reencoded" in row.changes:
                self.reencoded.add(row)
                self.losses.add(row)
                if row.key.lower().endswith(LOSSLESS):
                    self.lossless.add(row)


ContentDigests = bytes
"""8 bytes of the SHA-256 of each of a shard's images, in the order of the records."""


@dataclass(slots=True)
class ShardReport:
    """One finished shard, counted from the finished file and its sidecar.

    Attributes:
        split: the shard's split.
        index: the shard's place in the plan, from 0 within its split.
        references: number of references; always `records` plus those that were rejected.
        rows: totals of its sidecar.
        annotations: annotations that are in no Example, and images without any, by kind.
        digest: of the references, order-free and in hex; see `schemas.digests.digest_of`.
        records: Examples in the file, read back from it.
        bytes: size of the file.
        sha256: hex digest of the file.
        sidecar_sha256: hex digest of its sidecar.
        missing: Examples that lack an optional feature, by its key.
        excluded: images that were left out, by the line of `exclude` that names them; see
            `Exclusions.find`.
        corrections: records by what happened to the line of `corrections` with their key.
        positions: stored images with a GPS position in their metadata.
        milliseconds: how long its images took to decode and encode; not stored.
        images_reused: records whose images were taken from an earlier dataset.
        images_disputed: images on which the earlier datasets disagree.
        damaged: damaged files of earlier datasets in which its images were looked up.
        reused: whether an earlier run had finished it.
        problem: one sentence that fails the run, e.g. a full disk; None if there is none.
        images: facts about its images.
        contents: hashes that find images of the same bytes; not stored.
    """

    split: str
    index: int
    references: int
    rows: RowTotals
    annotations: dict[str, AnnotationTotals] = field(default_factory=dict)
    digest: str = ""
    records: int = 0
    bytes: int = 0
    sha256: str = ""
    sidecar_sha256: str = ""
    missing: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    corrections: Counter[str] = field(default_factory=Counter)
    positions: int = 0
    milliseconds: int = field(default=0, compare=False)
    images_reused: int = 0
    images_disputed: int = 0
    damaged: tuple[str, ...] = ()
    reused: bool = False
    problem: str | None = None
    images: ImageTotals = field(default_factory=ImageTotals)
    contents: ContentDigests = field(default=b"", compare=False, repr=False)

    @property
    def place(self) -> tuple[str, int]:
        """The shard's split and its place there: the order of shards."""
        return self.split, self.index


@dataclass(slots=True)
class FinishedShards(Totals):
    """The reports of all shards, with their totals added up.

    A report of a thousand images may have hundreds of classes. Per shard, these counts would grow
    with the images; added up, there are as many as there are classes.

    Attributes:
        reports: in no order; their own `rows`, `annotations` and `contents` are empty.
        splits: totals of rows, by split.
        annotations: totals of annotations over all splits, by kind.
        digest: of all references, order-free and in hex.
        rejected_examples: by reason, the first rejected reference by key, in words; under the empty
            string, the first for which a function failed. Only with `--writer=beam`, which writes
            no sidecars.
    """

    reports: list[ShardReport] = field(default_factory=list)
    splits: dict[str, RowTotals] = field(default_factory=dict)
    annotations: dict[str, AnnotationTotals] = field(default_factory=dict)
    digest: str = "0"
    rejected_examples: dict[str, LostExample] = field(default_factory=dict)

    @property
    def rows(self) -> RowTotals:
        """Totals of rows over all splits."""
        return RowTotals.sum_of(self.splits.values())

    def find_problem(self) -> str | None:
        """Returns a sentence that says why the files must not be used.

        It is None if the files contain all Examples that were built.
        """
        problems = [report.problem for report in self.reports if report.problem]
        problems += [
            example.text for reason, example in self.rejected_examples.items() if not reason
        ]
        for name, rows in self.splits.items() if not problems else ():
            if rows.records != (
                found := sum(each.records for each in self.reports if each.split == name)
            ):
                built = f"split {name} has {format_count(rows.records, 'Example')}"
                problems.append(
                    f"{built}, and its files hold {found:,}: something was lost or written twice"
                )
        return min(problems, default=None)

    def add(self, report: ShardReport) -> None:
        """Adds one report."""
        self.splits.setdefault(report.split, RowTotals()).merge(report.rows)
        self.annotations = _merge(self.annotations, report.annotations)
        self.digest = add_hex(self.digest, report.digest or "0")
        self.reports.append(replace(report, rows=RowTotals(), annotations={}, contents=b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class BareImages:
    """Images that were written and have no annotation of one kind, by cause.

    Attributes:
        no_file: no file describes the image; for YOLO, it is an image without objects.
        no_objects: its annotation has no objects.
        all_dropped: all its annotations of this kind were dropped.
        dropped: those of the images in `all_dropped`, by reason and class.
    """

    no_file: int = 0
    no_objects: int = 0
    all_dropped: int = 0
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of them."""
        return self.no_file + self.no_objects + self.all_dropped

    def explain(self, what: str, unit: str = "image") -> str | None:
        """Returns all causes in a sentence for people, or None if every image has annotations.

        Args:
            what: what one annotation is called, such as `label`.
            unit: what a record is.
        """
        causes = [
            (self.no_file, "has no annotation file", "have no annotation file"),
            (
                self.no_objects,
                "has an annotation without objects",
                "have annotations without objects",
            ),
            (
                self.all_dropped,
                *2 * (f"lost all {plural_of(what)} ({show_dropped(self.dropped)})",),
            ),
        ]
        said = ", ".join(
            f"{count:,} {one if count == 1 else many}" for count, one, many in causes if count
        )
        if not said:
            return None
        return f"{say_count(self.total, unit, 'has')} no {what}: {said}"


def show_dropped(dropped: Mapping[str, Mapping[str, int]], counted: bool = False) -> str:
    """Returns reasons with the classes of what was dropped, most frequent first.

    An example is `unknown_class: 7, 12; empty: cat`. If `counted`, the number of them is before
    each reason: `3 unknown_class: 7, 12; 1 empty: cat`.
    """
    sums = {reason: sum(counts.values()) for reason, counts in dropped.items()}
    said = (
        (
            f"{sums[reason]:,} {reason}" if counted else reason,
            show_names(most_frequent(dropped[reason])),
        )
        for reason in most_frequent(sums)
    )
    return "; ".join(f"{reason}: {names}" if names else reason for reason, names in said)
