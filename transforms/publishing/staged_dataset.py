"""A dataset that is complete in staging: its marker, the names of its files, and its publication.

The switch from an old dataset to a new one has an order that can be interrupted at any point. The
new dataset is complete in staging before anything in the output is touched. Then the old marker is
deleted, then the old files; the new files are moved in, and the new marker comes last. Readers of
the marker see all of the old dataset, no marker, or all of the new one. If a run is interrupted,
the next one finishes the switch. Files are on the disk before the marker that names them, so a
power cut is no worse than a kill. If a file cannot be renamed, the new ones go back to staging: no
half dataset remains anywhere.
"""

import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    DUPLICATES,
    INDEX,
    LABELS,
    MARKER,
    REJECTED,
    REPORT,
    SHARD,
    SIDE_FILES,
    SIDECARS,
    TRANSFORM_FN,
    VERSIONS,
    shard_name,
    sidecar_name,
)
from recordmill.schemas.dataset.json_values import MisfitError, as_json, from_json, to_json
from recordmill.schemas.dataset.marker import (
    LABEL_FIELDS,
    About,
    DuplicateCounts,
    Fingerprint,
    Ledger,
    Marker,
    NamedImages,
    RunEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    Switch,
)
from recordmill.schemas.dataset.outcome import PlannedLedger, PlannedNumbers, SplitNumbers
from recordmill.schemas.dataset.price import ComparedPrice
from recordmill.schemas.dataset.side_files import Remark
from recordmill.schemas.dataset.totals import FinishedShards, ImageTotals, RowTotals, ShardReport
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature, feature_schema
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.settings.source import SourceSettings
from recordmill.storage import dataset_files, stored_names
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.planning.runs import RunSettings, remove_staging
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing.verdicts import describe_annotations


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
            entry = ShardEntry(
                name, each.records, each.bytes, each.sha256, sidecar_name(name), each.sidecar_sha256
            )
            shards.append(PublishedShard(entry, each))
    return shards


def check_names(marker: Marker) -> None:
    """Makes sure that no two files or folders of a dataset have the same name.

    Raises:
        ValueError: two have; the sentence says which.
    """
    names = Counter(
        [
            MARKER,
            REPORT,
            SIDECARS,
            TRANSFORM_FN,
            *marker.files,
            *(shard.name for shard in marker.shards),
        ]
    )
    if clash := [name for name, times in names.items() if times > 1]:
        what = f"two files or folders of the dataset would be called {clash[0]}"
        raise ValueError(f"{what}: change shards.name or the splits' names")


def name_sidecars_without_records(reports: Iterable[ShardReport]) -> dict[str, ShardReport]:
    """Names the sidecars of shards without records.

    All of their references were rejected or left out.
    """
    empty = sorted((report for report in reports if not report.records), key=attrgetter("place"))
    return {
        f"{SIDECARS}/rejected-{number:05d}.jsonl": report for number, report in enumerate(empty)
    }


def build_marker(
    plan: DatasetPlan,
    shards: list[PublishedShard],
    ledger: Ledger,
    settings: DatasetSettings,
    finished: FinishedShards,
    duplicates: DuplicateCounts,
) -> Marker:
    """Builds the marker without its `run` part.

    It is the same for the same dataset, wherever and however that was made.
    """
    rows = finished.rows
    layout = ExampleLayout(settings, plan.label_map.attributes)
    splits = {}
    for name in plan.starts:
        own = tuple(shard.entry for shard in shards if shard.report.split == name)
        splits[name] = SplitEntry.of(
            finished.splits.get(name, RowTotals()), own, bool(rows.instances)
        )
    annotations = describe_annotations(plan.summary, finished)
    counted = None
    if rows.instances:
        counted = next((name for name, entry in annotations.items() if entry.listed), None)
    return Marker(
        name=settings.name,
        plan=plan.entry,
        convention=settings.convention if isinstance(settings.convention, str) else "own",
        unit=settings.unit,
        features=feature_schema(layout.features),
        labels=plan.label_map.ids,
        names_pixel_ids=_names_pixel_ids(plan.label_map, settings.source) or None,
        attributes=plan.label_map.attributes or None,
        skeleton=plan.skeleton or None,
        splits=splits,
        fingerprint=Fingerprint.of(
            {name: finished.splits.get(name, RowTotals()) for name in splits}
        ),
        ledger=ledger,
        named=_describe_names(plan.summary),
        annotations=annotations,
        counted=counted,
        made_from=(SourceEntry(settings.source.kind),),
        gps_positions=sum(report.positions for report in finished.reports) or None,
        changes=dict(sorted(rows.changes.items())),
        duplicates=duplicates,
        input_bytes=rows.input_bytes,
        output_bytes=sum(split.bytes for split in splits.values()),
        files=(*SIDE_FILES, *name_sidecars_without_records(finished.reports)),
        index=INDEX,
        notes=plan.notes,
        about=None if plan.about == About() else plan.about,
    )


def _names_pixel_ids(label_map: LabelMap, source: SourceSettings) -> bool:
    """Returns whether the classes of the label map have the ids of pixels."""
    return bool(label_map.ids) and (source.names_pixel_ids or source.maps_pixel_ids)


def _describe_names(summary: Summary) -> NamedImages | None:
    """Returns how many images files name, and how many files; None without any."""
    if not summary.naming_files:
        return None
    return NamedImages(summary.references + summary.left_out.total(), summary.naming_files)


def preview_numbers(plan: DatasetPlan, settings: DatasetSettings) -> PlannedNumbers:
    """Returns the expected numbers of a plan's outcome; sizes are estimates."""
    summary, splits = plan.summary, {}
    for name, starts in plan.starts.items():
        split = summary.splits.get(name, SplitSummary())
        size = plan.estimated_bytes.get(name, split.bytes)
        splits[name] = SplitNumbers(split.references, len(starts), size)
    ledger = PlannedLedger(
        summary.listed,
        rejected=dict(sorted(summary.rejected.items())),
        ignored=dict(sorted(summary.ignored.items())),
        left_out=dict(sorted(summary.left_out.items())),
    )
    return PlannedNumbers(
        unit=settings.unit,
        splits=splits,
        ledger=ledger,
        named=_describe_names(summary),
        classes=len(plan.label_map.ids),
        input_bytes=sum(split.bytes for split in summary.splits.values()),
    )


Description = tuple[str, Iterable[bytes]]
"""A file that describes the dataset: its name below the output folder, and its content."""


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A dataset whose shards are finished and not yet published.

    Attributes:
        marker: the marker without its `run` part; `files` still lacks the files that describe the
            dataset.
        settings: what the dataset is.
        shards: the shards under their final names, in the order of their splits' names.
        reports: of all shards, even of those without records, whose sidecars list only rejected
            images.
        folder: where the shards are until they are published; see `path_of`.
        images: totals over all images.
        remarks: what is worth a look.
        parts: the names of the parts of each annotation by kind, where all images have the same.
    """

    marker: Marker
    settings: DatasetSettings
    shards: Sequence[PublishedShard]
    reports: Sequence[ShardReport]
    folder: str
    images: ImageTotals = field(default_factory=ImageTotals)
    remarks: Sequence[Remark] = ()
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def layout(self) -> ExampleLayout:
        """The layout of its Examples and files."""
        return ExampleLayout(self.settings, self.marker.attributes or {})

    @property
    def sure_features(self) -> tuple[Feature, ...]:
        """The features that every Example has; a label, for instance, may be missing in some."""
        unlabeled = any("" in split.classes for split in self.marker.splits.values())
        features = self.layout.features
        missing = {key for report in self.reports for key in report.missing}
        return tuple(
            each
            for each in features
            if each.key not in missing and not (unlabeled and each.field in LABEL_FIELDS)
        )

    def path_of(self, report: ShardReport, kind: str) -> str:
        """Returns where a shard's file is now; `kind` is `tfrecord` or `jsonl` (its sidecar)."""
        return dataset_files.shard_path(self.folder, report.split, report.index, kind)


def stage_dataset(
    dataset: StagedDataset,
    descriptions: Iterable[Description],
    plan: RunPlan,
    run: RunSettings,
    notes: tuple[str, ...],
    old: Marker | None,
) -> Marker:
    """Completes the new dataset in staging; returns its marker.

    Its marker, with the moves that publish it, is written last. Files that may differ between runs
    of one plan have this run's id in their names: another may work at the same time.

    Args:
        dataset: the new dataset.
        descriptions: the files that describe it.
        plan: its plan.
        run: the run.
        notes: the marker's notes about the run.
        old: the marker in the output, whose files are replaced; None without one.

    Raises:
        LoadError: the marker in the output names a file that is not a dataset's.
        OSError: a file could not have its name in the output.
        ValueError: two files of the dataset would have one name; the sentence says which.
    """
    staging, configuration = dataset.folder, f"{run.run_id}-{CONFIGURATION}"
    output = plan.decision.output
    labels = plan.dataset.label_map.as_text(ExampleLayout(dataset.settings).convention.label_lines)
    storage.write_file(storage.join(staging, LABELS), labels.encode())
    storage.write_file(storage.join(staging, configuration), plan.dataset.config_text.encode())
    moves = [
        [LABELS, LABELS],
        [configuration, CONFIGURATION],
        [REJECTED, REJECTED],
        [DUPLICATES, DUPLICATES],
    ]
    moves += move_shards(dataset)
    files = list(dataset.marker.files)
    for number, (name, content) in enumerate(descriptions):
        # Numbered, because staging has no folders, and shards have names of their own there.
        moves.append([f"{run.run_id}-description-{number:05d}", name])
        storage.write_file(storage.join(staging, moves[-1][0]), content)
        files.append(name)
    marker = replace(dataset.marker, files=tuple(files))
    check_names(marker)
    storage.check_targets(storage.join(output, target) for _, target in moves if "/" not in target)
    staged = {target: storage.join(staging, source) for source, target in moves}
    digests = storage.map_each(storage.hash_file, (staged[name] for name in marker.files))
    entry = describe_run(dataset, plan, run, notes, dict(zip(marker.files, digests, strict=True)))
    switch = Switch(tuple(map(tuple, moves)), _old_files(output, old))
    marker = replace(marker, run=entry)
    pending = {**to_json(marker), "switch": to_json(switch)}
    storage.force_to_disk(storage.join(staging, source) for source, _ in moves)
    storage.write_file(storage.join(staging, MARKER), as_json(pending))
    storage.force_to_disk([staging])
    return marker


def move_shards(dataset: StagedDataset) -> Iterator[list[str]]:
    """Yields the name in staging of each shard and sidecar, and its name in the dataset."""
    for shard in dataset.shards:
        split, index = shard.report.split, shard.report.index
        yield [shard_name(split, index, SHARD), shard.entry.name]
        yield [shard_name(split, index, "jsonl"), shard.entry.sidecar]
    for sidecar, report in name_sidecars_without_records(dataset.reports).items():
        yield [shard_name(report.split, report.index, "jsonl"), sidecar]


def describe_run(
    dataset: StagedDataset,
    plan: RunPlan,
    run: RunSettings,
    notes: tuple[str, ...],
    digests: Mapping[str, str],
) -> RunEntry:
    """Describes the run that has made a dataset.

    Args:
        dataset: the dataset.
        plan: its plan.
        run: the run.
        notes: the run's notes.
        digests: the SHA-256 of the dataset's other files by name, in hex.
    """
    cost = run.progress.price(dataset.marker.input_bytes, dataset.marker.output_bytes)
    return RunEntry(
        **run.facts,
        seconds=run.progress.seconds() or None,
        price=ComparedPrice(plan.price, cost) if plan.price else None,
        id=run.run_id,
        inputs=plan.inputs,
        versions=f"{plan.dataset.summary.versions:064x}",
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        shards_reused=sum(report.reused for report in dataset.reports),
        images_reused=sum(report.images_reused for report in dataset.reports),
        images_disputed=sum(report.images_disputed for report in dataset.reports) or None,
        notes=notes or None,
        file_versions=VERSIONS,
        digests=digests,
    )


def _old_files(output: str, old: Marker | None) -> tuple[str, ...]:
    """Returns the files of the dataset in an output, which the new one replaces.

    Raises:
        LoadError: its marker names a file that is not a dataset's.
    """
    if old is None and not storage.exists(storage.join(output, MARKER)):
        return ()
    old = old or dataset_files.read_marker(output)  # which has appeared, or is damaged
    check_replaced(output, old)
    names = [name for shard in old.shards for name in (shard.name, shard.sidecar)]
    report = [REPORT] if dataset_files.holds_report(output) else []
    return tuple(dict.fromkeys((*names, *old.files, *report)))


def check_replaced(output: str, old: Marker) -> None:
    """Makes sure that all files that a dataset lists are a dataset's, before it is replaced.

    Raises:
        LoadError: one is not.
        OSError: one cannot be read.
    """
    if stray := stored_names.find_foreign_name(old):
        raise LoadError(
            f"{output}/{MARKER} is not safe to use: {stray}: choose another output, or remove this "
            f"entry from {MARKER} and run again, which keeps the file"
        )
    check_shards(output, [shard.name for shard in old.shards], f"{output}/{MARKER}")


def check_shards(output: str, names: Iterable[str], marker: str) -> None:
    """Makes sure that what a marker calls shards of an output are shards.

    Raises:
        LoadError: one is another file.
        OSError: one cannot be read.
    """
    if kept := stored_names.find_kept_name(output, names):
        raise LoadError(
            f"{marker} is not safe to use: it lists {kept[:100]!r} as a shard, and the file of "
            "that name is none: move it away, or choose another output"
        )


def publish_staged(output: str, plan_id: str, run_id: str = "") -> Marker:
    """Replaces the output's contents with the complete dataset in staging; returns its marker.

    Can be interrupted and repeated at any point, and done by two runs at once: a file that is no
    longer in staging is already in place, and an old file is not deleted if a new one will replace
    it. If it is known in advance that a file cannot get its name, nothing is touched; otherwise
    everything is taken back, see `roll_back`.

    Args:
        output: the folder.
        plan_id: the plan of the dataset.
        run_id: the run that publishes, whose claim is deleted with the staging folder.

    Raises:
        OSError: a file cannot be renamed.
        ValueError: the marker in staging cannot be read, or names other files than a dataset's.
    """
    marker, switch = read_pending(output, plan_id)
    targets = switch.targets.keys()
    sidecars = {target for target in targets if target.startswith("sidecars/")}
    storage.check_targets(storage.join(output, target) for target in sorted(targets - sidecars))
    storage.make_folder(storage.join(output, "sidecars"))
    storage.check_targets(storage.join(output, target) for target in sorted(sidecars))
    if not _is_in_place(marker, output):
        storage.remove_files([storage.join(output, MARKER)])
    try:
        _replace_files(output, plan_id, marker, switch)
    except OSError:
        # In an outage nothing is taken back, and the next run finishes the switch.
        with suppress(OSError):
            roll_back(output, plan_id)
        raise
    storage.remove_files([storage.join(dataset_files.staging_folder(output, plan_id), MARKER)])
    remove_staging(output, plan_id, run_id)
    return marker


def _is_in_place(marker: Marker, output: str) -> bool:
    """Reads the output's marker again before it is deleted.

    It may be the new one already, if this very switch was interrupted in its last step, or if
    another run has done that step.
    """
    if dataset_files.stamp_marker(output) is None:
        return False
    return dataset_files.find_marker(output) == marker


def _replace_files(output: str, plan_id: str, marker: Marker, switch: Switch) -> None:
    staging, targets = dataset_files.staging_folder(output, plan_id), switch.targets
    storage.remove_files(
        storage.join(output, name) for name in switch.removes if name not in targets
    )
    dataset_files.remove_stale_analysis(output, marker)
    waiting = set(storage.folder_names(staging))
    storage.move_files(
        (storage.join(staging, source), storage.join(output, target))
        for source, target in switch.moves
        if source in waiting
    )
    sidecars = (
        f"sidecars/{name}" for name in storage.folder_names(storage.join(output, "sidecars"))
    )
    there = {*storage.folder_names(output), *sidecars}
    if missing := sorted(targets.keys() - there):  # another run is taking its files back
        raise FileNotFoundError(
            errno.ENOENT, os.strerror(errno.ENOENT), storage.join(output, missing[0])
        )
    storage.force_to_disk([storage.join(output, "sidecars"), output])
    # Written in staging, so that an interruption leaves no stray temporary file.
    published = storage.join(staging, f"published.{MARKER}")
    storage.make_folder(staging)
    storage.write_file(published, as_json(to_json(marker)))
    storage.move_file(published, storage.join(output, MARKER))
    storage.force_to_disk([output])


def read_pending(output: str, plan_id: str) -> tuple[Marker, Switch]:
    """Reads the marker of the dataset that is complete in staging, and the moves that publish it.

    It is read even by the run that has written it: another run of the plan may have written its own
    since, and the files that a marker names are published with it.

    Raises:
        FileNotFoundError: there is none.
        StrayNameError: it names other files than a dataset's.
        LoadError: it cannot be read.
    """
    staging = dataset_files.staging_folder(output, plan_id)
    if storage.is_local(output):  # stores have no links
        stored_names.refuse_links_of(output, storage.folder_names(output))
    try:
        marker, value = dataset_files.read_marker_json(staging)
        switch = from_json(Switch, value.get("switch"))
        if marker.plan.id != plan_id:
            raise MisfitError("plan.id", f"is {marker.plan.id[:40]!r}, not the folder's")
        if stray := stored_names.find_stray_move(marker, switch):
            raise dataset_files.StrayNameError(f"{staging}/{MARKER} is not safe to use: {stray}")
        check_shards(output, _unusual_shards(switch), f"{staging}/{MARKER}")
        return marker, switch
    except (LoadError, MisfitError) as error:
        problem = (
            f"{staging} holds a dataset whose publication was interrupted and cannot be completed "
            f"({error})"
        )
        is_stray = isinstance(error, dataset_files.StrayNameError)
        kind = dataset_files.StrayNameError if is_stray else LoadError
        raise kind(f"{problem}: delete it with --discard, or choose another output") from None


def _unusual_shards(switch: Switch) -> Iterator[str]:
    """Returns the names of the replaced dataset's shards, as far as no other file has them."""
    return (name for name in switch.removes if sidecar_name(name) in switch.removes)


def roll_back(output: str, plan_id: str) -> None:
    """Takes back the dataset that was being published.

    It also deletes the rest of the one that it was replacing. Afterwards, the finished shards are
    in staging, without a marker: a run of the same plan resumes from them. Nothing is done if the
    output has a marker: either the switch has not touched it, or another run has finished the
    switch. Can be interrupted at any point: until the end the dataset is complete in both places
    together, and the next run finishes it.

    Raises:
        OSError: the files cannot be renamed either.
        ValueError: the marker in staging cannot be read.
    """
    _, switch = read_pending(output, plan_id)
    if storage.exists(storage.join(output, MARKER)):
        return
    staging, sidecars = (
        dataset_files.staging_folder(output, plan_id),
        storage.join(output, "sidecars"),
    )
    waiting = set(storage.folder_names(staging))
    moved = {target: source for target, source in switch.targets.items() if source not in waiting}
    names = sorted({*moved, *switch.removes})
    sizes = storage.map_each(storage.size_of, (storage.join(output, name) for name in names))
    there = {name for name, size in zip(names, sizes, strict=True) if size is not None}
    back = (
        (storage.join(output, name), storage.join(staging, moved[name]))
        for name in there & moved.keys()
    )
    storage.move_files(back)
    storage.remove_files(storage.join(output, name) for name in there - moved.keys())
    if not storage.folder_names(sidecars):
        storage.remove_folder(sidecars)
    storage.force_to_disk([staging, output])
    storage.remove_files([storage.join(staging, MARKER)])
