"""Fits the values of a configuration to the types of the settings.

YAML does not know that a name is a text: `name: 2024` gives a number. Settings of text take numbers
as they were written, so `version: 1.10` stays `1.10`. A truth value that gets `yes`, and a number
that gets `true`, are errors.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from yaml.reader import Reader

from recordmill.schemas.conventions import ConventionFeature
from recordmill.schemas.errors import SettingError, UsageError
from recordmill.schemas.yaml_core import NULLS, Written


class SetText(str):
    """The value of a `--set` that YAML does not read as it was written, such as `|` or `a # b`.

    A setting of text takes it as written; any other takes what YAML reads.

    Attributes:
        value: what YAML reads.
        error: a sentence if it is not YAML; otherwise None.
    """

    value: Any = None
    error: str | None = None

    @property
    def text(self) -> str:
        """The text as it was written."""
        return str(self)


class SetList(list[Any]):
    """The list in a `--set`.

    Attributes:
        text: how it was written, for settings of text: `[a-z]+`.
    """

    text: str = ""


class SetMapping(dict[Any, Any]):
    """The mapping in a `--set`.

    Attributes:
        text: how it was written, for settings of text: `{split}`.
    """

    text: str = ""


def read_set_text(text: str, parse: Callable[[str], Any]) -> Any:
    """Reads the value of a `--set`; it knows how it was written if YAML reads it in another way.

    Args:
        text: the value, in Unicode's NFC.
        parse: reads YAML.

    Raises:
        UsageError: it has quotes that are not closed, characters that YAML does not allow, or the
            like.
    """
    stripped = text.strip()
    # Text in quotes, with a tag, or in a block is meant as YAML.
    is_yaml = re.match(r"""["'].|!!|[|>][-+0-9]*[ \t]*\n""", stripped, re.DOTALL)
    if is_yaml or Reader.NON_PRINTABLE.search(text):
        return parse(text)
    written = SetText(stripped or text)
    try:
        value = written.value = parse(text)
    except UsageError as error:
        written.error = str(error)
        return written
    if isinstance(value, list | dict) and value:
        known: SetList | SetMapping
        if isinstance(value, list):
            known = SetList(value)
        else:
            known = SetMapping(value)
        known.text = stripped
        return known
    is_lost = value != stripped if isinstance(value, str) else stripped not in NULLS
    return written if isinstance(value, str | None) and (is_lost or written != stripped) else value


def fit_to_type(kind: Any, value: Any, problems: list[SettingError], key: str = "") -> Any:
    """Returns a value of YAML as the type of its setting has it, if that is clear.

    For text, a number is what was written, and a key without a value is the empty string. For a
    class with a `short_form`, a text stands for that key alone. Where a setting is one of two
    words, `yes` or `no`, truth values stand for them.

    Args:
        kind: the type; None if it is unknown.
        value: the value; numbers in it may be `Written`, and stay so where the type is unknown, as
            `SetText` does.
        problems: gets an error for each value that pydantic would take for another one.
        key: the key's path.

    Raises:
        UsageError: the value of a `--set` is not YAML, and the setting is not a text.
    """
    members = _members_of(kind)
    if isinstance(value, SetText | SetList | SetMapping) and {*members} in _TEXTS:
        return value.text
    if isinstance(value, SetText) and members:
        if value.error:
            raise UsageError(value.error)
        return fit_to_type(kind, value.value, problems, key)
    if value is None:
        is_text = str in members and NoneType not in members
        return "" if is_text or "" in _words_of(members) else None
    return _fit_by_class(members, value, problems, key)


_TEXTS: Collection[set[Any]] = ({str}, {str, NoneType})


def _fit_by_class(
    members: Collection[Any], value: Any, problems: list[SettingError], key: str
) -> Any:
    if isinstance(value, Written):
        return _fit_number(members, value)
    if isinstance(value, bool):
        return _fit_truth(members, value, problems, key)
    if isinstance(value, str):
        return _fit_text(members, value, problems, key)
    if isinstance(value, list):
        kinds = _item_types(members, len(value))
        return [
            fit_to_type(each, item, problems, _join(key, str(index)))
            for index, (each, item) in enumerate(zip(kinds, value, strict=True))
        ]
    if isinstance(value, dict):
        return _fit_mapping(members, value, problems, key)
    return value


@cache
def _members_of(kind: Any) -> tuple[Any, ...]:
    """Returns the types that a value may have: the members of a union, without bounds and names."""
    return tuple(_iter_members(kind))


def _iter_members(kind: Any) -> Iterator[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _iter_members(get_args(kind)[0])
    elif origin in (Union, UnionType):
        for each in get_args(kind):
            yield from _iter_members(each)
    elif kind is not None:
        yield kind


def _words_of(members: Collection[Any]) -> tuple[Any, ...]:
    """Returns the values that a setting may have, if its type lists them."""
    return tuple(word for each in members if get_origin(each) is Literal for word in get_args(each))


def _fit_number(members: Collection[Any], number: Written) -> Any:
    is_text = str in members and not {int, float} & {*members}
    if is_text or number.text in _words_of(members):
        return number.text
    return number


def _fit_truth(
    members: Collection[Any], value: bool, problems: list[SettingError], key: str
) -> Any:
    if {"yes", "no"} <= {*_words_of(members)}:
        return "yes" if value else "no"
    # Python counts truth values as numbers.
    if members and {*members} <= {int, float, NoneType}:
        number = "a whole number" if int in members else "a number"
        problems.append(SettingError(key, f"is {str(value).lower()}: it should be {number}"))
    return value


def _fit_text(members: Collection[Any], text: str, problems: list[SettingError], key: str) -> Any:
    for each in members:
        if short := getattr(each, "short_form", ""):
            return {short: text}
    words = _words_of(members)
    if bool in members and str not in members and text.lower() in _SAID_FOR_TRUTH:
        others = "".join(f", or {word}" for word in words)
        problems.append(SettingError(key, f"is {text!r:.80}: write true or false{others}"))
    return text


_SAID_FOR_TRUTH = frozenset({"yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"})
"""Texts that pydantic takes for truth values, and YAML 1.2 does not."""


def _item_types(members: Collection[Any], count: int) -> list[Any]:
    """Returns the types of the items of a list of this length."""
    for each in members:
        if get_origin(each) is tuple:
            kinds = get_args(each)
            if kinds[1:] == (...,):
                return [kinds[0]] * count
            return [*kinds[:count], *[None] * (count - len(kinds))]
    return [None] * count


def _fit_mapping(
    members: Collection[Any], values: dict[Any, Any], problems: list[SettingError], key: str
) -> dict[Any, Any]:
    for each in members:
        if is_dataclass(each):
            hints = get_type_hints(each, include_extras=True)
            if each is ConventionFeature and values.get("type") == "bytes":
                hints |= dict.fromkeys(("default", "value"), str | None)
            return {
                name: fit_to_type(hints.get(name), value, problems, _join(key, name))
                for name, value in values.items()
            }
        if get_origin(each) is Mapping:
            kind = get_args(each)[1]
            return {
                name: fit_to_type(kind, value, problems, _join(key, name))
                for name, value in values.items()
            }
    return values


def _join(key: str, name: Any) -> str:
    if key:
        return f"{key}.{name}"
    return str(name)
