"""Builds the frozen settings from the values that the user wrote."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from recordmill.pipeline.configuration.setting_errors import explain_invalid
from recordmill.pipeline.configuration.setting_types import fit_to_type
from recordmill.pipeline.configuration.written_settings import DEFAULT_KIND
from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import SettingError
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.yaml_core import plain_numbers
from recordmill.transforms.inputs.sources.source import load_source


def build_settings(
    values: Mapping[str, Any], problems: list[SettingError]
) -> DatasetSettings | None:
    """Builds the settings; each class checks its own fields.

    Args:
        values: the settings, in the shape of the YAML.
        problems: gets an error for each value that cannot be used.

    Returns:
        The settings; None if there are problems.
    """
    values = {
        key: value
        for key, value in values.items()
        if value is not None or key not in ("source", "convention")
    }
    kind, own = _choose_source(values.pop("source", {}), problems)
    source = _build(kind, own, "source", kind, problems)
    whole = {**values, "source": load_source(DEFAULT_KIND)() if source is None else source}
    if isinstance(whole.get("convention"), dict):
        convention = _build(Convention, whole["convention"], "convention", kind, problems)
        whole["convention"] = convention or "default"
    built = _build(DatasetSettings, whole, "", kind, problems)
    return None if problems else built


def _choose_source(source: Any, problems: list[SettingError]) -> tuple[type[Any], dict[str, Any]]:
    """Returns the class of the given source, and its settings."""
    kind = source.get("kind", DEFAULT_KIND) if isinstance(source, dict) else None
    try:
        if not isinstance(kind, str):
            example = f"write source: {{kind: {DEFAULT_KIND}}} and its settings"
            raise SettingError("source", f"is {source!r:.80}: {example}")
        return load_source(kind), {key: value for key, value in source.items() if key != "kind"}
    except SettingError as error:
        problems.append(error)
        return load_source(DEFAULT_KIND), {}


def _build(
    kind: Any, values: Any, place: str, source: type[Any], problems: list[SettingError]
) -> Any:
    """Returns an instance of a class of settings; None if pydantic refuses the values."""
    fitted = plain_numbers(fit_to_type(kind, values, problems, place))
    try:
        return _adapter(kind).validate_python(fitted)
    except ValidationError as error:
        problems += explain_invalid(error, fitted, place, source)
        return None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Returns the validator of a class; pydantic takes 50 ms to make one."""
    return TypeAdapter(kind)
