"""ListReferences: turns the inputs into references, one per image, and notices of all else there.

Listing happens in the pipeline, not in the launcher, so the job's graph contains no list of files.
"""

import errno
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import TaggedOutput

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef, Listed, Notice
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.source import Input, ListingSettings, SourceSettings
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.stores.versioned_object import version_of
from recordmill.transforms.inputs.claims import Claims
from recordmill.transforms.inputs.file_groups import first_folder_of
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.likely_splits import (
    LikelySplits,
    ask_about_folders,
    find_split_folder,
    folder_below,
    may_name_images,
    reject_without_split,
)
from recordmill.transforms.inputs.listed_pairs import NUMBERS_IN_NAMES, ListedImages
from recordmill.transforms.inputs.named_files import explain_os_error, size_and_version
from recordmill.transforms.inputs.other_splits import OTHER_THAN_FOLDER
from recordmill.transforms.inputs.patterns import (
    Ignore,
    compile_pattern,
    escape_path,
    normal_path,
    why_ignored,
)
from recordmill.transforms.inputs.shard_sets import DESCRIPTIONS, ShardTally, judge_sets
from recordmill.transforms.inputs.sources.source import FindsClassesInFolders, list_file
from recordmill.transforms.inputs.unclaimed_files import MOST_HEADS_ON_STORE, UnclaimedFiles
from recordmill.transforms.listing_tally import Tally, count_splits, rename_labels
from recordmill.transforms.planning.progress import Progress

BATCH_SIZE = 1024
"""The most references in a batch: about 200 KB."""

MOST_PARTS = 64
"""The most parts of an input."""

LISTINGS = 8
"""Parts of a store's input that one process lists at once."""

_DEPTH = 3  # levels of folders in which to look for cuts
_MOST_NAMES = 1_000  # names of a store's folder that are read to find cuts: one page
_MOST_FOLDERS = 25_000  # the same if its first page has only folders
_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """A range of an input's paths; by default, all of them.

    The parts of an input are disjoint and complete, are cut where folders begin, and are listed in
    parallel. An ignored folder is never cut, because it counts as one entry.

    Attributes:
        input: the input.
        start: the first path of its range.
        end: the first path after its range; empty: it has no end.
    """

    input: Input
    start: str = ""
    end: str = ""

    def contains(self, path: str) -> bool:
        """Tells whether a path belongs to the part.

        The path is below the input, and ends with a slash for a folder.
        """
        return self.start <= path and (not self.end or path < self.end)

    def meets(self, path: str, is_folder: bool) -> bool:
        """Returns whether a file, or anything in a folder, belongs to the part."""
        if not is_folder:
            return self.contains(path)
        return self.contains(f"{path}/") or self.start.startswith(f"{path}/")


for _type in (Input, Part):
    coders.registry.register_coder(_type, coders.PickleCoder)


class NoReferenceError(Exception):
    """A bug in a source: it yielded nothing for a file, which the ledger would lose."""


def list_images(
    source_input: Input, source: SourceSettings, settings: ListingSettings
) -> Iterator[Listed]:
    """Yields the references of one input, and a notice of everything else in it.

    An input that does not exist gives a `fatal` notice. Parts of a store are listed concurrently.
    """
    tally = Tally()
    yield from list_part(Part(source_input), source, settings, tally)
    yield from conclude(source_input, source, settings, [tally])


def list_part(
    part: Part, source: SourceSettings, settings: ListingSettings, tally: Tally
) -> Iterator[Listed]:
    """Yields the references and notices of one part of an input, and adds to its tally."""
    source_input = part.input
    folder, found = _find(part, settings, tally)
    unclaimed = tally.unclaimed
    if folder != source_input.path:
        # A file that the user names needs no other claim, and what is in an archive does.
        unclaimed = UnclaimedFiles(members=tally.unclaimed.members)
    claims = Claims(source, settings, unclaimed, tally.images)
    prefix = folder.rstrip("/") + "/"
    tally.is_folder = folder == source_input.path
    for file in found:
        path = normal_path(file.key)
        if path is None:
            path = escape_path(file.key)
            if not file.status:
                file = file.notice("rejected", "bad_name", "the name is not UTF-8")
            file = file.replace(key=path, version="")
        if source_input.name:
            key = f"{source_input.name}/{path}"
        else:
            key = path
        uri = prefix + file.key if file.key else folder
        spelling = "" if path == file.key else file.key
        if isinstance(file, Notice):
            if source.reads_sets and path.rpartition("/")[2] in DESCRIPTIONS:
                tally.shards.descriptions.add(path)
            yield claims.place(file.replace(key=key, uri=uri, spelling=spelling), path)
        else:
            file = ImageRef(key, uri, file.size, file.version, spelling=spelling)
            if not is_image_name(path) and (ignored := claims.ignore(path, file)):
                yield ignored
                continue
            tally.first_folders.add(first_folder_of(path))
            listed = count_splits(_list_file(file, path, claims), file, folder, claims, tally)
            listed = rename_labels(listed, settings, tally)
            if source.reads_sets:
                listed = tally.shards.add(path, listed)
            tally.naming_files += yield from listed


def conclude(
    source_input: Input,
    source: SourceSettings,
    settings: ListingSettings,
    tallies: Collection[Tally],
) -> Iterator[Listed]:
    """Yields notices about a whole input, from the tallies of its parts."""
    whole = ImageRef(source_input.path, source_input.path)
    first_folders = set[str]().union(*(tally.first_folders for tally in tallies))
    naming_files = sum(tally.naming_files for tally in tallies)
    # A folder without files does not exist on a store: most likely its name is misspelled.
    fault = next((tally.fault for tally in tallies if tally.fault), None)
    if fault is None and not any(tally.exists for tally in tallies):
        fault = "nothing is there"
    if fault:
        missing = whole.replace(key=f"{source_input.name}/" if source_input.name else "")
        yield missing.notice("fatal", "missing_input", f"the input cannot be read ({fault})")
    if source.reads_sets:
        yield from _judge_sets(whole, source_input, settings, tallies)
    unclaimed = UnclaimedFiles()
    for tally in tallies:
        unclaimed.merge(tally.unclaimed)
    most_heads = MOST_HEADS_ON_STORE // settings.inputs
    images = ListedImages()
    for tally in tallies:
        images.merge(tally.images)
    class_folders = [*images.names] if source.labels_from_folders else []
    yield from unclaimed.judge(whole, source.annotation_format, most_heads, class_folders)
    asks_about_views = _reads_folders(source) and settings.group is None
    yield from images.find_second_images(whole, settings.inputs, asks_about_views)
    yield from _note_peculiarities(whole, images, tallies)
    if naming_files:
        yield whole.notice("names_images", "names_images", count=naming_files)
    are_classes = isinstance(source, FindsClassesInFolders) and source.class_from == "first_folder"
    folders = LikelySplits(first_folders - {""}, source.labels_from_folders, are_classes)
    yield from folders.ask(whole, source_input.name, settings)
    named_in = sum((tally.named_in for tally in tallies), Counter[str | None]())
    yield from ask_about_folders(whole, named_in)


def _reads_folders(source: SourceSettings) -> bool:
    """Returns whether folders may name the classes of all images, and nothing next to them does."""
    is_able = isinstance(source, FindsClassesInFolders)
    return is_able and "class_from" not in source.idle_settings()


def _note_peculiarities(
    whole: ImageRef, images: ListedImages, tallies: Collection[Tally]
) -> Iterator[Notice]:
    if images.are_numbers:
        yield whole.notice("noted", NUMBERS_IN_NAMES)
    for name in sorted(set[str]().union(*(tally.renamed for tally in tallies))):
        yield whole.notice("renamed", name)
    if other_splits := sum(tally.other_splits for tally in tallies):
        yield whole.notice("noted", OTHER_THAN_FOLDER, count=other_splits)


def _judge_sets(
    whole: ImageRef, source_input: Input, settings: ListingSettings, tallies: Collection[Tally]
) -> Iterator[Listed]:
    """Yields rejections of missing and incomplete files of the input's sets.

    One file alone is not missing the others.
    """
    shards = ShardTally()
    for tally in tallies:
        shards.merge(tally.shards)
    if not all(tally.is_folder for tally in tallies):
        yield from (notice for _, notice in shards.held)
        return
    prefix = f"{source_input.name}/" if source_input.name else ""

    def is_selected(path: str) -> bool:
        folders = (path[:at] for at, letter in enumerate(path) if letter == "/")
        return not why_ignored(settings, path, False) and not any(
            why_ignored(settings, folder, True) for folder in folders
        )

    yield from judge_sets(whole, prefix, shards, is_selected)


def _list_file(file: ImageRef, path: str, claims: Claims) -> Generator[Listed, None, bool]:
    """Yields the references of one file.

    Returns whether the file names images instead of being one.
    """
    source, settings, whole_path = claims.source, claims.settings, path
    split: str | None = ""
    if settings.from_folders:
        folder = find_split_folder(path, settings.from_folders)
        given = settings.from_folders.get(folder or "")
        is_shared = path in source.shared_files
        if given is None and path.endswith(source.annotation_endings or "/") and not is_shared:
            yield file.notice("ignored", source.other_files)
            return False
        if given is None and not is_shared and not may_name_images(source, path):
            notice = reject_without_split(file, "file", settings)
            yield claims.place(notice, whole_path)
            return False
        split = "" if is_shared else given
        path, file = path.removeprefix(f"{folder}/"), file.replace(split=split or "")
    names_images = is_placed = False
    found = images = 0
    image = None
    listed = list_file(source, path, file, settings)
    for each in _see_members(listed, whole_path, file, claims) if source.reads_sets else listed:
        found += 1
        if type(each) is ImageRef:
            image = each
            images += 1
            names_images = names_images or each.uri != file.uri
            claims.see_member(whole_path, file, each)
            if split is None:
                root = file.uri.removesuffix(f"/{whole_path}")
                yield _split_by_folder(each, root, settings)
            else:
                yield _assign_split(each, file.split, settings)
        elif (
            isinstance(each, Notice)
            and each.status in ("ignored", "rejected")
            and each.key == file.key
        ):
            is_placed = True
            yield claims.place(each, whole_path)
        else:
            yield each
    if found and not is_placed:
        claims.take(whole_path, file, image if images == 1 else None)
    elif not found:
        raise NoReferenceError(
            f"the source yields nothing for {file.uri}: it must yield at least one reference"
        )
    return names_images


def _split_by_folder(ref: ImageRef, root: str, settings: ListingSettings) -> Listed:
    """Gives an image that a file elsewhere names the split of its folder.

    Returns a notice unless that is a split folder.
    """
    below = folder_below(root, posixpath.dirname(ref.uri)) or ""
    folder = find_split_folder(f"{below}/", settings.from_folders)
    if folder is None:
        return reject_without_split(ref, "image", settings)
    return _assign_split(ref, settings.from_folders[folder], settings)


def _see_members(
    listed: Iterator[Listed], path: str, file: ImageRef, claims: Claims
) -> Iterator[Listed]:
    """Yields what a source lists in an archive, but keeps notices of members that are not read.

    Images outside the class folders may be those to which others belong.
    """
    for each in listed:
        if isinstance(each, Notice) and each.status == "unread_member":
            claims.take_member(each, file)
            continue
        if isinstance(each, Notice) and each.reason == "no_class":
            claims.see_member(path, file, each)
        if type(each) is ImageRef:
            claims.take_member(each, file)
        yield each


def _assign_split(ref: ImageRef, folders_split: str, settings: ListingSettings) -> ImageRef:
    """Sets a reference's split and group.

    Returns a notice if the split is unknown or there is no group.
    """
    if settings.from_source:
        split = settings.from_source.get(ref.split)
        if split is None:
            known = ", ".join(settings.from_source)
            detail = "it has no split"
            if ref.split:
                detail = f"its split is {ref.split!r}, which is not one of {known}"
            return ref.replace(split="").notice("rejected", "no_split", detail)
    else:
        split = folders_split
    if split != ref.split:
        ref = ref.replace(split=split)
    if settings.group:
        match = compile_pattern(settings.group, "splits.group").search(ref.key)
        if not match or not match["group"]:
            return ref.notice("rejected", "no_group", "the key does not match splits.group")
        ref = ref.replace(group=match["group"])
    return ref


def _find(part: Part, settings: ListingSettings, tally: Tally) -> tuple[str, Iterable[ImageRef]]:
    """Returns the folder that paths are relative to, and its entries.

    The entries are everything in the part, or the one file that the input names.
    """
    root = part.input.path
    if storage.is_local(root):
        tally.exists = True  # if it is not, the walk gives a notice
        if not os.path.isfile(root):
            return root, walk_folder(part, partial(why_ignored, settings))
        folder, name = os.path.split(root)
        return folder or ".", [ImageRef(name, "", *size_and_version(root))]
    file = None
    with suppress(PermissionError):  # listing may be allowed all the same
        file = storage.describe(root)
    if file is None:
        if part == Part(part.input):
            parts = cut_input(part.input, settings)
        else:
            parts = [part]
        return root, merge_listings(_find_remote_entries(each, settings, tally) for each in parts)
    tally.exists = True
    folder, _, name = root.rpartition("/")
    return folder, [] if part.start else [ImageRef(name, "", file.size_in_bytes, version_of(file))]


def _find_remote_entries(part: Part, settings: ListingSettings, tally: Tally) -> Iterator[ImageRef]:
    prefix = part.input.path.rstrip("/") + "/"
    ignored_folders: set[str] = set()
    try:
        for file in storage.list_below(prefix, part.start):
            path = file.path[len(prefix) :]
            if path < part.start:
                continue
            if part.end and path >= part.end:
                break
            tally.exists = True
            # The placeholder for an empty folder, which object stores do not have.
            if not path or path.endswith("/"):
                continue
            at, reason = _ignored_at(path, settings)
            if not reason:
                yield ImageRef(path, "", file.size_in_bytes, version_of(file))
            elif at == path or at not in ignored_folders:
                ignored_folders.update({at} - {path})
                yield ImageRef(at, "").notice("ignored", reason)
    except (FileNotFoundError, PermissionError) as error:
        tally.fault = (error.strerror or str(error)).lower()


def _ignored_at(path: str, settings: ListingSettings) -> tuple[str, str | None]:
    """Returns the outermost ignored folder above a path, or the path itself, and why it is ignored.

    The reason is None if the path is not ignored.
    """
    at = 0
    while (at := path.find("/", at + 1)) > 0:
        if reason := why_ignored(settings, path[:at], True):
            return path[:at], reason
    return path, why_ignored(settings, path, False)


def walk_folder(part: Part, ignore: Ignore) -> Iterator[ImageRef]:
    """Yields every plain, readable file in a part of a folder, and a notice of everything else.

    The key of each is its path below the input, `/`-separated, as the file system spells it; its
    URI is not set.

    An ignored folder counts as one entry and is not entered. Links are followed. A link back to a
    folder on its own path is a `fatal` entry, because following it would never end. So is a folder
    that cannot be read, because the number of its images is unknown. Their details say how to leave
    them out.

    Beam's own match silently skips unreadable files, linked folders and names with `[`, and fails
    on a name that is not UTF-8.
    """
    try:
        status = os.stat(part.input.path)
    except OSError as error:
        detail = f"the input cannot be read ({explain_os_error(error)})"
        yield ImageRef("", "").notice("fatal", "missing_input", detail)
        return
    yield from _walk(part, "", ignore, ((status.st_dev, status.st_ino),))


def _walk(
    part: Part, below: str, ignore: Ignore, ancestors: tuple[tuple[int, int], ...]
) -> Iterator[ImageRef]:
    prefix = f"{below}/" if below else ""
    found, fault = _read_folder(part.input.path, below)
    if fault and part.contains(prefix):
        yield fault
    for entry in found:
        path = prefix + entry.name
        try:
            is_folder = entry.is_dir()
        except OSError:  # its status cannot be read either
            is_folder = False
        if not part.meets(path, is_folder):
            continue
        if reason := ignore(path, is_folder):
            yield ImageRef(path, "").notice("ignored", reason)
            continue
        try:
            status = entry.stat()
        except OSError as error:
            yield _describe_broken(path, entry, error)
            continue
        if is_folder:
            identity = (status.st_dev, status.st_ino)
            if identity not in ancestors:
                yield from _walk(part, path, ignore, (*ancestors, identity))
                continue
            detail = (
                "the link points back to a folder that contains it: remove it, or add it to ignore"
            )
            yield ImageRef(path, "").notice("fatal", "link_loop", detail)
        elif stat.S_ISREG(status.st_mode):
            yield ImageRef(path, "", status.st_size, str(status.st_mtime_ns))
        else:
            yield ImageRef(path, "").notice(
                "rejected", "not_a_file", "a device, socket or pipe is not an image"
            )


def _read_folder(root: str, below: str) -> tuple[list[os.DirEntry[str]], ImageRef | None]:
    """Returns the entries of a folder, sorted; or none, and the notice of that."""
    folder = ImageRef(below, "")
    try:
        with os.scandir(os.path.join(root, below) if below else root) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        detail = f"the folder cannot be read ({explain_os_error(error)}): make it readable"
        if below:
            detail += ", or add it to ignore"
        return [], folder.notice("fatal", "unreadable_folder", detail)
    if found:
        return found, None
    what = "folder" if below else "input"
    return [], folder.notice("warning", "empty_folder", f"the {what} is empty")


def _describe_broken(path: str, entry: os.DirEntry[str], error: OSError) -> ImageRef:
    if isinstance(error, FileNotFoundError):
        missing = "the file vanished while being listed"
        if entry.is_symlink():
            missing = "the link is broken"
        return ImageRef(path, "").notice("rejected", "vanished", missing)
    if error.errno != errno.ELOOP:
        return ImageRef(path, "").notice("rejected", "unreadable", explain_os_error(error))
    detail = "the link points to itself: remove it, or add it to ignore"
    return ImageRef(path, "").notice("fatal", "link_loop", detail)


def cut_input(source_input: Input, settings: ListingSettings) -> list[Part]:
    """Cuts an input into parts, in the order of its paths; one part if it cannot be cut."""
    prefix = source_input.path.rstrip("/") + "/"
    cuts: list[str] = []
    with suppress(OSError):  # the listing reports it
        if storage.is_local(prefix) or storage.starts_anywhere(prefix):
            cuts = normalize_cuts(_find_cuts(prefix), settings)
    return [Part(source_input, *each) for each in pairwise(["", *cuts, ""])]


def normalize_cuts(cuts: Iterable[str], settings: ListingSettings) -> list[str]:
    """Sorts cuts, and moves those inside an ignored folder to its beginning.

    Keeps at most `MOST_PARTS` - 1 of them.
    """
    moved = set()
    for cut in cuts:
        at, reason = _ignored_at(cut, settings)
        moved.add(f"{at}/" if reason and at != cut else cut)
    ordered = sorted(moved - {""})
    step = -(-len(ordered) // (MOST_PARTS - 1))
    if ordered:
        return ordered[::step]
    return []


def _find_cuts(prefix: str) -> list[str]:
    """Finds where folders begin, level by level, until there are enough."""
    cuts: list[str] = []
    level = [""]
    for _ in range(_DEPTH):
        entries = in_parallel(lambda below: _names_in(prefix + below), level)
        found: list[str] = []
        for below, names in zip(level, entries, strict=True):
            found += [below + name for name in names]
        level = [
            path
            for path in found
            if path.endswith("/") and not os.path.islink(f"{prefix}{path[:-1]}")
        ]
        cuts += level
        if len(cuts) >= LISTINGS or not level:
            break
    return cuts


def _names_in(folder: str) -> list[str]:
    names = storage.folder_entries(folder, _MOST_NAMES)
    has_more_folders = len(names) == _MOST_NAMES and all(name.endswith("/") for name in names)
    if has_more_folders:
        return storage.folder_entries(folder, _MOST_FOLDERS)
    return names


def merge_listings(listings: Iterable[Iterator[ImageRef]]) -> Iterator[ImageRef]:
    """Reads up to `LISTINGS` listings at a time, and yields their items in the order of arrival.

    They are read in chunks of up to 1,000 items. Of a listing that fails, the chunk in which it
    does is not yielded.

    Raises:
        Exception: the first error of a listing. No listing is read any further, and chunks that are
            being read are dropped.
    """
    left = iter(listings)
    with ThreadPoolExecutor(LISTINGS, thread_name_prefix="recordmill-list") as pool:

        def read_on(
            listing: Iterator[ImageRef],
        ) -> Future[tuple[list[ImageRef], Iterator[ImageRef]]]:
            return pool.submit(lambda: (list(islice(listing, _CHUNK)), listing))

        reading = {read_on(listing) for listing in islice(left, LISTINGS)}
        while reading:
            done, reading = wait(reading, return_when=FIRST_COMPLETED)
            for each in done:
                chunk, listing = each.result()
                reading |= {read_on(one) for one in ([listing] if chunk else islice(left, 1))}
                yield from chunk


@dataclass
class ListReferences(beam.PTransform):
    """Lists a PCollection of inputs in batches.

    Example:
        inputs = pipeline | beam.Create([recordmill.Input("photos")])
        listing = recordmill.ListingSettings()
        batches = inputs | recordmill.ListReferences(recordmill.ClassFolders(), listing)

    Attributes:
        source: what the files mean.
        settings: which files of the inputs are read.
        spread: whether different workers list parts of an input.
        progress: counts what is found.
    """

    source: SourceSettings
    settings: ListingSettings
    spread: bool = False
    progress: Progress = field(default_factory=Progress, repr=False)

    def expand(self, inputs: beam.PCollection[Input]) -> beam.PCollection[ReferenceBatch]:
        """PCollection[Input] -> PCollection[ReferenceBatch]."""
        if not self.spread:
            return inputs | "FindImages" >> beam.FlatMap(self._list).with_output_types(
                ReferenceBatch
            )
        listing = beam.FlatMap(self._list_part).with_output_types(ReferenceBatch)
        parts = (
            inputs
            | "CutInputs" >> beam.FlatMap(self._cut).with_output_types(Part)
            | beam.Reshuffle()
            | "FindImages" >> listing.with_outputs("tallies", main="batches")
        )
        concluded = (
            parts.tallies
            | "GroupByInput" >> beam.GroupByKey()
            | "Conclude" >> beam.FlatMap(self._conclude)
        )
        return (parts.batches, concluded) | beam.Flatten()

    def _list(self, source_input: Input) -> Iterator[ReferenceBatch]:
        settings = source_input.select(self.settings)
        return self._batch(list_images(source_input, self.source, settings))

    def _cut(self, source_input: Input) -> list[Part]:
        return cut_input(source_input, source_input.select(self.settings))

    def _list_part(self, part: Part) -> Iterator[Any]:
        """Yields the batches of a part of an input, and its tally.

        The tally is on the output `tallies`, by the input's name.
        """
        tally = Tally()
        settings = part.input.select(self.settings)
        yield from self._batch(list_part(part, self.source, settings, tally))
        yield TaggedOutput("tallies", (part.input.name, (part.input, tally)))

    def _conclude(
        self, parts: tuple[str, Iterable[tuple[Input, Tally]]]
    ) -> Iterator[ReferenceBatch]:
        inputs, tallies = zip(*parts[1], strict=True)
        settings = inputs[0].select(self.settings)
        return self._batch(conclude(inputs[0], self.source, settings, tallies))

    def _batch(self, listed: Iterator[Listed]) -> Iterator[ReferenceBatch]:
        while chunk := list(islice(listed, BATCH_SIZE)):
            self.progress.add_listed(len(chunk))
            yield ReferenceBatch.of(chunk)
