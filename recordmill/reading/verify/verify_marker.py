"""The marker of one of ours, held against its files, its sidecars and itself.

Sidecars say of every record and of every rejected reference what became of it, so that what the marker counts can be
counted again. Its settings have a digest, the plan id, and what follows from them is stated twice.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.sidecar_rows import FORGED, add_rows
from recordmill.reading.verify.finding import Finding
from recordmill.reading.verify.verify_shard import ShardCheck
from recordmill.schemas.marker_shape import hash_json, plan_id_of
from recordmill.schemas.row_totals import RowTotals
from recordmill.transforms.planning.output_state import MARKER, differences
from recordmill.transforms.publishing.marker import CONFIGURATION, DUPLICATES, LABELS, REJECTED
from recordmill.transforms.records.boxes import NOT_DROPPED

_MOST_TOLD = 100


def check_marker(dataset: Dataset, checks: Sequence[ShardCheck]) -> Iterator[Finding]:
    """What the marker says, and something else contradicts.

    Args:
        dataset: one of ours.
        checks: of all its shards.
    """
    stated = dataset.marker
    wrong = [f"it contradicts itself: {each}" for each in _contradictions(stated)]
    if (found := _count(dataset, checks)) is not None:
        same = {key: stated[key] for key in stated if key in found or key == "boxes"}
        same["named"] = {"images": stated["named"]["images"]} if "named" in stated else found["named"]
        same["ledger"] = {key: stated["ledger"][key] for key in found["ledger"]}
        same["splits"] = {
            name: {key: split[key] for key in split if key != "shards"} for name, split in stated["splits"].items()
        }
        sums = _compare_sums(stated, _totals_of(checks))
        wrong += [f"the sidecars say otherwise: {each}" for each in (*differences(same, found), *sums)]
    if (listed := _count_duplicates(dataset)) is not None:
        numbers = _numbers(stated["duplicates"])
        wrong += [f"{DUPLICATES} says otherwise: {each}" for each in differences(numbers, listed, "duplicates")]
    for detail in wrong[:_MOST_TOLD]:
        yield Finding("marker", detail, MARKER)
    if len(wrong) > _MOST_TOLD:
        yield Finding("more", f"{len(wrong) - _MOST_TOLD:,} further contradictions", MARKER)


def _contradictions(marker: Mapping[str, Any]) -> Iterator[str]:
    """What one part of a marker says, and another part denies."""
    recipe, ledger = marker["plan"]["recipe"], marker["ledger"]
    convention = recipe.get("convention")
    implied = {
        "plan.id": plan_id_of(recipe),
        "features": recipe.get("feature_schema"),
        "labels": recipe.get("label_ids"),
        "name": recipe.get("name"),
        "convention": convention if isinstance(convention, str) or convention is None else "own",
    }
    here = {**{key: marker.get(key) for key in implied}, "plan.id": marker["plan"]["id"]}
    here["labels"] = hash_json(marker["labels"])
    for key, value in implied.items():
        if value is not None and value != here[key]:
            yield f"{key} is not what its settings say"
    if others := marker["splits"].keys() - {*(recipe.get("split_order") or marker["splits"])}:
        yield f"the split {min(others)} is none of its settings"
    rejected, ignored, left_out = (sum(ledger[key].values()) for key in ("rejected", "ignored", "left_out"))
    if ledger["listed"] != ledger["written"] + rejected + ignored + left_out:
        yield "the ledger's numbers do not add up to those listed"
    references = (recipe.get("listing") or {}).get("references")
    if references not in (None, ledger["written"] + rejected + left_out):
        yield "the ledger's numbers are not those of the listing"
    labels = Counter(marker.get("labels_of_images") or {})
    if labels["listed"] * 2 != labels.total():
        yield "labels_of_images do not add up to those listed"
    digests = marker["run"].get("digests") or {}
    for name in sorted({LABELS, REJECTED, CONFIGURATION, DUPLICATES, *digests} - {*marker["files"]}):
        yield f"files lacks {name}"
    for name in sorted({*marker["files"]} - {*digests}) if digests else ():
        yield f"run.digests lacks {name}"


def _count(dataset: Dataset, checks: Sequence[ShardCheck]) -> dict[str, Any] | None:
    """What the marker should say by the sidecars; None where one of them is not as stated, which is told there."""
    totals = _totals_of(checks)
    if totals is None:
        return None
    try:
        for name in dataset.marker["files"]:
            if name.startswith("sidecars/") and name.endswith(".jsonl"):  # of shards that have no record
                lines = storage.read_range(storage.join(dataset.folder, name)).splitlines()
                totals.merge(add_rows(map(orjson.loads, lines)))
    except (OSError, *FORGED):
        return None
    splits: dict[str, Any] = {}
    for name in dataset.marker["splits"]:
        own = [check for check in checks if check.shard.split == name]
        rows = _totals_of(own) or RowTotals()
        instances = {"instances": dict(rows.instances)} if totals.instances else {}
        counts = {
            "records": rows.records,
            "bytes": sum(check.shard.bytes or 0 for check in own),
            "classes": dict(rows.classes),
        }
        splits[name] = {**counts, **instances}
    seen = totals.records + totals.rejected.total() - totals.rejected_when_listed
    return {
        "splits": splits,
        "named": {"images": seen + sum(dataset.marker["ledger"]["left_out"].values())},
        "ledger": {"written": totals.records, "rejected": dict(totals.rejected)},
        **({"boxes": dict(totals.boxes)} if totals.boxes else {}),
        "changes": dict(totals.changes),
        "input_bytes": totals.input_bytes,
        "output_bytes": sum(check.shard.bytes or 0 for check in checks),
    }


def _totals_of(checks: Sequence[ShardCheck]) -> RowTotals | None:
    totals = RowTotals()
    for check in checks:
        if check.totals is None:
            return None
        totals.merge(check.totals)
    return totals


def _compare_sums(marker: Mapping[str, Any], totals: RowTotals | None) -> Iterator[str]:
    """Of boxes that were dropped, and of images without any, the rows know how many, and not all that is stated."""
    without = marker.get("images_without_boxes")
    if totals is None or without is None:
        return
    causes = sum(count for cause, count in without.items() if cause != "dropped")
    if causes != totals.bare:
        yield f"images_without_boxes: {causes} -> {totals.bare}"
    for key, stated, boxes in (
        ("dropped_boxes", marker.get("dropped_boxes") or {}, totals.boxes_of_records),
        ("images_without_boxes.dropped", without["dropped"], totals.boxes_of_bare),
    ):
        sums = {reason: sum(counts.values()) for reason, counts in stated.items()}
        dropped = {reason: count for reason, count in boxes.items() if reason not in NOT_DROPPED and count}
        yield from differences(sums, dropped, key)


def _count_duplicates(dataset: Dataset) -> dict[str, Any] | None:
    """What `duplicates.jsonl` adds up to; None where it cannot be read, which is told there."""
    empty = {"groups": 0, "images": 0, "across_splits": 0, "conflicting": 0}
    kinds = {"same_bytes": {**empty}, "look_alike": {**empty}}
    try:
        with storage.open_to_read(storage.join(dataset.folder, DUPLICATES)) as lines:
            for line in map(orjson.loads, lines):
                numbers = kinds[line["kind"]]
                numbers["groups"] += 1
                numbers["images"] += line.get("count", 0) - 1
                numbers["across_splits"] += len(line["splits"]) > 1
                numbers["conflicting"] += len(line["classes"]) > 1
    except (OSError, *FORGED):
        return None
    alike = kinds["look_alike"]
    pairs = {"pairs": alike["groups"], **{key: alike[key] for key in ("across_splits", "conflicting")}}
    settings = dataset.marker["plan"]["recipe"].get("images") or {}
    return {"same_bytes": kinds["same_bytes"], "look_alike": pairs if settings.get("near_duplicates") else None}


def _numbers(duplicates: Mapping[str, Any]) -> dict[str, Any]:
    """What of a marker's numbers a list of duplicates can confirm."""
    alike = duplicates.get("look_alike")
    if isinstance(alike, dict):
        alike = {key: value for key, value in alike.items() if key not in ("bits", "complete")}
    return {"same_bytes": duplicates.get("same_bytes"), "look_alike": alike}
