"""Compares two datasets, or a dataset and a folder, by their markers and sidecars.

Memory is bounded. Of shards, only records whose annotations may differ are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

import orjson

from recordmill import storage
from recordmill.annotations.kinds import KINDS as ANNOTATION_KINDS
from recordmill.annotations.pairs import describe_second_field, is_second_field
from recordmill.reading.compare_annotations import AnnotationJudge
from recordmill.reading.dataset import FORGED, Dataset, StoredShard
from recordmill.schemas.dataset.compare_plans import DERIVED, list_differences
from recordmill.schemas.dataset.json_values import as_kept_json, differences
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.digests import order_of
from recordmill.schemas.earlier_names import with_present_keys
from recordmill.schemas.errors import LoadError
from recordmill.schemas.formatting import plural_of
from recordmill.storage.temporary_files import SortedRows

KINDS: Mapping[str, str] = {
    "added": "added",
    "removed": "removed",
    "renamed": "renamed",
    "same_pixels": "other bytes, same pixels",
    "other_pixels": "other pixels",
    "other_bytes": "other bytes, pixels not known",
    "annotations": "other annotations or features",
    "relabeled": "other class",
    "moved": "other split",
}
"""The ways in which a row may differ; several may apply."""

MOST_EXAMPLES = 10
"""Examples kept for each kind."""

RowObject = Mapping[str, Any]
"""A row of a sidecar; `shard` is the path of its shard, unless the row is of a folder."""

HashedRow = tuple[int, str, str | None, RowObject]
"""The hash of a key, the key, the split (None if it is not known), and the sidecar's row."""


def _compare_pixels(one: str | None, other: str | None) -> str:
    """Which of `KINDS` says how images of other bytes differ, by the digests of their pixels."""
    if one is None or other is None:
        return "other_bytes"
    if one == other:
        return "same_pixels"
    return "other_pixels"


@dataclass(frozen=True, slots=True)
class RowJudge:
    """Finds out how two rows of one source differ.

    Attributes:
        compares_rest: whether equal sources give equal Examples unless their annotations differ.
        stores_split: whether Examples have their split.
        annotations: compares the annotations in Examples; None if they cannot be compared.
        same_words: whether equal Examples have equal annotations: if not, the numbers of attributes
            stand for other words.
    """

    compares_rest: bool
    stores_split: bool
    annotations: AnnotationJudge | None = None
    same_words: bool = True

    def find_kinds(
        self,
        one: RowObject,
        other: RowObject,
        splits: tuple[str | None, str | None],
        renamed: bool,
        annotated: Sequence[str] = (),
    ) -> Iterator[str]:
        """Yields those of `KINDS` that apply to two rows.

        Examples of a renamed file are not compared as a whole, since they may contain its name.

        Args:
            one: a row.
            other: the other one.
            splits: their splits.
            renamed: whether their keys differ.
            annotated: the result of `find_annotations`.
        """
        same_source, same_class = one["sha256"] == other["sha256"], one["class"] == other["class"]
        moved = splits[0] != splits[1] and None not in splits
        if not same_source:
            yield _compare_pixels(one.get("pixels"), other.get("pixels"))
        comparable = self.compares_rest and same_source and same_class and not renamed
        comparable = comparable and not (moved and self.stores_split)
        if "label" in other and (
            annotated
            or one.get("classes") != other.get("classes")
            or (comparable and _differ(one, other))
        ):
            yield "annotations"
        if not same_class:
            yield "relabeled"
        if moved:
            yield "moved"

    def find_annotations(self, one: RowObject, other: RowObject) -> list[str]:
        """Returns the kinds of annotations in which two rows differ, as far as that is known.

        Examples are read if equal annotations give equal Examples. Otherwise, the numbers of
        annotations are compared. Those of a folder are not known.
        """
        if "label" not in other:
            return []
        found = _find_other_counts(one, other)
        if self.annotations is None:
            return found
        if self.same_words and one.get("rest") == other.get("rest", ""):
            return found
        stored = self.annotations.find_kinds(one, other)
        return sorted({*found, *(stored or ())})


def _find_other_counts(one: RowObject, other: RowObject) -> list[str]:
    """Returns the kinds of annotations whose number differs between two rows.

    Only kinds that both rows have are compared: those of format 2 do not have all.
    """
    before, after = _count_annotations(one), _count_annotations(other)
    return [kind for kind in before if kind in after and before[kind] != after[kind]]


def _count_annotations(row: RowObject) -> dict[str, Any]:
    """Returns the number of annotations that were listed, by kind."""
    counts = with_present_keys(row).get("annotations") or {}
    return {kind: each.get("listed") for kind, each in counts.items()}


def _differ(one: RowObject, other: RowObject) -> bool:
    """Returns whether Examples differ apart from their images.

    The answer is False unless both datasets have digests of them.
    """
    rests = [row.get("rest", row.get("record")) for row in (one, other)]
    return None not in rests and rests[0] != rests[1]


@dataclass(slots=True)
class Comparison:
    """The differences between two datasets.

    Attributes:
        rows: the number of rows of each.
        unchanged: rows that do not differ.
        counts: rows by kind.
        annotations: rows whose annotations of a kind differ, by the kind of annotations.
        examples: the first keys of each kind, with the change.
        settings: differences between settings, versions and ids, in words.
    """

    rows: list[int] = field(default_factory=lambda: [0, 0])
    unchanged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    annotations: Counter[str] = field(default_factory=Counter)
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    settings: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not (self.counts or self.settings)

    def add(self, kind: str, text: str) -> None:
        """Counts a row of a kind; the text names it."""
        self.counts[kind] += 1
        if len(self.examples[kind]) < MOST_EXAMPLES:
            self.examples[kind].append(text)


def compare_rows(
    before: Iterable[HashedRow], after: Iterable[HashedRow], judge: RowJudge
) -> Comparison:
    """Compares two streams of rows in ascending order of hash and key.

    Raises:
        TemporaryFileError: there is no room on this machine for rows without a partner.
    """
    found, alone = Comparison(), SortedRows()
    alone.add(_compare_partners(found, judge, merge(_tag(0, before), _tag(1, after))))
    for _, rows in groupby(alone, itemgetter(0)):
        _compare_alone(found, judge, (orjson.loads(line) for _, line in rows))
    return found


Tagged = tuple[tuple[int, str], int, HashedRow]
"""What entries are sorted by, whether they are of the first (0) or the second dataset (1), and the
entry."""


def _compare_partners(
    found: Comparison, judge: RowJudge, tagged: Iterator[Tagged]
) -> Iterator[tuple[str, bytes]]:
    """Compares entries of the same key; yields the others, each with the digest of its source."""
    for _, group in groupby(tagged, itemgetter(0)):
        entries = list(group)
        for _, side, _ in entries:
            found.rows[side] += 1
        if [side for _, side, _ in entries] != [0, 1]:
            for _, side, (_, key, split, row) in entries:
                yield row["sha256"], as_kept_json([side, key, split, row])
            continue
        one, other = entries[0][2], entries[1][2]
        old, new = one[3], other[3]
        same = old.get("record") == new.get("record", "") and old["class"] == new["class"]
        same = same and judge.same_words
        if same and old["sha256"] == new["sha256"] and one[2] == other[2]:
            found.unchanged += 1  # most rows
        else:
            _compare_pair(found, judge, one, other)


def _tag(side: int, entries: Iterable[HashedRow]) -> Iterator[Tagged]:
    return ((entry[:2], side, entry) for entry in entries)


def _compare_pair(
    found: Comparison, judge: RowJudge, one: HashedRow, other: HashedRow, renamed: bool = False
) -> None:
    """Counts the kinds of difference between two entries of one image."""
    (_, old_key, old_split, old), (_, key, split, new) = one, other
    annotated = judge.find_annotations(old, new)
    kinds = list(judge.find_kinds(old, new, (old_split, split), renamed, annotated))
    if renamed:
        found.add("renamed", f"{old_key} -> {key}")
    elif not kinds:
        found.unchanged += 1
    found.annotations.update(annotated)
    changes = {
        "relabeled": f"{old['class'] or 'none'} -> {new['class'] or 'none'}",
        "moved": f"{old_split or 'none'} -> {split or 'none'}",
        "annotations": ", ".join(map(name_annotations, annotated)),
    }
    for kind in kinds:
        found.add(kind, ": ".join(filter(None, (key, changes.get(kind)))))


def _compare_alone(
    found: Comparison, judge: RowJudge, rows: Iterator[tuple[int, str, str | None, RowObject]]
) -> None:
    """Counts rows of one digest without a partner.

    If one row was removed and one was added, the file was renamed.
    """
    first = sorted(islice(rows, 3), key=itemgetter(0))
    if [side for side, *_ in first] == [0, 1]:
        one, other = ((0, key, split, row) for _, key, split, row in first)
        _compare_pair(found, judge, one, other, renamed=True)
        return
    for side, key, _, _ in chain(first, rows):
        found.add("added" if side else "removed", key)


def name_annotations(kind: str) -> str:
    """Returns what several annotations of a kind, or of a field, are called, such as `labels`."""
    if is_second_field(kind):
        return describe_second_field(kind)
    return plural_of(ANNOTATION_KINDS[kind].unit) if kind in ANNOTATION_KINDS else kind


_SELECTION = frozenset(
    (
        "compression",
        "duplicates",
        "exclude",
        "ignore",
        "include",
        "index_files",
        "keep",
        "limit",
        "limit_per_class",
    )
) | {"name", "seed", "shards", "splits"}
"""Parts that decide which records there are and where, not what they contain."""


def compare_datasets(before: Dataset, after: Dataset) -> Comparison:
    """Compares two datasets of Recordmill, in bounded memory.

    Raises:
        LoadError: one of them has no marker, or a sidecar cannot be understood.
        OSError: a file cannot be read.
        TemporaryFileError: there is no room for temporary files.
    """
    old, new = before.require_marker(), after.require_marker()
    seed = seed_of(old)
    judge = judge_of(old, new)
    try:
        found = compare_rows(read_entries(before, seed), read_entries(after, seed), judge)
    finally:
        if judge.annotations:
            judge.annotations.close()
    found.settings = compare_settings(old, new)
    return found


def seed_of(marker: Marker) -> int:
    """Returns the seed of the hashes by which a dataset is ordered."""
    return marker.plan.for_readers.seed


def judge_of(old: Marker, new: Marker) -> RowJudge:
    """Makes the judge for the rows of two datasets."""
    left_out = DERIVED | _SELECTION | {"listing"}
    alike = not list_differences(old.plan, new.plan, left_out)
    same_ids = all(new.labels.get(name, number) == number for name, number in old.labels.items())
    stores_split = any(entry.field == "split" for entry in new.features.values())
    same_words = (old.attributes or {}) == (new.attributes or {})
    annotations = None
    if alike and same_ids:
        annotations = AnnotationJudge(old, new)
    return RowJudge(alike and same_ids and same_words, stores_split, annotations, same_words)


def compare_settings(old: Marker, new: Marker) -> list[str]:
    """Returns differences between settings, versions and ids, as `key: old -> new`."""
    changed = list_differences(old.plan, new.plan, DERIVED | {"listing"})
    changed += differences(dict(old.labels), dict(new.labels), "labels")
    return [*changed, *differences(old.attributes or {}, new.attributes or {}, "attributes")]


def read_entries(dataset: Dataset, seed: int) -> Iterator[HashedRow]:
    """Returns the rows of all records, in ascending order of the hash of their keys with this seed.

    Raises:
        LoadError: a sidecar is malformed or out of order.
        OSError: a sidecar cannot be read.
    """
    own = seed_of(dataset.require_marker())
    entries = merge(*(_read_split(shards, split, own) for split, shards in dataset.splits.items()))
    if own == seed:
        return entries
    return sort_entries(((key, split, row) for _, key, split, row in entries), seed)


def _read_split(shards: Sequence[StoredShard], split: str, seed: int) -> Iterator[HashedRow]:
    last = -1
    for shard in shards:
        try:
            for row in map(orjson.loads, storage.read_lines(shard.sidecar)):
                if "rejected" in row:
                    continue
                key, _, _ = row["key"], row["sha256"], row["class"]
                number = order_of(seed, key)
                if number < last:
                    raise LoadError(
                        f"the rows of {shard.sidecar} are not in order: verify the dataset"
                    )
                last = number
                row["shard"] = shard.path
                yield number, key, split, row
        except LoadError:
            raise
        except FORGED as error:
            raise LoadError(
                f"the sidecar {shard.sidecar} cannot be understood ({error}): restore it"
            ) from None


def sort_entries(rows: Iterable[tuple[str, str | None, Any]], seed: int) -> Iterator[HashedRow]:
    """Sorts keys, splits and rows by the hash of the key, in a temporary file."""
    place = SortedRows()
    place.add((f"{order_of(seed, each[0]):016x}{each[0]}", as_kept_json(each)) for each in rows)
    for number, line in place:
        key, split, row = orjson.loads(line)
        yield int(number[:16], 16), key, split, row
