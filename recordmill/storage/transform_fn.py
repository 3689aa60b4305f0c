"""`transform_fn/`: what was learnt from a finished dataset, and whether it still fits the dataset beside it.

The folder is no part of what the marker lists: it can be made, replaced and deleted without touching the dataset. Its
note, `analysis.json`, says which shards it was learnt from; the switch to another dataset removes it.
"""

import errno
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import TRANSFORM_FN
from recordmill.schemas.dataset.marker import Marker

DEFAULT_SIZE = (224, 224)
"""Height and width of the model's images, where those of the dataset are of several sizes."""

NOTE = "analysis.json"
_MODEL = "saved_model.pb"

_HIDDEN, _TEMPORARY = f".{TRANSFORM_FN}.", ".tmp"
_HOUR = 3600.0


class ForeignFolderError(ValueError):
    """A folder of that name which Recordmill did not write."""


def contents_digest(marker: Marker, split: str) -> str:
    """What an analysis of one split depends on, in hex: the rows of its sidecars and the label map.

    Not the plan's id: an image edited in place keeps that.
    """
    labels = marker.plan.settings.labels.get("catch_all"), marker.labels
    shards = [shard.sidecar_sha256 for shard in marker.splits[split].shards]
    return hashlib.sha256(orjson.dumps([labels, shards], option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_note(output: str) -> dict[str, Any] | None:
    """The note of the `transform_fn/` beside a dataset; None where there is none, or none that is whole."""
    folder = storage.join(output, TRANSFORM_FN)
    if not storage.exists(storage.join(folder, _MODEL)):
        return None
    try:
        note: Any = orjson.loads(storage.read_range(storage.join(folder, NOTE)))
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return note if isinstance(note, dict) and note.keys() >= {"split", "size", "contents"} else None


def fits(
    note: Mapping[str, Any] | None,
    marker: Marker,
    split: str | None = None,
    size: tuple[int, int] | None = None,
) -> bool:
    """Whether a note's analysis is of the dataset that a marker describes.

    Args:
        note: what `read_note` gave.
        marker: the dataset's.
        split: what it should have been learnt from; None for any.
        size: height and width that its model should give; None for any.
    """
    if note is None or note["split"] not in marker.splits:
        return False
    if split not in (None, note["split"]) or size not in (None, tuple(note["size"])):
        return False
    return bool(note["contents"] == contents_digest(marker, note["split"]))


def remove_stale(output: str, marker: Marker) -> None:
    """Removes a `transform_fn/` that was made of another dataset than the marker describes; strangers' folders stay."""
    if storage.exists(storage.join(output, TRANSFORM_FN, NOTE)) and not fits(read_note(output), marker):
        _remove(output)


def publish_transform_fn(built: Path, note: Mapping[str, Any], output: str) -> None:
    """Puts a finished SavedModel, with its note, in the place of whatever `transform_fn/` there is.

    On a file system readers see the old folder, for an instant none, or the new; in a store, which has no folders to
    rename, the model itself goes first and comes last. Two at once are no harm: the later one stays.

    Args:
        built: a local folder with the SavedModel.
        note: written beside it as `analysis.json`.
        output: the dataset's folder.

    Raises:
        ForeignFolderError: there is such a folder that Recordmill did not write.
        OSError: it cannot be written.
    """
    target = storage.join(output, TRANSFORM_FN)
    if storage.exists(storage.join(target, _MODEL)) and not storage.exists(storage.join(target, NOTE)):
        raise ForeignFolderError(f"{target} was not written by Recordmill: move it elsewhere")
    (built / NOTE).write_bytes(orjson.dumps(note, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if storage.is_local(output):
        _publish_locally(built, output)
    else:
        _remove(output)
        for path in sorted((path for path in built.rglob("*") if path.is_file()), key=_upload_order):
            with storage.open_to_write(storage.join(target, *path.relative_to(built).parts)) as file:
                file.write(path.read_bytes())


def _publish_locally(built: Path, output: str) -> None:
    _remove_leftovers(output)
    hidden = _hidden_name(output)
    try:
        shutil.copytree(built, hidden)
        for _ in range(100):
            _remove(output)
            try:
                os.rename(hidden, os.path.join(output, TRANSFORM_FN))
            except OSError as error:  # another run was faster by an instant
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                return
        raise FileExistsError(errno.EEXIST, "other runs keep writing it", os.path.join(output, TRANSFORM_FN))
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _remove(output: str) -> None:
    """Removes the folder; a cut leaves a note without a model, which is ours and not whole, or a hidden rest."""
    target = storage.join(output, TRANSFORM_FN)
    if storage.is_local(output):
        away = _hidden_name(output)
        with suppress(FileNotFoundError):
            os.rename(target, away)
            storage.remove_folder(away)
    else:
        model, note = storage.join(target, _MODEL), storage.join(target, NOTE)
        others = [file.path for file in storage.list_below(target)]
        storage.remove_files([model, *(path for path in others if path not in (model, note)), note])


def _upload_order(path: Path) -> int:
    """The model last: without it nothing is whole, and without a note it is a stranger's."""
    return [NOTE, _MODEL].index(path.name) + 1 if path.name in (NOTE, _MODEL) else 0


def _hidden_name(output: str) -> str:
    return os.path.join(output, f"{_HIDDEN}{uuid.uuid4().hex[:12]}{_TEMPORARY}")


def _remove_leftovers(output: str) -> None:
    """Deletes what a killed run has left; younger folders may be another run's work."""
    for name in os.listdir(output):
        path = os.path.join(output, name)
        if name.startswith(_HIDDEN) and name.endswith(_TEMPORARY):
            with suppress(FileNotFoundError):
                if time.time() - os.stat(path).st_mtime > _HOUR:
                    storage.remove_folder(path)
