"""The names of a dataset's files, in its folder and in the staging folder."""

from collections.abc import Iterable

MARKER = "recordmill.json"
"""The file whose presence says that the dataset next to it is complete."""

LABELS, REJECTED, CONFIGURATION, DUPLICATES = "labels.txt", "rejected.jsonl", "config.yaml", "duplicates.jsonl"
"""The files of a dataset besides its shards, their sidecars and the marker."""

INDEX = "records.index"
"""The places of all records, for readers that seek; docs/format.md describes it."""

VERSIONS = "records.versions"
"""Digests of the files that the records were made from; docs/format.md describes it."""

SIDE_FILES = (LABELS, REJECTED, CONFIGURATION, DUPLICATES)
"""Those that every dataset has."""

REPORT = "report.html"
"""The report for people, if the settings request it. It is made from the published dataset; no marker lists it."""

REPORT_HEAD = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" '
    b"content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
)
"""The first lines of every report. A user's own page hardly begins with them."""

FOR_PEOPLE = frozenset({"README.md", "croissant.json", REPORT})
"""Files that people edit by hand (a licence, a citation), and that no reader of records needs."""

REPORT_DATA = "report.json"
"""What the report shows and no other file has, if the settings request a report."""

SIDECARS = "sidecars"
"""The folder of the sidecars."""

TRANSFORM_FN = "transform_fn"
"""The folder of an analysis; TensorFlow Transform's own name for it."""

STAGING_PREFIX = ".staging-"

CLAIM_PREFIX = "claim"
"""How the names of runs' claims begin, in the staging folder."""

DONE = ".done.json"
"""How the names of the notes on finished shards end, in the staging folder."""

OUTCOME = "outcome.json"
"""Why the last run of a plan failed, in its staging folder."""

EXAMPLES = "examples.json"
"""Pictures of changed images for the report, of a split's first shard, in the staging folder."""


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
