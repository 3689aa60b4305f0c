"""Merges the settings of a configuration, of `--set`, and of keywords in Python.

All become one mapping, in the shape of the YAML. It remembers where a value comes from, so that
errors can say so.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from recordmill.pipeline.configuration.parse_yaml import MAX_DEPTH, normalize, parse_yaml
from recordmill.pipeline.configuration.setting_types import read_set_text
from recordmill.schemas import earlier_names
from recordmill.schemas.errors import SettingError, UsageError
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.yaml_core import write_yaml_line
from recordmill.transforms.inputs.sources.source import load_source, source_names

DEFAULT_KIND = "class_folders"
"""The `kind:` of the source if none is given."""

FLAG = "--set: "
KEYWORD = "argument "
"""How an error begins if a flag, or a keyword in Python, gives the wrong value."""


@dataclass(frozen=True, slots=True)
class Override:
    """One setting that goes before the configuration's.

    Attributes:
        keys: its path.
        value: its value, as YAML gives it.
        origin: how an error about its value begins.
        quote: the override as the user wrote it, for an error about its path.
    """

    keys: tuple[str, ...]
    value: Any
    origin: str
    quote: str


@dataclass(slots=True)
class WrittenSettings:
    """The settings that the user wrote.

    Attributes:
        values: the settings, in the shape of the YAML.
        origin: how an error about a value of the configuration begins.
        overridden: the paths that were given as overrides, and how errors about them begin.
    """

    values: dict[str, Any]
    origin: str
    overridden: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def override(self, each: Override) -> None:
        """Sets one value; a mapping keeps its other entries, including those of its default.

        Raises:
            UsageError: there are no keys below one of the path.
        """
        place = self.values
        default: Any = _defaults_for(self.values.get("source"))
        for key in each.keys[:-1]:
            default = getattr(default, key, None)
            if place.get(key) is None:
                place[key] = dict(default) if isinstance(default, Mapping) else {}
            if not isinstance(place[key], dict):
                shown = f"{key} is {place[key]!r:.80}"
                raise UsageError(f"{each.quote}: {shown}, which has no keys below it")
            place = place[key]
        place[each.keys[-1]] = each.value
        self.overridden.append((each.keys, each.origin))

    def rename_earlier(self, given: Collection[tuple[str, ...]]) -> None:
        """Gives settings with an earlier name their present one.

        Args:
            given: the paths that were written together, and must not contradict each other.

        Raises:
            UsageError: a setting has two values.
        """
        for earlier, name in earlier_names.SETTINGS.items():
            section: Any = self.values
            for key in earlier[:-1]:
                section = section.get(key) if isinstance(section, dict) else None
            if not isinstance(section, dict) or earlier[-1] not in section:
                continue
            value = section.pop(earlier[-1])
            other = section.get(name[-1], value)
            if other != value and any(name[: len(keys)] == keys for keys in given):
                former = ".".join(earlier)
                both = f"is {other!r:.80} and {former} is {value!r:.80}"
                error = SettingError(
                    ".".join(name), f"{both}, which are one setting: remove {former}"
                )
                raise UsageError(self.blame(error))
            section[name[-1]] = value
        self.overridden = [
            (earlier_names.SETTINGS.get(keys, keys), origin) for keys, origin in self.overridden
        ]

    def blame(self, error: SettingError) -> str:
        """Returns the message of an error with the origin of the wrong value."""
        path = tuple(error.path.split("."))
        for keys, origin in reversed(self.overridden):
            shorter = min(len(path), len(keys))
            if path[:shorter] == keys[:shorter]:
                return f"{origin}{error}"
        return f"{self.origin}{error}"


def _defaults_for(source: Any) -> DatasetSettings:
    """Returns the settings of a configuration that says nothing but the source's kind."""
    kind = source.get("kind") if isinstance(source, dict) else None
    return DatasetSettings(source=load_source(kind if kind in source_names() else DEFAULT_KIND)())


def parse_flag(text: str) -> Override:
    """Parses the `key.path=value` of a `--set`, the value in YAML.

    Raises:
        UsageError: it has another form, or the value is not YAML.
    """
    path, equals, value = text.partition("=")
    keys = tuple(normalize(path.strip()).split("."))
    quote = f"--set {text:.200}"
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise UsageError(f"{quote}: write key.path=value, such as images.quality=90")
    parsed = read_set_text(normalize(value), lambda each: parse_yaml(each, f"{quote}: the value"))
    return Override(keys, parsed, FLAG, quote)


def parse_keywords(settings: Mapping[str, Any]) -> Iterator[Override]:
    """Yields the settings of a call in Python.

    Raises:
        UsageError: a value is of a type that settings cannot have.
    """
    for path, value in iter_paths(settings):
        try:
            plain = orjson.loads(orjson.dumps(value, default=os.fspath))
        except TypeError:
            raise UsageError(
                f"{KEYWORD}{path} is of type {type(value).__name__}: give text, numbers, true or "
                "false, lists or mappings"
            ) from None
        # The way of YAML: the same bounds, and numbers that become texts as they are written.
        parsed = parse_yaml(write_yaml_line(plain), f"{KEYWORD}{path}")
        yield Override(tuple(normalize(path).split(".")), parsed, KEYWORD, f"{KEYWORD}{path}")


def iter_paths(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the paths and values of settings; a mapping sets only the keys in it.

    A mapping below one of these is a value of its own.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{name}.{key}", each) for key, each in value.items())
        else:
            yield name, value


def part_of(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Returns the settings below a key; empty unless they are a mapping."""
    part = settings.get(key)
    return part if isinstance(part, dict) else {}
