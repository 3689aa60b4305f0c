"""What an output folder holds, and what a run with a certain plan may do there."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from transforms import storage
from transforms.plan import Action
from transforms.shard_files import STAGING_PREFIX, staging_folder

MARKER = "recordmill.json"
"""The file whose presence says that the dataset beside it is complete."""


@dataclass(frozen=True, slots=True)
class OutputState:
    """What was found.

    Attributes:
        names: files and folders of the output folder.
        marker: the finished dataset's marker; None where there is none.
        pending: the marker of a dataset that is complete in this plan's staging: its switch was cut.
    """

    names: list[str] = field(default_factory=list)
    marker: dict[str, Any] | None = None
    pending: dict[str, Any] | None = None


def read_output(output: str, plan_id: str) -> OutputState:
    """Looks at an output folder."""
    names = storage.folder_names(output)
    staging = staging_folder(output, plan_id)
    pending = storage.join(staging, MARKER)
    return OutputState(
        names,
        read_marker(output) if MARKER in names else None,
        orjson.loads(storage.read_range(pending)) if storage.exists(pending) else None,
    )


def read_marker(folder: str) -> dict[str, Any]:
    """The marker of a finished dataset."""
    marker: dict[str, Any] = orjson.loads(storage.read_range(storage.join(folder, MARKER)))
    return marker


def holds_plan(folder: str, plan_id: str) -> bool:
    """Whether a folder holds the finished dataset of a plan."""
    return storage.exists(storage.join(folder, MARKER)) and read_marker(folder)["plan"]["id"] == plan_id


def staging_names(names: list[str]) -> list[str]:
    """Those of an output folder's names that are staging folders."""
    return [name for name in names if name.startswith(STAGING_PREFIX)]


def decide_action(
    state: OutputState, output: str, plan_id: str, recipe: dict[str, Any], overwrite: bool
) -> tuple[Action, str]:
    """What a run may do, and the sentence that says why where it is not `convert`.

    A dataset of the same plan is kept. One of another plan is refused with the differences, unless it is to be
    overwritten. Another plan's staging is refused: somebody may be at work. Files that look like shards and belong to
    no dataset are refused: readers that glob would mix them in.
    """
    others = [name for name in staging_names(state.names) if name != f"{STAGING_PREFIX}{plan_id}"]
    if others:
        return "refuse", (
            f"{output} holds {others[0]}, the unfinished work of another configuration or input: "
            "finish that run, delete it with --discard, or choose another output"
        )
    if state.pending is not None:
        return "finish", "an earlier run was cut while publishing: its dataset is now in place"
    if state.marker is None:
        strangers = [name for name in state.names if _looks_like_ours(name)]
        if strangers:
            return (
                "refuse",
                f"{output} holds {strangers[0]}, which belongs to no finished dataset: choose an empty folder",
            )
        return "convert", ""
    if state.marker["plan"]["id"] == plan_id:
        missing = _missing_file(state)
        if not missing:
            return "keep", f"{output} already holds this dataset: nothing to do"
        if not overwrite:
            return (
                "refuse",
                f"{output} lacks {missing}, which its {MARKER} lists: run again with --overwrite to rebuild it",
            )
        return "convert", ""
    if overwrite:
        return "convert", ""
    changed = ", ".join(differences(state.marker["plan"]["recipe"], recipe))
    return (
        "refuse",
        f"{output} holds another dataset ({changed}): choose another output, or replace it with --overwrite",
    )


def differences(old: Any, new: Any, key: str = "") -> list[str]:
    """What differs between two recipes, as `key: old -> new`, sorted by key."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for name in sorted({*old, *new}):
            found += differences(old.get(name), new.get(name), f"{key}.{name}" if key else name)
        return found
    if old == new:
        return []
    return ["other images" if key == "listing.digest" else f"{key}: {old} -> {new}"]


def _missing_file(state: OutputState) -> str:
    assert state.marker is not None
    shards = [shard["name"] for split in state.marker["splits"].values() for shard in split["shards"]]
    return next((name for name in shards if name not in state.names), "")


def _looks_like_ours(name: str) -> bool:
    return ".tfrecord" in name or name.endswith(".record") or name in ("sidecars", "labels.txt", "rejected.jsonl")
