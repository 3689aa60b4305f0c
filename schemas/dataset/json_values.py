"""Plain JSON values: conversion from and to dataclasses, differences, and digests.

A dataclass is read by its annotations. A field with a default may be absent, and is omitted if it is None. A field
`X | None` without a default must be present and may be null. Metadata: `key` is the name in JSON if it is not the
field's, and `rest` marks the field for all other keys.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

T = TypeVar("T")
Reader = Callable[[Any], Any]

_WORDS: Mapping[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}


class MisfitError(ValueError):
    """A JSON value does not fit its type; the message says where and why."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem, path)
        self.problem, self.path = problem, path

    def below(self, key: str | int) -> "MisfitError":
        """The same error, seen from the object or list that holds the value."""
        inner = f".{self.path}" if self.path and not self.path.startswith("[") else self.path
        return MisfitError(self.problem, f"{key if isinstance(key, str) else f'[{key}]'}{inner}")

    def __str__(self) -> str:
        return f"{self.path or 'it'} {self.problem}"


def from_json(kind: type[T], value: Any) -> T:
    """Converts a JSON value to a type; unknown keys are ignored.

    Raises:
        MisfitError: the value is not as the type requires.
    """
    made: T = _reader(cast("Hashable", kind))(value)
    return made


def to_json(value: Any) -> Any:
    """Converts a dataclass, or a container of dataclasses, to plain JSON values."""
    if is_dataclass(value):
        plain: dict[str, Any] = {}
        for each in fields(value):
            part = getattr(value, each.name)
            if each.metadata.get("rest"):
                plain |= part
            elif part is not None or each.default is not None:
                plain[_key_of(each)] = to_json(part)
        return plain
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return {key: to_json(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def as_json(value: Any) -> bytes:
    """Indented JSON with a newline at its end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def hash_json(value: Any) -> str:
    """The SHA-256 of plain JSON values, in hex; the order of keys does not matter."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def differences(old: Any, new: Any, key: str = "") -> list[str]:
    """The differences between two recipes, as `key: old -> new` or in words, sorted by key."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for name in sorted({*old, *new}):
            found += differences(old.get(name), new.get(name), f"{key}.{name}" if key else name)
        return found
    if old == new:
        return []
    if key == "listing.digest":
        return ["other images"]
    if key == "listing.references" and old and new:
        return [f"{new:,} of them instead of {old:,}"]
    shown = ["not set" if each is None else each for each in (old, new)]
    return [f"{key}: {shown[0]} -> {shown[1]}"]


@cache
def _reader(kind: Hashable) -> Reader:
    """The function that converts JSON values to a type. Paths are computed only for errors."""
    if kind is Any:
        return lambda value: value
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return partial(_choice, inner)
    if origin is UnionType:
        known = _reader(inner[0])
        return lambda value: None if value is None else known(value)
    if origin is tuple:
        item = _reader(inner[0])
        return lambda value: tuple(_each(enumerate(_check(list, value)), item).values())
    if origin is not None:
        item = _reader(inner[1])
        return lambda value: _each(_check(dict, value).items(), item)
    return _object_reader(kind) if is_dataclass(kind) else partial(_check, kind)


def _check(kind: Any, value: Any) -> Any:
    if type(value) is not kind:
        raise MisfitError(f"is not {_WORDS[kind]}")
    return value


def _choice(choices: tuple[str, ...], value: Any) -> Any:
    if value not in choices:
        raise MisfitError(f"is not one of {', '.join(choices)}")
    return value


def _each(items: Iterable[tuple[Any, Any]], read: Reader) -> dict[Any, Any]:
    found = {}
    for key, value in items:
        try:
            found[key] = read(value)
        except MisfitError as misfit:
            raise misfit.below(key) from None
    return found


def _object_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    parts, rest = {}, ""
    for each in fields(kind):
        if each.metadata.get("rest"):
            rest = each.name
            continue
        hint, required = hints[each.name], each.default is MISSING and each.default_factory is MISSING
        of = get_args(hint)[0] if each.default is None and get_origin(hint) is UnionType else hint
        parts[_key_of(each)] = each.name, _reader(of), required

    def read(value: Any) -> Any:
        there, found = _check(dict, value), {}
        for key, (name, item, required) in parts.items():
            if key in there:
                try:
                    found[name] = item(there[key])
                except MisfitError as misfit:
                    raise misfit.below(key) from None
            elif required:
                raise MisfitError("is missing", key)
        if rest:
            found[rest] = {key: there[key] for key in there if key not in parts}
        return kind(**found)

    return read


def _key_of(each: Field[Any]) -> str:
    key: str = each.metadata.get("key", each.name)
    return key
