"""Further features by the user's wish: what the YAML keys below `source.features_from` have in common."""

from dataclasses import dataclass
from typing import Any, ClassVar

from recordmill.schemas.features import Feature, Kind
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.manifests.cell_values import feature_value


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFrom:
    """A further feature of an image. A subclass adds the field that says from where.

    Attributes:
        type: `bytes` (text as UTF-8), `int64` or `float`.
        many: whether it is a list of values.
        default: what stands for a value that is not there; without it the image is rejected.
        where: the name of the subclass's field.
        hint: what to write there.
        described: what the feature is, for people, with `{}` for the field's value.
    """

    type: Kind = "bytes"
    many: bool = False
    default: str | int | float | None = None

    where: ClassVar[str]
    hint: ClassVar[str]
    described: ClassVar[str]

    def check(self, key: str) -> None:
        """Raises ValueError where the feature of that name cannot be."""
        name = f"source.features_from.{key}"
        if not getattr(self, self.where):
            raise ValueError(f"{name}.{self.where} is empty: {self.hint}")
        if self.many and self.default is not None:
            raise ValueError(f"{name}: many excludes default: without values, the list is empty")
        try:
            self.default_value()
        except Rejected:
            raise ValueError(f"{name}.default is {self.default!r}, which is not of type {self.type}") from None

    def default_value(self) -> Any:
        """The default as references carry it, e.g. 1.0 for 1 where `type` is `float`; None where there is none."""
        return None if self.default is None else feature_value(self.default, self.type, getattr(self, self.where))

    def as_feature(self, key: str) -> Feature:
        """The feature under its name."""
        default = self.default_value()
        default = default.encode() if isinstance(default, str) else default
        text = self.described.format(getattr(self, self.where))
        return Feature(key, self.type, key, text, many=self.many, default=default)
