"""Cuts an input into parts that are listed side by side. Together they hold exactly what the input holds.

On a store, a part is a range of names, and cuts are made where folders begin. On this machine, a part is some folders,
or everything else. No cut is inside a folder that is ignored: it counts as one thing.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from queue import Full, Queue
from threading import Event
from typing import TypeVar

from apache_beam import coders

from recordmill import storage
from recordmill.schemas.settings.listing import Input
from recordmill.storage.stores.store import in_parallel

MOST_PARTS = 64
"""Parts of an input."""

LISTINGS = 8
"""Parts of a store's input that one process lists at once."""

_DEPTH = 3  # levels of folders where cuts are sought
_MOST_NAMES = 1_000  # of a store's folder, for a cut: one page
_MOST_FOLDERS = 25_000  # of one whose first page has only folders
_CHUNK = 1_000

T = TypeVar("T")

IgnoredAt = Callable[[str], tuple[str, str]]
"""The outermost folder of a path that is ignored, or the path itself, and why: empty if it is not."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an input; without cuts, all of it.

    Attributes:
        input: the input.
        start: on a store, where its range of paths begins.
        end: the first path after it; empty: there is none.
        folders: on this machine, the folders that are walked.
        without: folders below them that are in other parts.
    """

    input: Input
    start: str = ""
    end: str = ""
    folders: tuple[str, ...] = ("",)
    without: frozenset[str] = frozenset()


coders.registry.register_coder(Part, coders.PickleCoder)


def cut_input(source_input: Input, ignored_at: IgnoredAt) -> list[Part]:
    """The parts of an input, in the order of its paths; one part if it cannot be cut."""
    root = source_input.path
    if not storage.is_local(root):
        prefix = root.rstrip("/") + "/"
        cuts: list[str] = []
        with suppress(OSError):  # the listing says so
            cuts = normal_cuts(_find_cuts(prefix), ignored_at) if storage.starts_anywhere(prefix) else []
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


def normal_cuts(cuts: Iterable[str], ignored_at: IgnoredAt) -> list[str]:
    """Cuts in order, at most `MOST_PARTS` - 1 of them; those inside an ignored folder are moved to its beginning."""
    moved = set()
    for cut in cuts:
        at, reason = ignored_at(cut)
        moved.add(f"{at}/" if reason and at != cut else cut)
    ordered = sorted(moved - {""})
    step = -(-len(ordered) // (MOST_PARTS - 1))
    return ordered[::step] if ordered else []


def _find_cuts(prefix: str) -> list[str]:
    """Where folders of a store begin, level by level, until there are enough."""
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
    """Folders that do not contain each other, level by level, until there are enough; links are left to the rest."""
    level, kept = [""], list[str]()
    for _ in range(_DEPTH):
        deeper = []
        for below in level:
            found = []
            folder = os.path.join(root, below) if below else root
            with suppress(OSError), os.scandir(folder) as entries:  # the walk says so
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


def side_by_side(listings: Sequence[Callable[[], Iterator[T]]]) -> Iterator[T]:
    """What several listings yield, `LISTINGS` of them at a time, in the order in which it arrives.

    Raises:
        Exception: the first error of a listing, when what arrived before it has been yielded.
    """
    arrived: Queue[list[T] | BaseException | None] = Queue(2 * LISTINGS)
    closed = Event()

    def tell(what: list[T] | BaseException | None) -> None:
        while not closed.is_set():
            with suppress(Full):
                return arrived.put(what, timeout=0.2)

    def read(listing: Callable[[], Iterator[T]]) -> None:
        try:
            found = listing()
            while not closed.is_set() and (chunk := list(islice(found, _CHUNK))):
                tell(chunk)
            tell(None)
        except BaseException as error:  # noqa: BLE001  # it is raised in the thread that asked
            tell(error)

    with ThreadPoolExecutor(LISTINGS, thread_name_prefix="recordmill-list") as pool:
        try:
            for listing in listings:
                pool.submit(read, listing)
            left = len(listings)
            while left:
                what = arrived.get()
                if isinstance(what, BaseException):
                    raise what
                yield from what or ()
                left -= what is None
        finally:
            closed.set()
