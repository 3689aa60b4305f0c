"""The names of a dataset's files in its folder and in staging, and of TFRecord files anywhere.

No other module knows how TFRecord files are named.
"""

import re
from collections.abc import Collection, Iterable

from recordmill.schemas.errors import SettingError

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

SAMPLES = "samples.svg"
"""Pictures that the data card shows, if the settings request a report."""

FOR_PEOPLE = frozenset({"README.md", "croissant.json", REPORT, SAMPLES})
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
    SAMPLES,
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

UNPUBLISHED = "unpublished.json"
"""What the last run of a plan has converted and not published, in its staging folder: a marker, and
the names that its shards have there."""

PICTURES = "pictures.json"
"""The report's pictures of rejected files of a shard, in the staging folder."""


SHARD = "tfrecord"
"""The suffix of shards, and the kind of their files in staging."""

SHARD_POSITION = "{index:05d}-of-{count:05d}"
"""A shard's place among the shards of its split, as TensorFlow writes it."""

SHARD_NAME = f"{{split}}-{SHARD_POSITION}.{SHARD}"
"""The names of files, unless a convention defines others."""

SHARD_NUMBER = re.compile(r"(?P<number>\d+)-?of-?(?P<count>\d+)", re.IGNORECASE)
"""A file's place in its set: `00000-of-00005` (TensorFlow's own), `01of02`
(image-tfrecord-builder)."""

SHARD_SUFFIXES = ("tfrecord", "tfrecords", "tfrec", "record")
"""The usual extensions of TFRecord files."""

_NUMBERED = f"*-{'[0-9]' * 5}-of-{'[0-9]' * 5}"

SHARD_PATTERNS = (
    *(f"*.{suffix}" for suffix in SHARD_SUFFIXES),
    *(f"*.{suffix}.gz" for suffix in SHARD_SUFFIXES),
    _NUMBERED,
    f"{_NUMBERED}.gz",
)
"""The usual names of TFRecord files, as patterns."""

_LIKE_A_SHARD = re.compile(
    r"\.tf_?rec(?:ord)?s?\b"  # a.tfrecord, a.tfrec.gz, a.tfrecord-00000-of-00005
    r"|\.records?\b"
    r"|\d+-?of-?\d+"  # train-00000-of-01024, Inception's; test_01of02
    r"|(?:^|_)shard_\d+(?:\.gz)?$",  # scripts that write one file per process
    re.IGNORECASE,
)

_SUFFIXES = re.compile(r"\.(?:tf_?rec(?:ord)?s?|records?|gz)(?=\.|-|$)", re.IGNORECASE)

_SAVED_MODEL = re.compile(r"\.data-\d+-of-\d+$")

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
    """Returns the path of a shard's sidecar below the dataset's folder."""
    return f"{SIDECARS}/{shard}.jsonl"


def index_name(shard: str) -> str:
    """Returns the path of a shard's index below the dataset's folder."""
    return f"{SIDECARS}/{shard}.idx"


def shard_name(split: str, index: int, kind: str) -> str:
    """Returns the name of a shard's file in staging.

    `kind` is `SHARD`, `jsonl` (sidecar), `columns`, `versions`, `done.json` or `PICTURES`.
    """
    return f"{split}-{index:05d}.{kind}"


def beam_name(split: str, index: int, count: int) -> str:
    """Returns the name that Beam's `WriteToTFRecord` gives a file with the suffix of shards."""
    return f"{split}-{SHARD_POSITION.format(index=index, count=count)}.{SHARD}"


def parse_beam_name(name: str) -> tuple[str, int]:
    """Returns the split and the index in a name that `beam_name` gives."""
    split, index = name.rpartition("-of-")[0].rsplit("-", 1)
    return split, int(index)


def looks_like_shard(name: str) -> bool:
    """Returns whether a file of this base name is likely a TFRecord file."""
    return bool(_LIKE_A_SHARD.search(name))


def is_of_saved_model(name: str) -> bool:
    """Tells if a file of this base name holds variables of one of TensorFlow's saved models."""
    return bool(_SAVED_MODEL.search(name))


def counts_from_one(name: str, numbers: Collection[int], count: int) -> bool:
    """Returns whether a set of files is numbered from 1, as in `01of02`; TensorFlow counts from 0.

    Args:
        name: the base name of one of the files.
        numbers: the numbers of those that are there.
        count: how many files the set has.
    """
    return 0 not in numbers and (count in numbers or "-of-" not in name.lower())


def stem_of_shard(name: str) -> str:
    """Returns a base name without the number of its shard and the usual extensions."""
    return _SUFFIXES.sub("", SHARD_NUMBER.sub("", name)).strip("-_.")


def staging_names(names: Iterable[str]) -> list[str]:
    """Returns the names in an output folder that are staging folders."""
    return [name for name in names if name.startswith(STAGING_PREFIX)]


def fill_pattern(
    pattern: str, *, name: str, split: str, index: int, count: int, records: int
) -> str:
    """Returns the name of a shard; `index` counts from 0."""
    return pattern.format(
        name=name, split=split, index=index, number=index + 1, count=count, records=records
    )


def check_pattern(pattern: str, key: str) -> None:
    """Raises SettingError if a pattern is invalid or gives invalid names.

    Args:
        pattern: as users write it.
        key: the setting that it is written under.
    """
    if re.search(r":[^}]*[0-9]{5}", pattern):
        raise SettingError(
            key,
            f"{pattern!r:.80} gives names that are too long: use format codes of fewer digits",
        )
    try:
        filled = fill_pattern(pattern, name="n", split="s", index=0, count=1, records=1)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        raise SettingError(
            key, f"{pattern!r} is not a valid pattern ({error}): it may use {known}"
        ) from None
    check_file_name(filled, pattern, key)


def check_file_name(name: str, pattern: str, key: str) -> None:
    """Raises SettingError if a pattern gives names that no file can have."""
    is_visible = bool(name.strip()) and not name.startswith(".") and "/" not in name
    if not is_visible or not _CONTROL.isdisjoint(name) or len(name.encode()) > MOST_BYTES:
        raise SettingError(
            key,
            f"{pattern!r} gives the name {name[:80]!r}: names of visible files have neither "
            f"folders nor control characters, and at most {MOST_BYTES} bytes",
        )
