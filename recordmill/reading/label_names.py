"""Checks that classes have the ids in a shard, and in its sidecar, that the marker gives them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordmill.reading.example import ParsedExample
from recordmill.reading.expectations import Expectations
from recordmill.schemas.dataset.sidecar_row import SidecarRow


class NameProblems:
    """Problems of many records, each reported once: if two names were swapped, every record of both is wrong."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {}

    def add(self, problem: str, record: int, *place: Any) -> None:
        """Adds the problem of a record; an empty one is none."""
        if problem:
            self._found.setdefault(problem, [0, record, *place])[0] += 1

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yields each problem with the number of its further records, and number and place of its first record."""
        for problem, (count, *place) in self._found.items():
            further = f", and also in {count - 1:,} further record{'s' if count > 2 else ''}"
            yield f"{problem}{further if count > 1 else ''}", place


def judge_labels(example: ParsedExample, expected: Expectations) -> str:
    """The problem of a record's first wrong label; the empty string if there is none, or no ids are known."""
    ids = expected.label_ids
    for key in expected.label_keys if ids else ():
        wrong = [value for value in example.values(key) or () if isinstance(value, int) and value not in ids]
        if wrong:  # text is a name, not an id
            known = f"{len(ids):,} ids from {min(ids):,} to {max(ids):,}"
            return f"the label is {wrong[0]!r:.40}, not one of the {known} ({key})"
    return ""


def judge_names(example: ParsedExample, expected: Expectations) -> Iterator[str]:
    """The problem of the class names in each feature that has them; nothing if the marker's ids are not known."""
    for text_key, id_key in expected.name_keys if expected.class_ids else ():
        if (texts := example.values(text_key)) is not None:
            yield _judge_texts(texts, example.values(id_key), expected.class_ids)


def judge_row(row: SidecarRow, ids: Mapping[str, int]) -> str:
    """The problem of the classes in a sidecar's row; the empty string if there is none, or the marker has no ids."""
    if not ids:
        return ""
    problem = "" if row.class_name is None else _judge_pair(row.class_name, row.label, ids)
    if not problem and row.classes:
        names = row.classes if isinstance(row.classes, list) else [row.classes]  # a forged row may have anything
        problem = next(filter(None, (_judge_pair(name, None, ids) for name in names)), "")
    return problem and f"in the sidecar {problem}"


def _judge_texts(texts: Sequence[Any], ids: Sequence[Any] | None, known: Mapping[str, int]) -> str:
    if ids is not None and len(ids) != len(texts):
        return f"{len(texts)} class names for {len(ids)} ids"
    for text, label in zip(texts, ids or [None] * len(texts), strict=True):
        if not isinstance(text, bytes) or (isinstance(label, int) and label not in known.values()):
            continue  # another kind, or not an id: reported elsewhere
        if problem := _judge_pair(text.decode("utf-8", "replace"), label, known):
            return problem
    return ""


def _judge_pair(name: Any, label: Any, ids: Mapping[str, int]) -> str:
    """The problem of a class and its id; the id is None if it is not stored."""
    if not isinstance(name, str) or name not in ids:
        return f"class {name!r:.80} is not in recordmill.json"
    if isinstance(label, int) and label != ids[name]:
        return f"class {name!r:.80} has the id {label} here and {ids[name]} in recordmill.json"
    return ""
