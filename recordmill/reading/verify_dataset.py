"""Verifies a dataset, or any folder of TFRecord files.

Each shard is verified first, concurrently, and then all of them as a whole.

The marker must not contradict its files, its sidecars or itself. Sidecars have a row for every
reference that was converted or rejected, so the marker's counts can be recomputed. The plan id is a
digest of the settings, and the marker repeats facts that follow from them.

On request, images must have no metadata: Exif, positions, XMP, comments, data after their end. A
dataset's companion files must be unchanged, and name the same classes.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from typing import Any

import yaml

from recordmill import storage
from recordmill.annotations.kinds import KINDS
from recordmill.reading.dataset import FORGED, Dataset, find_shards, open_dataset
from recordmill.reading.example import expect
from recordmill.reading.verify_companions import (
    check_report,
    find_other_contents,
    find_repeated_keys,
)
from recordmill.reading.verify_processes import ShardWorkers
from recordmill.reading.verify_shard import Finding, Level, ShardCheck, verify_shard
from recordmill.schemas.dataset.compare_plans import LISTED_ALL_SETTINGS
from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    DUPLICATES,
    FOR_PEOPLE,
    LABELS,
    MARKER,
    SHARD_NUMBER,
    SIDE_FILES,
    SIDECARS,
)
from recordmill.schemas.dataset.json_values import differences, hash_json, to_json
from recordmill.schemas.dataset.marker import (
    AnnotationEntry,
    DuplicateCounts,
    Fingerprint,
    LookAlikes,
    Marker,
    SameBytes,
    SplitEntry,
    plan_id_of,
)
from recordmill.schemas.dataset.totals import BareImages, RowAnnotations, RowTotals
from recordmill.schemas.label_map import LabelMap, tfds_names
from recordmill.schemas.rejection import WHILE_CONVERTED
from recordmill.schemas.settings.recipe import DIGESTED
from recordmill.schemas.str_path import StrPath
from recordmill.schemas.yaml_core import load_yaml
from recordmill.storage.dataset_files import MOST_OBJECT_BYTES, most_bytes_of, read_rows
from recordmill.storage.stores.store import in_parallel

_MOST_REPORTED = 100


def check_marker(
    dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]
) -> Iterator[Finding]:
    """Yields a finding for each contradiction.

    Args:
        dataset: a dataset of Recordmill.
        marker: its marker.
        checks: the checks of all its shards.
    """
    wrong = [f"it contradicts itself: {each}" for each in _contradictions(marker)]
    if (totals := _count(dataset, marker, checks)) is not None:
        counted = differences(to_json(marker), to_json(_recount(marker, totals, checks)))
        sums = _compare_sums(marker, totals)
        wrong += [f"the sidecars say otherwise: {each}" for each in (*counted, *sums)]
    wrong += [
        f"{CONFIGURATION} says otherwise: {each}" for each in _compare_settings(dataset, marker)
    ]
    if (listed := _count_duplicates(dataset, marker)) is not None:
        counted = differences(to_json(marker.duplicates), to_json(listed), "duplicates")
        wrong += [f"{DUPLICATES} says otherwise: {each}" for each in counted]
    wrong += find_other_contents(dataset, marker, checks)
    for detail in wrong[:_MOST_REPORTED]:
        yield Finding("marker", detail, MARKER)
    if len(wrong) > _MOST_REPORTED:
        yield Finding("more", f"{len(wrong) - _MOST_REPORTED:,} further contradictions", MARKER)


def _compare_settings(dataset: Dataset, marker: Marker) -> list[str]:
    """Lists the settings in use that are not those of `config.yaml`, as `key: old -> new`.

    If that file cannot be read, its digest is reported elsewhere.
    """
    if marker.plan.version <= LISTED_ALL_SETTINGS:
        return []
    try:
        path = storage.join(dataset.folder, CONFIGURATION)
        written = load_yaml(storage.read_whole(path, MOST_OBJECT_BYTES))
    except (OSError, ValueError, yaml.YAMLError):
        return []
    if not isinstance(written, dict):
        return []
    # In place of the names of files.
    digests = {key: marker.plan.recipe.get(key, "") for key in DIGESTED if key in written}
    return differences({**written, **digests}, dict(marker.plan.settings))


def _contradictions(marker: Marker) -> Iterator[str]:
    """Yields contradictions between the parts of a marker."""
    recipe, ledger, settings = marker.plan.recipe, marker.ledger, marker.plan.for_readers
    in_use = marker.plan.settings_in_use
    convention = in_use.get("convention")
    stored = to_json(marker)
    for key, here, implied in (
        ("plan.id", marker.plan.id, plan_id_of(recipe)),
        ("features", stored["features"], recipe.get("feature_schema")),
        ("labels", hash_json(marker.labels), recipe.get("label_ids")),
        ("attributes", hash_json(marker.attributes or {}), recipe.get("attribute_ids")),
        ("name", marker.name, in_use.get("name")),
        ("convention", marker.convention, "own" if isinstance(convention, dict) else convention),
    ):
        if implied is not None and here != implied:
            yield f"{key} does not match its settings"
    if others := marker.splits.keys() - {*(settings.split_order or marker.splits)}:
        yield f"the split {min(others)} is not in its settings"
    if ledger.listed != ledger.accounted:
        yield "the ledger's numbers do not add up to the number listed"
    if settings.listing.get("references") not in (
        None,
        ledger.accounted - sum(ledger.ignored.values()),
    ):
        yield "the ledger's numbers do not match the listing"
    yield from _annotation_contradictions(marker)
    digests = marker.run.digests
    needed = (*SIDE_FILES, marker.index, marker.run.file_versions)
    for name in sorted({*needed, *digests} - {*marker.files}):
        yield f"files lacks {name}"
    for name in sorted({*marker.files} - {*digests}):
        yield f"run.digests lacks {name}"


def _annotation_contradictions(marker: Marker) -> Iterator[str]:
    """Yields contradictions in what the marker says of sources and annotations."""
    kinds = [each.kind for each in marker.made_from]
    source = marker.plan.settings_in_use.get("source") or {}
    if kinds and source.get("kind") not in kinds:
        yield "made_from does not match its settings"
    if marker.counted is not None and marker.counted not in marker.annotations:
        yield f"counted is {marker.counted}, and annotations lacks it"
    for name, entry in marker.annotations.items():
        if entry.listed != entry.written + sum(entry.dropped.values()):
            yield f"annotations.{name} does not add up to the number listed"


def _count(dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]) -> RowTotals | None:
    """Returns the totals of all sidecars, or None if one does not match the marker.

    The mismatch is reported elsewhere.
    """
    if any(check.totals is None for check in checks):
        return None
    totals = _totals_of(checks)
    try:
        for name in marker.sidecars_without_records:
            totals.merge(RowTotals.of(read_rows(storage.join(dataset.folder, name)), ""))
    except (OSError, *FORGED):
        return None
    return totals


def _recount(marker: Marker, totals: RowTotals, checks: Sequence[ShardCheck]) -> Marker:
    """Returns the marker with counts from the sidecars."""
    of_split: dict[str, list[ShardCheck]] = {name: [] for name in marker.splits}
    for check in checks:
        of_split[check.shard.split].append(check)
    by_split = {name: _totals_of(own) for name, own in of_split.items()}
    splits = {
        name: SplitEntry.of(by_split[name], split.shards, bool(totals.instances))
        for name, split in marker.splits.items()
    }
    named = totals.records + totals.rejected.total() - totals.rejected_when_listed
    named += sum(marker.ledger.left_out.values())
    listed = {
        reason: count
        for reason, count in marker.ledger.left_out.items()
        if reason not in WHILE_CONVERTED
    }
    left_out = {**listed, **totals.left_out}
    return replace(
        marker,
        splits=splits,
        fingerprint=Fingerprint.of(by_split),
        named=marker.named and replace(marker.named, images=named),
        ledger=replace(
            marker.ledger, written=totals.records, rejected=dict(totals.rejected), left_out=left_out
        ),
        annotations=_recount_annotations(marker, totals),
        counted=_find_counted(marker, totals),
        changes=dict(totals.changes),
        input_bytes=totals.input_bytes,
        output_bytes=sum(split.bytes for split in splits.values()),
    )


def _recount_annotations(marker: Marker, totals: RowTotals) -> dict[str, AnnotationEntry]:
    """Returns the marker's ledgers of annotations with counts from the sidecars.

    Kinds that this version does not know stay as they are.
    """
    counted = dict(marker.annotations)
    for name in KINDS:
        if _lacks_rows(marker, totals, name):
            continue
        counts, unit = totals.annotations.get(name, RowAnnotations()).counts, KINDS[name].unit
        if name in counted:
            counted[name] = replace(counted[name].recount(counts), unit=unit)
        elif counts.listed:
            counted[name] = AnnotationEntry.of(unit, counts)
    return counted


def _find_counted(marker: Marker, totals: RowTotals) -> str | None:
    """Returns the kind of annotations whose classes the splits should count."""
    if marker.counted not in (None, *KINDS):
        return marker.counted
    listed = [name for name in KINDS if name in marker.annotations]
    if not totals.instances:
        return None
    return next((name for name in listed if marker.annotations[name].listed), None)


def _lacks_rows(marker: Marker, totals: RowTotals, kind: str) -> bool:
    """Whether rows do not have annotations of a kind, because those of format 2 lack some kinds."""
    return kind not in totals.annotations and marker.plan.version <= LISTED_ALL_SETTINGS


def _totals_of(checks: Sequence[ShardCheck]) -> RowTotals:
    return RowTotals.sum_of(filter(None, (check.totals for check in checks)))


def _compare_sums(marker: Marker, totals: RowTotals) -> Iterator[str]:
    """Compares sums of dropped annotations and of images without any with the marker's.

    Only sums are compared, since the rows do not have all details.
    """
    for name, entry in marker.annotations.items():
        if name not in KINDS or _lacks_rows(marker, totals, name):
            continue
        rows, place = totals.annotations.get(name, RowAnnotations()), f"annotations.{name}"
        bare = entry.images_without or BareImages()
        if bare.total != rows.bare:
            yield f"{place}.images_without: {bare.total} -> {rows.bare}"
        for key, listed, dropped in (
            ("dropped_classes", entry.dropped_classes or {}, rows.dropped_of_records),
            ("images_without.dropped", bare.dropped, rows.dropped_of_bare),
        ):
            sums = {reason: sum(counts.values()) for reason, counts in listed.items()}
            yield from differences(sums, dict(+dropped), f"{place}.{key}")


def _count_duplicates(dataset: Dataset, marker: Marker) -> DuplicateCounts | None:
    """Returns the totals of `duplicates.jsonl`.

    Returns None if it cannot be read, which is reported elsewhere.
    """
    totals = {"same_bytes": SameBytes(), "look_alike": SameBytes(), "closest_apart": SameBytes()}
    # Earlier versions counted images without a class as a class of their own.
    unlabeled = "no class" if marker.plan.version <= LISTED_ALL_SETTINGS else ""
    try:
        for line in dataset.lines(DUPLICATES):
            classes = [each or unlabeled for each in line["classes"]]
            annotations = line.get("conflicting_annotations")
            totals[line["kind"]].add(line.get("count", 2), line["splits"], classes, annotations)
    except (OSError, *FORGED):
        return None
    if not marker.plan.for_readers.images.near_duplicates:
        return DuplicateCounts(totals["same_bytes"], None)
    found = marker.duplicates.look_alike
    if found:
        bits, complete = found.bits, found.complete
    else:
        bits, complete = 0, False
    return DuplicateCounts(
        totals["same_bytes"], LookAlikes.of(totals["look_alike"], bits, complete)
    )


def _find_duplicates(dataset: Dataset, unit: str) -> Iterator[Finding]:
    """Yields findings for sources with the same bytes in several splits.

    There are none if the list of duplicates cannot be read, which is reported elsewhere.
    """
    crossing = 0
    with suppress(OSError, *FORGED):
        for line in dataset.lines(DUPLICATES):
            if line["kind"] == "same_bytes" and len(line["splits"]) > 1:
                crossing += 1
                if crossing <= _MOST_REPORTED:
                    keys = {image["split"]: image["key"] for image in line["images"]}
                    places = " and ".join(f"{key} in {split}" for split, key in keys.items())
                    yield Finding(
                        "duplicate", f"one {unit} in several splits: {places}", DUPLICATES
                    )
    if crossing > _MOST_REPORTED:
        yield Finding(
            "duplicate",
            f"{crossing - _MOST_REPORTED:,} further {unit}s in several splits",
            DUPLICATES,
        )


def check_side_files(dataset: Dataset, marker: Marker) -> Iterator[Finding]:
    """Returns the problems with the marker's companion files, in its order.

    Lists of classes must agree with the marker's labels. Other files are checked by their digests
    (`run.digests`).
    """
    return filter(
        None, in_parallel(lambda name: _check_side_file(dataset, marker, name), marker.files)
    )


def _check_side_file(dataset: Dataset, marker: Marker, name: str) -> Finding | None:
    path = storage.join(dataset.folder, name)
    digest = marker.run.digests.get(name)
    try:
        forms = _label_maps(name, dataset.labels)
        content = b""
        if forms:
            content = storage.read_whole(path, MOST_OBJECT_BYTES)
        if forms and content.decode("utf-8", "replace") not in forms:
            return Finding(
                "names",
                "it does not list the classes and ids of recordmill.json line by line",
                name,
            )
        size, most = storage.size_of(path), most_bytes_of(marker)
        if size is not None and size > most:
            return Finding("size", f"the file has {size:,} bytes, more than it can have", name)
        if storage.hash_file(path) == digest or digest is None:
            return None
    except FileNotFoundError:
        return Finding("missing", "the file is missing", name)
    except OSError as error:
        return Finding(
            "unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}", name
        )
    if name in FOR_PEOPLE:
        return Finding("edited", "the file was edited after the dataset was made", name)
    changed = (
        "the file has another sha256 than when the dataset was made: it was changed or damaged"
    )
    return Finding("sha256", changed, name)


def _label_maps(name: str, labels: Mapping[str, int]) -> list[str]:
    """Returns the valid contents of a file that lists the classes; empty for other files."""
    label_map = LabelMap(dict(labels))
    if name == LABELS:
        return [label_map.as_text("id:name"), label_map.as_text("name")]
    if name == "label_map.pbtxt":
        return [label_map.as_pbtxt()]
    if name.endswith(f".{LABELS}"):
        return ["".join(f"{each}\n" for each in tfds_names(labels))]
    return []


# Bytes of local files; less is read in the time that processes take to start.
_WORTH_PROCESSES = 2**28


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying.

    Attributes:
        dataset: the verified dataset.
        level: how thoroughly.
        checks: file by file, in the dataset's order.
        findings: those about each file, then those about the whole dataset.
    """

    dataset: Dataset
    level: Level
    checks: tuple[ShardCheck, ...]
    findings: tuple[Finding, ...]

    @property
    def records(self) -> int:
        """The number of intact frames."""
        return sum(check.records for check in self.checks)

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(check.bytes for check in self.checks)

    @property
    def failed(self) -> int:
        """The number of findings that are not notes."""
        return sum(not finding.is_note for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {
            "path": self.dataset.folder,
            "kind": self.dataset.kind,
            "level": self.level,
            "files": len(self.checks),
            "records": self.records,
            "bytes": self.bytes,
            "damages": self.failed,
            "notes": len(self.findings) - self.failed,
            "findings": [asdict(finding) for finding in self.findings],
        }


def verify_dataset(
    dataset: Dataset | StrPath,
    level: Level = "files",
    threads: int = 0,
    progress: Callable[[int], None] = lambda records: None,
    no_metadata: bool = False,
) -> Verification:
    """Compares a dataset with its metadata: `verified = recordmill.verify_dataset("dataset")`.

    Args:
        dataset: a dataset of any kind, or a path that `open_dataset` opens.
        level: `frames`: framing, both checksums, that every record is an Example, features' kinds,
            counts. `files`: also sizes, digests, sidecars, companion files, missing and stale
            files, labels and class names, images in several splits; the frames of a shard are not
            checked if its digest is the one in the marker (`verify_shard`). `pixels`: also decodes
            every image.
        threads: number of files to check at once; 0 for one per processor.
        progress: called from any thread with the number of records since the last call.
        no_metadata: whether images must have no metadata; if so, all records are read, at any
            level.

    Returns:
        The result; no content of a file makes this raise.

    Raises:
        LoadError: `open_dataset` cannot open the path.
        OSError: its files cannot be read.
    """
    if not isinstance(dataset, Dataset):
        dataset = open_dataset(dataset)
    expected = expect(dataset)
    count = min(threads or os.cpu_count() or 1, max(len(dataset.shards), 1))
    is_local = storage.is_local(dataset.folder)
    size = 0
    if is_local:
        size = sum(storage.size_of(shard.path) or 0 for shard in dataset.shards)
    with ShardWorkers(count) as workers, ThreadPoolExecutor(count) as pool:
        if level == "pixels" or size >= _WORTH_PROCESSES:
            verify = workers.verify
        else:
            verify = verify_shard
        checks = tuple(
            pool.map(
                lambda shard: verify(shard, expected, level, no_metadata, progress), dataset.shards
            )
        )
    findings = [*chain.from_iterable(check.findings for check in checks)]
    if no_metadata and expected.image_keys and not any(check.images for check in checks):
        findings.append(
            Finding("metadata", "no record has an encoded image, so metadata cannot be ruled out")
        )
    findings += _compare_kinds(checks)
    if level != "frames" and dataset.whole:
        findings += [*_find_missing(dataset), *_find_unlisted(dataset)]
        if marker := dataset.marker_or_none:
            findings += [*check_marker(dataset, marker, checks), *check_side_files(dataset, marker)]
            findings += [*find_repeated_keys(dataset, marker), *check_report(dataset, marker)]
            findings += _find_duplicates(dataset, marker.unit)
    return Verification(dataset, level, checks, tuple(findings))


def _compare_kinds(checks: tuple[ShardCheck, ...]) -> Iterator[Finding]:
    """Yields features whose kind differs from the one that they had first, once per file."""
    first: dict[str, tuple[str, str]] = {}
    for check in checks:
        for (key, kind), place in check.kinds.items():
            known, where = first.setdefault(
                key, (kind, f"record {place[0]:,} of {check.shard.name}")
            )
            if known != kind:
                detail = f"feature {key} is {kind} here and {known} in {where}"
                yield Finding("feature", detail, check.shard.name, *place)


def _find_missing(dataset: Dataset) -> Iterator[Finding]:
    """Yields shards that are missing according to the numbers in other shards' names."""
    if dataset.kind != "files":
        return
    # By pattern, then by the count in it.
    sets: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for shard in dataset.shards:
        if match := SHARD_NUMBER.search(shard.name):
            sets[SHARD_NUMBER.sub("*", shard.name)][int(match["count"])].add(int(match["number"]))
    for stem, numbers in sets.items():
        count = max(numbers)
        there = numbers[count]
        first = 0 if 0 in there else 1
        missing = (number for number in range(first, first + count) if number not in there)
        for number in islice(missing, _MOST_REPORTED):  # a forged name may claim any count
            yield Finding("missing", f"shard {number} of {count} is missing", stem)
        for other in sorted(numbers.keys() - {count}):
            detail = (
                f"{len(numbers[other])} files of a set of {other} are next to the set of {count}"
            )
            yield Finding("stale", f"{detail}: readers that use a glob read both", stem)


def _find_unlisted(dataset: Dataset) -> Iterator[Finding]:
    """Yields files that look like shards or sidecars, but that the dataset does not list."""
    if dataset.kind == "files":
        return
    listed = {shard.name for shard in dataset.shards}
    for shard in find_shards(dataset.folder):
        if shard.name not in listed and not _is_in_a_dataset(dataset.folder, shard.name):
            detail = "the dataset does not list this file: readers that use a glob read it too"
            yield Finding("stale", detail, shard.name)
    if dataset.marker_or_none:
        sidecars = storage.join(dataset.folder, SIDECARS)
        known = {shard.sidecar for shard in dataset.shards}
        known |= {storage.join(dataset.folder, name) for name in dataset.marker.files}
        for name in storage.folder_names(sidecars):
            if storage.join(sidecars, name) not in known:
                yield Finding(
                    "stale",
                    "the dataset does not list this file among its sidecars",
                    f"{SIDECARS}/{name}",
                )


def _is_in_a_dataset(folder: str, name: str) -> bool:
    """Returns whether a file is in a subfolder that is a dataset of its own."""
    parts = name.split("/")[:-1]
    return any(
        storage.exists(storage.join(folder, *parts[: end + 1], MARKER)) for end in range(len(parts))
    )
