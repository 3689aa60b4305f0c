"""Turns YAML and `--set` into `DatasetSettings`, or reports all errors in them at once, before any work.

The errors of pydantic and PyYAML become sentences that say what to write.
"""

import difflib
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError
from yaml.reader import ReaderError

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import complete_settings, find_unstored_boxes
from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import UsageError
from recordmill.schemas.features import INT64_MAX
from recordmill.schemas.formatting import printable
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.inputs.sources.source import load_source, source_names

AUTO = "auto"
"""The value of `--config`, or of `layout`, with which the files determine the settings."""

COMMENT = "# Recognised "
"""How a dataset's configuration begins if its layout was recognised."""

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source if none is given."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A recognised layout.

    Attributes:
        kind: the source.
        why: the files that show it.
        flags: the flags that replace `--config auto` the next time.
    """

    kind: str
    why: str
    flags: str


Recogniser = Callable[[Mapping[str, Any]], tuple[dict[str, Any], Layout | None]]
"""Fills in settings that the input's files determine, and says which layout they have."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What a configuration and its overrides say.

    Attributes:
        settings: what the dataset is, before the inputs' files fill in the rest.
        names_convention: whether a convention was given or recognised, rather than left at the default.
        comment: the first line of the dataset's `config.yaml` if it says what was recognised and why: now, or when the
            given configuration was written; otherwise empty.
        layout: the layout that was recognised now; None if none was, or none was needed.
    """

    settings: DatasetSettings
    names_convention: bool
    comment: str
    layout: Layout | None


def load_settings(path: str | None, overrides: Sequence[str], recogniser: Recogniser | None = None) -> LoadedSettings:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); None or `auto`: the files determine the settings.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recogniser: called if there is no file and no `source.kind`, or if the file says `layout: auto`; None: nothing
            is recognised.

    Returns:
        The settings, except for what only the inputs determine. All text is in Unicode's NFC, as keys are.

    Raises:
        UsageError: the file cannot be read or is not YAML, a key is unknown, a value is wrong or contradicts another.
    """
    text = _read_text(path) if path and path != AUTO else ""
    plain = parse_yaml(text, f"the configuration {path}")
    if not isinstance(plain, dict | None):
        raise UsageError(f"the configuration {path} holds a {type(plain).__name__}, not keys and values")
    plain = plain or {}
    overridden = [_set(plain, override) for override in overrides]
    layout = None
    if _is_to_be_recognised(plain, path) and recogniser:
        plain, layout = recogniser(plain)
    settings = _validate(plain, path or "--set", overridden)
    first = f"{COMMENT}{layout.kind}: {printable(layout.why)}" if layout else text.partition("\n")[0]
    comment = f"{first}\n" if first.startswith(COMMENT) else ""
    return LoadedSettings(settings, plain.get("convention") is not None, comment, layout)


def iter_overrides(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields settings as `--set` takes them: a mapping key by key, so that a configuration's other keys stay."""
    for name, value in settings.items():
        below = value.items() if isinstance(value, Mapping) else ()
        yield from [(f"{name}.{key}", each) for key, each in below] or [(name, value)]


def _is_to_be_recognised(plain: dict[str, Any], path: str | None) -> bool:
    """Whether the files determine missing settings. Also removes the key `layout`."""
    layout = plain.pop("layout", AUTO if path in (None, AUTO) else "")
    if layout not in (AUTO, ""):
        raise UsageError(f"layout is {layout!r}: write auto, or remove it")
    source = plain.get("source")
    is_known = isinstance(source, dict) and "kind" in source and path in (None, AUTO)
    return layout == AUTO and not is_known and isinstance(source, dict | None)


def _read_text(path: str) -> str:
    local = Path(path)
    if storage.is_local(path) and not local.exists() and local.parent.name in ("", "configs"):
        shipped = resources.files("recordmill.configs") / local.name
        if shipped.is_file():
            return shipped.read_text(encoding="utf-8")
    try:
        return local.read_text(encoding="utf-8") if storage.is_local(path) else storage.read_range(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"the configuration {path} cannot be read: {str(why).lower()}") from None


def _set(plain: dict[str, Any], override: str) -> tuple[str, ...]:
    """Applies one `--set`, and returns its keys. A mapping keeps its other entries, including those of its default."""
    path, equals, text = override.partition("=")
    keys = tuple(normalize(path.strip()).split("."))
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise UsageError(f"--set {override:.200}: write key.path=value, such as images.quality=90")
    value = parse_yaml(text, f"--set {override:.200}: the value")
    source = plain.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    default: Any = DatasetSettings(source=load_source(kind if kind in source_names() else DEFAULT_KIND)())
    for key in keys[:-1]:
        default = getattr(default, key, None)
        if plain.get(key) is None:
            plain[key] = dict(default) if isinstance(default, Mapping) else {}
        if not isinstance(plain[key], dict):
            raise UsageError(f"--set {override:.200}: {key} is {plain[key]!r:.80}, which has no keys below it")
        plain = plain[key]
    plain[keys[-1]] = value
    return keys


def _validate(plain: Mapping[str, Any], where: str, overridden: Sequence[tuple[str, ...]]) -> DatasetSettings:
    values = {key: value for key, value in plain.items() if value is not None or key not in ("source", "convention")}
    problems: list[str] = []
    source: Any = load_source(DEFAULT_KIND)
    convention = values.get("convention", "")
    try:
        source, values["source"] = _read_source(values.pop("source", {}))
    except ValueError as error:
        problems.append(str(error))
        values["source"] = {}
    if not isinstance(convention, dict | str):
        problems.append(f"convention is {convention!r:.80}: write a convention's name, or a mapping with features")
        del values["convention"]
    shape, adapter = _adapter(source, Convention if isinstance(convention, dict) else str)
    try:
        built = adapter.validate_python(_expand_notation(shape, values))
        settings = DatasetSettings(**{each.name: getattr(built, each.name) for each in fields(DatasetSettings)})
        if not problems:
            settings = complete_settings(settings)
    except ValidationError as error:
        problems += [explain_error(each, shape) for each in error.errors(include_url=False)]
    except ValueError as error:
        problems.append(str(error))
    else:
        unstored = find_unstored_boxes(ExampleLayout(settings)) if plain.get("convention") is None else ""
        problems += [unstored] if unstored else []
    splits: Any = plain.get("splits")
    given = [key for key in ("from_folders", "from_source") if isinstance(splits, dict) and splits.get(key)]
    if given and "fractions" in splits:
        problems.append(
            f"splits.{given[0]} and splits.fractions contradict each other: remove one of them "
            f"(--set 'splits={{{given[0]}: {{...}}}}' replaces both)"
        )
    problems += (f"{key} is {number}: give at most {INT64_MAX}" for key, number in _too_large(plain) if key != "seed")
    if problems:
        raise UsageError(
            "\n".join(f"{_blame(problem, where, overridden)}: {problem}" for problem in dict.fromkeys(problems))
        )
    return settings


def _too_large(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The numbers above `INT64_MAX`, which only `seed` may be, by their paths."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _too_large(each, f"{path}.{key}" if path else f"{key}")
    elif isinstance(value, int) and value > INT64_MAX:
        yield path, value


def _blame(problem: str, where: str, overridden: Sequence[tuple[str, ...]]) -> str:
    """The origin of a wrong value: `--set` if an override has the key that the sentence begins with."""
    key = tuple(re.split(r"[^\w.]", problem, maxsplit=1)[0].rstrip(".").split("."))
    leads = any(key[: len(keys)] == keys or (len(key) > 1 and keys[: len(key)] == key) for keys in overridden)
    return "--set" if leads else where


def _expand_notation(kind: Any, values: Any) -> Any:
    """Converts YAML's notation and short forms to the values that settings have.

    In YAML, `yes` and `no` are truth values, and a key without a value is null; for text, that is the empty string.
    For a class with a `short_form`, a text stands for that key alone.
    """
    if kind is str:
        return "" if values is None else values
    kind = without_none(kind)
    if isinstance(values, str) and (short := getattr(kind, "short_form", "")):
        return {short: values}
    if get_origin(kind) is Literal and {"yes", "no"} <= set(get_args(kind)) and isinstance(values, bool):
        return "yes" if values else "no"
    if not isinstance(values, dict):
        return values
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {key: _expand_notation(hints.get(key), each) for key, each in values.items()}
    if get_origin(kind) is Mapping and is_dataclass(get_args(kind)[1]):
        return {key: _expand_notation(get_args(kind)[1], each) for key, each in values.items()}
    return values


def _read_source(source: Any) -> tuple[type[Any], dict[str, Any]]:
    """The class of the given source, and its settings."""
    kind = source.get("kind", DEFAULT_KIND) if isinstance(source, dict) else None
    if not isinstance(kind, str):
        raise ValueError(f"source is {source!r:.80}: write source: {{kind: {DEFAULT_KIND}}} and its settings")
    return load_source(kind), {key: value for key, value in source.items() if key != "kind"}


@cache
def _adapter(source: Any, convention: Any) -> tuple[type[Any], TypeAdapter[Any]]:
    """A class of settings for one source and one kind of convention, so that errors have paths; and its validator.

    Cached, since pydantic takes 50 ms to make a validator.
    """
    own: list[tuple[str, Any, Any]] = [("source", source, MISSING), ("convention", convention, "default")]
    shape = make_dataclass("Settings", own, bases=(DatasetSettings,), frozen=True, kw_only=True)
    return shape, TypeAdapter(shape)


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
        why = " (yes, no, on and off are booleans in YAML)" if isinstance(value, bool) else ""
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
