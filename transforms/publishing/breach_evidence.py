"""Says after a broken contract where to look: at images, groups of duplicates, or differences."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import DUPLICATES
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.marker import ShardEntry
from recordmill.schemas.dataset.side_files import DuplicateGroup, SidecarRow
from recordmill.schemas.dataset.totals import AnnotationTotals, ShardReport
from recordmill.schemas.formatting import show_first
from recordmill.storage import dataset_files
from recordmill.transforms.publishing.contract import Breach

_COMPARABLE = {"classes", "images", "class_drift"}
"""The settings whose breaches a comparison with the previous dataset explains."""

_UNREADABLE = (OSError, ValueError, LookupError, TypeError)
"""What reading a damaged file raises; the message then has less."""

_MOST_CLASSES = 5
"""The most unexpected classes for which an image is named."""


@dataclass(frozen=True, slots=True)
class CheckedDataset:
    """The dataset that a contract was compared with, as far as messages need it.

    Attributes:
        folder: its folder, in staging or in place.
        sidecars: the paths of its sidecars.
        annotations: by kind, what was lost of them.
        before: the folder of the previous dataset; None without one.
        is_described: whether commands can read the folder.
    """

    folder: str
    sidecars: Sequence[str] = ()
    annotations: Mapping[str, AnnotationTotals] = field(default_factory=dict)
    before: str | None = None
    is_described: bool = True


def list_sidecars(folder: str, shards: Iterable[ShardReport | ShardEntry]) -> list[str]:
    """Returns the paths of the sidecars of shards in a folder, in staging or in place."""
    paths = []
    for each in shards:
        if isinstance(each, ShardReport):
            paths.append(dataset_files.shard_path(folder, each.split, each.index, "jsonl"))
        else:
            paths.append(storage.join(folder, each.sidecar))
    return sorted(paths)


def show_evidence(breaches: Sequence[Breach], checked: CheckedDataset) -> Iterator[str]:
    """Yields a line for each thing that helps to find the cause of the breaches.

    Rejected files are not among them: they have lines of their own.

    Args:
        breaches: the breaches.
        checked: the dataset.
    """
    yield from _name_images(chain.from_iterable(each.unexpected for each in breaches), checked)
    settings = {each.path[0] for each in breaches}
    for kind, totals in checked.annotations.items():
        if f"lost_{kind}" in settings:
            examples = sorted(totals.examples.items())
            yield from (f"{reason}: {lost.text}" for reason, lost in examples)
    if "duplicates_across_splits" in settings:
        yield from _show_crossing(checked.folder)
    is_other = checked.before not in (None, checked.folder)
    if is_other and checked.is_described and settings & _COMPARABLE:
        words = ["recordmill", "diff", str(checked.before), checked.folder]
        yield f"`{shlex.join(words)}` lists what is new, missing or changed"


def _name_images(classes: Iterable[str], checked: CheckedDataset) -> Iterator[str]:
    """Yields a line for each of some classes, with an image of it."""
    wanted = list(dict.fromkeys(classes))[:_MOST_CLASSES]
    found: dict[str, str] = {}
    with suppress(*_UNREADABLE):
        for sidecar in checked.sidecars:
            if len(found) == len(wanted):
                break
            found = {**_first_of_classes(sidecar, wanted), **found}
    yield from (f"an image of the class {name}: {found[name]}" for name in wanted if name in found)


def _first_of_classes(sidecar: str, wanted: Collection[str]) -> dict[str, str]:
    """Returns the key of the first image of each of these classes in a shard."""
    found: dict[str, str] = {}
    for row in dataset_files.read_rows(sidecar):
        if isinstance(row, SidecarRow):
            for name in {row.class_name, *(row.classes or ())} & {*wanted}:
                found.setdefault(str(name), row.key)
    return found


def _show_crossing(folder: str) -> Iterator[str]:
    """Yields the first group of identical images in several splits, and what to do about it."""
    path = storage.join(folder, DUPLICATES)
    with suppress(*_UNREADABLE):
        for line in storage.read_lines(path):
            group = from_json(DuplicateGroup, orjson.loads(line))
            if group.kind == "same_bytes" and len(group.splits) > 1:
                names = show_first([f"{each.key} ({each.split})" for each in group.images])
                yield f"identical: {names}"
                yield f"{path} lists all groups"
                return
