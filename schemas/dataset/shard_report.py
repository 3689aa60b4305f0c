"""The report on a finished shard, and those on all shards together."""

from collections import Counter
from dataclasses import dataclass, field, replace

from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample, ImageTotals, RowTotals, Totals, add_hex
from recordmill.schemas.formatting import format_count

Contents = bytes
"""8 bytes of the SHA-256 of each of a shard's images, in the order of the records."""


@dataclass(frozen=True, slots=True, order=True)
class DamagedFile:
    """A file of an earlier dataset that should have been used, but cannot be.

    Attributes:
        folder: the dataset's folder.
        name: path of the file in it.
        is_missing: whether the file cannot be read at all; otherwise, its content is not what was written.
    """

    folder: str
    name: str
    is_missing: bool


@dataclass(slots=True)
class ShardReport:
    """One finished shard, counted from the finished file and its sidecar.

    Attributes:
        split: the shard's split.
        index: the shard's place in the plan, from 0 within its split.
        references: number of references; always `records` plus those that were rejected.
        rows: totals of its sidecar.
        annotations: boxes and labels that are in no Example, and images without a box.
        digest: of the references, order-free and in hex; see `schemas.digests.digest_of`.
        records: Examples in the file, read back from it.
        bytes: size of the file.
        sha256: hex digest of the file.
        sidecar_sha256: hex digest of its sidecar.
        missing: Examples that lack an optional feature, by its key.
        excluded: images that were left out, by the line of `exclude` that names them; see `Exclusions.find`.
        positions: stored images with a GPS position in their metadata.
        milliseconds: how long its images took to decode and encode; not stored.
        images_reused: records whose images were taken from an earlier dataset.
        images_disputed: images on which the earlier datasets disagree.
        damaged: damaged files of earlier datasets in which its images were looked up.
        reused: whether an earlier run had finished it.
        problem: one sentence that fails the run, e.g. a full disk; empty if there is none.
        images: facts about its images.
        contents: hashes that find images of the same bytes; not stored.
    """

    split: str
    index: int
    references: int
    rows: RowTotals
    annotations: AnnotationTotals
    digest: str = ""
    records: int = 0
    bytes: int = 0
    sha256: str = ""
    sidecar_sha256: str = ""
    missing: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    positions: int = 0
    milliseconds: int = field(default=0, compare=False)
    images_reused: int = 0
    images_disputed: int = 0
    damaged: tuple[DamagedFile, ...] = ()
    reused: bool = False
    problem: str = ""
    images: ImageTotals = field(default_factory=ImageTotals)
    contents: Contents = field(default=b"", compare=False, repr=False)

    @property
    def place(self) -> tuple[str, int]:
        """The shard's split and its place there: the order of shards."""
        return self.split, self.index


@dataclass(slots=True)
class FinishedShards(Totals):
    """The reports of all shards, with their totals added up.

    A report of a thousand images may have hundreds of classes. Per shard, these counts would grow with the images;
    added up, there are as many as there are classes.

    Attributes:
        reports: in no order; their own `rows`, `annotations` and `contents` are empty.
        splits: totals of rows, by split.
        annotations: totals of annotations over all splits.
        digest: of all references, order-free and in hex.
        rejected_examples: by reason, the first rejected reference by key, in words; under the empty string, the first
            for which a function failed. Only with `--writer=beam`, which writes no sidecars.
    """

    reports: list[ShardReport] = field(default_factory=list)
    splits: dict[str, RowTotals] = field(default_factory=dict)
    annotations: AnnotationTotals = field(default_factory=AnnotationTotals)
    digest: str = "0"
    rejected_examples: dict[str, BoxExample] = field(default_factory=dict)

    @property
    def rows(self) -> RowTotals:
        """Totals of rows over all splits."""
        totals = RowTotals()
        for split in self.splits.values():
            totals.merge(split)
        return totals

    def find_problem(self) -> str:
        """Why the files must not be used, in a sentence; empty if they hold all Examples that were built."""
        problems = [report.problem for report in self.reports if report.problem]
        problems += [example.text for reason, example in self.rejected_examples.items() if not reason]
        for name, rows in self.splits.items() if not problems else ():
            if rows.records != (found := sum(each.records for each in self.reports if each.split == name)):
                built = f"split {name} has {format_count(rows.records, 'Example')}"
                problems.append(f"{built}, and its files hold {found:,}: something was lost or written twice")
        return min(problems, default="")

    def add(self, report: ShardReport) -> None:
        """Adds one report."""
        self.splits.setdefault(report.split, RowTotals()).merge(report.rows)
        self.annotations.merge(report.annotations)
        self.digest = add_hex(self.digest, int(report.digest or "0", 16))
        self.reports.append(replace(report, rows=RowTotals(), annotations=AnnotationTotals(), contents=b""))
