"""Conventions that users define in YAML, and features that functions compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from recordmill.schemas.conventions.convention import Convention
from recordmill.schemas.dataset.file_names import SHARD_NAME, check_pattern
from recordmill.schemas.features import Feature, FeatureValueError, Kind, coerce_setting
from recordmill.schemas.setting_fields import ClassId


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomFeature:
    """One feature: the YAML keys below its name.

    Attributes:
        type: `bytes`, `float` or `int64`, like its field.
        field: the field that fills it, e.g. `encoded`; an Example whose record lacks it lacks the feature too.
        shape: `[]` for one value, `[null]` for any number of them, like its field.
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
            raise ValueError("shape [null] allows neither default nor value: a missing list is empty")
        for key in ("default", "value"):
            try:
                coerce_setting(getattr(self, key), self.type)
            except FeatureValueError as error:
                raise ValueError(f"{key}: {error}") from None

    def as_feature(self, key: str) -> Feature:
        """The feature under its name."""
        meaning = self.meaning or (f"the field `{self.field}`" if self.field else f"always {self.value}")
        default, constant = (coerce_setting(value, self.type) for value in (self.default, self.value))
        return Feature(key, self.type, self.field, meaning, many=bool(self.shape), default=default, constant=constant)


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
            raise ValueError("convention.features is empty: give at least one")
        check_pattern(self.shard_name, "convention.shard_name")

    def as_convention(self) -> Convention:
        """The convention that it defines."""
        written = {each.name: getattr(self, each.name) for each in fields(self)}
        features = tuple(feature.as_feature(key) for key, feature in self.features.items())
        return Convention(**{**written, "title": "the user's own", "features": features})


@dataclass(frozen=True, slots=True)
class Signature:
    """The input and the output of a function that comes with Recordmill.

    Attributes:
        of: `image`, its pixels; or `file`, its bytes and its uri.
        kind: the list of an Example that holds its values.
        many: whether it gives a list.
        meaning: one line for people.
    """

    of: Literal["image", "file"]
    kind: Kind
    many: bool
    meaning: str


BUILT_IN = {
    "mean_std": Signature(
        "image", "float", True, "mean of red, green and blue, then their standard deviations, 0 to 255"
    ),
    "color_histogram": Signature("image", "float", True, "shares of pixels in 8 bins of red, 8 of green and 8 of blue"),
    "difference_hash": Signature(
        "image", "bytes", False, "64 bits in hex, which differ little for images that look alike"
    ),
    "pixels_sha256": Signature("image", "bytes", False, "SHA-256 of the decoded pixels, in hex"),
    "file_sha256": Signature("file", "bytes", False, "SHA-256 of the file, in hex"),
}
"""Built-in functions by name; their code is in `transforms.records.image_functions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFunction:
    """One computed feature: the YAML keys below its name.

    Attributes:
        function: `package.module:function`, or the name of one that comes with Recordmill: `mean_std`,
            `color_histogram`, `difference_hash`, `pixels_sha256`, `file_sha256`.
        type: `float`, `int64` or `bytes`: what a function of your own returns.
        shape: the shape of that: `[null]` for a list (the default) or `[]` for one value.
        of: what a function of your own takes: `image`, its pixels; or `file`, its bytes and its uri.
        meaning: one line for people.
    """

    short_form: ClassVar[str] = "function"

    function: str
    type: Kind | None = None
    shape: tuple[None, ...] | None = None
    of: Literal["image", "file"] | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError if it names no function, or sets what is fixed for a built-in one."""
        if self.shape is not None and len(self.shape) > 1:
            raise ValueError("shape is [] for one value or [null] for any number of them")
        if self.is_built_in and self.function not in BUILT_IN:
            known = ", ".join(BUILT_IN)
            raise ValueError(
                f"unknown function {self.function!r}: write one of {known}, or package.module:function for your own"
            )
        if self.is_built_in and (self.type or self.shape is not None or self.of):
            raise ValueError(f"type, shape and of are fixed for {self.function}: remove them")

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with Recordmill."""
        return ":" not in self.function

    @property
    def signature(self) -> Signature:
        """What the function takes and returns."""
        if self.is_built_in:
            return BUILT_IN[self.function]
        many = self.shape is None or bool(self.shape)
        return Signature(self.of or "image", self.type or "float", many, f"computed by `{self.function}`")

    def as_feature(self, name: str) -> Feature:
        """The feature that it fills; its field has the same name."""
        signature = self.signature
        return Feature(name, signature.kind, name, self.meaning or signature.meaning, many=signature.many)
