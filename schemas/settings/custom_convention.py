"""Conventions that users define in YAML."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from recordmill.schemas.bounds import ClassId
from recordmill.schemas.coercion import COERCE, FeatureValueError
from recordmill.schemas.conventions.convention import Convention
from recordmill.schemas.features import Feature, Kind
from recordmill.schemas.shard_name import SHARD_NAME, check_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomFeature:
    """One feature: the YAML keys below its name.

    Attributes:
        type: `bytes`, `float` or `int64`: that of its field.
        field: the field that fills it, e.g. `encoded`; an Example whose record lacks it lacks the feature too.
        shape: `[]` for one value, `[null]` for any number of them; that of its field.
        default: the value that readers use if the feature is absent: it is stored in the dataset's metadata, not in
            Examples. Without one, the feature must be present.
        value: the value that every Example has, in place of a field.
        meaning: one line for people.
    """

    type: Kind
    field: str = ""
    shape: tuple[None, ...] = ()
    default: str | float | int | None = None
    value: str | float | int | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError if the feature is impossible."""
        if len(self.shape) > 1:
            raise ValueError("shape is [] for one value or [null] for any number of them")
        if bool(self.field) == (self.value is not None):
            raise ValueError("field or value: give one of the two")
        if self.shape and (self.default is not None or self.value is not None):
            raise ValueError("shape [null] goes without default and value: a missing list is empty")
        for key in ("default", "value"):
            try:
                self._coerced(key)
            except FeatureValueError as error:
                raise ValueError(f"{key}: {error}") from None

    def _coerced(self, key: str) -> Any:
        value = getattr(self, key)
        if isinstance(value, str):
            value = value.encode()
        elif self.type == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)  # YAML's 1
        return None if value is None else COERCE[self.type](value)

    def as_feature(self, key: str) -> Feature:
        """The feature under its name."""
        meaning = self.meaning or (f"the field `{self.field}`" if self.field else f"always {self.value}")
        many = bool(self.shape)
        default, constant = self._coerced("default"), self._coerced("value")
        return Feature(key, self.type, self.field, meaning, many=many, default=default, constant=constant)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomConvention:
    """A convention: the YAML keys under `convention:`, if that is not a name.

    Attributes:
        features: the features by their keys in the Example, in the order in which they are documented.
        shard_name: pattern of the files' names, unless `shards.name` gives another.
        label_offset: the id of the first class unless `labels.offset` says otherwise.
        label_lines: the form of the lines in `labels.txt`: `id:name`, or the `name` alone, in the order of the ids.
        format_names: the text of the field `format` for a format, e.g. `{JPEG: jpg}`; the others are lower-cased.
    """

    features: Mapping[str, CustomFeature]
    shard_name: str = SHARD_NAME
    label_offset: ClassId = 0
    label_lines: Literal["id:name", "name"] = "id:name"
    format_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError if it has no features, or cannot name files."""
        if not self.features:
            raise ValueError("convention.features names none: give at least one")
        check_pattern(self.shard_name, "convention.shard_name")

    def as_convention(self) -> Convention:
        """The convention that it defines."""
        written = {each.name: getattr(self, each.name) for each in fields(self)}
        features = tuple(feature.as_feature(key) for key, feature in self.features.items())
        return Convention(**{**written, "title": "the user's own", "features": features})
