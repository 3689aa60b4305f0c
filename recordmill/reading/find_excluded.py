"""Searches all files below a dataset's folder for images that must not be there.

Metadata is not trusted: every record is read, also of other versions below the folder and of
unfinished work.
"""

import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import orjson

from recordmill import storage
from recordmill.reading.dataset import FORGED, Dataset, names_below
from recordmill.reading.example import parse_intact
from recordmill.reading.verify_shard import Finding
from recordmill.schemas.dataset.file_names import INDEX, MARKER, looks_like_shard
from recordmill.schemas.dataset.record_index import parse_index
from recordmill.schemas.digests import order_of
from recordmill.schemas.rejection import Exclusions
from recordmill.storage.dataset_files import MOST_OBJECT_BYTES
from recordmill.storage.tfrecord_file import RecordFile, StoredFile

MOST_FINDINGS = 100
"""The most findings listed per file."""

_TEXTS = (".html", ".idx", ".json", ".jsonl", ".md", ".pbtxt", ".txt", ".yaml")

_LONGEST_TEXT = 4_096
"""Longer values of features are neither keys nor digests."""


def find_excluded(dataset: Dataset, exclusions: Exclusions, folder: str = "") -> Iterator[Finding]:
    """Yields a finding for each place that still holds something excluded.

    A key is found in records that store it, in sidecars, lists, the index and text files. A digest
    is found in the same places, and in records whose images have the source's bytes.

    Args:
        dataset: of any kind; if files were opened, only these are searched.
        exclusions: the excluded keys and digests.
        folder: the folder with all versions; empty for the dataset's own.

    Raises:
        OSError: a file cannot be read.
    """
    folder = folder or dataset.folder
    if dataset.whole:
        paths = [storage.join(folder, name) for name in names_below(folder)]
    else:
        paths = []
    for path in sorted(paths) or [shard.path for shard in dataset.shards]:
        name = path.removeprefix(folder.rstrip("/") + "/")
        is_shard = looks_like_shard(path) and not path.endswith(_TEXTS)
        places = list((_search_shard if is_shard else _search_text)(path, exclusions))
        for what, record, offset in places[:MOST_FINDINGS]:
            yield Finding("excluded", f"{what}, which must not be there", name, record, offset)
        if len(places) > MOST_FINDINGS:
            yield Finding("more", f"{len(places) - MOST_FINDINGS:,} further places", name)


_Match = tuple[str, int | None, int | None]
"""The match, the number of the record, and the offset."""


def _search_shard(path: str, exclusions: Exclusions) -> Iterator[_Match]:
    with StoredFile(path) as stored:
        for number, (offset, data) in enumerate(RecordFile(stored)):
            if (example := parse_intact(data)) is None:
                continue
            found = set[str]()
            for _, kind, values in example.items():
                for value in values if kind == "bytes" else ():
                    if match := _match_value(value, exclusions):
                        found.add(match)
            for what in sorted(found):
                yield f"the record holds {what}", number, offset


def _match_value(value: bytes, exclusions: Exclusions) -> str | None:
    """Returns the excluded key or digest that a feature's value is or has, or None."""
    if len(value) <= _LONGEST_TEXT and (
        line := _match_text(value.decode("utf-8", "replace"), exclusions)
    ):
        return line
    if exclusions.digests:
        digest = hashlib.sha256(value).hexdigest()
        if digest in exclusions.digests:
            return f"the image sha256:{digest}"
    return None


def _match_text(text: str, exclusions: Exclusions) -> str | None:
    """Returns the listed line that matches a text, or None."""
    if text in exclusions.keys:
        return f"key:{text}"
    if text.lower() in exclusions.digests:
        return f"sha256:{text.lower()}"
    return None


def _search_text(path: str, exclusions: Exclusions) -> Iterator[_Match]:
    name = PurePosixPath(path).name
    if name == INDEX:
        yield from _search_index(path, exclusions)
    elif name.endswith(".jsonl"):
        for number, line in enumerate(storage.read_lines(path)):
            for what in sorted(_search_json(line, exclusions)):
                yield f"line {number + 1} holds {what}", None, None
    else:
        text = storage.read_whole(path, MOST_OBJECT_BYTES).decode("utf-8", "replace")
        if name.endswith(".html"):
            text = html.unescape(text)
        else:
            text = text.replace("\\", "")
        # In markers also the digest of empty lists.
        digests = exclusions.digests - {hashlib.sha256().hexdigest()}
        names = [
            *(("key", key) for key in exclusions.keys),
            *(("sha256", digest) for digest in digests),
        ]
        for kind, wanted in sorted(names):
            if wanted in text and re.search(
                rf"(?<![\w./-]){re.escape(wanted)}(?![\w-]|\.\w)", text
            ):
                yield f"the file holds {kind}:{wanted}", None, None


def _search_json(line: bytes, exclusions: Exclusions) -> set[str]:
    """Returns the listed lines that match any string in a line of JSON."""
    found, waiting = set[str](), []
    try:
        waiting.append(orjson.loads(line))
    except FORGED:
        return set()
    while waiting:
        value: Any = waiting.pop()
        if isinstance(value, str):
            # The detail of a rejection may begin with the key of a faulty file.
            for text in {value, value.partition(": ")[0]}:
                if match := _match_text(text, exclusions):
                    found.add(match)
        elif isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return found


def _search_index(path: str, exclusions: Exclusions) -> Iterator[_Match]:
    """Yields keys whose hashes are in an index; the seed of the hashes is in its marker."""
    try:
        folder = path.rpartition("/")[0]
        marker = storage.read_whole(storage.join(folder, MARKER), MOST_OBJECT_BYTES)
        plan = orjson.loads(marker)["plan"]
        seed = plan.get("settings", plan["recipe"])["seed"]  # plan version 2 has no settings
        content = storage.read_range(path)
        hashes = parse_index(content)[:, 2]
        wanted = {order_of(seed, key): key for key in exclusions.keys}
    except (FileNotFoundError, *FORGED):
        return
    for number in np.intersect1d(hashes, np.array([*wanted], np.uint64)).tolist():
        yield f"the index holds the hash of key:{wanted[number]}", None, None
