"""Plain JSON values: conversion from and to dataclasses, differences, and digests.

A dataclass is read by its annotations. A field with a default may be absent, and is omitted if it
is None. A field `X | None` without a default must be present and may be null. The metadata `key` is
the name in JSON if it is not the field's.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

T = TypeVar("T")


class MisfitError(ValueError):
    """A JSON value does not fit its type; the arguments are its path and the problem."""

    def __str__(self) -> str:
        path, problem = self.args
        return f"{path or 'it'} {problem}"


def from_json(kind: type[T], value: Any, path: str = "") -> T:
    """Converts a JSON value to a type; unknown keys are ignored.

    Args:
        kind: a dataclass.
        value: what `orjson.loads` gave.
        path: where the value is in its file, for errors.

    Raises:
        MisfitError: the value is not as the type requires.
    """
    return cast("T", _read(kind, value, path))


def _read(kind: Any, value: Any, path: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        if is_dataclass(kind):
            return _read_object(kind, value, path)
        return _check(kind, value, path)
    if origin is UnionType:
        if value is None:
            return None
        return _read(inner[0], value, path)
    if origin is Literal:
        if value not in inner:
            raise MisfitError(path, f"is not one of {', '.join(inner)}")
        return value
    if origin is tuple:
        items = enumerate(_check(list, value, path))
        return tuple(_read(inner[0], each, f"{path}[{number}]") for number, each in items)
    item = int if origin is Counter else inner[1]
    read = {
        key: _read(item, each, _below(path, key)) for key, each in _check(dict, value, path).items()
    }
    if origin is Counter:
        return Counter(read)
    return read


def _read_object(kind: Any, value: Any, path: str) -> Any:
    there, found = _check(dict, value, path), {}
    for part in json_keys(kind):
        if part.key in there:
            found[part.name] = _read(part.kind, there[part.key], _below(path, part.key))
        elif part.is_required:
            raise MisfitError(_below(path, part.key), "is missing")
    return kind(**found)


def _check(kind: Any, value: Any, path: str) -> Any:
    if kind is float and type(value) is int:  # as other programs write 1.0
        return float(value)
    if kind is not Any and type(value) is not kind:
        raise MisfitError(path, f"is not of type {kind.__name__}")
    return value


def _below(path: str, key: str) -> str:
    if path:
        return f"{path}.{key}"
    return key


class JsonKey(NamedTuple):
    """A key of the object that a dataclass becomes, and the field that it fills.

    Attributes:
        key: the key.
        name: the field's name.
        kind: its type.
        is_required: whether objects without it are refused.
        is_omitted: whether it is left out if it is None.
    """

    key: str
    name: str
    kind: Any
    is_required: bool
    is_omitted: bool


@cache
def json_keys(kind: type) -> tuple[JsonKey, ...]:
    """Returns the keys of a dataclass, in the order of its fields."""
    hints, keys = get_type_hints(kind), []
    for each in fields(kind):
        hint, is_omitted = hints[each.name], each.default is None
        if is_omitted and get_origin(hint) is UnionType:
            hint = get_args(hint)[0]
        is_required = each.default is MISSING and each.default_factory is MISSING
        keys.append(
            JsonKey(each.metadata.get("key", each.name), each.name, hint, is_required, is_omitted)
        )
    return tuple(keys)


def to_json(value: Any) -> Any:
    """Converts a dataclass, or a container of dataclasses, to plain JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = [(part, getattr(value, part.name)) for part in json_keys(type(value))]
        return {
            part.key: to_json(each)
            for part, each in parts
            if each is not None or not part.is_omitted
        }
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    return value


def as_json(value: Any) -> bytes:
    """Returns indented JSON with a newline at its end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def as_kept_json(value: Any, option: int | None = None) -> bytes:
    """Returns JSON that takes only the memory of its length, for bytes that many are kept of.

    The bytes of `orjson.dumps` keep their buffer, which has 16 KiB at least.
    """
    return bytes(memoryview(orjson.dumps(value, option=option)))


def hash_json(value: Any) -> str:
    """Returns the SHA-256 of plain JSON values, in hex; the order of keys does not matter."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def differences(old: Any, new: Any, key: str = "") -> list[str]:
    """Returns the differences between two recipes, as `key.

    Old -> new` or in words, sorted by key.
    """
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
