"""What a column of a table holds, as YAML states it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from recordmill.schemas.coercion import COERCE, FeatureValueError, Value
from recordmill.schemas.features import Feature, Kind

KINDS: dict[str, Kind] = {
    "bool": "int64",
    "enum": "int64",
    "int": "int64",
    "uint": "int64",
    "float": "float",
    "double": "float",
    "number": "float",
    "string": "bytes",
    "bytes": "bytes",
}
"""The list of an Example that each type is stored in, as TensorFlow's tutorial on TFRecord coerces them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSettings:
    """One column: the YAML keys below its name.

    Attributes:
        type: `bool`, `enum`, `int`, `uint` (stored as int64), `float`, `double`, `number` (which takes integers too),
            `string` or `bytes` (base64 where a cell is text); followed by `[]` for a list.
        feature: the feature's name in the Example; empty: the column's.
        enum: the number of each name that a column of type `enum` has.
        default: what a reader takes where the column has no value. Without one, a row without a value is rejected.
        meaning: one line for people.
    """

    type: str
    feature: str = ""
    enum: Mapping[str, int] = field(default_factory=dict)
    default: bool | int | float | str | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError where the column cannot be."""
        if self.base not in KINDS or not re.fullmatch(r"\w+(\[\])?", self.type):
            known = ", ".join(KINDS)
            raise ValueError(f"type is {self.type!r}: write one of {known}, or one of them and [] for a list")
        if (self.base == "enum") != bool(self.enum):
            raise ValueError("enum: goes with type: enum, and names the number of each name: {low: 0, high: 1}")
        if self.many and self.default is not None:
            raise ValueError("default: a list has no default: without values, it is empty")
        try:
            self._coerced_default()
        except FeatureValueError as error:
            raise ValueError(f"default: {error}") from None

    @property
    def base(self) -> str:
        """The type of one value."""
        return self.type.removesuffix("[]")

    @property
    def many(self) -> bool:
        """Whether a cell holds a list."""
        return self.type.endswith("[]")

    @property
    def kind(self) -> Kind:
        """The list of an Example that its values go to."""
        return KINDS[self.base]

    def _coerced_default(self) -> Value | None:
        value = self.default
        if isinstance(value, str):
            value = self.enum.get(value) if self.enum else value.encode()  # type: ignore[assignment]
        elif self.kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)  # YAML's 0
        return None if value is None else COERCE[self.kind](value)

    def as_feature(self, column: str) -> Feature:
        """The feature that the column becomes."""
        name = self.feature or column
        meaning = self.meaning or f"the column `{column}`, {self.type}"
        return Feature(name, self.kind, name, meaning, many=self.many, default=self._coerced_default())
