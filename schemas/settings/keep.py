"""The settings under `keep:`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Interval

from recordmill.schemas.bounds import AtLeastOne


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSettings:
    """Which images are kept, decided while they are converted. An image is left out unless it meets all conditions.

    Attributes:
        min_side: minimum length of the shorter side of the source image, in pixels.
        max_aspect: how many times as long as the shorter side the longer side of the source image may be.
        min_sharpness: minimum variance of the Laplacian of the gray values (0 to 255) of the image as it is stored;
            100 is a common choice for photographs.
        min_brightness: minimum mean of these gray values.
        function: `package.module:function` of your own, which takes the image as it is stored and returns whether to
            keep it.
    """

    short_form: ClassVar[str] = "function"

    min_side: AtLeastOne | None = None
    max_aspect: Annotated[float, Ge(1)] | None = None
    min_sharpness: Annotated[float, Ge(0)] | None = None
    min_brightness: Annotated[float, Interval(ge=0, le=255)] | None = None
    function: str | None = None

    @property
    def needs_pixels(self) -> bool:
        """Whether images must be decoded to decide."""
        return bool(self.function) or self.min_sharpness is not None or self.min_brightness is not None
