"""Says what is wrong with the values of settings, in the place of pydantic's messages."""

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints

from pydantic import ValidationError

from recordmill.schemas.errors import SettingError
from recordmill.schemas.pages import find_page
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.sources.source import load_source, source_names

_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "text, in quotes",
    "invalid": "text, in quotes",  # a key
    "tuple": "a list, such as [1, 2]",
    "dict": "a mapping, {NAME: VALUE}",
    "dataclass": "a mapping, {KEY: VALUE}",
}
"""What to write instead of a value of a wrong type, by the first word of pydantic's error."""

_MAPPINGS = (_WORDS["dict"], _WORDS["dataclass"])


def explain_invalid(
    error: ValidationError, values: Any, place: str, source: type[Any]
) -> list[SettingError]:
    """Returns an error for each setting that pydantic refuses.

    Args:
        error: pydantic's; each member of a union has an error of its own.
        values: the values that were validated.
        place: the key of the values; empty for all settings.
        source: the class of the source, whose keys may be meant by an unknown one.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for each in error.errors(include_url=False):
        path = ".".join(filter(None, (place, *_keys_of(each["loc"], values))))
        path, problem, advice = _explain(each, path, source)
        found.setdefault((path, problem), []).append(advice)
    return [
        SettingError(path, problem + " or ".join(advices))
        for (path, problem), advices in found.items()
    ]


def _explain(error: Any, path: str, source: type[Any]) -> tuple[str, str, str]:
    """Returns the path, what is wrong, and what to do, which depends on the union's member."""
    name = error["type"]
    if name == "value_error":
        cause = error["ctx"]["error"]
        if not isinstance(cause, SettingError):
            return path, f": {cause}", ""
        whole = cause.at(path)
        return whole.path, whole.problem, ""
    if name == "missing":
        return f"{path}.{error['loc'][-1]}", "is missing: ", "add it"
    if name == "unexpected_keyword_argument":
        return path, "is not a setting: ", _suggest(path, source)
    shown = "empty" if error["input"] is None else f"{error['input']!r:.80}"
    word = _WORDS.get(name.partition("_")[0])
    advice = f"be {word}" if word else error["msg"].partition(" should ")[2]
    if word in _MAPPINGS and re.match(r"[^\s:]+:\S", str(error["input"])):
        advice = f"{advice}, with a blank after each colon"
    return path, f"is {shown}: it should ", advice


def _suggest(path: str, source: type[Any]) -> str:
    """Returns what to write instead of an unknown key."""
    above, _, last = path.rpartition(".")
    if above == "source" and (kinds := _kinds_with(last)):
        return f"only other sources have it, so set source.kind to {' or '.join(kinds)}"
    known = [*_all_keys(DatasetSettings), *(f"source.{key}" for key in _all_keys(source))]
    siblings = [each for each in known if each.rpartition(".")[0] == above]
    names = {each.rpartition(".")[2]: each for each in (*known, *siblings)}  # siblings win
    if near := difflib.get_close_matches(last, names, 1, cutoff=0.8):
        return f"did you mean {names[near[0]]}?"
    if above and siblings:
        return f"write one of {', '.join(siblings)}"
    return f"{find_page('settings.md')} lists all"


def _kinds_with(key: str) -> list[str]:
    """Returns the kinds of source with a setting."""
    kinds = source_names()
    return [kind for kind in kinds if key in {each.name for each in fields(load_source(kind))}]


def _keys_of(loc: Sequence[str | int], values: Any) -> Iterator[str]:
    """Yields the keys of a value, without the names of union members, which pydantic adds."""
    for part in loc:
        with suppress(LookupError, TypeError):
            values = values[part]
            yield str(part)


def without_none(kind: Any) -> Any:
    """Returns the type without `None`."""
    members = [each for each in get_args(kind) if each is not NoneType]
    return members[0] if NoneType in get_args(kind) and len(members) == 1 else kind


def _all_keys(kind: Any) -> Iterator[str]:
    hints = get_type_hints(kind)
    for each in fields(kind):
        if is_dataclass(below := without_none(hints[each.name])):
            yield from (f"{each.name}.{path}" for path in _all_keys(below))
        yield each.name
