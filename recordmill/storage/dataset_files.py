"""A dataset's own files: marker, rows of sidecars, staging folder, versions and analysis.

Versions are complete datasets, each in its own folder below an output; `recordmill.json` there
points to the current one.

The marker does not list `transform_fn/`, the folder of the analysis, so it can be made, replaced
and deleted without touching the dataset. Its note, `analysis.json`, says which shards were
analyzed. Publishing another dataset removes it.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    FOR_PEOPLE,
    MARKER,
    REPORT,
    STAGING_PREFIX,
    TRANSFORM_FN,
    UNPUBLISHED,
    shard_name,
)
from recordmill.schemas.dataset.json_values import (
    MisfitError,
    as_json,
    from_json,
    hash_json,
    to_json,
)
from recordmill.schemas.dataset.marker import POINTER_FORMAT, Marker, Pointer, Switch
from recordmill.schemas.dataset.side_files import Row, row_from_json
from recordmill.schemas.errors import LoadError, RecordmillError
from recordmill.storage.stored_names import find_stray_move, find_stray_name, refuse_links

REPORT_HEAD = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta '
    b'http-equiv="Content-Security-Policy" '
    b"content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
)
"""The first lines of every report. A user's own page is unlikely to begin with them."""

_SEAL = re.compile(rb"<!-- SHA-256 of the above: ([0-9a-f]{64}) -->\n\Z")
"""The last line of a report. Earlier versions wrote none."""

MOST_OBJECT_BYTES = 2**29
"""The size of the largest marker, note or other JSON object that is read."""

_MOST_BYTES_OF_ONE = 2**16

MOST_SIDECAR_BYTES = 2**32
"""The size of the largest sidecar that is read at once."""


class DamagedMarkerError(LoadError):
    """A `recordmill.json` that this version of Recordmill cannot read."""


class StrayNameError(DamagedMarkerError):
    """A marker that names a file outside its folder: no run may act on it."""


def read_marker(folder: str) -> Marker:
    """Returns the marker of a finished dataset.

    Raises:
        FileNotFoundError: there is none.
        DamagedMarkerError: it is not a valid marker; the message says why.
    """
    return read_marker_json(folder)[0]


def read_marker_json(folder: str, name: str = MARKER) -> tuple[Marker, dict[str, Any]]:
    """Reads the marker as `read_marker` does, with the whole content of the file.

    The file may have another name.
    """
    path = f"{folder}/{name}"
    try:
        content = storage.read_whole(storage.join(folder, name), MOST_OBJECT_BYTES)
    except storage.NotAFileError as error:
        raise DamagedMarkerError(f"{path} cannot be read: {error.strerror}") from None
    except IsADirectoryError:
        raise DamagedMarkerError(f"{path} cannot be read: it is a folder") from None
    return _parse_marker(path, content)


def read_unpublished(staging: str) -> tuple[Marker, Mapping[str, str]]:
    """Reads what a failed run has converted and not published.

    Args:
        staging: the folder of its unfinished work.

    Returns:
        The marker that it would have, and the names that its shards and sidecars have in the
        folder by their names in the marker.

    Raises:
        FileNotFoundError: there is none.
        StrayNameError: it names other files than a dataset's.
        DamagedMarkerError: it is not valid.
    """
    marker, value = read_marker_json(staging, UNPUBLISHED)
    path = f"{staging}/{UNPUBLISHED}"
    try:
        switch = from_json(Switch, value.get("switch"))
    except MisfitError as misfit:
        raise DamagedMarkerError(f"{path} cannot be understood: {misfit}") from None
    if stray := find_stray_move(marker, switch):
        raise StrayNameError(f"{path} is not safe to use: {stray}")
    return marker, switch.targets


def _parse_marker(path: str, content: bytes) -> tuple[Marker, dict[str, Any]]:
    """Parses the marker in a file; returns it with the whole JSON object.

    Raises:
        DamagedMarkerError: it is not a valid marker; the message says why.
    """
    try:
        value: Any = orjson.loads(content)
        marker = Marker.from_json(value)
        if stray := find_stray_name(marker):
            raise StrayNameError(f"{path} is not safe to use: {stray}")
        return marker, value
    except orjson.JSONDecodeError as error:
        problem = f"it is not JSON: {error}"
    except MisfitError as misfit:
        problem = str(misfit)
    raise DamagedMarkerError(f"{path} cannot be understood: {problem}")


def find_marker(output: str) -> Marker | None:
    """Returns the marker of an output's finished dataset.

    Returns None if there is none that can be read.
    """
    try:
        return read_marker(output)
    except (FileNotFoundError, NotADirectoryError, DamagedMarkerError):
        return None


def stamp_marker(folder: str) -> str | None:
    """Returns a stamp of a folder's marker: another marker there has another stamp.

    So a step learns whether a marker was replaced without opening it.

    Returns:
        Size and version of the file; None if there is none.
    """
    path = storage.join(folder, MARKER)
    if storage.is_local(path):
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return f"{status.st_size} {status.st_ino} {status.st_mtime_ns}"
    if (file := storage.describe(path)) is None:
        return None
    from recordmill.storage.stores.versioned_object import version_of  # imports Beam

    return f"{file.size_in_bytes} {version_of(file)}"


def holds_report(output: str) -> bool:
    """Returns whether an output has a `report.html` that Recordmill made.

    The user's own page must not be touched.
    """
    try:
        start = storage.read_range(storage.join(output, REPORT), 0, 1_000)
    except OSError:
        return False
    return start.lstrip().startswith(REPORT_HEAD)


def seal_report(page: bytes) -> bytes:
    """Adds a line with the digest of a report, which is made after the marker."""
    return page + f"<!-- SHA-256 of the above: {hashlib.sha256(page).hexdigest()} -->\n".encode()


def is_sealed(report: bytes) -> bool:
    """Returns whether a report is as it was made.

    One of an earlier version need only have an end.
    """
    if seal := _SEAL.search(report):
        return hashlib.sha256(report[: seal.start()]).hexdigest() == seal[1].decode()
    return report.rstrip().endswith(b"</html>")


def most_bytes_of(marker: Marker) -> int:
    """Returns more bytes than any file of a dataset besides its shards has.

    No reader waits for the digest of a file that claims to be as large as a disk.
    """
    return MOST_OBJECT_BYTES + _MOST_BYTES_OF_ONE * max(marker.ledger.listed, 0)


def find_fault(output: str, marker: Marker) -> str | None:
    """Returns what is wrong with the files that a marker lists, or None if nothing is.

    The answer is a few words. Shards are checked by size, and other files by SHA-256 unless users
    may edit them.
    """
    most = most_bytes_of(marker)
    expected: dict[str, int | str | None] = {shard.name: shard.bytes for shard in marker.shards}
    expected |= {shard.sidecar: shard.sidecar_sha256 or None for shard in marker.shards}
    digests = marker.run.digests
    expected |= {name: None if name in FOR_PEOPLE else digests.get(name) for name in marker.files}

    def check(name: str) -> str | None:
        path, wanted = storage.join(output, name), expected[name]
        size = storage.size_of(path)
        if size is None:
            return f"lacks {name}"
        if not isinstance(wanted, int) and size > most:
            return f"holds {name} with {size:,} bytes, more than it can have"
        if isinstance(wanted, int) and size != wanted:
            return f"holds {name} with {size:,} bytes instead of {wanted:,}"
        is_other = isinstance(wanted, str) and storage.hash_file(path) != wanted
        if is_other:
            return f"holds {name} with another sha256"
        return None

    return next(filter(None, storage.map_each(check, expected)), None)


def staging_folder(output: str, plan_id: str) -> str:
    """Returns the hidden folder in the output for a plan's shards until they are published."""
    return storage.join(output, f"{STAGING_PREFIX}{plan_id}")


def shard_path(staging: str, split: str, index: int, kind: str) -> str:
    """Returns the path of a shard's file in staging; see `shard_name`."""
    return storage.join(staging, shard_name(split, index, kind))


def read_object(path: str) -> dict[str, Any]:
    """Returns the JSON object in a file; an empty one if there is none, or no file of that name."""
    with suppress(
        FileNotFoundError, IsADirectoryError, storage.NotAFileError, orjson.JSONDecodeError
    ):
        value: Any = orjson.loads(storage.read_whole(path, MOST_OBJECT_BYTES))
        if isinstance(value, dict):
            return value
        return {}
    return {}


def read_rows(sidecar: str) -> Iterator[Row]:
    """Yields the rows of a sidecar, one after the other."""
    yield from parse_rows(storage.read_lines(sidecar))


def parse_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Returns the rows that a sidecar's lines hold."""
    return map(row_from_json, map(orjson.loads, lines))


_VERSION_NAME = re.compile(r"([0-9a-f]{16})(?:-([1-9][0-9]{0,8}))?")
_MOST_POINTER_BYTES = 1_000
"""Size of the largest pointer; markers are larger."""


def version_name(plan_id: str, number: int) -> str:
    """Returns the folder name of a plan's first, second, ... version.

    It is the plan's id, followed by the number from 2 on.
    """
    if number == 1:
        return plan_id
    return f"{plan_id}-{number}"


def split_version(name: str) -> tuple[str, int] | None:
    """Returns plan and number of the version whose folder has this name; None for other names."""
    found = _VERSION_NAME.fullmatch(name)
    if found:
        return found[1], int(found[2] or 1)
    return None


def version_names(output: str) -> list[str]:
    """Returns the folder names of an output's versions, complete or not.

    Those of one plan are in the order of their numbers.

    Raises:
        OSError: the output cannot be listed.
    """
    return [
        version_name(*each)
        for each in sorted(filter(None, map(split_version, storage.folder_names(output))))
    ]


def work_folders(output: str) -> list[str]:
    """Returns the folders in which runs work: the output itself, and those of its versions.

    Raises:
        OSError: the output cannot be listed.
    """
    return [output, *(storage.join(output, name) for name in version_names(output))]


def read_versions(output: str) -> dict[str, Marker | None]:
    """Reads the markers of an output's versions, the oldest first.

    Unfinished versions have none and come last.

    Raises:
        OSError: one of them cannot be read.
    """
    found = {name: find_marker(storage.join(output, name)) for name in version_names(output)}
    return dict(sorted(found.items(), key=lambda item: item[1].run.finished if item[1] else "~"))


def explain_choice(output: str, otherwise: str = "convert the dataset again") -> str:
    """Says what to do if the current version is not known.

    If there is no version to choose, it says `otherwise`.
    """
    if complete := [name for name, marker in read_versions(output).items() if marker]:
        return f"choose the latest version with recordmill versions {output} --use {complete[-1]}"
    return f"no version is complete, so {otherwise}"


def find_pointer(output: str) -> Pointer | None:
    """Returns the pointer of a folder with versions; None if there is no usable one.

    Raises:
        OSError: it cannot be read.
    """
    return _parse_pointer(_read_pointer(output) or b"")


def _read_pointer(output: str, most: int = _MOST_POINTER_BYTES) -> bytes | None:
    """Returns the content of a pointer, or the first bytes of a marker; None if there is neither.

    Raises:
        DamagedMarkerError: a pipe, a device or a folder has that name.
        OSError: it cannot be read.
    """
    path = storage.join(output, MARKER)
    if storage.is_local(path) and stamp_marker(output) is None:
        return None  # most folders have none
    try:
        return storage.read_range(path, 0, most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (storage.NotAFileError, IsADirectoryError) as error:
        raise DamagedMarkerError(
            f"{path} cannot be read: {error.strerror}: delete it, or choose another folder"
        ) from None


def _parse_pointer(content: bytes) -> Pointer | None:
    with suppress(ValueError):
        pointer = from_json(Pointer, orjson.loads(content))
        if pointer.format == POINTER_FORMAT and split_version(pointer.current):
            return pointer
    return None


def current_folder(folder: str) -> str:
    """Returns the folder of the dataset that a user names.

    If there are versions, it is that of the current version.

    Raises:
        LoadError: there are versions, and `recordmill.json` does not name a complete one; the
            sentence says what to do.
        OSError: it cannot be read.
    """
    content = _read_pointer(folder)
    return folder if content is None else _folder_named_by(content, folder)


@dataclass(frozen=True, slots=True)
class NamedDataset:
    """The dataset that a user names.

    Attributes:
        folder: its folder, as `current_folder` gives it.
        content: the content of its `recordmill.json`, if that was read to find the folder.
    """

    folder: str
    content: bytes | None = None

    def read_marker(self) -> Marker:
        """Returns the marker; raises the same errors as `read_marker`."""
        if self.content is None:
            return read_marker(self.folder)
        return _parse_marker(f"{self.folder}/{MARKER}", self.content)[0]


def find_named(folder: str) -> NamedDataset:
    """Finds the dataset that a user names, and opens its `recordmill.json` only once.

    Raises:
        LoadError: as for `current_folder`.
        OSError: the file cannot be read.
    """
    content = _read_pointer(folder, MOST_OBJECT_BYTES)
    if content is None:
        return NamedDataset(folder)
    current = _folder_named_by(content[:_MOST_POINTER_BYTES], folder)
    return NamedDataset(current, content if current == folder else None)


def _folder_named_by(content: bytes, folder: str) -> str:
    """Returns the folder of the dataset, from the first bytes of `recordmill.json` in a folder."""
    pointer = _parse_pointer(content)
    if pointer is None and (len(content) == _MOST_POINTER_BYTES or not version_names(folder)):
        return folder  # with a marker of its own
    if pointer and storage.exists(storage.join(folder, pointer.current, MARKER)):
        return storage.join(folder, pointer.current)
    remedy = explain_choice(folder, "delete that file and convert again")
    raise LoadError(f"{folder}/{MARKER} does not name a complete version: {remedy}")


def point_to(output: str, name: str) -> bool:
    """Makes a complete version the current one, in one step; returns False if it is already.

    Raises:
        OSError: the pointer cannot be written.
    """
    old = find_pointer(output)
    if old and old.current == name:
        return False
    pointer = Pointer(current=name, previous=old.current if old else None)
    # Written in the version's folder, so that an interruption leaves no stray temporary file in the
    # output. A link may lead to another disk, or to a folder that is not ours to write into.
    is_elsewhere = storage.is_link(storage.join(output, name))
    if is_elsewhere:
        temporary = ""
    else:
        temporary = storage.join(output, name, f".{MARKER}.tmp")
    storage.write_file(storage.join(output, MARKER), as_json(to_json(pointer)), temporary)
    storage.force_to_disk([output])
    return True


DEFAULT_SIZE = (224, 224)
"""Height and width of the model's images if the dataset's images have several sizes."""

_ANALYSIS = "analysis.json"
_MODEL = "saved_model.pb"


def contents_digest(marker: Marker, split: str) -> str:
    """Returns the hex digest of what an analysis of one split depends on.

    That is the rows of its sidecars and the label map. The plan id is not enough: it stays the same
    if an image is edited in place.
    """
    labels = marker.plan.for_readers.labels.get("catch_all"), marker.labels
    shards = [shard.sidecar_sha256 for shard in marker.splits[split].shards]
    return hash_json([labels, shards])


def read_analysis(output: str) -> dict[str, Any] | None:
    """Returns the note on the analysis in `transform_fn/`.

    Returns None if there is none, or it is incomplete.
    """
    folder = storage.join(output, TRANSFORM_FN)
    if not storage.exists(storage.join(folder, _MODEL)):
        return None
    try:
        path = storage.join(folder, _ANALYSIS)
        note: Any = orjson.loads(storage.read_whole(path, MOST_OBJECT_BYTES))
    except (FileNotFoundError, storage.NotAFileError, orjson.JSONDecodeError):
        return None
    if not isinstance(note, dict) or not note.keys() >= {"split", "size", "contents"}:
        return None
    is_ours = isinstance(note["split"], str) and isinstance(note["size"], list)
    if is_ours:
        return note
    return None


def analysis_fits(note: Mapping[str, Any] | None, marker: Marker) -> bool:
    """Returns whether a note's analysis, from `read_analysis`, belongs to a marker's dataset."""
    if note is None or note["split"] not in marker.splits:
        return False
    return bool(note["contents"] == contents_digest(marker, note["split"]))


def remove_stale_analysis(output: str, marker: Marker) -> None:
    """Removes a `transform_fn/` that does not belong to the marker's dataset.

    Other programs' folders stay, and what a link leads to.
    """
    folder = storage.join(output, TRANSFORM_FN)
    if storage.is_link(folder):
        return
    if storage.exists(storage.join(folder, _ANALYSIS)) and not analysis_fits(
        read_analysis(output), marker
    ):
        _remove_analysis(folder)


def publish_transform_fn(built: Path, note: Mapping[str, Any], output: str) -> None:
    """Installs a finished SavedModel with its note, replacing any earlier `transform_fn/`.

    The model itself is deleted first and written last, so readers see the old one, then none, and
    then the new one.

    Args:
        built: a local folder with the SavedModel.
        note: written next to it as `analysis.json`.
        output: the dataset's folder.

    Raises:
        RecordmillError: there is a folder of that name that Recordmill did not write, or a link.
        OSError: it cannot be written.
    """
    target = storage.join(output, TRANSFORM_FN)
    refuse_links(output, TRANSFORM_FN)
    if storage.exists(storage.join(target, _MODEL)) and not storage.exists(
        storage.join(target, _ANALYSIS)
    ):
        raise RecordmillError(f"{target} was not written by Recordmill: move it elsewhere")
    _remove_analysis(target)
    storage.write_file(storage.join(target, _ANALYSIS), as_json(note))
    files = [path for path in built.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.name == _MODEL):
        storage.write_file(storage.join(target, *path.relative_to(built).parts), path.read_bytes())


def _remove_analysis(folder: str) -> None:
    storage.remove_files([storage.join(folder, _MODEL)])
    storage.remove_folder(folder)
