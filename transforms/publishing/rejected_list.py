"""Lists what a run has rejected: all of it in a file, and the first of it for messages."""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import REJECTED
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.side_files import RejectedFile, RejectedRow
from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.formatting import most_frequent
from recordmill.storage import dataset_files

MOST_NAMED = 20
"""The most rejected things that a flag names."""

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, order=True)
class RejectedItem:
    """One rejected thing.

    Attributes:
        key: its key.
        reason: the code of the reason.
        detail: what is wrong with it, in one line.
    """

    key: str
    reason: str
    detail: str

    @property
    def text(self) -> str:
        """Its key and, in brackets, what is wrong with it."""
        return " ".join(f"{self.key} ({self.detail})".split())


@dataclass(frozen=True, slots=True)
class RejectedList:
    """What a run has rejected, as far as its messages need it.

    Attributes:
        path: the file with a line for each rejected thing; None if there is none.
        first: those with the lowest keys, one more than `MOST_NAMED` at most; empty if only the
            examples are known.
        examples: the first one of each reason, in words.
    """

    path: str | None = None
    first: Sequence[RejectedItem] = ()
    examples: Mapping[str, str] = field(default_factory=dict)

    def show_first(self, counts: Mapping[str, int]) -> list[str]:
        """Returns a line for each of the first things, with the code of its reason.

        The first one of each reason comes first, the most frequent reason before the others.

        Args:
            counts: how many there are, by reason.
        """
        ordered = [reason for reason in most_frequent(counts) if reason in self.examples]
        lines = [f"{reason}: {self.examples[reason]}" for reason in ordered]
        lines += [f"{item.reason}: {item.text}" for item in self.first]
        return [*dict.fromkeys(lines)][:_MOST_SHOWN]


class _FirstItems:
    """Collects from many items the first ones, and the first one of each reason."""

    def __init__(self) -> None:
        self._lowest: list[RejectedItem] = []
        self._examples: dict[str, RejectedItem] = {}

    def add(self, item: RejectedItem) -> None:
        """Adds the next item."""
        self._examples[item.reason] = min(item, self._examples.get(item.reason, item))
        if len(self._lowest) <= MOST_NAMED or item < self._lowest[-1]:
            insort(self._lowest, item)
            del self._lowest[MOST_NAMED + 1 :]

    def listed_in(self, path: str) -> RejectedList:
        """Returns what messages need of the items, which a file lists."""
        examples = {reason: item.text for reason, item in self._examples.items()}
        return RejectedList(path, tuple(self._lowest), examples)


def write_rejected(
    reports: Sequence[ShardReport], staging: str, inputs: Mapping[str, str]
) -> RejectedList:
    """Writes `rejected.jsonl` in staging from the sidecars.

    It has one line per rejected thing, in the order of the shards.

    Args:
        reports: of all shards.
        staging: the folder of the shards.
        inputs: folders by input name.
    """
    path, first = storage.join(staging, REJECTED), _FirstItems()

    def lines() -> Iterator[bytes]:
        for row in _rejected_rows(reports, staging):
            first.add(RejectedItem(row.key, str(row.reason), row.detail))
            yield orjson.dumps(to_json(_describe(row, inputs)), option=orjson.OPT_APPEND_NEWLINE)

    storage.make_folder(staging)
    storage.write_file(path, lines())
    return first.listed_in(path)


def read_rejected(folder: str, examples: Mapping[str, str]) -> RejectedList:
    """Reads the `rejected.jsonl` of a dataset, in staging or in place.

    Args:
        folder: the dataset's folder.
        examples: what the list has if the file cannot be read: the first of each reason, in words.
    """
    path, first = storage.join(folder, REJECTED), _FirstItems()
    try:
        for line in storage.read_lines(path):
            row = orjson.loads(line)
            first.add(RejectedItem(row["key"], row["reason"], row["detail"]))
    except (OSError, ValueError, LookupError, TypeError):
        return RejectedList(examples=examples)
    return first.listed_in(path)


def _rejected_rows(reports: Sequence[ShardReport], staging: str) -> Iterator[RejectedRow]:
    for report in sorted(reports, key=attrgetter("place")):
        if report.references == report.records:
            continue
        sidecar = dataset_files.shard_path(staging, report.split, report.index, "jsonl")
        for row in dataset_files.read_rows(sidecar):
            if isinstance(row, RejectedRow) and row.reason is not None:
                yield row


def _describe(row: RejectedRow, inputs: Mapping[str, str]) -> RejectedFile:
    name, path = ("", row.key) if "" in inputs else row.key.split("/", 1)
    uri = f"{inputs[name].rstrip('/')}/{row.spelling or path}"
    return RejectedFile(
        uri,
        row.stage,
        str(row.reason),
        row.detail,
        row.bytes,
        row.sha256,
        row.class_name,
        row.key,
    )
