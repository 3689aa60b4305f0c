"""Turns YAML and `--set` into `DatasetSettings`, or reports all errors in them at once.

This happens before any work. The errors of pydantic and PyYAML become sentences that say what to
write.
"""

import difflib
import io
import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import orjson
import yaml
from pydantic import TypeAdapter, ValidationError

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import (
    complete_settings,
    find_unstored_boxes,
    find_unstored_classes,
)
from recordmill.pipeline.configuration.setting_types import fit_to_type, read_set_text
from recordmill.schemas import earlier_names
from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import UsageError
from recordmill.schemas.features import INT64_MAX
from recordmill.schemas.formatting import printable
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.yaml_core import (
    BOOL,
    FLOAT,
    INT,
    NULL,
    CoreLoader,
    WrittenInt,
    plain_numbers,
    write_yaml_line,
)
from recordmill.transforms.inputs.sources.source import load_source, source_names

AUTO = "auto"
"""The value of `--config`, or of `layout`, with which the files determine the settings."""

STDIN = "-"
"""The value of `--config` with which the configuration is read from standard input."""

MAX_STDIN_BYTES = 2**20

_MOST_CONFIGURATION_BYTES = 2**26

COMMENT = "# Recognized "
"""How a dataset's configuration begins if its layout was recognized."""

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source if none is given."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A recognized layout.

    Attributes:
        kind: the source.
        why: the files that show it.
        flags: the flags that replace `--config auto` the next time.
    """

    kind: str
    why: str
    flags: str


Recognizer = Callable[[Mapping[str, Any]], tuple[dict[str, Any], Layout | None]]
"""Fills in settings that the input's files determine, and says which layout they have."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What a configuration and its overrides say.

    Attributes:
        settings: what the dataset is, before the inputs' files fill in the rest.
        names_convention: whether a convention was given or recognized, rather than left at the
            default.
        comment: the first line of the dataset's `config.yaml` if it says what was recognized and
            why: now, or when the given configuration was written; otherwise empty.
        layout: the layout that was recognized now; None if none was, or none was needed.
        is_recognized: whether the inputs' files decided the settings, or no layout was recognized
            and the defaults hold.
        left_by_user: see `RunSettings`.
    """

    settings: DatasetSettings
    names_convention: bool
    comment: str
    layout: Layout | None
    is_recognized: bool = False
    left_by_user: frozenset[str] = frozenset()


def load_settings(
    path: str | None, overrides: Sequence[str], recognizer: Recognizer | None = None
) -> LoadedSettings:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); `-`: standard input; None or
            `auto`: the files determine the settings.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recognizer: called if there is no file and no `source.kind`, or if the file says
            `layout: auto`; None: nothing is recognized.

    Returns:
        The settings, except for what only the inputs determine. All text is in Unicode's NFC, as
        keys are.

    Raises:
        UsageError: the file cannot be read or is not YAML, a key is unknown, a value is wrong or
            contradicts another.
    """
    text = _read_text(path) if path and path != AUTO else ""
    if path == STDIN:
        path = "standard input"
    plain = parse_yaml(text, f"the configuration {path}")
    if not isinstance(plain, dict | None):
        raise UsageError(
            f"the configuration {path} holds a {type(plain).__name__}, not keys and values"
        )
    plain = plain or {}
    earlier_names.drop_former_meanings(plain)
    _rename_earlier(plain, [()], path or "--set")
    overridden = [_set(plain, override) for override in overrides]
    _rename_earlier(plain, overridden, "--set")
    overridden = [earlier_names.SETTINGS.get(keys, keys) for keys in overridden]
    plain = fit_to_type(DatasetSettings, plain, [])  # recognizers compare texts
    layout, is_recognized = None, _is_to_be_recognized(plain, path) and recognizer is not None
    left_by_user = _find_left_by_user(plain)
    if is_recognized and recognizer:
        plain, layout = recognizer(plain)
    settings = _validate(plain, path or "--set", overridden)
    comment = _comment_on(layout, text.partition("\n")[0])
    names_convention = plain.get("convention") is not None
    return LoadedSettings(settings, names_convention, comment, layout, is_recognized, left_by_user)


def _find_left_by_user(plain: Mapping[str, Any]) -> frozenset[str]:
    """The reasons for ignoring files that the written settings give."""
    source = plain.get("source")
    reasons = {
        "not_included": plain.get("include"),
        "not_annotations": isinstance(source, dict) and source.get("split"),
        "unlabeled": isinstance(source, dict) and source.get("label_part"),
    }
    return frozenset(reason for reason, is_written in reasons.items() if is_written)


def _comment_on(layout: Layout | None, first_line: str) -> str:
    """The first line of the dataset's `config.yaml`, see `LoadedSettings.comment`."""
    if layout:
        return f"{COMMENT}{layout.kind}: {printable(layout.why)}\n"
    for start in (COMMENT, earlier_names.COMMENT):
        if first_line.startswith(start):
            return f"{COMMENT}{first_line.removeprefix(start)}\n"
    return ""


def iter_overrides(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields settings as `--set` takes them.

    A mapping is given key by key, so that a configuration's other keys stay.
    """
    for name, value in settings.items():
        below = value.items() if isinstance(value, Mapping) else ()
        yield from [(f"{name}.{key}", each) for key, each in below] or [(name, value)]


def flags_of(settings: Mapping[str, Any]) -> str:
    """Settings, which are two levels deep at most, as flags for a shell."""
    flags = []
    for path, value in iter_overrides(settings):
        text = write_yaml_line(value)
        text = orjson.dumps(value).decode() if "'" in text else text  # shells also quote with '
        flags.append(f"--set {shlex.quote(f'{path}={text}')}")
    return " ".join(flags)


def _is_to_be_recognized(plain: dict[str, Any], path: str | None) -> bool:
    """Whether the files determine missing settings. Also removes the key `layout`."""
    layout = plain.pop("layout", AUTO if path in (None, AUTO) else "")
    if layout not in (AUTO, ""):
        raise UsageError(f"layout is {layout!r}: write auto, or remove it")
    source = plain.get("source")
    is_known = isinstance(source, dict) and "kind" in source and path in (None, AUTO)
    return layout == AUTO and not is_known and isinstance(source, dict | None)


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("--config is -, and standard input is closed: name a file instead")
    try:
        data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
        if len(data) > MAX_STDIN_BYTES:
            raise UsageError(
                "the configuration on standard input is larger than 1 MiB: write a smaller one"
            )
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"the configuration on standard input cannot be read: {why}") from None


def _read_text(path: str) -> str:
    if path == STDIN:
        return _read_stdin()
    local = Path(path)
    if storage.is_local(path) and not local.exists() and local.parent.name in ("", "configs"):
        shipped = resources.files("recordmill.configs") / local.name
        if shipped.is_file():
            return shipped.read_text(encoding="utf-8")
    try:
        content = storage.read_whole(path, _MOST_CONFIGURATION_BYTES)
        return io.StringIO(content.decode(), newline=None).read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"the configuration {path} cannot be read: {why}") from None


def _set(plain: dict[str, Any], override: str) -> tuple[str, ...]:
    """Applies one `--set`, and returns its keys.

    A mapping keeps its other entries, including those of its default.
    """
    path, equals, text = override.partition("=")
    keys = tuple(normalize(path.strip()).split("."))
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise UsageError(f"--set {override:.200}: write key.path=value, such as images.quality=90")
    value = read_set_text(
        normalize(text), lambda each: parse_yaml(each, f"--set {override:.200}: the value")
    )
    source = plain.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    default: Any = DatasetSettings(
        source=load_source(kind if kind in source_names() else DEFAULT_KIND)()
    )
    for key in keys[:-1]:
        default = getattr(default, key, None)
        if plain.get(key) is None:
            plain[key] = dict(default) if isinstance(default, Mapping) else {}
        if not isinstance(plain[key], dict):
            raise UsageError(
                f"--set {override:.200}: {key} is {plain[key]!r:.80}, which has no keys below it"
            )
        plain = plain[key]
    plain[keys[-1]] = value
    return keys


def _rename_earlier(plain: dict[str, Any], given: Collection[tuple[str, ...]], where: str) -> None:
    """Gives settings with an earlier name their present one.

    Args:
        plain: the settings.
        given: the keys of the file, or of the overrides, which must not contradict each other.
        where: how a sentence begins.
    """
    for earlier, name in earlier_names.SETTINGS.items():
        section: Any = plain
        for key in earlier[:-1]:
            section = section.get(key) if isinstance(section, dict) else None
        if not isinstance(section, dict) or earlier[-1] not in section:
            continue
        value = section.pop(earlier[-1])
        other = section.get(name[-1], value)
        if other != value and any(name[: len(keys)] == keys for keys in given):
            both = f"{'.'.join(name)} is {other!r:.80} and {'.'.join(earlier)} is {value!r:.80}"
            remedy = f"remove {'.'.join(earlier)}"
            raise UsageError(f"{where}: {both}, which are one setting: {remedy}")
        section[name[-1]] = value


def _validate(
    plain: Mapping[str, Any], where: str, overridden: Sequence[tuple[str, ...]]
) -> DatasetSettings:
    values = {
        key: value
        for key, value in plain.items()
        if value is not None or key not in ("source", "convention")
    }
    problems: list[str] = []
    source: Any = load_source(DEFAULT_KIND)
    convention = values.get("convention", "")
    try:
        source, values["source"] = _read_source(values.pop("source", {}))
    except ValueError as error:
        problems.append(str(error))
        values["source"] = {}
    shape, adapter = _adapter(source, Convention if isinstance(convention, dict) else str)
    values = plain_numbers(fit_to_type(shape, values, problems))
    try:
        built = adapter.validate_python(values)
        settings = DatasetSettings(
            **{each.name: getattr(built, each.name) for each in fields(DatasetSettings)}
        )
        if not problems:
            settings = complete_settings(settings)
    except ValidationError as error:
        problems += explain_errors(error.errors(include_url=False), values, shape)
    except ValueError as error:
        problems.append(str(error))
    else:
        find = find_unstored_boxes if plain.get("convention") is None else find_unstored_classes
        problems += filter(None, [find(ExampleLayout(settings))])
    splits: Any = plain.get("splits")
    given = [
        key
        for key in ("from_folders", "from_source")
        if isinstance(splits, dict) and splits.get(key)
    ]
    if given and "fractions" in splits:
        both = f"splits.{given[0]} and splits.fractions contradict each other"
        problems.append(
            f"{both}: remove one of them (--set 'splits={{{given[0]}: {{...}}}}' replaces both)"
        )
    if problems:
        lines = (
            f"{_blame(problem, where, overridden)}: {problem}"
            for problem in dict.fromkeys(problems)
        )
        raise UsageError("\n".join(lines))
    return settings


def _blame(problem: str, where: str, overridden: Sequence[tuple[str, ...]]) -> str:
    """Returns the origin of a wrong value.

    It is `--set` if an override has the key that the sentence begins with.
    """
    key = tuple(re.split(r"[^\w.]", problem, maxsplit=1)[0].rstrip(".").split("."))
    leads = any(
        key[: len(keys)] == keys or (len(key) > 1 and keys[: len(key)] == key)
        for keys in overridden
    )
    return "--set" if leads else where


def _read_source(source: Any) -> tuple[type[Any], dict[str, Any]]:
    """The class of the given source, and its settings."""
    kind = source.get("kind", DEFAULT_KIND) if isinstance(source, dict) else None
    if not isinstance(kind, str):
        raise ValueError(
            f"source is {source!r:.80}: write source: {{kind: {DEFAULT_KIND}}} and its settings"
        )
    return load_source(kind), {key: value for key, value in source.items() if key != "kind"}


@cache
def _adapter(source: Any, convention: Any) -> tuple[type[Any], TypeAdapter[Any]]:
    """Returns a class of settings for one source and kind of convention, and its validator.

    The class gives errors their paths. The result is cached, since pydantic takes 50 ms to make a
    validator.
    """
    own: list[tuple[str, Any, Any]] = [
        ("source", source, MISSING),
        ("convention", convention, "default"),
    ]
    shape = make_dataclass("Settings", own, bases=(DatasetSettings,), frozen=True, kw_only=True)
    return shape, TypeAdapter(shape)


MAX_DEPTH = 50
"""The maximum nesting depth: settings need a tenth of it."""


class _Loader(CoreLoader):
    """A loader that reads strings in Unicode's NFC.

    It refuses what settings never need, and what could not be stored as JSON.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuses deep nesting and aliases.

        With aliases, a few lines could become a million values.
        """
        if self.check_event(yaml.AliasEvent):
            raise _refusal("an alias is not allowed here: write the value again", self.peek_event())
        if self.depth == MAX_DEPTH:
            raise _refusal(
                f"it nests more than {MAX_DEPTH} deep: write it flatter", self.peek_event()
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_scalar(self, node: Any) -> str:
        """Normalizes text; half of a surrogate pair gives a UnicodeEncodeError."""
        text = normalize(str(super().construct_scalar(node)))
        if not text and node.style in ("|", ">"):
            raise _refusal(
                f"{node.style} begins a text of several lines, and there is none: put it in quotes",
                node,
            )
        text.encode()
        return text

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuses a key that is given twice: PyYAML would take the last value.

        All keys of settings are texts, so numbers and words like `true` are keys as they were
        written.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            name = normalize(str(key.value))
            if name in seen:
                raise _refusal(f"{name} is given twice: remove one of them", key)
            seen.add(name)
            if key.tag in (NULL, BOOL, INT, FLOAT) and name:
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_whole_number(self, node: yaml.ScalarNode) -> WrittenInt:
        """Refuses a number that does not fit in 64 bits."""
        number = super().construct_whole_number(node)
        if not -INT64_MAX <= number <= INT64_MAX:
            raise _refusal(f"a number is outside \u00b1{INT64_MAX}: give one nearer to zero", node)
        return number


_Loader.add_constructor(INT, _Loader.construct_whole_number)


def _refusal(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parse_yaml(text: str, name: str) -> Any:
    """Returns the values of a string in YAML, with all strings in Unicode's NFC.

    Editors and shells write `é` in either form.

    Args:
        text: the string.
        name: how a sentence about it begins, such as `the configuration own.yaml`.

    Raises:
        UsageError: it is not YAML, or not as `_Loader` takes it.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise UsageError(f"{name} cannot be read: {error.problem}{where}") from None
    except (
        yaml.YAMLError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # PyYAML raises errors of any class for a number of 5,000 digits, `!!timestamp x` and the
        # like.
        raise UsageError(f"{name} cannot be read: {' '.join(str(error).split())}") from None


def normalize(text: str) -> str:
    """A text in NFC."""
    return unicodedata.normalize("NFC", text)


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


def explain_errors(errors: Sequence[Any], values: Mapping[str, Any], kind: type[Any]) -> list[str]:
    """A sentence about each setting with errors.

    Args:
        errors: what pydantic found; each member of a union has an error of its own.
        values: the values that were validated.
        kind: the dataclass that they were validated against.
    """
    found: dict[str, str] = {}
    for error in errors:
        start, advice = _explain(error, values, kind)
        found[start] = f"{found[start]} or {advice}" if start in found else f"{start}{advice}"
    return list(found.values())


def _explain(error: Any, values: Mapping[str, Any], kind: type[Any]) -> tuple[str, str]:
    """What is wrong, with the key's path, and what to do."""
    name, key = error["type"], _path_of(error["loc"], values)
    if name == "missing":
        return f"{key}.{error['loc'][-1]} is missing: ", "add it"
    if name == "unexpected_keyword_argument":
        above, _, last = key.rpartition(".")
        known = sorted(_all_keys(kind), key=lambda path: path.rpartition(".")[0] == above)
        # Of equal names, the key's sibling wins.
        names = {path.rpartition(".")[2]: path for path in known}
        near = difflib.get_close_matches(last, names, 1, cutoff=0.8)
        siblings = [path for path in known if above and path.rpartition(".")[0] == above]
        others = f"write one of {', '.join(siblings)}" if siblings else "docs/settings.md lists all"
        return f"unknown setting {key}: ", f"did you mean {names[near[0]]}?" if near else others
    if name == "value_error":
        message = str(error["ctx"]["error"])
        # A message may begin with the whole key, or with its last part.
        parent, _, last = key.rpartition(".")
        prefix = parent if last and message.startswith((f"{last}.", f"{last}:")) else key
        return message if not prefix or message.startswith(key) else f"{prefix}.{message}", ""
    shown = "empty" if error["input"] is None else f"{error['input']!r:.80}"
    word = _WORDS.get(name.partition("_")[0])
    return f"{key} is {shown}: it should ", f"be {word}" if word else error["msg"].partition(
        " should "
    )[2]


def _path_of(loc: Sequence[str | int], values: Any) -> str:
    """The path of a value, without the names of union members, which pydantic adds."""
    path = []
    for part in loc:
        with suppress(LookupError, TypeError):
            values = values[part]
            path.append(str(part))
    return ".".join(path)


def without_none(kind: Any) -> Any:
    """The type without `None`."""
    members = [each for each in get_args(kind) if each is not NoneType]
    return members[0] if NoneType in get_args(kind) and len(members) == 1 else kind


def _all_keys(kind: Any) -> Iterator[str]:
    hints = get_type_hints(kind)
    for each in fields(kind):
        if is_dataclass(below := without_none(hints[each.name])):
            yield from (f"{each.name}.{path}" for path in _all_keys(below))
        yield each.name
