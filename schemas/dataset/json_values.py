"""Plain JSON values: dataclasses made of them and written as them, how two of them differ, and their digest.

A dataclass is read by its annotations. A field with a default may be absent, and is left out where it is None. A field
`X | None` without a default must be there and may be null. Metadata: `key` is the name in JSON where the field has
another one, and `rest` marks the field that holds all keys that no field has.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
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
    """A JSON value is not as its type requires; the message says where and why."""

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
    """The object of a type that a JSON value describes; keys that the type does not know are ignored.

    Raises:
        MisfitError: the value is not as the type requires.
    """
    made: T = _reader(cast("Hashable", kind))(value)
    return made


def to_json(value: Any) -> dict[str, Any]:
    """A dataclass as plain JSON values."""
    plain: dict[str, Any] = _writer(cast("Hashable", type(value)))(value)
    return plain


def as_json(value: Any) -> bytes:
    """Indented JSON with a newline at its end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def hash_json(value: Any) -> str:
    """The SHA-256 of plain JSON values, in hex; the order of keys does not matter."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def differences(old: Any, new: Any, key: str = "") -> list[str]:
    """What differs between two recipes, as `key: old -> new` or in words, sorted by key."""
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
    """What makes a type's objects of JSON values. Paths are put together only where a value does not fit."""
    if kind is Any:
        return lambda value: value
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        known = _reader(next(each for each in inner if each is not NoneType))
        return lambda value: None if value is None else known(value)
    if origin is Literal:
        return _choice_reader(inner)
    if origin is tuple:
        return _list_reader(_reader(inner[0]))
    if origin is not None:
        return _mapping_reader(_reader(inner[1]))
    return _object_reader(kind) if is_dataclass(kind) else _scalar_reader(cast("type", kind))


def _scalar_reader(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise MisfitError(f"is not {_WORDS[kind]}")
        return value

    return read


def _choice_reader(choices: tuple[str, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in choices:
            raise MisfitError(f"is not one of {', '.join(choices)}")
        return value

    return read


def _list_reader(item: Reader) -> Reader:
    is_list = _scalar_reader(list)

    def read(value: Any) -> Any:
        found: list[Any] = []
        try:
            found.extend(map(item, is_list(value)))
        except MisfitError as misfit:
            raise (misfit.below(len(found)) if type(value) is list else misfit) from None
        return tuple(found)

    return read


def _mapping_reader(item: Reader) -> Reader:
    is_object = _scalar_reader(dict)

    def read(value: Any) -> Any:
        found = {}
        for key, each in is_object(value).items():
            try:
                found[key] = item(each)
            except MisfitError as misfit:
                raise misfit.below(key) from None
        return found

    return read


def _object_reader(kind: Any) -> Reader:
    hints, is_object = get_type_hints(kind), _scalar_reader(dict)
    named = [each for each in fields(kind) if not each.metadata.get("rest")]
    rest = [each.name for each in fields(kind) if each.metadata.get("rest")]
    parts = []
    for each in named:
        required = each.default is MISSING and each.default_factory is MISSING
        hint = hints[each.name]
        of = get_args(hint)[0] if each.default is None and get_origin(hint) is UnionType else hint
        parts.append((each.name, each.metadata.get("key", each.name), _reader(of), required))
    keys = {key for _, key, _, _ in parts}

    def read(value: Any) -> Any:
        found, there = {}, is_object(value)
        for name, key, item, required in parts:
            if key in there:
                try:
                    found[name] = item(there[key])
                except MisfitError as misfit:
                    raise misfit.below(key) from None
            elif required:
                raise MisfitError("is missing", key)
        for name in rest:
            found[name] = {key: there[key] for key in there if key not in keys}
        return kind(**found)

    return read


@cache
def _writer(kind: Hashable) -> Reader:
    """What makes JSON values of a type's objects."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        known = _writer(next(each for each in inner if each is not NoneType))
        return lambda value: None if value is None else known(value)
    if origin not in (None, Literal):
        item = _writer(inner[0 if origin is tuple else 1])
        if origin is tuple:
            return lambda value: [item(each) for each in value]
        return dict if item is _same else lambda value: {key: item(each) for key, each in value.items()}
    return _object_writer(kind) if is_dataclass(kind) else _same


def _same(value: Any) -> Any:
    return value


def _object_writer(kind: Any) -> Reader:
    hints, parts = get_type_hints(kind), fields(kind)
    if not any(each.metadata or each.default is None for each in parts) and all(
        _writer(hints[each.name]) is _same for each in parts
    ):
        names = tuple(each.name for each in parts)
        values = attrgetter(*names)
        return lambda value: dict(zip(names, values(value), strict=True))
    writers = [
        (each.name, each.metadata.get("key", each.name), each.metadata.get("rest"), each.default is None)
        for each in parts
    ]

    def write(value: Any) -> Any:
        plain: dict[str, Any] = {}
        for name, key, rest, optional in writers:
            part = getattr(value, name)
            if rest:
                plain |= part
            elif part is not None or not optional:
                plain[key] = _writer(hints[name])(part)
        return plain

    return write
