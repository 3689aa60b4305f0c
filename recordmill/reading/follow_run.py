"""Follows a run from outside, on any runner and machine, by the files in its staging folder."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import CLAIM_PREFIX, DONE, STAGING_PREFIX, staging_names
from recordmill.schemas.errors import LoadError
from recordmill.schemas.formatting import format_count, format_size
from recordmill.storage.dataset_files import (
    MOST_OBJECT_BYTES,
    current_folder,
    find_marker,
    work_folders,
)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run.

    Attributes:
        plan: the id of its plan.
        shards: finished shards.
        shards_planned: shards in total; 0 if the run does not say.
        images: images written or rejected in finished shards.
        images_planned: images in total; 0 if the run does not say.
        rejected: images rejected in finished shards.
        bytes: the size of finished shards.
    """

    plan: str
    shards: int
    shards_planned: int
    images: int
    images_planned: int
    rejected: int
    bytes: int

    def __str__(self) -> str:
        share = self.images / max(self.images_planned, 1)
        shards = f"{self.shards:,} of {format_count(self.shards_planned, 'shard')}"
        images = f"{self.images:,} of {format_count(self.images_planned, 'image')} ({share:.0%})"
        return f"{shards}, {images}, {self.rejected:,} rejected, {format_size(self.bytes)}"


_UNREADABLE = (FileNotFoundError, storage.NotAFileError, KeyError, TypeError, ValueError)
"""Errors of reading a file that the run is replacing, or that another version wrote."""


def follow_run(output: str, wait: Callable[[], object]) -> Iterator[RunProgress]:
    """Yields the progress of the run in an output on each change, until the dataset is complete.

    Args:
        output: the folder.
        wait: called between two checks of the folder.

    Raises:
        LoadError: no run is at work there, or it ends without a dataset.
        OSError: the folder cannot be read.
    """
    notes: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, Any]] = {}
    before = None
    while True:
        marker = find_marker(current_folder(output))
        staging, claims, names = _find_run(output)
        if not runs and not claims:
            if marker is not None and not staging:
                return
            raise LoadError(
                f"no run is at work in {output}, which holds no finished dataset: a run can be "
                "followed once it has "
                "listed its images; if it failed, run its command again"
            )
        runs |= claims
        plan = str(next(iter(runs.values()))["plan"])
        if marker is not None and (
            marker.run.id in runs or (not claims and marker.plan.id == plan)
        ):
            return
        if not claims:
            raise LoadError(
                f"the run in {output} ended without a dataset: run the same command again to "
                "continue it"
            )
        for name in names:
            if name.endswith(DONE) and name not in notes:
                with suppress(*_UNREADABLE):
                    report = _read_json(staging, name)["report"]
                    notes[name] = {
                        key: int(report[key]) for key in ("references", "records", "bytes")
                    }
        planned, counted = next(iter(claims.values())), notes.values()
        progress = RunProgress(
            plan=plan,
            shards=len(notes),
            shards_planned=planned.get("shards", 0),
            images=sum(each["references"] for each in counted),
            images_planned=planned.get("references", 0),
            rejected=sum(each["references"] - each["records"] for each in counted),
            bytes=sum(each["bytes"] for each in counted),
        )
        if progress != before:
            yield progress
        before = progress
        wait()


def _find_run(output: str) -> tuple[str, dict[str, dict[str, Any]], list[str]]:
    """Returns the latest run's staging folder, the claims in it by run, and its file names."""
    found: list[tuple[str, str, dict[str, dict[str, Any]], list[str]]] = [("", "", {}, [])]
    stagings: list[str] = []
    for folder in work_folders(output):
        names = staging_names(storage.folder_names(folder))
        stagings += [storage.join(folder, name) for name in names]
    for staging in stagings:
        names, claims = storage.folder_names(staging), {}
        for name in names:
            if name.startswith(CLAIM_PREFIX):
                with suppress(*_UNREADABLE):
                    claim = _read_json(staging, name)
                    claims[str(claim["run"])] = {
                        "since": "",
                        **claim,
                        "plan": staging.rpartition(STAGING_PREFIX)[2],
                    }
        found.append(
            (
                max((str(each["since"]) for each in claims.values()), default=""),
                staging,
                claims,
                names,
            )
        )
    return max(found, key=lambda each: each[:2])[1:]


def _read_json(*path: str) -> Any:
    return orjson.loads(storage.read_whole(storage.join(*path), MOST_OBJECT_BYTES))
