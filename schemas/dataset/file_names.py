"""The names of a dataset's files in its folder and in staging, and the patterns of shard names."""

import re
from collections.abc import Iterable

MARKER = "recordmill.json"
"""The file whose presence says that the dataset next to it is complete."""

LABELS, REJECTED, CONFIGURATION, DUPLICATES = (
    "labels.txt",
    "rejected.jsonl",
    "config.yaml",
    "duplicates.jsonl",
)
"""The files of a dataset besides its shards, their sidecars and the marker."""

INDEX = "records.index"
"""The places of all records, for readers that seek; docs/format.md describes it."""

VERSIONS = "records.versions"
"""Digests of the files that the records were made from; docs/format.md describes it."""

SIDE_FILES = (LABELS, REJECTED, CONFIGURATION, DUPLICATES)
"""The side files that every dataset has."""

REPORT = "report.html"
"""The report for people, if the settings request it. It is made from the published dataset; no
marker lists it."""

FOR_PEOPLE = frozenset({"README.md", "croissant.json", REPORT})
"""Files that people edit by hand (a license, a citation), and that no reader of records needs."""

REPORT_DATA = "report.json"
"""Data that only the report shows, if the settings request a report."""

SIDECARS = "sidecars"
"""The folder of the sidecars."""

TRANSFORM_FN = "transform_fn"
"""The folder of an analysis; TensorFlow Transform's own name for it."""

RESERVED = frozenset({*SIDE_FILES, MARKER, INDEX, VERSIONS, REPORT, REPORT_DATA, SIDECARS})
"""Names in an output that publishing uses, besides those of shards and descriptions."""

COMPANIONS = (
    "README.md",
    "croissant.json",
    "dataset_info.json",
    "features.json",
    "label_map.pbtxt",
    "schema.pbtxt",
)
"""Names of descriptions in an output. If the dataset there does not list one, the file is a
user's."""

STAGING_PREFIX = ".staging-"

CLAIM_PREFIX = "claim"
"""The prefix of runs' claims in the staging folder."""

DONE = ".done.json"
"""The suffix of the notes on finished shards in the staging folder."""

OUTCOME = "outcome.json"
"""Why the last run of a plan failed, in its staging folder."""

EXAMPLES = "examples.json"
"""The report's pictures of changed images, from a split's first shard, in the staging folder."""


SHARD_NAME = "{split}-{index:05d}-of-{count:05d}.tfrecord"
"""The names of files, unless a convention defines others."""

PLACEHOLDERS = {
    "name": "the setting `name`, or the output folder's name",
    "split": "the split, or the convention's own word for it",
    "index": "the shard's place in its split, from 0",
    "number": "the same from 1",
    "count": "how many shards the split has",
    "records": "how many records are in this one",
}
"""The placeholders of a pattern, which take Python's format codes."""

MOST_BYTES = 240
"""Most file systems take names of 255 bytes, and those of sidecars and indexes are longer."""

_CONTROL = frozenset(map(chr, (*range(32), 127)))


def sidecar_name(shard: str) -> str:
    """The path of a shard's sidecar below the dataset's folder."""
    return f"{SIDECARS}/{shard}.jsonl"


def index_name(shard: str) -> str:
    """The path of a shard's index below the dataset's folder."""
    return f"{SIDECARS}/{shard}.idx"


def shard_name(split: str, index: int, kind: str) -> str:
    """The name of a shard's file in staging.

    `kind` is `tfrecord`, `jsonl` (sidecar), `columns`, `versions`, `done.json` or `EXAMPLES`.
    """
    return f"{split}-{index:05d}.{kind}"


def staging_names(names: Iterable[str]) -> list[str]:
    """The names in an output folder that are staging folders."""
    return [name for name in names if name.startswith(STAGING_PREFIX)]


def fill_pattern(
    pattern: str, *, name: str, split: str, index: int, count: int, records: int
) -> str:
    """The name of a shard; `index` counts from 0."""
    return pattern.format(
        name=name, split=split, index=index, number=index + 1, count=count, records=records
    )


def check_pattern(pattern: str, key: str) -> None:
    """Raises ValueError if a pattern is invalid or gives invalid names.

    Args:
        pattern: as users write it.
        key: the setting that it is written under.
    """
    if re.search(r":[^}]*[0-9]{5}", pattern):
        raise ValueError(
            f"{key} {pattern!r:.80} gives names that are too long: use format codes of fewer digits"
        )
    try:
        filled = fill_pattern(pattern, name="n", split="s", index=0, count=1, records=1)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        raise ValueError(
            f"{key} {pattern!r} is not a valid pattern ({error}): it may use {known}"
        ) from None
    check_file_name(filled, pattern, key)


def check_file_name(name: str, pattern: str, key: str) -> None:
    """Raises ValueError if a pattern gives names that no file can have."""
    is_visible = bool(name.strip()) and not name.startswith(".") and "/" not in name
    if not is_visible or not _CONTROL.isdisjoint(name) or len(name.encode()) > MOST_BYTES:
        raise ValueError(
            f"{key} {pattern!r} gives the name {name[:80]!r}: names of visible files have neither "
            "folders nor control "
            f"characters, and at most {MOST_BYTES} bytes"
        )
