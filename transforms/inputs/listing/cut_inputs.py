"""Cuts an input into parts that are listed in parallel, and which together are exactly the input.

On a store, a part is a range of names, cut where folders begin. On this machine, a part is some folders, or everything
else. An ignored folder is never cut, because it counts as one entry.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TypeVar

from apache_beam import coders

from recordmill import storage
from recordmill.schemas.settings.source import Input
from recordmill.storage.stores.store import in_parallel

MOST_PARTS = 64
"""The most parts of an input."""

LISTINGS = 8
"""Parts of a store's input that one process lists at once."""

_DEPTH = 3  # levels of folders in which to look for cuts
_MOST_NAMES = 1_000  # names of a store's folder that are read to find cuts: one page
_MOST_FOLDERS = 25_000  # the same if its first page has only folders
_CHUNK = 1_000

T = TypeVar("T")

IgnoredAt = Callable[[str], tuple[str, str]]
"""Returns the outermost ignored folder of a path, or the path itself, and the reason; empty if it is not ignored."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an input; by default, all of it.

    Attributes:
        input: the input.
        start: on a store, the first path of its range.
        end: the first path after its range; empty: it has no end.
        folders: on this machine, the folders to walk.
        without: folders below them that belong to other parts.
    """

    input: Input
    start: str = ""
    end: str = ""
    folders: tuple[str, ...] = ("",)
    without: frozenset[str] = frozenset()


coders.registry.register_coder(Part, coders.PickleCoder)


def cut_input(source_input: Input, ignored_at: IgnoredAt) -> list[Part]:
    """Cuts an input into parts, in the order of its paths; one part if it cannot be cut."""
    root = source_input.path
    if not storage.is_local(root):
        prefix = root.rstrip("/") + "/"
        cuts: list[str] = []
        with suppress(OSError):  # the listing reports it
            cuts = normalize_cuts(_find_cuts(prefix), ignored_at) if storage.starts_anywhere(prefix) else []
        return [Part(source_input, *each) for each in pairwise(["", *cuts, ""])]
    folders = _find_folders(root, ignored_at)
    if len(folders) < 2:
        return [Part(source_input)]
    groups = min(len(folders), MOST_PARTS)
    shares = (tuple(folders[number::groups]) for number in range(groups))
    return [
        Part(source_input, without=frozenset(folders)),
        *(Part(source_input, folders=share) for share in shares),
    ]


def normalize_cuts(cuts: Iterable[str], ignored_at: IgnoredAt) -> list[str]:
    """Sorts cuts, moves those inside an ignored folder to its beginning, and keeps at most `MOST_PARTS` - 1."""
    moved = set()
    for cut in cuts:
        at, reason = ignored_at(cut)
        moved.add(f"{at}/" if reason and at != cut else cut)
    ordered = sorted(moved - {""})
    step = -(-len(ordered) // (MOST_PARTS - 1))
    return ordered[::step] if ordered else []


def _find_cuts(prefix: str) -> list[str]:
    """Finds where folders of a store begin, level by level, until there are enough."""
    cuts: list[str] = []
    level = [""]
    for _ in range(_DEPTH):
        entries = in_parallel(lambda below: _names_in(prefix + below), level)
        level = [
            below + name for below, names in zip(level, entries, strict=True) for name in names if name.endswith("/")
        ]
        cuts += level
        if len(cuts) >= LISTINGS or not level:
            break
    return cuts


def _names_in(folder: str) -> list[str]:
    names = storage.folder_entries(folder, _MOST_NAMES)
    has_more_folders = len(names) == _MOST_NAMES and all(name.endswith("/") for name in names)
    return storage.folder_entries(folder, _MOST_FOLDERS) if has_more_folders else names


def _find_folders(root: str, ignored_at: IgnoredAt) -> list[str]:
    """Finds disjoint folders, level by level, until there are enough; links are left to the remaining part."""
    level, kept = [""], list[str]()
    for _ in range(_DEPTH):
        deeper = []
        for below in level:
            found = []
            folder = os.path.join(root, below) if below else root
            with suppress(OSError), os.scandir(folder) as entries:  # the walk reports it
                for entry in entries:
                    path = f"{below}/{entry.name}" if below else entry.name
                    if entry.is_dir(follow_symlinks=False) and ignored_at(f"{path}/")[0] != path:
                        found.append(path)
            deeper += found
            kept += [below] if below and not found else []
        if not deeper or len(deeper) + len(kept) >= LISTINGS:
            return sorted([*kept, *deeper])
        level = deeper
    return sorted([*kept, *level])


def merge_listings(listings: Sequence[Callable[[], Iterator[T]]]) -> Iterator[T]:
    """Runs up to `LISTINGS` listings at a time, and yields what they yield in the order of arrival.

    Raises:
        Exception: the first error of a listing; the others end.
    """
    left = iter(listings)
    with ThreadPoolExecutor(LISTINGS, thread_name_prefix="recordmill-list") as pool:

        def read_on(listing: Iterator[T]) -> Future[tuple[list[T], Iterator[T]]]:
            return pool.submit(lambda: (list(islice(listing, _CHUNK)), listing))

        reading = {read_on(start()) for start in islice(left, LISTINGS)}
        while reading:
            done, reading = wait(reading, return_when=FIRST_COMPLETED)
            for each in done:
                chunk, listing = each.result()
                reading |= {read_on(listing)} if chunk else {read_on(start()) for start in islice(left, 1)}
                yield from chunk
