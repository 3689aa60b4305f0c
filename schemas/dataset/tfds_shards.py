"""The shards that `dataset_info.json` of TensorFlow Datasets lists."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DATASET_INFO = "dataset_info.json"
"""The file's name."""

FILE_FORMAT = "tfrecord"
"""The name of the format TFRecord in `dataset_info.json`."""

_SHARD_X_OF_Y = "{SHARD_INDEX}-of-{NUM_SHARDS}"


class TfdsShard(NamedTuple):
    """A shard's split, the name of its file, and its number of records."""

    split: str
    name: str
    records: int


def list_tfds_shards(info: Any, file_format: str = FILE_FORMAT) -> Iterator[TfdsShard]:
    """Yields the shards of a parsed `dataset_info.json`, split by split.

    Args:
        info: the parsed file.
        file_format: the format of the shards, which is the extension in their names.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it is malformed.
    """
    for split in info["splits"]:
        lengths = [int(length) for length in split.get("shardLengths", ())]
        # TFDS's own names.
        template = split.get("filepathTemplate") or "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
        for index, records in enumerate(lengths):
            place = {"SHARD_INDEX": f"{index:05d}", "NUM_SHARDS": f"{len(lengths):05d}"}
            words = {
                "DATASET": info.get("name", ""),
                "SPLIT": split["name"],
                "FILEFORMAT": file_format,
                **place,
                "SHARD_X_OF_Y": _SHARD_X_OF_Y.format_map(place),
            }
            name = re.sub(r"\{(\w+)\}", lambda word, words=words: words[word[1]], template)
            yield TfdsShard(split["name"], name, records)


def abbreviate(template: str) -> str:
    """Returns a template of names as TFDS itself writes it."""
    return template.replace(_SHARD_X_OF_Y, "{SHARD_X_OF_Y}")
