"""Reads and writes YAML, and rewrites the errors of pydantic and PyYAML as sentences that say what to write."""

import difflib
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml
from yaml.reader import ReaderError

from recordmill.schemas.errors import UsageError

MAX_DEPTH = 50
"""The maximum nesting depth: settings need a tenth of it."""

_TOO_DEEP = f"nests more than {MAX_DEPTH} deep: write it flatter"

MAX_VALUES = 1_000_000
"""The maximum number of values once aliases are expanded."""

_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most"}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class _Unusable(Exception):
    """A text in YAML cannot be used as settings; the message continues the text's name."""


def parse_yaml(text: str, name: str) -> Any:
    """The values of a text in YAML, with all text in Unicode's NFC: editors and shells write `é` in either form.

    Args:
        text: the text.
        name: how a sentence about it begins, such as `the configuration own.yaml`.

    Raises:
        UsageError: it is not YAML, gives a key twice (PyYAML would take the last), contains itself, is too deep or
            too large, or has a number that does not fit in the marker, which is JSON.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_node(loader, node, "", {}, [])
        return loader.construct_document(node)
    except _Unusable as problem:
        raise UsageError(f"{name} {problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not valid YAML: {explain_yaml_error(error)}") from None
    except RecursionError:
        raise UsageError(f"{name} {_TOO_DEEP}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Raised by PyYAML for the date 2020-13-01, `!!int ''`, a number of 5,000 digits and the like.
        raise UsageError(
            f"{name} has a value that cannot be read ({error}): write it in quotes, if it is text"
        ) from None


def as_yaml(value: Any) -> str:
    """A plain value as YAML, in one line unless a text in it has several."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=sys.maxsize)
    return text.removesuffix("...\n").removesuffix("\n")


def normalize(text: str) -> str:
    """A text in NFC."""
    return unicodedata.normalize("NFC", text)


def _check_node(loader: yaml.SafeLoader, node: yaml.Node, path: str, sizes: dict[int, int], above: list[int]) -> int:
    """Turns all text of a node into NFC, and returns its number of values once aliases are expanded."""
    if id(node) in above:
        raise _Unusable(f"contains itself{f' at {path}' if path else ''}: remove the alias")
    if len(above) >= MAX_DEPTH:
        raise _Unusable(_TOO_DEEP)
    if id(node) in sizes:
        return sizes[id(node)]
    above.append(id(node))
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_check_node(loader, each, path, sizes, above) for each in node.value)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for name, value in node.value:
            size += _check_node(loader, name, path, sizes, above)
            key, line = str(name.value), name.start_mark.line + 1
            here = f"{path}.{key}" if path else key
            if key in lines:
                raise _Unusable(f"gives {here} twice, in lines {lines[key]} and {line}: remove one of them")
            lines[key] = line
            size += _check_node(loader, value, here, sizes, above)
    else:
        _check_scalar(loader, node, path)
    above.pop()
    if size > MAX_VALUES:
        raise _Unusable(f"holds more than {MAX_VALUES:,} values once its aliases are expanded: remove some")
    sizes[id(node)] = size
    return size


def _check_scalar(loader: yaml.SafeLoader, node: yaml.Node, path: str) -> None:
    try:
        node.value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, written as "\\uD800"
        raise _Unusable(f"has text that is not valid Unicode ({node.value!r:.80}): correct it") from None
    node.value = normalize(node.value)
    if node.tag == "tag:yaml.org,2002:int" and not -(2**63) <= loader.construct_object(node) < 2**64:
        where = f" under {path}" if path else ""
        raise _Unusable(f"has a number of more than 64 bits{where}: give one nearer to zero")


def explain_yaml_error(error: yaml.YAMLError) -> str:
    """What is wrong with a text in YAML, and where."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    first = str(error).partition("\n")[0]
    return f"{first} (at character {error.position + 1})" if isinstance(error, ReaderError) else first


def explain_error(error: Any, kind: type[Any]) -> str:
    """One sentence about one of pydantic's errors, with the key's path.

    Args:
        error: what pydantic found.
        kind: the dataclass that the values were validated against.
    """
    loc, value = error["loc"], error["input"]
    key = ".".join(map(str, loc))
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        near = _near_key(kind, loc, value)
        return f"unknown setting {key}: " + (f"did you mean {near}?" if near else "correct it, or remove it")
    if error["type"] == "value_error":
        message = str(error["ctx"]["error"])
        parent, _, last = key.rpartition(".")  # a message may begin with the whole key, or with its last part
        prefix = parent if last and message.startswith((f"{last}.", f"{last}:")) else key
        return message if not prefix or message.startswith(key) else f"{prefix}.{message}"
    if error["type"] == "invalid_key" or loc[-1] == "[key]":
        return f"the key {value!r:.80} is not text: write it in quotes"
    if error["type"] in _BOUNDS:
        (bound,) = error["ctx"].values()
        return f"{key} is {value}: give {_BOUNDS[error['type']]} {int(bound):,}"
    if error["type"] == "missing" and isinstance(loc[-1], str):
        return f"{key} is missing: add it"
    expected, found = _follow(kind, loc[:-1] if error["type"] == "missing" else loc)
    shown = "empty" if value is None else f"{value!r:.80}"
    what = _what_to_write(expected, value) or error["msg"][0].lower() + error["msg"][1:]
    return f"{'.'.join(map(str, found))} is {shown}: {what}"


def _follow(kind: Any, loc: Sequence[str | int]) -> tuple[Any, Sequence[str | int]]:
    """The type at a path of keys and indices, and the path without the members of unions, which pydantic adds."""
    for depth, part in enumerate(loc):
        kind = without_none(kind)
        arguments = get_args(kind)
        if is_dataclass(kind):
            kind = get_type_hints(kind)[str(part)]
        elif get_origin(kind) is Mapping:
            kind = arguments[1]
        elif get_origin(kind) is tuple and isinstance(part, int):
            kind = arguments[0 if arguments[-1] is Ellipsis else part]
        else:
            return kind, loc[:depth]
    return without_none(kind), loc


def without_none(kind: Any) -> Any:
    """The type without `None`."""
    members = [each for each in get_args(kind) if each is not NoneType]
    return members[0] if NoneType in get_args(kind) and len(members) == 1 else kind


def _what_to_write(kind: Any, value: Any) -> str:
    """What to write instead of a value; empty if unknown."""
    if is_dataclass(kind):
        return f"write one of its keys below it ({', '.join(each.name for each in fields(kind))})"
    if get_origin(kind) is Mapping:
        return "write names and values, as in {NAME: VALUE}"
    if get_origin(kind) is tuple:
        return _which_list(get_args(kind), value)
    if get_origin(kind) is Literal:
        near = difflib.get_close_matches(str(value), get_args(kind), 1)
        return f"did you mean {near[0]}?" if near else f"choose one of {', '.join(get_args(kind))}"
    if kind is str and value is not None and not isinstance(value, dict | list):
        why = " (yes, no, on and off are truth values in YAML)" if isinstance(value, bool) else ""
        return f"write it in quotes, as text{why}"
    words = [word for each in get_args(kind) or (kind,) for word in _words_for(each)]
    return f"write {' or '.join(words)}" if words else ""


def _words_for(kind: Any) -> Sequence[str]:
    """Words for a value of this type, if a setting may have several types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return ["a list"] if get_origin(kind) is tuple else [_WORDS[kind]] if kind in _WORDS else []


def _which_list(kinds: Sequence[Any], value: Any) -> str:
    if kinds[-1] is Ellipsis:
        if kinds[0] is not str or not isinstance(value, str):
            return "write a list"
        return f"write {as_yaml([word.strip() for word in value.split(',')])}"
    numbers = [value] * len(kinds) if type(value) is int else re.split(r"[x×,\s]+", str(value))  # noqa: RUF001
    if len(numbers) == len(kinds) and all(str(number).isdecimal() for number in numbers):
        return f"write [{', '.join(map(str, numbers))}]"
    return f"write a list of {len(kinds)} whole numbers"


def _near_key(kind: Any, loc: Sequence[str | int], value: Any) -> str:
    """The key that was most likely meant by an unknown one; empty if there is none.

    Tried in this order: a very similar sibling, an entry of a sibling mapping whose values have the type, a similar
    sibling, and a key of the same name elsewhere.
    """
    *above, last = map(str, loc)
    parent = _follow(kind, loc[:-1])[0]
    if not is_dataclass(parent):  # pydantic has added the name of a union's member
        return ""
    names = [each.name for each in fields(parent)]
    near = difflib.get_close_matches(last, names, 1, cutoff=0.8)
    if not near and type(value) in (int, float):
        hints = get_type_hints(parent)
        entries = [name for name in names if get_origin(hints[name]) is Mapping and get_args(hints[name])[1] is float]
        near = [f"{name}.{last}" for name in entries]
    if near := near or difflib.get_close_matches(last, names, 1):
        return ".".join((*above, near[0]))
    return next((path for path in _all_keys(kind) if path.rpartition(".")[2] == last), "")


def _all_keys(kind: Any) -> Iterator[str]:
    for name, below in get_type_hints(kind).items():
        if is_dataclass(below := without_none(below)):
            yield from (f"{name}.{path}" for path in _all_keys(below))
        yield name
