"""Labels of Examples that are written as text or as floats, where conventions have integers.

`"1"` and `1.0` are read as 1, and other texts as names of classes. Both are noted. Other values
stay as they are, and their Examples are rejected.
"""

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Rejected

_TEXTS = {"label": "label_text", "box_labels": "box_label_texts"}
"""The fields of the names of classes, by the field of their numbers."""

_LABEL_FIELDS = frozenset({"labels", *_TEXTS})
_LABELS = "the labels of {images}"
_OTHER_KINDS = {"bytes_list": "bytes", "float_list": "float"}
_INTEGER = re.compile(rb"\s*([+-]?\d{1,18})(?:\.0*)?\s*")
_NUMBER = re.compile(rb"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf)\s*", re.IGNORECASE)
_MOST_FLOAT = 2**53  # larger floats may stand for another integer

FindConvention = Callable[[frozenset[tuple[str, str | None]]], Convention | None]
"""Finds the convention for an Example's keys and kinds; None if none fits."""


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """An Example whose labels are integers or names, as far as possible.

    Attributes:
        convention: the convention that fits; None if none does.
        entries: its features by key, without labels that are names, or that need not be read.
        texts: the names of classes that stand where integers were expected, by the field for class
            names.
        notes: sentences about labels of another type, for `Notice.reason` with the status `noted`.
    """

    convention: Convention | None
    entries: dict[str, Any]
    texts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_labels(
    entries: Mapping[str, Any],
    declared: Convention | None,
    find: FindConvention,
    kept: Container[str] = (),
) -> ReadLabels:
    """Finds an Example's convention, and reads labels of another type as integers or names.

    Args:
        entries: the Example's protobuf features by key.
        declared: the convention of the settings; None: it is found.
        find: finds it.
        kept: the keys that the settings copy as they are, which need not be labels.

    Raises:
        Rejected: a label is not a class, and is not copied; with a declared convention, reading its
            value raises that.
    """
    kinds = {key: entry.WhichOneof("kind") for key, entry in entries.items()}
    strict = declared or find(frozenset(kinds.items()))
    known = _label_keys(declared) if declared else _known_label_keys()
    wrong = {key: kinds[key] for key in known & kinds.keys() if kinds[key] in _OTHER_KINDS}
    if strict and not declared:  # it may have the key, with this type
        wrong = {key: kind for key, kind in wrong.items() if key not in strict.features}
    if not wrong:
        return ReadLabels(strict, dict(entries))
    meant = declared or find(_with_integers(kinds, wrong))
    if meant is None or (not declared and _named(meant, kinds) <= _named(strict, kinds)):
        return ReadLabels(strict, dict(entries))  # these are not labels
    found = ReadLabels(meant, dict(entries))
    for feature in meant.example_features:
        key = feature.key
        if key not in wrong or key not in _label_keys(meant):
            continue
        _read_label(found, feature, wrong[key])
        if declared or found.entries.get(key) != entries[key]:  # it was read
            continue
        if key not in kept:
            raise Rejected("read", "bad_example", _refuse(key, wrong[key]))
        del found.entries[key]
    return found


def _refuse(key: str, kind: str) -> str:
    name = _OTHER_KINDS[kind]
    advice = f"correct it, or add {key}: {name} to source.keep and set a convention without it"
    return (
        f"feature {key} is of type {kind}, not int64_list, and its value is not a class: {advice}"
    )


def _read_label(found: ReadLabels, feature: Feature, kind: str) -> None:
    """Reads one label of another type; one that is neither integers nor names stays as it is."""
    key, field_of_names = feature.key, _TEXTS.get(feature.field, "")
    entry = found.entries[key]
    numbers, names = _as_integers(entry, kind), _as_names(entry, kind, feature)
    has_names = _has_values(found, field_of_names)
    what, fate = f"{key} is {_OTHER_KINDS[kind]}, int64 was expected", ""
    if numbers is not None:
        found.entries[key] = type(entry)()
        found.entries[key].int64_list.value.extend(numbers)
        if numbers and not has_names:
            fate = f"{_LABELS} were read as numbers"
    elif has_names:
        del found.entries[key]
    elif names is not None:
        del found.entries[key]
        found.texts[field_of_names] = names
        fate = "{images have} no label"
        if names:
            fate = f"{_LABELS} were read as names of classes"
    if fate:
        found.notes.append(f"{what}: {fate}")


def _has_values(found: ReadLabels, field_of_names: str) -> bool:
    """Whether an Example also has the names of its classes, where the convention has them."""
    if found.convention is None:
        return False
    feature = found.convention.fields.get(field_of_names)
    if feature is None or feature.key not in found.entries:
        return False
    return any(found.entries[feature.key].bytes_list.value)


def _label_keys(convention: Convention) -> frozenset[str]:
    """Returns the keys of the integers that are labels."""
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
    """Returns the number of an Example's keys that a convention has."""
    return len(convention.features.keys() & kinds.keys()) if convention else -1


def _as_integers(entry: Any, kind: str) -> list[int] | None:
    """Returns the integers that a list of texts or floats stands for.

    Returns None if one is not an integer.
    """
    values = getattr(entry, kind).value
    if kind == "float_list":
        are_integers = all(value.is_integer() and abs(value) < _MOST_FLOAT for value in values)
        return list(map(int, values)) if are_integers else None
    matches = [match for value in values if (match := _INTEGER.fullmatch(value))]
    if len(matches) < len(values):
        return None
    return [int(match[1]) for match in matches]


def _as_names(entry: Any, kind: str, feature: Feature) -> Any:
    """Returns the names of classes that a label consists of; None if it is something else.

    It is a list if the feature is one. Numbers that are not integers are not names.
    """
    values = list(getattr(entry, kind).value)
    if kind != "bytes_list" or feature.field not in _TEXTS or any(map(_NUMBER.fullmatch, values)):
        return None
    if feature.many:
        return values
    return values[0] if len(values) == 1 else None
