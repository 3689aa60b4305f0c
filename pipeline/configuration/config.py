"""Turns YAML and `--set` into `DatasetSettings`, or reports all errors in them at once, before any work."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import complete_settings, find_unstored_boxes
from recordmill.pipeline.configuration.setting_errors import (
    MAX_DEPTH,
    explain_error,
    normalize,
    parse_yaml,
    without_none,
)
from recordmill.schemas.errors import UsageError
from recordmill.schemas.features import INT64_MAX
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.inputs.sources.source import load_source, source_names

AUTO = "auto"
"""The value of `--config`, or of `layout`, with which the files determine the settings."""

COMMENT = "# Recognised "
"""How a dataset's configuration begins if its layout was recognised."""

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source if none is given."""


Recogniser = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Fills in settings that the input's files determine."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What a configuration and its overrides say.

    Attributes:
        settings: what the dataset is, before the inputs' files fill in the rest.
        names_convention: whether a convention was given or recognised, rather than left at the default.
        comment: the first line of the configuration if it says what was recognised; otherwise empty.
    """

    settings: DatasetSettings
    names_convention: bool
    comment: str = ""


def load_settings(path: str | None, overrides: Sequence[str], recogniser: Recogniser = dict) -> LoadedSettings:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); None or `auto`: the files determine the settings.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recogniser: called if there is no file and no `source.kind`, or if the file says `layout: auto`.

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
    if _is_to_be_recognised(plain, path):
        plain = recogniser(plain)
    settings = _validate(plain, path or "--set", overridden)
    first = text.partition("\n")[0]
    comment = f"{first}\n" if first.startswith(COMMENT) else ""
    return LoadedSettings(settings, plain.get("convention") is not None, comment)


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
    shape, adapter = _adapter(source, CustomConvention if isinstance(convention, dict) else str)
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
    In settings that a class lists in `short_forms`, `name: text` stands for `name: {key: text}`. For a class with a
    `short_form`, a text stands for that key alone.
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
        hints, spelt = get_type_hints(kind), dict(values)
        for setting, key in getattr(kind, "short_forms", {}).items():
            if isinstance(inner := values.get(setting), dict):
                spelt[setting] = {name: {key: each} if isinstance(each, str) else each for name, each in inner.items()}
        return {key: _expand_notation(hints.get(key), each) for key, each in spelt.items()}
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
