"""YAML and `--set` become `DatasetSettings`, or every error in them is said at once, before any work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from pydantic import TypeAdapter, ValidationError

from transforms.dataset_settings import DatasetSettings
from transforms.marker import settings_as_dict
from transforms.sources import load_source


class ConfigError(ValueError):
    """The configuration is wrong; one line an error, each with the key's path."""


def load_settings(path: str | None, overrides: Sequence[str]) -> tuple[DatasetSettings, dict[str, Any]]:
    """Reads a configuration file and applies `key.path=value` overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); None for the defaults.
        overrides: `key.path=value`, the value in YAML; later ones win.

    Returns:
        The settings, and the same as plain values in the shape of the YAML.

    Raises:
        ConfigError: the file cannot be read or is no YAML, a key is unknown, a value is wrong or contradicts another.
    """
    plain = _read_yaml(path) if path else {}
    for override in overrides:
        _set(plain, override)
    settings = _validate(plain, path or "--set")
    kind = (plain.get("source") or {}).get("kind", "class_folders")
    return settings, settings_as_dict(settings, kind)


def _read_yaml(path: str) -> dict[str, Any]:
    try:
        text = _read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"the configuration {path} cannot be read: {str(why).lower()}") from None
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"the configuration {path} is no YAML: {' '.join(str(error).split())}") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ConfigError(f"the configuration {path} holds a {type(plain).__name__}, not keys and values")
    return plain


def _read_text(path: str) -> str:
    local = Path(path)
    if "://" not in path and not local.exists() and local.parent.name in ("", "configs"):
        shipped = resources.files("configs") / local.name
        if shipped.is_file():
            return shipped.read_text(encoding="utf-8")
    if "://" not in path:
        return local.read_text(encoding="utf-8")
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        text: str = file.read().decode("utf-8")
        return text


def _set(plain: dict[str, Any], override: str) -> None:
    path, equals, value = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {override}: write key.path=value, such as images.quality=90")
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override}: the value is no YAML: {' '.join(str(error).split())}") from None
    for key in keys[:-1]:
        inner = plain.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {override}: {key} is {inner!r}, which has no keys below it")
        plain = inner
    plain[keys[-1]] = parsed


def _validate(plain: Mapping[str, Any], where: str) -> DatasetSettings:
    problems: list[str] = []
    values = dict(plain)
    source = values.pop("source", None)
    if source is not None:
        try:
            values["source"] = _build_source(source)
        except ValidationError as error:
            problems += _sentences(error, "source.")
        except ValueError as error:
            problems.append(str(error))
    try:
        settings = TypeAdapter(DatasetSettings).validate_python(values)
    except ValidationError as error:
        problems += _sentences(error, "")
    if problems:
        raise ConfigError("\n".join(f"{where}: {problem}" for problem in problems))
    return settings


def _build_source(source: Any) -> Any:
    if not isinstance(source, dict) or not isinstance(source.get("kind", "class_folders"), str):
        raise ValueError(f"source is {source!r}: write source: {{kind: class_folders}} and its settings")
    fields = {key: value for key, value in source.items() if key != "kind"}
    kind = load_source(source.get("kind", "class_folders"))
    adapter = TypeAdapter(kind) if "__pydantic_config__" in vars(kind) else TypeAdapter(_strict(kind))
    return adapter.validate_python(fields)


def _strict(kind: type[Any]) -> type[Any]:
    """Unknown keys are errors; sources need not know of pydantic for that."""
    kind.__pydantic_config__ = {"extra": "forbid"}
    return kind


def _sentences(error: ValidationError, prefix: str) -> list[str]:
    sentences = []
    for each in error.errors(include_url=False):
        key = prefix + ".".join(str(part) for part in each["loc"])
        if each["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            sentences.append(f"{key} is no setting: remove it or correct its name")
        elif each["type"] == "value_error":
            message = str(each["ctx"]["error"])
            parent, _, last = key.rpartition(".")  # a message may begin with the whole key, or with its last part
            prefix_of = parent if last and message.startswith((f"{last}.", f"{last}:")) else key
            sentences.append(message if not prefix_of or message.startswith(key) else f"{prefix_of}.{message}")
        else:
            message = each["msg"][0].lower() + each["msg"][1:]
            sentences.append(f"{key} is {each['input']!r:.80}: {message}")
    return sentences


def name_dataset(
    settings: DatasetSettings, plain: dict[str, Any], output: str
) -> tuple[DatasetSettings, dict[str, Any]]:
    """Gives a dataset without a name its output folder's, where its files' names need one."""
    pattern = settings.shards.name or settings.layout.shard_name
    if settings.name or "{name}" not in pattern:
        return settings, plain
    base = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in output.rstrip("/").rpartition("/")[2]
    )
    name = base.lstrip("._-") or "dataset"
    return replace(settings, name=name), {**plain, "name": name}
