"""Turns the names that a dataset's files hold into paths, and refuses those that lead elsewhere.

A folder may come from another person: its markers, the unfinished work in it and its links decide
which files a run deletes and replaces. Readers may follow links, as git-annex, DVC and the Hub's
cache need; what writes or deletes must not leave the folder.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    COMPANIONS,
    CONFIGURATION,
    DUPLICATES,
    LABELS,
    MARKER,
    MOST_BYTES,
    REJECTED,
    REPORT,
    RESERVED,
    SHARD,
    SIDECARS,
    STAGING_PREFIX,
    TRANSFORM_FN,
    index_name,
    looks_like_shard,
    sidecar_name,
)
from recordmill.schemas.dataset.marker import Marker, Switch
from recordmill.schemas.errors import LoadError
from recordmill.storage.tfrecord_file import looks_like_records

_DRIVE = re.compile(r"[A-Za-z]:")

_LONGEST = MOST_BYTES + len(f"{SIDECARS}/.jsonl")


def find_problem(name: str) -> str | None:
    """Says why a stored name is not the path of a file below a folder; None if it is."""
    if not name:
        return "is empty"
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in name):
        return "has control characters"
    if "\\" in name:
        return "has a backslash"
    if name.startswith("/") or _DRIVE.match(name):
        return "is an absolute path"
    parts = name.split("/")
    if ".." in parts:
        return "leads out of the folder"
    if "" in parts or "." in parts:
        return "has an empty part"
    if len(name.encode()) > _LONGEST:
        return "is too long"
    return None


def find_stray_name(marker: Marker) -> str | None:
    """Names the first entry of a marker that is not the name of a file of its dataset.

    Returns:
        The entry and what is wrong with it; None if there is no such entry.
    """
    for entry, name in _list_names(marker):
        if problem := find_problem(name):
            return f"{entry} is {name[:100]!r}, which {problem}"
    return None


def _list_names(marker: Marker) -> Iterator[tuple[str, str]]:
    """Yields the names of files in a marker, each with its place there."""
    for split, listed in marker.splits.items():
        for number, shard in enumerate(listed.shards):
            entry = f"splits.{split}.shards[{number}]"
            yield from ((f"{entry}.name", shard.name), (f"{entry}.sidecar", shard.sidecar))
    yield from ((f"files[{number}]", name) for number, name in enumerate(marker.files))
    yield from (("index", marker.index), ("run.file_versions", marker.run.file_versions))
    yield from (("a key of run.digests", name) for name in marker.run.digests)


def find_problem_of_shard(name: str) -> str | None:
    """Says why a name is not that of a shard, whatever the convention; None if it is one."""
    if problem := find_problem(name):
        return problem
    if "/" in name or name.startswith("."):
        return "is hidden or in another folder, as no shard is"
    if name in (*RESERVED, *COMPANIONS, TRANSFORM_FN):
        return "is the name of another file of a dataset"
    return None


_FILE = re.compile(rf"{SIDECARS}/rejected-\d{{5,}}\.jsonl|[^/]+\.{re.escape(LABELS)}")
"""Sidecars of shards without records, and TFDS's lists of classes."""

_FILES = frozenset({*RESERVED, *COMPANIONS}) - {MARKER, SIDECARS}


def find_foreign_name(marker: Marker) -> str | None:
    """Names the first entry of a marker whose name no file of a dataset has, even if it is safe.

    Other versions may write others: a reader need not mind, but no run may delete or move them.
    """
    for split, listed in marker.splits.items():
        for number, shard in enumerate(listed.shards):
            entry = f"splits.{split}.shards[{number}]"
            if problem := find_problem_of_shard(shard.name):
                return f"{entry}.name is {shard.name[:100]!r}, which {problem}"
            if shard.sidecar != sidecar_name(shard.name):
                return f"{entry}.sidecar is {shard.sidecar[:100]!r}, not that of {shard.name}"
    indexes = {index_name(shard.name) for shard in marker.shards}
    for number, name in enumerate(marker.files):
        if name not in _FILES and name not in indexes and not _FILE.fullmatch(name):
            return f"files[{number}] is {name[:100]!r}, which is not a file of a dataset"
    return None


_STAGED = re.compile(
    rf"[^/]+-\d{{5,}}\.(?:{SHARD}|jsonl)"
    rf"|{re.escape(LABELS)}|{re.escape(REJECTED)}|{re.escape(DUPLICATES)}"
    rf"|[^/]+-{re.escape(CONFIGURATION)}|[^/]+-description-\d{{5,}}"
)
"""The names that files which are moved have in staging."""


def find_stray_move(marker: Marker, switch: Switch) -> str | None:
    """Names the first entry of a switch that would move or delete anything but a dataset's files.

    Args:
        marker: the marker in staging that the switch is in.
        switch: the switch.

    Returns:
        The entry and what is wrong with it; None if there is no such entry.
    """
    if foreign := find_foreign_name(marker):
        return foreign
    if not all(len(pair) == 2 for pair in switch.moves):
        return "switch.moves has an entry that is not a pair"
    for number, (source, target) in enumerate(switch.moves):
        for place, name in enumerate((source, target)):
            if problem := find_problem(name):
                return f"switch.moves[{number}][{place}] is {name[:100]!r}, which {problem}"
        if not _STAGED.fullmatch(source):
            return f"switch.moves[{number}][0] is {source[:100]!r}, which is not a file of a shard"
    shards = {*chain.from_iterable((shard.name, shard.sidecar) for shard in marker.shards)}
    targets = [target for _, target in switch.moves]
    if others := sorted({*targets} - {*shards, *marker.files}):
        return f"switch.moves has {others[0][:100]!r}, which {MARKER} does not list"
    if min(len({*targets}), len({source for source, _ in switch.moves})) < len(targets):
        return "switch.moves names a file twice"
    return _find_stray_removal(switch.removes)


def _find_stray_removal(names: tuple[str, ...]) -> str | None:
    there = {*names}
    for number, name in enumerate(names):
        base = name.removeprefix(f"{SIDECARS}/")
        is_listed = name in _FILES or _FILE.fullmatch(name) or name == REPORT
        is_sidecar = name != base and base.endswith((".jsonl", ".idx"))
        # A shard may have any name, and always has a sidecar.
        is_shard = looks_like_shard(name) or sidecar_name(name) in there
        is_shard = is_shard and not find_problem_of_shard(name)
        problem = find_problem(name)
        if problem or not (is_listed or is_sidecar or is_shard):
            why = problem or "is not a file of a dataset"
            return f"switch.removes[{number}] is {name[:100]!r}, which {why}"
    return None


def find_kept_name(folder: str, names: Iterable[str]) -> str | None:
    """Returns the first of the names of shards whose file in a folder is not a shard.

    A shard of an unusual name has a sidecar, or begins as TFRecord files do. Other files are
    the user's, whatever a marker says.

    Raises:
        OSError: a file cannot be read.
    """
    for name in names:
        path = storage.join(folder, name)
        if looks_like_shard(name) or storage.size_of(path) is None:
            continue
        if storage.exists(storage.join(folder, sidecar_name(name))):
            continue
        if not looks_like_records(path):
            return name
    return None


def refuse_links(folder: str, *names: str) -> None:
    """Makes sure that folders below an output are its own.

    Args:
        folder: the output; it may itself be a link.
        names: the names of folders in it.

    Raises:
        LoadError: one is a link.
    """
    for name in names:
        path = storage.join(folder, name)
        if storage.is_link(path):
            raise LoadError(
                f"{path} is a link: what it leads to is not part of the output, so nothing is "
                "written or deleted there; replace it by a folder, or choose another output"
            )


def refuse_links_of(output: str, names: Iterable[str]) -> None:
    """Makes sure that the folders that a run writes in its output are the output's own.

    Args:
        output: the output.
        names: what is in it.

    Raises:
        LoadError: one is a link.
    """
    own = (SIDECARS, TRANSFORM_FN)
    refuse_links(
        output, *(name for name in names if name in own or name.startswith(STAGING_PREFIX))
    )
