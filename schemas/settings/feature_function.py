"""Features that functions compute."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature, FeatureKind
from recordmill.schemas.setting_fields import FeatureShape


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
    kind: FeatureKind
    many: bool
    meaning: str


BUILT_IN = {
    "mean_std": Signature(
        "image",
        "float",
        True,
        "mean of red, green and blue, then their standard deviations, 0 to 255",
    ),
    "color_histogram": Signature(
        "image", "float", True, "shares of pixels in 8 bins of red, 8 of green and 8 of blue"
    ),
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
        function: `package.module:function`, or the name of one that comes with Recordmill:
            `mean_std`, `color_histogram`, `difference_hash`, `pixels_sha256`, `file_sha256`.
        type: `float`, `int64` or `bytes`: what a function of your own returns.
        shape: the shape of that: `[null]` for a list (the default) or `[]` for one value.
        of: what a function of your own takes: `image`, its pixels; or `file`, its bytes and its
            uri.
        meaning: one line for people.
    """

    short_form: ClassVar[str] = "function"

    function: str
    type: FeatureKind | None = None
    shape: FeatureShape | None = None
    of: Literal["image", "file"] | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises SettingError if it names no function, or sets what is fixed for a built-in one."""
        if self.is_built_in and self.function not in BUILT_IN:
            known = ", ".join(BUILT_IN)
            raise SettingError(
                "function",
                f"is {self.function!r}, which does not exist: write one of {known}, or "
                "package.module:function for your own",
            )
        if self.is_built_in and (self.type or self.shape is not None or self.of):
            raise SettingError("type", f", shape and of are fixed for {self.function}: remove them")

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
        return Signature(
            self.of or "image", self.type or "float", many, f"computed by `{self.function}`"
        )

    def as_feature(self, name: str) -> Feature:
        """Returns the feature that it fills; its field has the same name."""
        signature = self.signature
        return Feature(
            name, signature.kind, name, self.meaning or signature.meaning, many=signature.many
        )
