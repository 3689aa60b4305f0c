"""`recordmill.json`: what a dataset holds and how it came about. Its presence says that the dataset is complete."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recordmill.schemas.features import Feature, feature_schema, features_from_schema
from recordmill.schemas.marker_shape import MARKER_FORMAT
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.schemas.shard_report import ShardReport
from recordmill.schemas.shard_totals import FinishedShards
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing.annotation_ledger import describe_annotations
from recordmill.transforms.publishing.ledger import Ledger, balance_boxes


@dataclass(frozen=True, slots=True)
class PublishedShard:
    """A shard under the name that readers see."""

    name: str
    sidecar: str
    report: ShardReport


LABELS, REJECTED, CONFIGURATION, DUPLICATES = "labels.txt", "rejected.jsonl", "config.yaml", "duplicates.jsonl"
"""The files of a dataset beside its shards, their sidecars and the marker."""

LABEL_FIELDS = frozenset(("label", "label_text"))
"""What an Example of an image without a label lacks."""

REPORT = "report.html"
"""The page for people, where it is asked for."""


def name_shards(reports: Iterable[ShardReport], settings: DatasetSettings) -> list[PublishedShard]:
    """Names the shards that have records, densely: `-of-N` counts what is there."""
    ordered = sorted(reports, key=lambda report: (report.split, report.index))
    filled = [report for report in ordered if report.records]
    counts = Counter(report.split for report in filled)
    seen: Counter[str] = Counter()
    shards, layout = [], ExampleLayout(settings)
    for report in filled:
        name = layout.file_name(report.split, seen[report.split], counts[report.split], report.records)
        seen[report.split] += 1
        shards.append(PublishedShard(name, f"sidecars/{name}.jsonl", report))
    return shards


def check_names(marker: Mapping[str, Any]) -> None:
    """Makes sure that no two files or folders of a dataset have one name.

    Raises:
        ValueError: two have; the sentence says which.
    """
    shards = (shard["name"] for split in marker["splits"].values() for shard in split["shards"])
    names = Counter(["recordmill.json", "sidecars", "transform_fn", *marker["files"], *shards])
    if clash := [name for name, times in names.items() if times > 1]:
        raise ValueError(
            f"two files or folders of the dataset would be called {clash[0]}: change shards.name or the splits' names"
        )


def name_sidecars_of_nothing(reports: Iterable[ShardReport]) -> dict[str, ShardReport]:
    """The sidecars of shards that have no record: of what they were given everything was rejected."""
    empty = sorted(
        (report for report in reports if not report.records), key=lambda report: (report.split, report.index)
    )
    return {f"sidecars/rejected-{number:05d}.jsonl": report for number, report in enumerate(empty)}


def build_marker(
    plan: Plan,
    shards: list[PublishedShard],
    ledger: Ledger,
    settings: DatasetSettings,
    finished: FinishedShards,
    duplicates: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The marker without its `run` part: the same for the same dataset, wherever and however it was made."""
    reports, layout = finished.reports, ExampleLayout(settings)
    changes: Counter[str] = Counter()
    for report in reports:
        changes.update(report.changes)
    boxes = balance_boxes(plan.summary, reports)
    return {
        "recordmill": MARKER_FORMAT,
        "name": settings.name,
        "plan": {"id": plan.plan_id, "recipe": plan.recipe},
        "convention": layout.convention_name,
        "unit": settings.unit,
        "features": feature_schema(layout.features),
        "labels": plan.label_map.ids,
        "splits": {name: _describe_split(name, shards, finished) for name in plan.starts},
        "ledger": ledger.as_dict(),
        **_describe_names(plan.summary),
        **({"boxes": boxes} if boxes else {}),
        **describe_annotations(finished.annotations, bool(boxes)),
        "changes": dict(sorted(changes.items())),
        "duplicates": dict(duplicates or {}),
        "input_bytes": sum(report.input_bytes for report in reports),
        "output_bytes": sum(shard.report.bytes for shard in shards),
        "files": [LABELS, REJECTED, CONFIGURATION, DUPLICATES, *name_sidecars_of_nothing(reports)],
        "notes": plan.notes,
    }


def _describe_names(summary: Summary) -> dict[str, dict[str, int]]:
    """How many images were found by being named, and by how many files."""
    images = summary.references + summary.left_out.total()
    return {"named": {"images": images, "files": summary.naming_files}} if summary.naming_files else {}


def _describe_split(name: str, shards: list[PublishedShard], finished: FinishedShards) -> dict[str, Any]:
    own = [shard for shard in shards if shard.report.split == name]
    classes = finished.classes.get(name, Counter())
    instances = finished.instances.get(name, Counter())
    return {
        "records": sum(shard.report.records for shard in own),
        "bytes": sum(shard.report.bytes for shard in own),
        "classes": dict(sorted(classes.items())),
        **({"instances": dict(sorted(instances.items()))} if finished.instances else {}),
        "shards": [
            {
                "name": shard.name,
                "records": shard.report.records,
                "bytes": shard.report.bytes,
                "sha256": shard.report.sha256,
                "sidecar": shard.sidecar,
                "sidecar_sha256": shard.report.sidecar_sha256,
            }
            for shard in own
        ],
    }


def class_counts(split: Mapping[str, Any]) -> dict[str, int]:
    """How often a split has each class: its boxes or labels where Examples may have several, else its Examples.

    Args:
        split: as the marker describes it.
    """
    counts: dict[str, int] = split["instances"] if "instances" in split else split["classes"]
    return counts


def counted_unit(marker: Mapping[str, Any]) -> str:
    """What `class_counts` counts, in a word: boxes or labels where Examples may have several, else Examples."""
    if all("instances" not in split for split in marker["splits"].values()):
        return str(marker["unit"])
    return "box" if marker.get("boxes") else "label"


def count_classes(marker: Mapping[str, Any]) -> int:
    """How many classes a dataset has: those with an id, whether or not an Example has them."""
    return len(marker["labels"])


def features_of(marker: Mapping[str, Any]) -> tuple[Feature, ...]:
    """The features that Examples have, sorted by key: without the label's where no Example has a label.

    Raises:
        KeyError: the marker lacks something.
    """
    names = {name for split in marker["splits"].values() for name in split["classes"]}
    features = features_from_schema(marker["features"])
    return tuple(each for each in features if names != {""} or each.field not in LABEL_FIELDS)


def numbers_of(marker: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a marker that an outcome repeats."""
    splits = {
        name: {"images": split["records"], "shards": len(split["shards"]), "bytes": split["bytes"]}
        for name, split in marker["splits"].items()
    }
    annotations = ("boxes", "dropped_boxes", "images_without_boxes", "labels_of_images")
    keys = ("ledger", "named", *annotations, "changes", "duplicates", "input_bytes", "output_bytes", "remarks")
    report = {"report": REPORT} if REPORT in marker["files"] else {}
    numbers = {key: marker[key] for key in keys if key in marker}
    return {"unit": marker["unit"], "splits": splits, "classes": count_classes(marker), **numbers, **report}


def preview_numbers(plan: Plan, settings: DatasetSettings) -> dict[str, Any]:
    """What a plan expects, in the shape of an outcome's numbers; sizes are estimates."""
    splits = {
        name: {
            "images": split.references,
            "shards": len(plan.starts[name]),
            "bytes": plan.estimated_bytes.get(name, split.bytes),
        }
        for name, split in ((name, plan.summary.splits.get(name, SplitSummary())) for name in plan.starts)
    }
    summary = plan.summary
    ledger = Ledger(summary.listed, 0, dict(summary.rejected), dict(summary.ignored), dict(summary.left_out)).as_dict()
    del ledger["written"]
    input_bytes = sum(split.bytes for split in summary.splits.values())
    return {
        "unit": settings.unit,
        "splits": splits,
        "ledger": ledger,
        **_describe_names(summary),
        "classes": len(plan.label_map.ids),
        "input_bytes": input_bytes,
    }
