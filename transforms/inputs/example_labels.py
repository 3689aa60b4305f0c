"""Labels of Examples that are numbers written as text or as floats.

Conventions have integers. `"1"` and `1.0` are read as 1, and other values stay unread. Both are
noted, never silent.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from recordmill.schemas.conventions import Convention, convention_names, load_convention

_LABEL_FIELDS = frozenset({"label", "labels", "box_labels"})
_OTHER_KINDS = {"bytes_list": "bytes", "float_list": "float"}
_INTEGER = re.compile(rb"\s*([+-]?\d{1,18})(?:\.0*)?\s*")
_MOST_FLOAT = 2**53  # larger floats may stand for another integer

FindConvention = Callable[[frozenset[tuple[str, str | None]]], Convention | None]
"""Finds the convention for an Example's keys and kinds; None if none fits."""


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """An Example whose labels are integers, as far as possible.

    Attributes:
        convention: the convention that fits; None if none does.
        entries: its features by key.
        notes: sentences about labels of another type, for `Notice.reason` with the status `noted`.
        unread: the keys of labels that could not be read.
    """

    convention: Convention | None
    entries: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()


def read_labels(
    entries: Mapping[str, Any], declared: Convention | None, find: FindConvention
) -> ReadLabels:
    """Finds an Example's convention, and reads labels of another type as integers.

    Args:
        entries: the Example's protobuf features by key.
        declared: the convention of the settings; None: it is found.
        find: finds it.
    """
    kinds = {key: entry.WhichOneof("kind") for key, entry in entries.items()}
    strict = declared or find(frozenset(kinds.items()))
    known = _label_keys(declared) if declared else _known_label_keys()
    wrong = {key: kinds[key] for key in known & kinds.keys() if kinds[key] in _OTHER_KINDS}
    if strict and not declared:  # it may have the key, with this type
        wrong = {key: kind for key, kind in wrong.items() if key not in strict.features}
    if not wrong:
        return ReadLabels(strict, entries)
    numbers = {key: _as_integers(entries[key], kind) for key, kind in wrong.items()}
    readable = {key: values for key, values in numbers.items() if values is not None}
    meant = declared or find(_with_integers(kinds, wrong))
    if meant is None or (not declared and _named(meant, kinds) <= _named(strict, kinds)):
        return ReadLabels(strict, entries)  # these are not labels
    keys = wrong.keys() & _label_keys(meant)
    # A record that lacks its only label has none; one whose boxes lack theirs is rejected.
    unread = {
        key
        for key in keys - readable.keys()
        if not declared and meant.fields.get("label") and meant.fields["label"].key == key
    }
    read = {key: entries[key] for key in entries if key not in unread}
    for key in readable.keys() & keys:
        read[key] = type(entries[key])()
        read[key].int64_list.value.extend(readable[key])
    notes = [
        f"{_describe(key, wrong[key])}: the labels of {{images}} were read as numbers"
        for key in sorted(readable.keys() & keys)
        if readable[key]
    ]
    notes += [f"{_describe(key, wrong[key])}: {{images have}} no label" for key in sorted(unread)]
    return ReadLabels(meant, read, tuple(notes), frozenset(unread))


def _describe(key: str, kind: str) -> str:
    return f"{key} is {_OTHER_KINDS[kind]}, int64 was expected"


def _label_keys(convention: Convention) -> frozenset[str]:
    """The keys of the integers that are labels."""
    return frozenset(
        feature.key
        for feature in convention.example_features
        if feature.field in _LABEL_FIELDS and feature.kind == "int64" and feature.constant is None
    )


@cache
def _known_label_keys() -> frozenset[str]:
    return frozenset[str]().union(*(_label_keys(load_convention(n)) for n in convention_names()))


def _with_integers(
    kinds: Mapping[str, str | None], keys: Mapping[str, Any]
) -> frozenset[tuple[str, str | None]]:
    return frozenset({**kinds, **dict.fromkeys(keys, "int64_list")}.items())


def _named(convention: Convention | None, kinds: Mapping[str, Any]) -> int:
    """The number of an Example's keys that a convention has."""
    return len(convention.features.keys() & kinds.keys()) if convention else -1


def _as_integers(entry: Any, kind: str) -> list[int] | None:
    """The integers that a list of texts or floats stands for; None if one is not an integer."""
    values = getattr(entry, kind).value
    if kind == "float_list":
        are_integers = all(value.is_integer() and abs(value) < _MOST_FLOAT for value in values)
        return [int(value) for value in values] if are_integers else None
    matches = [_INTEGER.fullmatch(value) for value in values]
    return [int(match[1]) for match in matches if match] if all(matches) else None
