"""Settings as plain values: all in use, and those that differ from their defaults."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from recordmill.schemas.corrections import Corrections
from recordmill.schemas.rejection import Exclusions
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout

DIGESTED = ("exclude", "corrections")
"""Settings that name a list: a recipe has a digest of its content, or nothing without a list."""


@dataclass(frozen=True, slots=True)
class NamedLists:
    """The contents of the lists that settings name.

    Attributes:
        exclusions: of `exclude`.
        corrections: of `corrections`.
    """

    exclusions: Exclusions = field(default_factory=Exclusions)
    corrections: Corrections = field(default_factory=Corrections)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each list by the setting, an empty one for no list."""
        lists: tuple[Exclusions | Corrections, ...] = (self.exclusions, self.corrections)
        return {key: each.digest if each else "" for key, each in zip(DIGESTED, lists, strict=True)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A dataset's settings as plain values and as text.

    Attributes:
        values: what decides the dataset's bytes: the settings that differ from their defaults, and
            digests of functions, of excluded images and of corrections.
        settings: all settings in use, with the same digests.
        config_text: all settings as YAML: the content of `config.yaml`.
    """

    values: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    config_text: str = ""


def list_settings(settings: DatasetSettings) -> dict[str, Any]:
    """Lists all settings in use, in the shape of their YAML; without those that have no effect."""
    return _as_in_yaml(asdict(settings), settings)


def list_changed_settings(settings: DatasetSettings) -> dict[str, Any]:
    """Lists the settings that differ from their defaults, in the shape of their YAML.

    A setting that is added later, with a default that changes no bytes, changes no list.
    The kind of the source has no default, so it is always listed. Where `auto` stands for the value
    in use, the setting counts as `auto`.
    """
    return _as_in_yaml(_list_changed(_with_auto(settings)), settings)


def _as_in_yaml(plain: dict[str, Any], settings: DatasetSettings) -> dict[str, Any]:
    plain["source"] = {"kind": settings.source.kind, **plain["source"]}
    if settings.splits.given:
        splits = plain.get("splits", {})
        splits.pop("fractions", None)
    return plain


def _with_auto(settings: DatasetSettings) -> DatasetSettings:
    """Sets to `auto` what `auto` would complete to its present value."""
    images, convention = settings.images, ExampleLayout(settings).convention
    if images.store == convention.stores:
        images = replace(images, store="auto")
    if images.reencode != "never":
        automatic = replace(images, reencode="auto")
        if automatic.reencoding == images.reencode:
            images = automatic
    if settings.compression == convention.compression:
        settings = replace(settings, compression="auto")
    return replace(settings, images=images)


def _list_changed(value: Any) -> Any:
    """Returns a settings dataclass, or a value in one, as plain values without defaults."""
    if is_dataclass(value):
        parts = ((each, getattr(value, each.name)) for each in fields(value))
        return {each.name: _list_changed(part) for each, part in parts if part != default_of(each)}
    if isinstance(value, Mapping):
        return {key: _list_changed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(_list_changed, value))
    return value


_Found = TypeVar("_Found")


def judge_changed_settings(
    section: Any, judge: Callable[[Any, str], _Found | None], place: str = ""
) -> Iterator[tuple[str, _Found]]:
    """Judges each setting that differs from its default, except for those of the source.

    Yields what the judge finds, with the path of the setting. The settings in it are then not
    judged.

    Args:
        section: a settings dataclass.
        judge: takes the dataclass and the name of a field; returns None if it finds nothing.
        place: the path of the section, with a dot after it; empty for all settings.
    """
    for each in fields(section):
        value = getattr(section, each.name)
        if each.name == "source" or value == default_of(each):
            continue
        path = f"{place}{each.name}"
        found = judge(section, each.name)
        if found is not None:
            yield path, found
        elif is_dataclass(value) and each.name != "convention":
            yield from judge_changed_settings(value, judge, f"{path}.")


def default_of(each: Any) -> Any:
    """Returns the default of a field of settings."""
    if each.default_factory is MISSING:
        return each.default
    return each.default_factory()
