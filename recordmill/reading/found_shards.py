"""Finds TFRecord files that are not listed anywhere, by name or first bytes, and assigns them to splits by name."""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile

from recordmill import storage
from recordmill.reading.shard import Shard
from recordmill.storage.record_reader import looks_like_records, looks_like_shard

SHARD_NUMBER = re.compile(r"(?P<number>\d+)-?of-?(?P<count>\d+)", re.IGNORECASE)
"""A file's position in its set: `00000-of-00005` (TensorFlow's own), `01of02` (image-tfrecord-builder)."""

_SPLIT = re.compile(r"train(?:ing)?|validation|valid|val|test(?:ing)?|eval|dev", re.IGNORECASE)
_SAVED_MODEL = re.compile(r"\.data-\d+-of-\d+$")  # the variables of TensorFlow's saved models
_OTHER = (".json", ".jsonl", ".txt", ".yaml", ".pbtxt", ".idx", ".md", ".csv", ".tsv", ".html", ".py")


def find_shards(folder: str) -> tuple[Shard, ...]:
    """All TFRecord files below a folder, sorted by name, except hidden files and folders."""
    paths = {name: storage.join(folder, name) for name in _names_below(folder)}
    return _in_splits({name: path for name, path in paths.items() if _holds_records(path, name)})


def match_files(pattern: str) -> list[str]:
    """The files that match a pattern, whatever their content."""
    if storage.is_local(pattern):
        return [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]
    folder = re.split(r"[*?\[]", pattern)[0].rpartition("/")[0]
    if folder.endswith(":/"):  # a pattern of buckets
        return []
    from apache_beam.io.filesystem import FileSystem  # local files do not need Beam

    fits = re.compile(FileSystem.translate_pattern(pattern))
    return [file.path for file in storage.list_below(folder) if fits.fullmatch(file.path)]


def name_shards(paths: list[str]) -> tuple[str, tuple[Shard, ...]]:
    """The common folder of the files, and the files as its shards, sorted by name."""
    folders = [path.split("/")[:-1] for path in paths]
    pairs = zip(min(folders), max(folders), strict=False)  # whatever these two share, all share
    depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    below = {"/".join(path.split("/")[depth:]): path for path in paths}
    return "/".join(folders[0][:depth]) or ("/" if depth else "."), _in_splits(below)


def _in_splits(paths: Mapping[str, str]) -> tuple[Shard, ...]:
    """Shards, by their names below their folder."""
    shards = (Shard(split_of(name), name, path) for name, path in paths.items())
    return tuple(sorted(shards, key=lambda shard: (shard.split, shard.name)))


def split_of(name: str) -> str:
    """The split in a file's name (`train`, `test`, ...), otherwise the name without its shard number."""
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
    """Decides by name, otherwise by the first bytes. A damaged file must be found by its name."""
    base = name.rpartition("/")[2]
    if base.lower().endswith(_OTHER) or _SAVED_MODEL.search(base):
        return False
    return looks_like_shard(base) or looks_like_records(path)


def read_label_lines(path: str) -> dict[str, int]:
    """Class ids by name from `0:daisy` lines, as slim and Recordmill write them; none if the lines have no numbers."""
    lines = storage.read_range(path).decode("utf-8", "replace").splitlines()
    numbered = [re.fullmatch(r"(-?\d{1,18}):(.*)", line) for line in lines]
    return {match[2]: int(match[1]) for match in numbered if match} if all(numbered) else {}
