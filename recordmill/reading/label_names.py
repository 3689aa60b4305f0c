"""Checks that classes have the ids in a shard, and in its sidecar, that the marker gives them.

Each problem is reported once per file, with the first record and the number of the others: if two names were swapped,
every record of both is wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recordmill.reading.example import ParsedExample
from recordmill.reading.expectations import Expectations
from recordmill.schemas.dataset.sidecar_row import SidecarRow


def judge_labels(example: ParsedExample, expected: Expectations) -> str:
    """The problem of a record's first wrong label; the empty string if there is none, or no ids are known."""
    ids = expected.label_ids
    for key in expected.label_keys if ids else ():
        wrong = [value for value in example.values(key) or () if isinstance(value, int) and value not in ids]
        if wrong:  # text is a name, not an id
            known = f"{len(ids):,} ids from {min(ids):,} to {max(ids):,}"
            return f"the label is {wrong[0]!r:.40}, not one of the {known} ({key})"
    return ""


class LabelNames:
    """Checks the class names of records, and their ids."""

    def __init__(self, expected: Expectations) -> None:
        self._ids = expected.class_ids
        self._keys = expected.name_keys if expected.class_ids else ()
        self._found: dict[str, list[int]] = {}

    def look(self, example: ParsedExample, record: int, offset: int) -> None:
        """Checks one record.

        Args:
            example: the record.
            record: its number in the file.
            offset: where its frame begins.
        """
        for text_key, id_key in self._keys:
            texts = example.values(text_key)
            if texts is not None and (problem := self._judge(texts, example.values(id_key))):
                self._found.setdefault(problem, [0, record, offset])[0] += 1

    def findings(self) -> Iterator[tuple[str, int, int]]:
        """Yields each problem, with number and offset of the first record that has it."""
        for problem, (count, record, offset) in self._found.items():
            yield _counted(problem, count), record, offset

    def _judge(self, texts: Sequence[Any], ids: Sequence[Any] | None) -> str:
        if ids is not None and len(ids) != len(texts):
            return f"{len(texts)} class names for {len(ids)} ids"
        for text, label in zip(texts, ids or [None] * len(texts), strict=True):
            if not isinstance(text, bytes) or (isinstance(label, int) and label not in self._ids.values()):
                continue  # another kind, or not an id: reported elsewhere
            if problem := _judge_pair(text.decode("utf-8", "replace"), label, self._ids):
                return problem
        return ""


def fit_names(rows: Iterable[SidecarRow], ids: Mapping[str, int]) -> bool:
    """Whether the rows of a sidecar give classes the marker's ids; True if the marker has none."""
    return next(judge_rows(rows, ids), None) is None


def judge_rows(rows: Iterable[SidecarRow], ids: Mapping[str, int]) -> Iterator[tuple[str, int, int, str]]:
    """Yields each problem of the rows, with number, offset and key of the first row that has it."""
    found: dict[str, list[Any]] = {}
    for number, row in enumerate(rows if ids else ()):
        problem = "" if row.class_name is None else _judge_pair(row.class_name, row.label, ids)
        if not problem and row.classes:
            names = row.classes if isinstance(row.classes, list) else [row.classes]  # a forged row may have anything
            problem = next(filter(None, (_judge_pair(name, None, ids) for name in names)), "")
        if problem:
            found.setdefault(problem, [0, number, row.offset, str(row.key)])[0] += 1
    for problem, (count, *place) in found.items():
        yield _counted(f"in the sidecar {problem}", count), *place


def _judge_pair(name: Any, label: Any, ids: Mapping[str, int]) -> str:
    """The problem of a class and its id; the id is None if it is not stored."""
    if not isinstance(name, str) or name not in ids:
        return f"class {name!r:.80} is not in recordmill.json"
    if isinstance(label, int) and label != ids[name]:
        return f"class {name!r:.80} has the id {label} here and {ids[name]} in recordmill.json"
    return ""


def _counted(problem: str, count: int) -> str:
    if count == 1:
        return problem
    return f"{problem}, and also in {count - 1:,} further record{'s' if count > 2 else ''}"
