"""YAML and `--set` become `DatasetSettings`, or every error in them is said at once, before any work."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, make_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from pydantic import TypeAdapter, ValidationError

from recordmill.pipeline.setting_errors import explain_errors, explain_yaml_error
from recordmill.schemas.own_convention import OwnConvention
from recordmill.transforms.check_fields import find_unstored_boxes
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.sources import load_source

AUTO = "auto"
"""What stands for a configuration, or for a layout, that the files decide."""

COMMENT = "# Recognised "
"""What the first line of a dataset's configuration begins with if its layout was recognised."""

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source that `DatasetSettings` begins with."""


class ConfigError(ValueError):
    """The configuration is wrong; one line an error, each with the key's path."""


Recogniser = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Fills in settings that the files of the input decide."""


def load_settings(
    path: str | None, overrides: Sequence[str], recogniser: Recogniser = dict
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); None or `auto` for what the files say.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recogniser: is asked where there is no file and no `source.kind`, or the file says `layout: auto`.

    Returns:
        The settings, and the same as plain values in the shape of the YAML. All text is in Unicode's NFC, as keys are.

    Raises:
        ConfigError: the file cannot be read or is no YAML, a key is unknown, a value is wrong or contradicts another.
    """
    plain = _normalize(_read_yaml(path)) if path and path != AUTO else {}
    for override in overrides:
        _set(plain, *_parse_override(override))
    if _is_to_be_recognised(plain, path):
        plain = recogniser(plain)
    settings = _validate(plain, path or "--set")
    return settings, settings_as_dict(settings, (plain.get("source") or {}).get("kind", DEFAULT_KIND))


def read_comment(path: str | None) -> str:
    """The line by which a dataset's `config.yaml` says what was recognised, if a configuration begins with one."""
    first = _read_text(path).partition("\n")[0] if path and path != AUTO else ""
    return f"{first}\n" if first.startswith(COMMENT) else ""


def _is_to_be_recognised(plain: dict[str, Any], path: str | None) -> bool:
    """Whether files say what settings don't; the key `layout` is taken out."""
    layout = plain.pop("layout", AUTO if path in (None, AUTO) else "")
    if layout not in (AUTO, ""):
        raise ConfigError(f"layout is {layout!r}: write auto, or remove it")
    source = plain.get("source")
    is_known = isinstance(source, dict) and "kind" in source and path in (None, AUTO)
    return layout == AUTO and not is_known and isinstance(source, dict | None)


def _normalize(value: Any) -> Any:
    """All text in NFC: editors and shells write `é` in either form, and keys and labels are in this one."""
    if isinstance(value, dict):
        return {_normalize(key): _normalize(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_normalize(each) for each in value]
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def settings_as_dict(settings: DatasetSettings, source_kind: str) -> dict[str, Any]:
    """The settings as plain JSON values, in the shape of the YAML that gives them; what has no say is left out."""
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
        plain = _parse_yaml(text, f"the configuration {path}")
    except yaml.YAMLError as error:
        raise ConfigError(f"the configuration {path} is no YAML: {explain_yaml_error(error)}") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ConfigError(f"the configuration {path} holds a {type(plain).__name__}, not keys and values")
    return plain


def _parse_yaml(text: str, where: str) -> Any:
    """What a text in YAML says; of a key that is given twice PyYAML would take the last."""
    loader = yaml.SafeLoader(text)
    node = loader.get_single_node()
    _refuse_repeated_keys(node, where, "", set())
    return None if node is None else loader.construct_document(node)


def _refuse_repeated_keys(node: yaml.Node | None, where: str, below: str, seen: set[int]) -> None:
    if id(node) in seen:  # an alias, which may lead back to itself
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _refuse_repeated_keys(each, where, below, seen)
    lines: dict[str, int] = {}
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        key, line = _normalize(str(name.value)), name.start_mark.line + 1
        if key in lines:
            twice = f"gives {below}{key} twice, in lines {lines[key]} and {line}"
            raise ConfigError(f"{where} {twice}: remove one of them")
        lines[key] = line
        _refuse_repeated_keys(value, where, f"{below}{key}.", seen)


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


def _parse_override(override: str) -> tuple[str, list[str], Any]:
    """The override itself, its keys, and its value."""
    path, equals, value = override.partition("=")
    keys = _normalize(path.strip().split("."))
    if not equals or not all(keys):
        raise ConfigError(f"--set {override}: write key.path=value, such as images.quality=90")
    try:
        return override, keys, _normalize(_parse_yaml(value, f"--set {override}"))
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override}: the value is no YAML: {explain_yaml_error(error)}") from None


def _set(plain: dict[str, Any], override: str, keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = plain.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {override}: {key} is {inner!r}, which has no keys below it")
        plain = inner
    plain[keys[-1]] = value


def _validate(plain: Mapping[str, Any], where: str) -> DatasetSettings:
    problems: list[str] = []
    values = _lengthen(plain, {"features": "function"})
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
        settings = TypeAdapter(DatasetSettings).validate_python(values)
    except ValidationError as error:
        problems += explain_errors(error, DatasetSettings)
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
    if problems:
        raise ConfigError("\n".join(f"{where}: {problem}" for problem in problems))
    return settings


def _build_source(source: Any) -> Any:
    kind = source.get("kind", DEFAULT_KIND) if isinstance(source, dict) else None
    if not isinstance(kind, str):
        raise ValueError(f"source is {source!r}: write source: {{kind: {DEFAULT_KIND}}} and its settings")
    source_kind = load_source(kind)
    values = {key: value for key, value in source.items() if key != "kind"}
    return _build_below("source", source_kind, _lengthen(values, source_kind.short_forms))


def _lengthen(values: Mapping[str, Any], short_forms: Mapping[str, str]) -> dict[str, Any]:
    """Values with `name: text` written as `name: {key: text}`, in each setting for which `short_forms` has a key."""
    long = dict(values)
    for setting, key in short_forms.items():
        if isinstance(inner := values.get(setting), dict):
            long[setting] = {name: {key: each} if isinstance(each, str) else each for name, each in inner.items()}
    return long


def _build_convention(convention: Any) -> Any:
    if isinstance(convention, dict):
        return _build_below("convention", OwnConvention, convention)
    if not isinstance(convention, str):
        raise ValueError(f"convention is {convention!r}: write a convention's name, or a mapping with features")
    return convention


def _build_below(key: str, kind: type[Any], value: Any) -> Any:
    # Around the value, so that sources need not know of pydantic for unknown keys in them to be errors.
    around = make_dataclass("Around", [(key, kind)])
    around.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    try:
        return getattr(TypeAdapter(around).validate_python({key: value}), key)
    except ValidationError as error:
        raise ConfigError("\n".join(explain_errors(error, around))) from None


def name_dataset(
    settings: DatasetSettings, plain: dict[str, Any], output: str
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Gives a dataset without a name its output folder's, where its files' names need one.

    Raises:
        ConfigError: files cannot be called so.
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
