"""Reads the `dataset_info.json` of a folder for TensorFlow Datasets, without TensorFlow."""

import re
from typing import Any

import orjson

from recordmill import storage
from recordmill.reading.shard import Shard
from recordmill.schemas.errors import LoadError

DATASET_INFO = "dataset_info.json"
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # TFDS's own files


def read_tfds_folder(folder: str) -> tuple[tuple[Shard, ...], dict[str, int]]:
    """The shards that `dataset_info.json` lists with their counts, and the class ids of the one label feature.

    Raises:
        LoadError: the file is malformed, or describes a format other than TFRecord.
    """
    path = storage.join(folder, DATASET_INFO)
    try:
        info: Any = orjson.loads(storage.read_range(path))
        file_format = info.get("fileFormat", "tfrecord")
        shards = tuple(shard for split in info["splits"] for shard in _shards_of(folder, info, split, file_format))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise LoadError(f"{path} cannot be understood ({what}): move it away to open the files alone") from None
    if file_format != "tfrecord":
        raise LoadError(f"{path} describes {file_format} files: only TFRecord files can be opened")
    labels = [name for name in storage.folder_names(folder) if name.endswith(".labels.txt")]
    ids = {}
    if len(labels) == 1:
        lines = storage.read_range(storage.join(folder, labels[0])).decode("utf-8", "replace").splitlines()
        ids = {line: number for number, line in enumerate(lines)}
    return shards, ids


def _shards_of(folder: str, info: dict[str, Any], split: dict[str, Any], file_format: str) -> list[Shard]:
    lengths = [int(length) for length in split.get("shardLengths", ())]
    template = split.get("filepathTemplate") or _TEMPLATE
    shards = []
    for index, records in enumerate(lengths):
        words = {
            "DATASET": info.get("name", ""),
            "SPLIT": split["name"],
            "FILEFORMAT": file_format,
            "SHARD_INDEX": f"{index:05d}",
            "NUM_SHARDS": f"{len(lengths):05d}",
            "SHARD_X_OF_Y": f"{index:05d}-of-{len(lengths):05d}",
        }
        name = re.sub(r"\{(\w+)\}", lambda word, words=words: words[word[1]], template)
        shards.append(Shard(split["name"], name, storage.join(folder, name), records))
    return shards
