"""Turns YAML and `--set` into `DatasetSettings`, or reports all errors in them at once, before any work."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, make_dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from pydantic import TypeAdapter, ValidationError

from recordmill.pipeline.configuration.parse_yaml import MAX_DEPTH, YamlError, normalize, parse_yaml
from recordmill.pipeline.configuration.setting_errors import explain_errors, without_none
from recordmill.schemas.coercion import INT64_MAX
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.transforms.check_fields import find_unstored_boxes
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.inputs.sources import load_source, source_names

AUTO = "auto"
"""The value for a configuration, or a layout, that the files determine."""

COMMENT = "# Recognised "
"""The beginning of the first line of a dataset's configuration if its layout was recognised."""

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source that `DatasetSettings` begins with."""


class ConfigError(ValueError):
    """The configuration is wrong; one line per error, each with the key's path."""


Recogniser = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Fills in settings that the input's files determine."""


def load_settings(
    path: str | None,
    overrides: Sequence[str],
    recogniser: Recogniser = dict,
    observe: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); None or `auto`: as the files determine.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recogniser: used if there is no file and no `source.kind`, or the file has `layout: auto`.
        observe: called with the given or recognised settings, without the defaults.

    Returns:
        The settings, and the same as plain values in the shape of the YAML. All text is in Unicode's NFC, as keys are.

    Raises:
        ConfigError: the file cannot be read or is not YAML, a key is unknown, a value is wrong or contradicts another.
    """
    plain = _read_yaml(path) if path and path != AUTO else {}
    parsed = [_parse_override(override) for override in overrides]
    for override in parsed:
        _set(plain, override)
    if _is_to_be_recognised(plain, path):
        plain = recogniser(plain)
    observe(plain)
    settings = _validate(plain, path or "--set", [override.keys for override in parsed])
    return settings, settings_as_dict(settings, (plain.get("source") or {}).get("kind", DEFAULT_KIND))


def read_comment(path: str | None) -> str:
    """The line of a dataset's `config.yaml` that says what was recognised, if a configuration begins with one."""
    first = _read_text(path).partition("\n")[0] if path and path != AUTO else ""
    return f"{first}\n" if first.startswith(COMMENT) else ""


def _is_to_be_recognised(plain: dict[str, Any], path: str | None) -> bool:
    """Whether the files determine missing settings; removes the key `layout`."""
    layout = plain.pop("layout", AUTO if path in (None, AUTO) else "")
    if layout not in (AUTO, ""):
        raise ConfigError(f"layout is {layout!r}: write auto, or remove it")
    source = plain.get("source")
    is_known = isinstance(source, dict) and "kind" in source and path in (None, AUTO)
    return layout == AUTO and not is_known and isinstance(source, dict | None)


def settings_as_dict(settings: DatasetSettings, source_kind: str) -> dict[str, Any]:
    """The settings as plain JSON values, in the shape of their YAML, without those that have no effect."""
    plain = asdict(settings)
    plain["source"] = {"kind": source_kind, **asdict(settings.source)}  # type: ignore[call-overload]
    if settings.splits.given:
        del plain["splits"]["fractions"]
    return plain


def _read_yaml(path: str) -> dict[str, Any]:
    try:
        text = _read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"the configuration {path} cannot be read: {str(why).lower()}") from None
    try:
        plain = parse_yaml(text)
    except YamlError as error:
        raise ConfigError(f"the configuration {path} {error}") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ConfigError(f"the configuration {path} holds a {type(plain).__name__}, not keys and values")
    return plain


def _read_text(path: str) -> str:
    local = Path(path)
    if "://" not in path and not local.exists() and local.parent.name in ("", "configs"):
        shipped = resources.files("recordmill.configs") / local.name
        if shipped.is_file():
            return shipped.read_text(encoding="utf-8")
    if "://" not in path:
        return local.read_text(encoding="utf-8")
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        text: str = file.read().decode("utf-8")
        return text


@dataclass(frozen=True, slots=True)
class _Override:
    """One `--set`: the flag's text, the path of keys, and the value."""

    text: str
    keys: tuple[str, ...]
    value: Any


def _parse_override(override: str) -> _Override:
    path, equals, value = override.partition("=")
    keys = tuple(normalize(path.strip()).split("."))
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise ConfigError(f"--set {override:.200}: write key.path=value, such as images.quality=90")
    try:
        return _Override(override, keys, parse_yaml(value))
    except YamlError as error:
        raise ConfigError(f"--set {override:.200}: the value {error}") from None


def _set(plain: dict[str, Any], override: _Override) -> None:
    """Sets a value. A mapping keeps its other entries, including those of its default."""
    kind: Any = DatasetSettings
    for key in override.keys[:-1]:
        kind, default = _step_into(kind, key, plain.get(key))
        if plain.get(key) is None:
            plain[key] = default
        if not isinstance(plain[key], dict):
            raise ConfigError(f"--set {override.text:.200}: {key} is {plain[key]!r:.80}, which has no keys below it")
        plain = plain[key]
    plain[override.keys[-1]] = override.value


def _step_into(kind: Any, key: str, value: Any) -> tuple[Any, dict[str, Any]]:
    """The type of a type's setting `key`, and the setting's default if that is a mapping."""
    if kind is DatasetSettings and key == "source":
        name = value.get("kind", DEFAULT_KIND) if isinstance(value, dict) else DEFAULT_KIND
        return load_source(name) if name in source_names() else None, {}
    own = [each for each in fields(kind) if each.name == key] if is_dataclass(kind) else []
    if not own:
        return None, {}
    hint = without_none(get_type_hints(kind)[key])
    make = own[0].default_factory
    return hint, dict(make()) if get_origin(hint) is Mapping and make is not MISSING else {}


def _validate(plain: Mapping[str, Any], where: str, overridden: Sequence[tuple[str, ...]]) -> DatasetSettings:
    problems: list[str] = []
    values = _spell(DatasetSettings, _lengthen(plain, {"features": "function"}))
    for key, build in (("source", _build_source), ("convention", _build_convention)):
        if values.get(key) is None:
            values.pop(key, None)
            continue
        try:
            values[key] = build(values[key])
        except ValueError as error:
            problems += str(error).splitlines()
            del values[key]
    try:
        settings = _adapter(DatasetSettings).validate_python(values)
    except ValidationError as error:
        problems += explain_errors(error, DatasetSettings, is_whole=not problems)
    else:
        if plain.get("convention") is None and (unstored := find_unstored_boxes(settings.layout, settings.source)):
            problems.append(unstored)
    splits = plain.get("splits")
    written = splits if isinstance(splits, dict) else {}
    given = [key for key in ("from_folders", "from_source") if written.get(key)]
    if given and "fractions" in written:
        problems.append(
            f"splits.{given[0]} and splits.fractions contradict each other: remove one of them "
            f"(--set 'splits={{{given[0]}: {{...}}}}' replaces both)"
        )
    problems += (f"{key} is {number}: give at most {INT64_MAX}" for key, number in _too_large(plain) if key != "seed")
    if problems:
        raise ConfigError("\n".join(f"{_blame(problem, where, overridden)}: {problem}" for problem in problems))
    return settings


def _too_large(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The numbers that need 64 bits or more, as a `seed` may."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _too_large(each, f"{path}.{key}" if path else f"{key}")
    elif isinstance(value, int) and value > INT64_MAX:
        yield path, value


def _blame(problem: str, where: str, overridden: Sequence[tuple[str, ...]]) -> str:
    """The origin of a wrong value: `--set`, if an override has the key with which the sentence begins."""
    key = tuple(re.split(r"[^\w.]", problem, maxsplit=1)[0].rstrip(".").split("."))
    leads = any(key[: len(keys)] == keys or (len(key) > 1 and keys[: len(key)] == key) for keys in overridden)
    return "--set" if leads else where


def _spell(kind: Any, values: Any) -> Any:
    """Converts values for which YAML has another notation to their settings' types.

    `yes` and `no` are truth values in YAML, and a key without a value is null, which for text means the empty string.
    """
    if kind is str:
        return "" if values is None else values
    kind = without_none(kind)
    if get_origin(kind) is Literal and {"yes", "no"} <= set(get_args(kind)) and isinstance(values, bool):
        return "yes" if values else "no"
    if not isinstance(values, dict):
        return values
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {key: _spell(hints.get(key), each) for key, each in values.items()}
    if get_origin(kind) is Mapping and is_dataclass(get_args(kind)[1]):
        return {key: _spell(get_args(kind)[1], each) for key, each in values.items()}
    return values


def _build_source(source: Any) -> Any:
    kind = source.get("kind", DEFAULT_KIND) if isinstance(source, dict) else None
    if not isinstance(kind, str):
        raise ValueError(f"source is {source!r:.80}: write source: {{kind: {DEFAULT_KIND}}} and its settings")
    source_kind = load_source(kind)
    values = {key: value for key, value in source.items() if key != "kind"}
    return _build_below("source", source_kind, _lengthen(values, source_kind.short_forms))


def _lengthen(values: Mapping[str, Any], short_forms: Mapping[str, str]) -> dict[str, Any]:
    """Expands `name: text` to `name: {key: text}`, in each setting for which `short_forms` has a key."""
    long = dict(values)
    for setting, key in short_forms.items():
        if isinstance(inner := values.get(setting), dict):
            long[setting] = {name: {key: each} if isinstance(each, str) else each for name, each in inner.items()}
    return long


def _build_convention(convention: Any) -> Any:
    if isinstance(convention, dict):
        return _build_below("convention", CustomConvention, convention)
    if not isinstance(convention, str):
        raise ValueError(f"convention is {convention!r:.80}: write a convention's name, or a mapping with features")
    return convention


def _build_below(key: str, kind: Any, value: Any) -> Any:
    around: Any = _around(key, kind)
    try:
        return getattr(_adapter(around).validate_python({key: _spell(kind, value)}), key)
    except ValidationError as error:
        raise ConfigError("\n".join(explain_errors(error, around))) from None


@cache
def _around(key: str, kind: type[Any]) -> type[Any]:
    """A class with one value, so that unknown keys in sources are errors although sources do not depend on pydantic."""
    around = make_dataclass("Around", [(key, kind)])
    around.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return around


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Pydantic's validator of a class, which takes 50 ms to create."""
    return TypeAdapter(kind)


def name_dataset(
    settings: DatasetSettings, plain: dict[str, Any], output: str
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Names a dataset after its output folder if its files' names need a name and it has none.

    Raises:
        ConfigError: files cannot have this name.
    """
    pattern = settings.shards.name or settings.layout.shard_name
    if settings.name or "{name" not in pattern:
        return settings, plain
    base = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in output.rstrip("/").rpartition("/")[2]
    )
    name = base.lstrip("._-") or "dataset"
    try:
        return replace(settings, name=name), {**plain, "name": name}
    except ValueError as error:
        raise ConfigError(f"{error}; or set name, in place of the output folder's") from None
