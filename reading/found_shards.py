"""TFRecord files that nobody lists: found by name or by their first bytes, and put into splits by name."""

import os
import re
from collections.abc import Iterator

from reading.shard import Shard
from transforms.files import storage
from transforms.files.record_reader import looks_like_records

SHARD_NUMBER = re.compile(r"(?P<number>\d+)-?of-?(?P<count>\d+)", re.IGNORECASE)
"""A file's place in its set: `00000-of-00005` (TensorFlow's own), `01of02` (image-tfrecord-builder)."""

_LIKELY = re.compile(r"\.tf_?rec(?:ord)?s?\b|\.records?\b|\d+-?of-?\d+|^shard_\d+$", re.IGNORECASE)
_SPLIT = re.compile(r"train(?:ing)?|validation|valid|val|test(?:ing)?|eval|dev", re.IGNORECASE)
_SAVED_MODEL = re.compile(r"\.data-\d+-of-\d+$")  # the variables of TensorFlow's saved models
_OTHER = (".json", ".jsonl", ".txt", ".yaml", ".pbtxt", ".idx", ".md", ".csv", ".tsv", ".html", ".py")


def find_shards(folder: str) -> tuple[Shard, ...]:
    """All TFRecord files below a folder, sorted by name; hidden files and folders are left alone."""
    found = [name for name in sorted(_names_below(folder)) if _holds_records(storage.join(folder, name), name)]
    shards = [Shard(split_of(name), name, storage.join(folder, name)) for name in found]
    return tuple(sorted(shards, key=lambda shard: (shard.split, shard.name)))


def split_of(name: str) -> str:
    """The split that a file's name speaks of: `train`, `test`, ...; else the name without its shard's number."""
    parts = name.split("/")
    for part in reversed(parts):
        words = [word for word in re.split(r"[-_.]", part) if _SPLIT.fullmatch(word)]
        if words:
            return words[-1]
    stem = SHARD_NUMBER.sub("", parts[-1])
    stem = re.sub(r"\.(?:tf_?rec(?:ord)?s?|records?|gz)(?=\.|-|$)", "", stem, flags=re.IGNORECASE)
    return stem.strip("-_.") or parts[-1]


def _names_below(folder: str) -> Iterator[str]:
    if not storage.is_local(folder):
        prefix = folder.rstrip("/") + "/"
        names = (file.path[len(prefix) :] for file in storage.list_below(folder))
        yield from (name for name in names if not any(part.startswith(".") for part in name.split("/")))
        return
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = os.path.relpath(place, folder)
        for name in files:
            if not name.startswith("."):
                yield name if below == "." else f"{below}/{name}"


def _holds_records(path: str, name: str) -> bool:
    """By name; where the name says nothing, by the first bytes. A damaged file must be found by its name."""
    base = name.rpartition("/")[2]
    if base.lower().endswith(_OTHER) or _SAVED_MODEL.search(base):
        return False
    return bool(_LIKELY.search(base)) or looks_like_records(path)


def read_label_lines(path: str) -> dict[str, int]:
    """Class ids by name from `0:daisy` lines, as slim and we write them; none where the lines have no numbers."""
    lines = storage.read_range(path).decode("utf-8", "replace").splitlines()
    numbered = [re.fullmatch(r"(-?\d{1,18}):(.*)", line) for line in lines]
    return {match[2]: int(match[1]) for match in numbered if match} if all(numbered) else {}
