"""The settings under `images:`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypedDict

from annotated_types import Interval

from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import SettingError
from recordmill.schemas.idle_settings import (
    Effects,
    IdleIf,
    NoteIfIdle,
    Situation,
    not_decoded,
    note_unless_changed,
    why_no_group,
    without_marker,
)

Format = Literal["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000", "HEIC"]

FORMATS: tuple[Format, ...] = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")

OPTIONAL_FORMATS: tuple[Format, ...] = ("AVIF", "JPEG2000", "HEIC")
"""Formats that are accepted only if `images.formats` names them."""

STRIPPABLE = ("JPEG", "PNG", "WEBP")
"""The formats whose metadata can be removed without decoding them."""

MAX_JPEG_SIDE = 65_500  # libjpeg's JPEG_MAX_DIMENSION; the marker itself would hold 65,535
DEFAULT_MAX_PIXELS = 89_478_485
"""The most pixels that are decoded by default, or that images are enlarged to: seconds of work."""

_USUAL_DEPTH = 8

LARGEST_LIMIT = 2**62
"""The largest limit on bytes and pixels: one more still fits in 64 bits."""

CHANGES: Mapping[str, str] = {
    "cmyk_converted": "CMYK was converted to RGB",
    "depth_reduced": "channels of more than 8 bits were reduced to 8",
    "first_frame": "only the first frame of an animation, or the first page of a document, is "
    "stored",
    "flattened": "transparency was replaced by the background",
    "grayscale_expanded": "one channel was repeated to make three",
    "icc_converted": "colors were converted from the embedded profile to sRGB",
    "icc_ignored": "an embedded profile was dropped because it is unreadable or made for another "
    "kind of image",
    "lab_converted": "CIELAB was converted to RGB",
    "metadata_stripped": "metadata were removed without re-encoding the image",
    "palette_expanded": "palette entries were replaced by their colors",
    "prepared": "`images.function` changed the pixels",
    "reencoded": "the stored bytes differ from the file's; accompanies every change except "
    "`metadata_stripped`",
    "resized": "the image was resized to the configured size",
    "rotated": "the image was rotated as its metadata require",
}
"""What may be done to an image, by the name under which it is counted."""

_Limit = Annotated[int, Interval(ge=1, le=LARGEST_LIMIT)]
_Side = Annotated[int, Interval(ge=1, le=MAX_JPEG_SIDE)]
_Channel = Annotated[int, Interval(ge=0, le=255)]


def _not_exact(resize: "Resize", _: Situation) -> str | None:
    return "images.resize.exact is not set" if resize.exact is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """The size that images are resized to: `longest`, `shortest` or `exact`.

    Attributes:
        longest: maximum length of the longest side in pixels. Nothing is enlarged.
        shortest: maximum length of the shortest side in pixels. Nothing is enlarged.
        exact: height and width in pixels. Smaller images are enlarged.
        fit: another aspect ratio: `crop` crops both sides equally; `pad` shows the whole image,
            centered on `background`.
    """

    longest: _Side | None = None
    shortest: _Side | None = None
    exact: tuple[_Side, _Side] | None = None
    fit: Annotated[Literal["crop", "pad"], IdleIf(_not_exact)] = "crop"

    def __post_init__(self) -> None:
        """Raises SettingError if the size is not given once, or is too large."""
        if sum(size is not None for size in (self.longest, self.shortest, self.exact)) != 1:
            raise SettingError("", ": give one of longest, shortest and exact")
        if self.exact is not None and math.prod(self.exact) > DEFAULT_MAX_PIXELS:
            raise SettingError(
                "exact",
                f": an image has at most {DEFAULT_MAX_PIXELS:,} pixels: give smaller sides",
            )

    @property
    def pads(self) -> bool:
        """Whether images of another shape get a margin."""
        return self.exact is not None and self.fit == "pad"


_OF_DECODED = IdleIf(not_decoded)


def _given_as_pixels(_: "ImageSettings", now: Situation) -> str | None:
    return "the source gives pixels" if now.gives_pixels else None


def _copies(images: "ImageSettings", now: Situation) -> bool:
    """Returns whether every image is stored as it is."""
    return images.reencode == "never" and not now.may_give_pixels


def _never_or_always_encoded(images: "ImageSettings", now: Situation) -> str | None:
    if not now.holds_images:
        # What turned `auto` into `always` is named instead.
        is_asked = images.reencode == "always" and not images.changes_every_image
        return "no image is decoded" if is_asked else None
    if images.reencode == "never" and now.gives_pixels:
        return "the source gives pixels, which are always encoded"
    return None


def _not_encoded(images: "ImageSettings", now: Situation) -> str | None:
    if images.store not in ("auto", "jpeg"):
        return f"images are stored as {images.store}"
    return "images.reencode is never" if _copies(images, now) else None


def _without_background(images: "ImageSettings", now: Situation) -> str | None:
    if _copies(images, now) and not (images.near_duplicates or now.needs_pixels):
        return "images.reencode is never"
    if not images.pads and (now.gives_pixels or set(images.formats) == {"JPEG"}):
        return "no image is transparent, and none is padded"
    return None


def _count_filled(images: "ImageSettings", effects: Effects) -> int:
    """Returns the number of images in which the background may show."""
    filled = effects.changes["flattened"]
    if images.pads:
        filled += effects.changes["resized"]
    return filled


def _without_moments(images: "ImageSettings", now: Situation) -> str | None:
    if _copies(images, now) and images.check == "header":
        return "images.check is header"
    # `analyze` sets them, and is named instead.
    return None if now.analyzes else without_marker(images, now)


def _without_near_duplicates(images: "ImageSettings", now: Situation) -> str | None:
    if images.near_duplicates != "together":
        return without_marker(images, now)
    return why_no_group(now) if now.split == "one" else None


def _without_metadata(images: "ImageSettings", _: Situation) -> str | None:
    if images.reencoding == "always" or images.store == "raw":
        return "every image is encoded again, without metadata"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """Which images are accepted, how they are checked, and what is stored of them.

    Attributes:
        formats: accepted formats, by the first bytes; other files are rejected. `AVIF`, `JPEG2000`
            and `HEIC` (`pip install '.[heic]'`) must be added.
        max_bytes: larger files are rejected.
        max_pixels: images whose header announces more pixels are rejected.
        max_side: images whose header announces a longer side are rejected.
        check: `decode` decodes every image. `header` reads only the headers of images that are
            stored unchanged: much faster, but damaged pixels go unseen.
        store: how images are stored: `jpeg`; `png`, without loss; `raw` pixels, height x width x
            channels bytes; `auto`, as the convention requires.
        reencode: `auto`: `when_needed`, or `always` once you set `quality` or `subsampling`.
            `when_needed` copies files that already have the required form, and re-encodes the rest.
            `always` re-encodes all. `never` copies all, so nothing is rotated or converted.
        quality: quality of re-encoded JPEGs, 1 to 100.
        subsampling: chroma subsampling of re-encoded JPEGs: `4:4:4` keeps all colors, `4:2:0` takes
            the least space, `4:2:2` is between them. `auto` keeps that of a JPEG, and uses 4:4:4
            for other formats.
        bits: how many bits 16-bit images use, 9 to 16; the highest 8 are stored, and larger values
            are rejected. Absent: the high byte is stored. Files that declare fewer bits, and
            floats, are not affected.
        depth: `16` stores gray images of 16 bits as PNG of 16 bits, with their values, in place of
            `bits`. It needs `store: png`. Other images have 8 bits. Functions and readers of 8 bits
            see the high byte.
        grayscale: `keep` stores grayscale images with one channel; `expand` repeats it three times.
        background: red, green, blue (0 to 255) in place of transparency, and around padded images.
        resize: absent: images keep their size.
        moments: whether channel statistics are computed for `recordmill analyze` (`analyze` sets
            it). It takes about a third more time.
        function: `package.module:function` that changes pixels before they are resized and encoded;
            see docs/functions.md.
        metadata: Exif (which may hold a GPS position), XMP, IPTC, comments, thumbnails and data
            after the end. `keep` copies everything. `strip` removes all but color profiles, without
            decoding. `orientation` also keeps the orientation. Re-encoded images never have
            metadata.
        near_duplicates: `true` finds images that look alike, by the difference hash of their
            pixels. `together` also keeps near-duplicates and files with the same bytes in one
            split; each image is then decoded twice.
    """

    formats: Annotated[tuple[Format, ...], _OF_DECODED, IdleIf(_given_as_pixels)] = FORMATS
    max_bytes: _Limit = 256 * 2**20
    max_pixels: Annotated[_Limit, _OF_DECODED] = DEFAULT_MAX_PIXELS
    max_side: Annotated[_Limit, _OF_DECODED] = MAX_JPEG_SIDE
    check: Annotated[Literal["decode", "header"], IdleIf(_given_as_pixels)] = "decode"
    store: Annotated[Literal["auto", "jpeg", "png", "raw"], _OF_DECODED] = "auto"
    reencode: Annotated[
        Literal["auto", "when_needed", "always", "never"], IdleIf(_never_or_always_encoded)
    ] = "auto"
    quality: Annotated[
        int,
        Interval(ge=1, le=100),
        _OF_DECODED,
        IdleIf(_not_encoded),
        note_unless_changed("reencoded"),
    ] = 95
    subsampling: Annotated[
        Literal["auto", "4:4:4", "4:2:2", "4:2:0"],
        _OF_DECODED,
        IdleIf(_not_encoded),
        note_unless_changed("reencoded"),
    ] = "auto"
    bits: Annotated[
        Annotated[int, Interval(ge=9, le=16)] | None,
        _OF_DECODED,
        note_unless_changed("depth_reduced"),
    ] = None
    depth: Annotated[Literal[8, 16], _OF_DECODED, IdleIf(_given_as_pixels)] = 8
    grayscale: Annotated[
        Literal["keep", "expand"], _OF_DECODED, note_unless_changed("grayscale_expanded")
    ] = "keep"
    background: Annotated[
        tuple[_Channel, _Channel, _Channel],
        _OF_DECODED,
        IdleIf(_without_background),
        NoteIfIdle(_count_filled),
    ] = (255, 255, 255)
    resize: Annotated[Resize | None, _OF_DECODED, note_unless_changed("resized")] = None
    moments: Annotated[bool, _OF_DECODED, IdleIf(_without_moments)] = False
    near_duplicates: Annotated[
        bool | Literal["together"], _OF_DECODED, IdleIf(_without_near_duplicates)
    ] = False
    function: Annotated[str | None, _OF_DECODED, note_unless_changed("prepared")] = None
    metadata: Annotated[
        Literal["keep", "strip", "orientation"],
        _OF_DECODED,
        IdleIf(_without_metadata),
        IdleIf(_given_as_pixels),
        note_unless_changed("reencoded", "metadata_stripped"),
    ] = "keep"

    def __post_init__(self) -> None:
        """Raises SettingError if settings contradict each other."""
        if not self.formats:
            raise SettingError("formats", ": name at least one")
        if self.near_duplicates and self.check == "header" and self.reencoding != "always":
            raise SettingError(
                "near_duplicates", "needs the pixels of all images: set images.check to decode"
            )
        if self.depth != _USUAL_DEPTH:
            self._check_depth()
        if self.reencode == "never":
            self._check_copies()
        elif self.max_side > MAX_JPEG_SIDE:
            raise SettingError(
                "max_side",
                f": JPEG allows {MAX_JPEG_SIDE:,}: give no more, or set images.reencode to never",
            )

    def _check_depth(self) -> None:
        """Raises SettingError if a setting contradicts values of 16 bits."""
        others = {
            "bits": ("chooses 8 of 16 bits", self.bits),
            "grayscale": ("expand makes three channels of 8 bits", self.grayscale == "expand"),
            "function": ("changes pixels of 8 bits", self.function),
        }
        for key, (does, is_set) in others.items():
            if is_set:
                raise SettingError(key, f"{does}, and images.depth is 16: remove one of them")
        if self.store not in ("auto", "png"):
            raise SettingError(
                "depth", f"is 16, and images are stored as {self.store}: set images.store to png"
            )

    def _check_copies(self) -> None:
        """Raises SettingError if copied files would have to change."""
        changes = {
            "store": self.store != "auto",
            "resize": self.resize,
            "grayscale": self.grayscale == "expand",
            "bits": self.bits,
            "depth": self.depth != _USUAL_DEPTH,
        }
        for key, is_set in (changes | {"function": self.function}).items():
            if is_set:
                raise SettingError(
                    key, "needs re-encoding, and images.reencode is never: remove one of them"
                )
        if self.metadata == "strip":
            raise SettingError(
                "metadata",
                ": strip would lose the orientation, since images.reencode is never: choose "
                "orientation",
            )
        others = [name for name in self.formats if name not in STRIPPABLE]
        if self.metadata == "orientation" and others:
            names = f"{', '.join(STRIPPABLE)} only, not from {others[0]}"
            raise SettingError(
                "metadata",
                f"can be removed from {names}, and images.reencode is never: set images.formats "
                "to these",
            )

    @property
    def pads(self) -> bool:
        """Whether images of another shape get a margin."""
        return self.resize is not None and self.resize.pads

    @property
    def changes_every_image(self) -> bool:
        """Whether a function is set, or `quality` or `subsampling` is not its default."""
        return bool(self.function) or self.quality != 95 or self.subsampling != "auto"

    @property
    def reencoding(self) -> Literal["when_needed", "always", "never"]:
        """`reencode`, or what its `auto` stands for."""
        if self.reencode != "auto":
            return self.reencode
        if self.changes_every_image:
            return "always"
        return "when_needed"

    def complete(self, convention: Convention) -> "ImageSettings":
        """Replaces `reencode: auto`, and `store: auto` by the convention's form unless it is JPEG.

        Raises:
            SettingError: the images cannot have the convention's form.
        """
        form, named = convention.stores, f"the convention ({convention.title})"
        if form != "jpeg" and self.reencode == "never":
            raise SettingError(
                "images.reencode",
                f"is never, and {named} stores {form} pixels: remove one of them",
            )
        if self.function and self.reencode == "when_needed":
            raise SettingError(
                "images.reencode",
                "is when_needed, and images.function changes every image: remove one of them",
            )
        if self.depth != _USUAL_DEPTH and self.store != "png":
            raise SettingError(
                "images.depth",
                "is 16, and images would be stored as JPEG or raw pixels, which have 8 bits: set "
                "images.store to png",
            )
        store = form if form != "jpeg" and self.store == "auto" else self.store
        if store != "raw" and "pixels_base64" in convention.fields:
            raise SettingError(
                "images.store", f"is {store}, and {named} holds pixels: set it to raw"
            )
        return replace(self, store=store, reencode=self.reencoding)


class ResizeKeywords(TypedDict, total=False):
    """The keys of `Resize` as keywords of `recordmill.convert`, for type checkers."""

    longest: int | None
    shortest: int | None
    exact: Sequence[int] | None
    fit: Literal["crop", "pad"]


class ImageKeywords(TypedDict, total=False):
    """The keys of `ImageSettings` as keywords of `recordmill.convert`, for type checkers."""

    formats: Sequence[Format]
    max_bytes: int
    max_pixels: int
    max_side: int
    check: Literal["decode", "header"]
    store: Literal["auto", "jpeg", "png", "raw"]
    reencode: Literal["auto", "when_needed", "always", "never"]
    quality: int
    subsampling: Literal["auto", "4:4:4", "4:2:2", "4:2:0"]
    bits: int | None
    depth: Literal[8, 16]
    grayscale: Literal["keep", "expand"]
    background: Sequence[int]
    resize: ResizeKeywords | None
    moments: bool
    near_duplicates: bool | Literal["together"]
    function: str | None
    metadata: Literal["keep", "strip", "orientation"]
