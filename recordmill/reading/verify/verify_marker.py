"""The marker of one of ours, held against its files, its sidecars and itself.

Sidecars say of every record and of every rejected reference what became of it, so that what the marker counts can be
counted again. Its settings have a digest, the plan id, and what follows from them is stated twice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.sidecar_rows import FORGED, add_rows
from recordmill.reading.verify.finding import Finding
from recordmill.reading.verify.verify_shard import ShardCheck
from recordmill.schemas.dataset.annotation_counts import NOT_DROPPED
from recordmill.schemas.dataset.file_names import CONFIGURATION, DUPLICATES, LABELS, MARKER, REJECTED, SIDECARS
from recordmill.schemas.dataset.json_values import differences, hash_json, to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, GroupTotals, Marker, SplitEntry, plan_id_of
from recordmill.schemas.row_totals import RowTotals

_MOST_TOLD = 100


def check_marker(dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]) -> Iterator[Finding]:
    """What the marker says, and something else contradicts.

    Args:
        dataset: one of ours.
        marker: its marker.
        checks: of all its shards.
    """
    wrong = [f"it contradicts itself: {each}" for each in _contradictions(marker)]
    if (totals := _count(dataset, marker, checks)) is not None:
        counted = differences(marker.to_json(), _recount(marker, totals, checks).to_json())
        sums = _compare_sums(marker, _totals_of(checks))
        wrong += [f"the sidecars say otherwise: {each}" for each in (*counted, *sums)]
    if (listed := _count_duplicates(dataset, marker)) is not None:
        counted = differences(to_json(marker.duplicates), to_json(listed), "duplicates")
        wrong += [f"{DUPLICATES} says otherwise: {each}" for each in counted]
    for detail in wrong[:_MOST_TOLD]:
        yield Finding("marker", detail, MARKER)
    if len(wrong) > _MOST_TOLD:
        yield Finding("more", f"{len(wrong) - _MOST_TOLD:,} further contradictions", MARKER)


def _contradictions(marker: Marker) -> Iterator[str]:
    """What one part of a marker says, and another part denies."""
    recipe, ledger, settings = marker.plan.recipe, marker.ledger, marker.plan.settings
    convention = recipe.get("convention")
    stored = marker.to_json()
    for key, here, implied in (
        ("plan.id", marker.plan.id, plan_id_of(recipe)),
        ("features", stored["features"], recipe.get("feature_schema")),
        ("labels", hash_json(marker.labels), recipe.get("label_ids")),
        ("name", marker.name, recipe.get("name")),
        ("convention", marker.convention, "own" if isinstance(convention, dict) else convention),
    ):
        if implied is not None and here != implied:
            yield f"{key} is not what its settings say"
    if others := marker.splits.keys() - {*(settings.split_order or marker.splits)}:
        yield f"the split {min(others)} is none of its settings"
    if ledger.listed != ledger.accounted:
        yield "the ledger's numbers do not add up to those listed"
    if settings.listing.references not in (None, ledger.accounted - sum(ledger.ignored.values())):
        yield "the ledger's numbers are not those of the listing"
    labels = Counter(marker.labels_of_images)
    if labels["listed"] * 2 != labels.total():
        yield "labels_of_images do not add up to those listed"
    digests = marker.run.digests or {}
    for name in sorted({LABELS, REJECTED, CONFIGURATION, DUPLICATES, *digests} - {*marker.files}):
        yield f"files lacks {name}"
    for name in sorted({*marker.files} - {*digests}) if digests else ():
        yield f"run.digests lacks {name}"


def _count(dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]) -> RowTotals | None:
    """What all sidecars add up to; None where one of them is not as stated, which is reported there."""
    totals = _totals_of(checks)
    if totals is None:
        return None
    try:
        for name in marker.files:
            if name.startswith(f"{SIDECARS}/") and name.endswith(".jsonl"):  # of shards that have no record
                lines = storage.read_range(storage.join(dataset.folder, name)).splitlines()
                totals.merge(add_rows(map(orjson.loads, lines)))
    except (OSError, *FORGED):
        return None
    return totals


def _recount(marker: Marker, totals: RowTotals, checks: Sequence[ShardCheck]) -> Marker:
    """The marker as it should be by the sidecars."""
    splits = {}
    for name, split in marker.splits.items():
        own = [check for check in checks if check.shard.split == name]
        rows = _totals_of(own) or RowTotals()
        splits[name] = SplitEntry(
            records=rows.records,
            bytes=sum(check.shard.bytes or 0 for check in own),
            classes=dict(rows.classes),
            instances=dict(rows.instances) if totals.instances else None,
            shards=split.shards,
        )
    named = totals.records + totals.rejected.total() - totals.rejected_when_listed
    named += sum(marker.ledger.left_out.values())
    return replace(
        marker,
        splits=splits,
        named=marker.named and replace(marker.named, images=named),
        ledger=replace(marker.ledger, written=totals.records, rejected=dict(totals.rejected)),
        boxes=dict(totals.boxes) or None,
        changes=dict(totals.changes),
        input_bytes=totals.input_bytes,
        output_bytes=sum(check.shard.bytes or 0 for check in checks),
    )


def _totals_of(checks: Sequence[ShardCheck]) -> RowTotals | None:
    totals = RowTotals()
    for check in checks:
        if check.totals is None:
            return None
        totals.merge(check.totals)
    return totals


def _compare_sums(marker: Marker, totals: RowTotals | None) -> Iterator[str]:
    """Of boxes that were dropped, and of images without any, the rows know how many, and not all that is stated."""
    without = marker.images_without_boxes
    if totals is None or without is None:
        return
    if without.total != totals.bare:
        yield f"images_without_boxes: {without.total} -> {totals.bare}"
    for key, stated, boxes in (
        ("dropped_boxes", marker.dropped_boxes or {}, totals.boxes_of_records),
        ("images_without_boxes.dropped", without.dropped, totals.boxes_of_bare),
    ):
        sums = {reason: sum(counts.values()) for reason, counts in stated.items()}
        dropped = {reason: count for reason, count in boxes.items() if reason not in NOT_DROPPED and count}
        yield from differences(sums, dropped, key)


def _count_duplicates(dataset: Dataset, marker: Marker) -> DuplicateCounts | None:
    """What `duplicates.jsonl` adds up to; None where it cannot be read, which is reported there."""
    totals = {"same_bytes": GroupTotals(), "look_alike": GroupTotals()}
    try:
        with storage.open_to_read(storage.join(dataset.folder, DUPLICATES)) as lines:
            for line in map(orjson.loads, lines):
                totals[line["kind"]].add(line.get("count", 2), line["splits"], line["classes"])
    except (OSError, *FORGED):
        return None
    alike = None
    if marker.plan.settings.images.near_duplicates:
        stated = marker.duplicates.look_alike
        bits, complete = (stated.bits, stated.complete) if stated else (0, False)
        alike = totals["look_alike"].look_alikes(bits, complete)
    return DuplicateCounts(totals["same_bytes"].same_bytes(), alike)
