"""ListImages: the inputs become references, one an image, and every other thing found there is named.

Listing happens in the pipeline, not in the launcher: no list of files is part of the job's graph.
"""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

import apache_beam as beam

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.record_coder import register_record
from recordmill.schemas.settings.listing import Input, ListingSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.schemas.settings.splits import SPLIT_NAMES
from recordmill.transforms.inputs.listing.ignored import normal_path, why_ignored
from recordmill.transforms.inputs.listing.local_folders import Entry, walk_folder
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.shards.progress import PROGRESS

_TOLD_EVERY = 256  # files between two updates of the progress bar


class NothingReferredError(Exception):
    """A source lost a file: a mistake of the source, by which the ledger would be short of it."""


def list_images(source_input: Input, source: SourceSettings, settings: ListingSettings) -> Iterator[ImageRef]:
    """Yields the references of one input, and a reference with a status for everything else that is there.

    An input that does not exist is a `fatal` reference.
    """
    folder, entries = _find(source_input.path, settings)
    prefix = folder.rstrip("/") + "/"
    first_folders: set[str] = set()
    naming_files = 0
    for entry in entries:
        path = normal_path(entry.path)
        if path is None:
            shown = entry.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            if entry.status:
                entry = entry._replace(path=shown)
            else:
                entry = Entry(shown, entry.size, status="rejected", reason="bad_name", detail="the name is not UTF-8")
            path = shown
        key = f"{source_input.name}/{path}" if source_input.name else path
        uri = prefix + entry.path if entry.path else folder
        file = ImageRef(key, uri, entry.size, entry.version, spelling="" if path == entry.path else entry.path)
        if entry.status:
            yield file.but(status=entry.status, reason=entry.reason, detail=entry.detail)
        else:
            first_folders.add(path.partition("/")[0] if "/" in path else "")
            naming_files += yield from _refer(file, path, source, settings)
    if naming_files:
        yield ImageRef(source_input.path, source_input.path, status="names_images", detail=str(naming_files))
    if folders := _splits_not_given(first_folders - {""}, settings):
        status, detail = _describe_folders(folders, source)
        place = source_input.path if status == "fatal" else source_input.name
        yield ImageRef(place, source_input.path, status=status, reason="split_words", detail=detail)


def _splits_not_given(first_folders: set[str], settings: ListingSettings) -> list[str]:
    """The first folders, if all of them have names of splits and nobody has said what they are."""
    words = {name.lower() for name in first_folders}
    known = settings.from_folders or settings.from_source or settings.classes_known
    return sorted(first_folders) if words <= SPLIT_NAMES.keys() and not known else []


def _describe_folders(folders: Sequence[str], source: SourceSettings) -> tuple[str, str]:
    """A status and a sentence for first folders that may be splits."""
    what = f"the first folders are {', '.join(folders)}, which could be splits"
    as_splits = f"splits.from_folders={{{', '.join(f'{name}: {name}' for name in folders)}}}"
    if not source.labels_from_folders:
        return "warning", f"{what}: set {as_splits} to keep them"
    as_classes = f"labels.classes=[{', '.join(folders)}]"
    return "fatal", f"{what} or classes: set {as_splits} if they are splits, or {as_classes} if they are classes"


def _refer(
    file: ImageRef, path: str, source: SourceSettings, settings: ListingSettings
) -> Generator[ImageRef, None, bool]:
    """The references of one file; returns whether it names the images of some, rather than being one."""
    if settings.from_folders:
        folder, _, below = path.partition("/")
        split = settings.from_folders.get(folder) if below else None
        if not below and folder in source.shared_files:
            split = ""
        if split is None:
            known = ", ".join(settings.from_folders)
            detail = f"the file lies in none of the split folders {known}"
            yield file.but(status="rejected", reason="no_split", detail=detail)
            return False
        path, file = below or path, file.but(split=split)
    refs = list_file(source, path, file)
    first = next(refs, None)
    if first is None:
        raise NothingReferredError(f"the source says nothing of {file.uri}: it must yield at least one reference")
    names_images = False
    for ref in chain((first,), refs):
        if ref.status:
            yield ref
            continue
        names_images = names_images or ref.uri != file.uri
        if ref.split != file.split or settings.from_source:
            ref = _with_given_split(ref, file.split, settings)
        yield _with_group(ref, settings.group) if settings.group and not ref.status else ref
    return names_images


def _with_given_split(ref: ImageRef, folders_split: str, settings: ListingSettings) -> ImageRef:
    """The source's word for a split becomes the split's name, where words from the source are to decide at all."""
    if not settings.from_source:
        return ref.but(split=folders_split)
    split = settings.from_source.get(ref.split)
    if split is None:
        known = ", ".join(settings.from_source)
        detail = f"its split is {ref.split!r}, which is none of {known}" if ref.split else "it has no split"
        return ref.but(split="", status="rejected", reason="no_split", detail=detail)
    return ref if split == ref.split else ref.but(split=split)


def _with_group(ref: ImageRef, pattern: str) -> ImageRef:
    match = compile_pattern(pattern, "splits.group").search(ref.key)
    if not match or not match["group"]:
        return ref.but(status="rejected", reason="no_group", detail="the key does not match splits.group")
    return ref.but(group=match["group"])


def _find(root: str, settings: ListingSettings) -> tuple[str, Iterable[Entry]]:
    """The folder that paths are below, and what is there: all that the folder holds, or the one file named."""
    if storage.is_local(root):
        if not os.path.isfile(root):
            return root, walk_folder(root, partial(why_ignored, settings))
        folder, name = os.path.split(root)
        status = os.stat(root)
        return folder or ".", [Entry(name, status.st_size, str(status.st_mtime_ns))]
    file = None
    with suppress(PermissionError):  # a right to list may be there
        file = storage.describe(root)
    if file is None:
        return root, _find_remote_entries(root, settings)
    folder, _, name = root.rpartition("/")
    return folder, [Entry(name, file.size_in_bytes, str(file.last_updated_in_seconds))]


def _find_remote_entries(root: str, settings: ListingSettings) -> Iterator[Entry]:
    prefix = root.rstrip("/") + "/"
    ignored_folders: set[str] = set()
    why = "nothing is there"  # a folder without files is no folder there: most likely a misspelt name
    try:
        for file in storage.list_below(root):
            path, why = file.path[len(prefix) :], ""
            if not path or path.endswith("/"):  # the placeholder of an "empty folder", which object stores do not have
                continue
            at, reason = _ignored_at(path, settings)
            if not reason:
                yield Entry(path, file.size_in_bytes, str(file.last_updated_in_seconds))
            elif at == path or at not in ignored_folders:
                ignored_folders.update({at} - {path})
                yield Entry(at, status="ignored", reason=reason)
    except (FileNotFoundError, PermissionError) as error:
        why = (error.strerror or str(error)).lower()
    if why:
        yield Entry("", status="fatal", reason="missing_input", detail=f"the input cannot be read ({why})")


def _ignored_at(path: str, settings: ListingSettings) -> tuple[str, str]:
    """The outermost folder of a path that is ignored, or the path itself, and why."""
    at = 0
    while (at := path.find("/", at + 1)) > 0:
        if reason := why_ignored(settings, path[:at], True):
            return path[:at], reason
    return path, why_ignored(settings, path, False)


register_record(ImageRef)


@dataclass
class ListImages(beam.PTransform):
    """Lists the images of a PCollection of inputs.

    Attributes:
        source: what the files mean.
        settings: what of the inputs is read.
    """

    source: SourceSettings
    settings: ListingSettings

    def expand(self, inputs: beam.PCollection[Input]) -> beam.PCollection[ImageRef]:
        """PCollection[Input] -> PCollection[ImageRef], an element an image or a thing that is none."""
        return inputs | "FindImages" >> beam.FlatMap(self._list).with_output_types(ImageRef)

    def _list(self, source_input: Input) -> Iterator[ImageRef]:
        for found, ref in enumerate(list_images(source_input, self.source, self.settings), start=1):
            if found % _TOLD_EVERY == 0:
                PROGRESS.add_listed(_TOLD_EVERY)
            yield ref
