"""A dataset that is about to be published: its marker, the names of its shards, and the input of the describers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from recordmill.schemas.dataset.file_names import (
    INDEX,
    MARKER,
    REPORT,
    SIDE_FILES,
    SIDECARS,
    TRANSFORM_FN,
    sidecar_name,
)
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import (
    LABEL_FIELDS,
    About,
    DuplicateCounts,
    Fingerprint,
    Ledger,
    Marker,
    NamedImages,
    PlanEntry,
    ShardEntry,
    SplitEntry,
)
from recordmill.schemas.dataset.side_files import Remark
from recordmill.schemas.dataset.totals import FinishedShards, ImageTotals, RowTotals, ShardReport
from recordmill.schemas.features import Feature, feature_schema
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import shard_path
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing.ledger import balance_boxes, describe_annotations
from recordmill.transforms.shards.shard_files import Column, read_column


@dataclass(frozen=True, slots=True)
class PublishedShard:
    """A shard's entry in the marker, with the names that readers see, and its report."""

    entry: ShardEntry
    report: ShardReport


def name_shards(reports: Iterable[ShardReport], settings: DatasetSettings) -> list[PublishedShard]:
    """Names the shards that have records; empty ones are not counted in `-of-N`."""
    shards, layout = [], ExampleLayout(settings)
    filled = sorted((report for report in reports if report.records), key=attrgetter("place"))
    for split, grouped in groupby(filled, key=attrgetter("split")):
        own = list(grouped)
        for number, each in enumerate(own):
            name = layout.file_name(split, number, len(own), each.records)
            entry = ShardEntry(name, each.records, each.bytes, each.sha256, sidecar_name(name), each.sidecar_sha256)
            shards.append(PublishedShard(entry, each))
    return shards


def check_names(marker: Marker) -> None:
    """Makes sure that no two files or folders of a dataset have the same name.

    Raises:
        ValueError: two have; the sentence says which.
    """
    names = Counter([MARKER, REPORT, SIDECARS, TRANSFORM_FN, *marker.files, *(shard.name for shard in marker.shards)])
    if clash := [name for name, times in names.items() if times > 1]:
        raise ValueError(
            f"two files or folders of the dataset would be called {clash[0]}: change shards.name or the splits' names"
        )


def name_sidecars_without_records(reports: Iterable[ShardReport]) -> dict[str, ShardReport]:
    """Names the sidecars of shards without records, whose references were all rejected or left out."""
    empty = sorted((report for report in reports if not report.records), key=attrgetter("place"))
    return {f"{SIDECARS}/rejected-{number:05d}.jsonl": report for number, report in enumerate(empty)}


def build_marker(
    plan: Plan,
    shards: list[PublishedShard],
    ledger: Ledger,
    settings: DatasetSettings,
    finished: FinishedShards,
    duplicates: DuplicateCounts,
) -> Marker:
    """Builds the marker without its `run` part: the same for the same dataset, wherever and however it was made."""
    rows, layout = finished.rows, ExampleLayout(settings)
    splits = {}
    for name in plan.starts:
        own = tuple(shard.entry for shard in shards if shard.report.split == name)
        splits[name] = SplitEntry.of(finished.splits.get(name, RowTotals()), own, bool(rows.instances))
    boxes = balance_boxes(plan.summary, finished)
    return Marker(
        name=settings.name,
        plan=PlanEntry(plan.plan_id, plan.recipe),
        convention=settings.convention if isinstance(settings.convention, str) else "own",
        unit=settings.unit,
        features=feature_schema(layout.features),
        labels=plan.label_map.ids,
        splits=splits,
        fingerprint=Fingerprint.of({name: finished.splits.get(name, RowTotals()) for name in splits}),
        ledger=ledger,
        named=_describe_names(plan.summary),
        boxes=boxes or None,
        **describe_annotations(finished.annotations, bool(boxes)),
        gps_positions=sum(report.positions for report in finished.reports) or None,
        changes=dict(sorted(rows.changes.items())),
        duplicates=duplicates,
        input_bytes=rows.input_bytes,
        output_bytes=sum(split.bytes for split in splits.values()),
        files=(*SIDE_FILES, *name_sidecars_without_records(finished.reports)),
        index=INDEX,
        notes=tuple(plan.notes),
        about=None if plan.about == About() else plan.about,
    )


def _describe_names(summary: Summary) -> NamedImages | None:
    """How many images files name, and how many files; None without any."""
    images = summary.references + summary.left_out.total()
    return NamedImages(images, summary.naming_files) if summary.naming_files else None


def preview_numbers(plan: Plan, settings: DatasetSettings) -> dict[str, Any]:
    """The expected numbers of a plan's outcome; sizes are estimates."""
    summary, splits = plan.summary, {}
    for name, starts in plan.starts.items():
        split = summary.splits.get(name, SplitSummary())
        size = plan.estimated_bytes.get(name, split.bytes)
        splits[name] = {"images": split.references, "shards": len(starts), "bytes": size}
    fates = {fate: dict(sorted(getattr(summary, fate).items())) for fate in ("rejected", "ignored", "left_out")}
    return {
        "unit": settings.unit,
        "splits": splits,
        "ledger": {"listed": summary.listed, **fates},
        **({"named": to_json(named)} if (named := _describe_names(summary)) else {}),
        "classes": len(plan.label_map.ids),
        "input_bytes": sum(split.bytes for split in summary.splits.values()),
    }


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A dataset whose shards are finished and not yet published.

    Attributes:
        marker: the marker without its `run` part; `files` still lacks the files that describe the dataset.
        settings: what the dataset is.
        shards: the shards under their final names, in the order of their splits' names.
        reports: of all shards, even of those without records, whose sidecars list only rejected images.
        folder: where the shards are until they are published; see `path_of`.
        images: totals over all images.
        remarks: what is worth a look.
    """

    marker: Marker
    settings: DatasetSettings
    shards: Sequence[PublishedShard]
    reports: Sequence[ShardReport]
    folder: str
    images: ImageTotals = field(default_factory=ImageTotals)
    remarks: Sequence[Remark] = ()

    @property
    def layout(self) -> ExampleLayout:
        """The layout of its Examples and files."""
        return ExampleLayout(self.settings)

    @property
    def sure_features(self) -> tuple[Feature, ...]:
        """The features that every Example has; a label, for instance, may be missing in some."""
        unlabelled = any("" in split.classes for split in self.marker.splits.values())
        features = self.layout.features
        missing = {key for report in self.reports for key in report.missing}
        return tuple(
            each for each in features if each.key not in missing and not (unlabelled and each.field in LABEL_FIELDS)
        )

    def path_of(self, report: ShardReport, kind: str) -> str:
        """Where a shard's file is now; `kind` is `tfrecord` or `jsonl` (its sidecar)."""
        return shard_path(self.folder, report.split, report.index, kind)

    def read_column(self, report: ShardReport, column: Column) -> bytes:
        """Reads a column of a shard."""
        return read_column(self.folder, report.split, report.index, report.records, column)
