"""Which TFRecord files a path means: a file, a pattern, or a dataset's folder, ours or anybody's."""

import glob
import os
import re

from apache_beam.io.filesystems import FileSystems

from reading.loading.split_info import LoadError
from transforms.files import storage
from transforms.planning.output_state import MARKER, read_marker

# TensorFlow's, TFDS's and slim's names, image-tfrecord-builder's, `.record`, `train-00000-of-01024`, `shard_0`.
_RECORD_NAME = re.compile(r"tf_?rec|\.records?(\.gz)?$|\d+-?of-?\d+|^shard_\d+", re.IGNORECASE)
_BESIDE = (".json", ".jsonl", ".txt", ".yaml", ".pbtxt", ".idx", ".md", ".csv", ".html")


def find_record_files(path: str, split: str | None = None) -> list[str]:
    """The files, sorted by name; of a dataset of ours split by split in the marker's order.

    Args:
        path: a file; a folder; or a pattern (`*`, `?`, `[a-z]`, and `**` for folders between).
        split: of a dataset of ours, only this one.

    Raises:
        LoadError: there are none, or `split` is asked of something else than a dataset of ours.
    """
    folder = path.rstrip("/") or path
    if storage.exists(storage.join(folder, MARKER)):
        return _listed(folder, split)
    if split is not None:
        raise LoadError(f"{path} holds no {MARKER} that knows splits: name the files of {split} by a pattern")
    if storage.is_local(path) and os.path.isdir(path):
        found = [storage.join(folder, name) for name in storage.folder_names(folder) if _names_records(name)]
    elif storage.is_local(path):
        found = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    else:
        found = sorted(file.path for file in FileSystems.match([path])[0].metadata_list)
        if not found:
            prefix = folder + "/"
            names = (file.path for file in storage.list_below(folder))
            found = sorted(name for name in names if _names_records(name[len(prefix) :]))
    if not found:
        raise LoadError(f"{path} is no TFRecord file, nor a folder or a pattern that finds one: name the files")
    return found


def _listed(folder: str, split: str | None) -> list[str]:
    splits = read_marker(folder)["splits"]
    if split is not None and split not in splits:
        raise LoadError(f"{folder} has no split {split!r}: choose one of {', '.join(splits)}")
    chosen = splits.values() if split is None else [splits[split]]
    return [storage.join(folder, shard["name"]) for stated in chosen for shard in stated["shards"]]


def _names_records(name: str) -> bool:
    hidden = any(part.startswith(".") for part in name.split("/"))
    return not hidden and not name.endswith(_BESIDE) and _RECORD_NAME.search(name.rpartition("/")[2]) is not None
