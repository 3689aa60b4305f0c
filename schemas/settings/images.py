"""What the `images:` section of a configuration can say."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")

MAX_JPEG_SIDE = 65_500  # libjpeg's JPEG_MAX_DIMENSION; the marker itself would hold 65,535
DEFAULT_MAX_PIXELS = 89_478_485
"""Pixels of the largest image that is decoded by default, or that others are enlarged to: seconds of work."""

LARGEST_LIMIT = 2**62
"""The largest limit on bytes and pixels: one more still fits into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """The size that images are brought to: `longest` or `exact`, one of the two.

    Attributes:
        longest: pixels of the longest side at most. Smaller images stay as they are; nothing is enlarged.
        exact: height and width in pixels. Smaller images are enlarged.
        fit: how an image of another shape fills `exact`: `crop` cuts what sticks out, equally on both sides; `pad`
            shows all of it, centred on `background`.
    """

    longest: int | None = None
    exact: tuple[int, int] | None = None
    fit: Literal["crop", "pad"] = "crop"

    def __post_init__(self) -> None:
        if (self.longest is None) == (self.exact is None):
            raise ValueError("resize: give either longest or exact")
        key, sides = ("longest", (self.longest,)) if self.exact is None else ("exact", self.exact)
        if not all(side is not None and 1 <= side <= MAX_JPEG_SIDE for side in sides):
            raise ValueError(f"resize.{key}: a side has 1 to {MAX_JPEG_SIDE:,} pixels")
        if self.exact is not None and math.prod(self.exact) > DEFAULT_MAX_PIXELS:
            raise ValueError(f"resize.exact: an image has at most {DEFAULT_MAX_PIXELS:,} pixels: give smaller sides")
        _check_choice("resize.fit", self.fit, ("crop", "pad"))

    @property
    def pads(self) -> bool:
        """Whether images of another shape get a margin."""
        return self.exact is not None and self.fit == "pad"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """Which images are accepted, how they are checked, and what is stored of them.

    Attributes:
        formats: formats that are accepted, recognised by their bytes. Everything else is rejected unopened.
        max_bytes: larger files are rejected.
        max_pixels: images with more pixels are rejected before they are decoded, by what their header says.
        max_side: images with a longer side are rejected, likewise.
        check: `decode` decodes every image. `header` reads only the headers of images that are stored untouched: much
            faster, but damage inside goes unseen and there are no moments. What is re-encoded is decoded all the same.
            On DirectRunner under Linux a second process then writes every other shard, with 200 MB mostly shared with
            the first; `--threads=1` does without it.
        store: what images are stored as: `jpeg`; `png`, without loss; `raw`, the pixels as height x width x channels
            bytes; `auto`, what the convention asks for, which is `jpeg` unless it is one of raw pixels.
        reencode: `when_needed` copies files that are of the form asked for, if every reader shows them correctly, and
            re-encodes the rest; `always` re-encodes those too; `never` copies every file, whatever its format, so that
            nothing is rotated or converted. `auto` is `always` where `quality` or `subsampling` is not its default,
            and `when_needed` otherwise.
        quality: of re-encoded JPEGs, 1 to 100.
        subsampling: of the colours of re-encoded JPEGs: 4:4:4 keeps them all, 4:2:0 takes the least space. `auto` keeps
            the sampling of a JPEG, and takes 4:4:4 for other formats, where 4:2:0 would change the mean colour of
            drawings and small pictures by up to 47 of 255. `by_format` is what `auto` was in version 0.1: 4:2:0 for
            JPEGs and 4:4:4 for other formats.
        grayscale: `keep` leaves one channel where there is one; `expand` makes it three.
        background: red, green, blue (0 to 255) behind transparent pixels and around padded images.
        resize: absent: images keep their size.
        moments: whether each channel's sum and sum of squares over the stored image's pixels are taken too, for those
            who analyse the dataset (`analyze` sets it): about a third more time, since to check a JPEG that is stored
            untouched its coefficients are enough, and what is re-encoded is decoded once more.
        near_duplicates: whether images that look alike are searched for, by the difference hash of each one's pixels.
            Files with the same bytes are found without it.
    """

    formats: tuple[str, ...] = FORMATS
    max_bytes: int = 256 * 2**20
    max_pixels: int = DEFAULT_MAX_PIXELS
    max_side: int = MAX_JPEG_SIDE
    check: Literal["decode", "header"] = "decode"
    store: Literal["auto", "jpeg", "png", "raw"] = "auto"
    reencode: Literal["auto", "when_needed", "always", "never"] = "auto"
    quality: int = 95
    subsampling: Literal["auto", "by_format", "4:4:4", "4:2:2", "4:2:0"] = "auto"
    grayscale: Literal["keep", "expand"] = "keep"
    background: tuple[int, int, int] = (255, 255, 255)
    resize: Resize | None = None
    moments: bool = False
    near_duplicates: bool = False

    def __post_init__(self) -> None:
        if not self.formats:
            raise ValueError("formats: name at least one")
        for name in self.formats:
            _check_choice("formats", name, FORMATS)
        for key in ("max_bytes", "max_pixels", "max_side"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key}: must be positive")
            if getattr(self, key) > LARGEST_LIMIT:
                raise ValueError(f"{key}: must be at most {LARGEST_LIMIT:,}")
        if self.max_side > MAX_JPEG_SIDE and self.reencode != "never":
            raise ValueError(f"max_side: a JPEG's side has at most {MAX_JPEG_SIDE:,} pixels")
        if not 1 <= self.quality <= 100:
            raise ValueError("quality: must be 1 to 100")
        if len(self.background) != 3 or not all(0 <= value <= 255 for value in self.background):
            raise ValueError("background: give red, green and blue, each 0 to 255")
        for key in ("check", "store", "reencode", "subsampling", "grayscale"):
            _check_choice(key, getattr(self, key), get_args(get_type_hints(ImageSettings)[key]))
        self._check_contradictions()

    @property
    def reencoding(self) -> Literal["when_needed", "always", "never"]:
        """`reencode`, or what its `auto` stands for."""
        if self.reencode != "auto":
            return self.reencode
        return "when_needed" if self.quality == 95 and self.subsampling == "auto" else "always"

    def _check_contradictions(self) -> None:
        if self.reencode == "never" and self.store != "auto":
            raise ValueError(f"store: {self.store} needs re-encoding, and reencode is never")
        if self.reencode == "never" and self.resize is not None:
            raise ValueError("resize: needs re-encoding, and reencode is never")
        if self.reencode == "never" and self.grayscale == "expand":
            raise ValueError("grayscale: expand needs re-encoding, and reencode is never")
        if self.near_duplicates and self.check == "header" and self.reencoding != "always":
            raise ValueError("near_duplicates: needs the pixels of all images: set check to decode")


def _check_choice(key: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise ValueError(f"{key}: {value!r} is none of {', '.join(choices)}")
