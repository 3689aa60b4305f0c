"""Checks a marker for contradictions with its files, its sidecars and itself.

Sidecars have a row for every reference that was converted or rejected, so the marker's counts can be recomputed. The
plan id is a digest of the settings, and the marker repeats facts that follow from them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from recordmill import storage
from recordmill.reading.dataset import FORGED, Dataset
from recordmill.reading.verify.finding import Finding
from recordmill.reading.verify.verify_shard import ShardCheck
from recordmill.schemas.dataset.file_names import DUPLICATES, MARKER, SIDE_FILES
from recordmill.schemas.dataset.json_values import differences, hash_json, to_json
from recordmill.schemas.dataset.marker import (
    DuplicateCounts,
    Fingerprint,
    LookAlikes,
    Marker,
    SameBytes,
    SplitEntry,
    plan_id_of,
)
from recordmill.schemas.dataset.totals import RowTotals, count_dropped
from recordmill.schemas.rejection import WHILE_CONVERTED
from recordmill.storage.dataset_files import read_rows

_MOST_REPORTED = 100


def check_marker(dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]) -> Iterator[Finding]:
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
    if (listed := _count_duplicates(dataset, marker)) is not None:
        counted = differences(to_json(marker.duplicates), to_json(listed), "duplicates")
        wrong += [f"{DUPLICATES} says otherwise: {each}" for each in counted]
    for detail in wrong[:_MOST_REPORTED]:
        yield Finding("marker", detail, MARKER)
    if len(wrong) > _MOST_REPORTED:
        yield Finding("more", f"{len(wrong) - _MOST_REPORTED:,} further contradictions", MARKER)


def _contradictions(marker: Marker) -> Iterator[str]:
    """Contradictions between the parts of a marker."""
    recipe, ledger, settings = marker.plan.recipe, marker.ledger, marker.plan.settings
    convention = recipe.get("convention")
    stored = to_json(marker)
    for key, here, implied in (
        ("plan.id", marker.plan.id, plan_id_of(recipe)),
        ("features", stored["features"], recipe.get("feature_schema")),
        ("labels", hash_json(marker.labels), recipe.get("label_ids")),
        ("name", marker.name, recipe.get("name")),
        ("convention", marker.convention, "own" if isinstance(convention, dict) else convention),
    ):
        if implied is not None and here != implied:
            yield f"{key} does not match its settings"
    if others := marker.splits.keys() - {*(settings.split_order or marker.splits)}:
        yield f"the split {min(others)} is not in its settings"
    if ledger.listed != ledger.accounted:
        yield "the ledger's numbers do not add up to the number listed"
    if settings.listing.references not in (None, ledger.accounted - sum(ledger.ignored.values())):
        yield "the ledger's numbers do not match the listing"
    labels = Counter(marker.labels_of_images)
    if labels["listed"] * 2 != labels.total():
        yield "labels_of_images does not add up to the number listed"
    digests = marker.run.digests or {}
    needed = (*SIDE_FILES, *filter(None, (marker.index, marker.run.file_versions)))
    for name in sorted({*needed, *digests} - {*marker.files}):
        yield f"files lacks {name}"
    for name in sorted({*marker.files} - {*digests}) if digests else ():
        yield f"run.digests lacks {name}"


def _count(dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]) -> RowTotals | None:
    """The totals of all sidecars; None if one does not match the marker, which is reported elsewhere."""
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
    """The marker with counts from the sidecars."""
    by_split = {name: _totals_of([check for check in checks if check.shard.split == name]) for name in marker.splits}
    splits = {
        name: SplitEntry.of(by_split[name], split.shards, bool(totals.instances))
        for name, split in marker.splits.items()
    }
    named = totals.records + totals.rejected.total() - totals.rejected_when_listed
    named += sum(marker.ledger.left_out.values())
    listed = {reason: count for reason, count in marker.ledger.left_out.items() if reason not in WHILE_CONVERTED}
    left_out = {**listed, **totals.left_out}
    return replace(
        marker,
        splits=splits,
        fingerprint=marker.fingerprint and Fingerprint.of(by_split),
        named=marker.named and replace(marker.named, images=named),
        ledger=replace(marker.ledger, written=totals.records, rejected=dict(totals.rejected), left_out=left_out),
        boxes=dict(totals.boxes) or None,
        changes=dict(totals.changes),
        input_bytes=totals.input_bytes,
        output_bytes=sum(split.bytes for split in splits.values()),
    )


def _totals_of(checks: Sequence[ShardCheck]) -> RowTotals:
    totals = RowTotals()
    for each in filter(None, (check.totals for check in checks)):
        totals.merge(each)
    return totals


def _compare_sums(marker: Marker, totals: RowTotals) -> Iterator[str]:
    """Compares only sums: the rows count dropped boxes and images without boxes, but do not have all details."""
    without = marker.images_without_boxes
    if without is None:
        return
    if without.total != totals.bare:
        yield f"images_without_boxes: {without.total} -> {totals.bare}"
    for key, listed, boxes in (
        ("dropped_boxes", marker.dropped_boxes or {}, totals.boxes_of_records),
        ("images_without_boxes.dropped", without.dropped, totals.boxes_of_bare),
    ):
        sums = {reason: sum(counts.values()) for reason, counts in listed.items()}
        yield from differences(sums, count_dropped(boxes), key)


def _count_duplicates(dataset: Dataset, marker: Marker) -> DuplicateCounts | None:
    """The totals of `duplicates.jsonl`; None if it cannot be read, which is reported elsewhere."""
    totals = {"same_bytes": SameBytes(), "look_alike": SameBytes(), "closest_apart": SameBytes()}
    try:
        with storage.open_to_read(storage.join(dataset.folder, DUPLICATES)) as lines:
            for line in map(orjson.loads, lines):
                totals[line["kind"]].add(line.get("count", 2), line["splits"], line["classes"])
    except (OSError, *FORGED):
        return None
    if not marker.plan.settings.images.near_duplicates:
        return DuplicateCounts(totals["same_bytes"], None)
    found = marker.duplicates.look_alike
    bits, complete = (found.bits, found.complete) if found else (0, False)
    return DuplicateCounts(totals["same_bytes"], LookAlikes.of(totals["look_alike"], bits, complete))
