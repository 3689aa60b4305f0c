"""Compares two datasets by their markers and sidecars; shards are not read."""

from collections.abc import Iterable, Iterator, Sequence, Set
from heapq import merge
from itertools import islice
from typing import Any

import orjson

from recordmill import storage
from recordmill.reading.compare.compare_rows import Comparison, Entry, RowJudge, compare_rows
from recordmill.reading.dataset import Dataset
from recordmill.reading.shard import FORGED, Shard
from recordmill.schemas.dataset.json_values import differences
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import LoadError
from recordmill.schemas.key_hashes import order_of
from recordmill.storage.temporary_files import SortedRows

_DERIVED = frozenset(
    ("cuts", "feature_schema", "file_names", "format_names", "label_ids", "label_offset", "listing", "split_order")
)
"""Parts of a recipe that follow from the input or from other parts."""

_OF_OTHER_FILES = frozenset(
    ("compression", "duplicates", "exclude", "ignore", "include", "index_files", "keep", "limit", "limit_per_class")
) | {"name", "seed", "shards", "splits"}
"""Parts that decide which records there are and where, not what they contain."""

_BATCH = 10_000


def compare_datasets(before: Dataset, after: Dataset) -> Comparison:
    """Compares two datasets of Recordmill, in memory that does not grow with them.

    Raises:
        LoadError: one of them has no marker, or a sidecar cannot be understood.
        OSError: a file cannot be read.
        TemporaryFileError: there is no room for temporary files.
    """
    old, new = before.require_marker(), after.require_marker()
    seed = seed_of(old)
    settings = compare_settings(old, new)
    found = compare_rows(read_entries(before, seed), read_entries(after, seed), judge_of(old, new))
    found.settings = settings
    return found


def seed_of(marker: Marker) -> int:
    """The seed of the hashes by which a dataset is ordered."""
    seed: int = marker.plan.recipe.get("seed", 0)
    return seed


def judge_of(old: Marker, new: Marker) -> RowJudge:
    """What is known of rows of these datasets."""
    alike = _without(_DERIVED | _OF_OTHER_FILES, old) == _without(_DERIVED | _OF_OTHER_FILES, new)
    same_ids = all(new.labels.get(name, number) == number for name, number in old.labels.items())
    stores_split = any(entry.field == "split" for entry in new.features.values())
    return RowJudge(alike and same_ids, stores_split)


def _without(keys: Set[str], marker: Marker) -> dict[str, Any]:
    return {key: each for key, each in marker.plan.recipe.items() if key not in keys}


def compare_settings(old: Marker, new: Marker) -> list[str]:
    """Differences between settings, versions and class ids, as `key: old -> new`."""
    one, other = _without(_DERIVED, old), _without(_DERIVED, new)
    return [*differences(one, other), *differences(dict(old.labels), dict(new.labels), "labels")]


def read_entries(dataset: Dataset, seed: int) -> Iterator[Entry]:
    """The rows of all records, in ascending order of the hash of their keys with this seed.

    Raises:
        LoadError: Recordmill did not write them like this.
        OSError: a sidecar cannot be read.
    """
    own = seed_of(dataset.require_marker())
    entries = merge(*(_read_split(shards, split, own) for split, shards in dataset.splits.items()))
    return entries if own == seed else sort_entries(((key, split, row) for _, key, split, row in entries), seed)


def _read_split(shards: Sequence[Shard], split: str, seed: int) -> Iterator[Entry]:
    last = -1
    for shard in shards:
        try:
            with storage.open_to_read(shard.sidecar) as lines:
                for row in map(orjson.loads, lines):
                    if "rejected" in row:
                        continue
                    key, _, _ = row["key"], row["sha256"], row["class"]
                    number = order_of(seed, key)
                    if number < last:
                        raise LoadError(f"the rows of {shard.sidecar} are not in order: verify the dataset")
                    last = number
                    yield number, key, split, row
        except LoadError:
            raise
        except FORGED as error:
            raise LoadError(f"the sidecar {shard.sidecar} cannot be understood ({error}): restore it") from None


def sort_entries(rows: Iterable[tuple[str, str | None, Any]], seed: int) -> Iterator[Entry]:
    """Sorts keys, splits and rows by the hash of the key, in a temporary file."""
    rows, place = iter(rows), SortedRows()
    while batch := list(islice(rows, _BATCH)):
        place.add((f"{order_of(seed, each[0]):016x}{each[0]}", orjson.dumps(each)) for each in batch)
    for number, line in place:
        key, split, row = orjson.loads(line)
        yield int(number[:16], 16), key, split, row
