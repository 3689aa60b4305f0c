"""Opens and loads files with Pillow, with one plugin per accepted format.

The plugin's class is called instead of `Image.open`: the format is known by then, and `Image.open`
compares the size with `Image.MAX_IMAGE_PIXELS`, one value for the whole process, whereas each
caller here has its own limits.

The headers of JPEG 2000 (T.800, annexes A and I) are read for what Pillow does not report. Also
lists the versions of the libraries that the stored bytes depend on, and finds missing ones.
"""

import io
import re
import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import simplejpeg
from PIL import Image, ImageFile, JpegImagePlugin, TiffImagePlugin, features
from PIL import __version__ as pillow_version

from recordmill.imaging import depth
from recordmill.imaging.acceptance import (
    DIRECTORIES,
    CountedReads,
    check_packed_pixels,
    check_runs,
    check_structure,
)
from recordmill.imaging.depth import Losses, is_deep
from recordmill.imaging.exif import find_orientation
from recordmill.imaging.heif_depth import read_bits
from recordmill.imaging.jpeg_header import JpegHeader, check_exif
from recordmill.imaging.low_bytes import LowBytes, load_low_bytes
from recordmill.imaging.tiff_pages import find_main_page, read_pages, reject_raw, with_first_page
from recordmill.schemas.rejection import Rejected, describe_error

# Width and height of the reference grid, and the image's offset in it.
_SIZE = struct.Struct(">IIII")
_START, _STYLE, _COMPONENT_STYLE, _TILE = b"\xff\x4f\xff\x51", 0xFF52, 0xFF53, 0xFF90

_MAX_BLOCKS = 2**20
"""Decoders keep a structure for each code-block and precinct. The largest image needs a thirtieth
of this number."""


def jpeg2000_profile(data: bytes) -> bytes | None:
    """Returns the ICC profile in the header's boxes; None if there is none."""
    at = 0
    while at + 8 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind == b"colr" and data[at + 8 : at + 9] in (b"\2", b"\3"):
            return data[at + 11 : at + length]
        if kind == b"jp2c" or length < 8:
            break
        at += 8 if kind == b"jp2h" else length
    return None


def check_codestream(data: bytes) -> None:
    """Checks a JPEG 2000 for faults that OpenJPEG ignores.

    Raises:
        Rejected: `too_much_work` if the main header divides the image into far too many pieces;
            `truncated` if the data end with the marker of a tile, which OpenJPEG would leave blank
            without an error.
    """
    if data.endswith(_TILE.to_bytes(2, "big")):
        raise Rejected("decode", "truncated", "JPEG2000: the data ends where a tile begins")
    at = data.find(_START) + 2
    if at < 2 or at + 40 > len(data):
        return
    right, bottom, left, top = _SIZE.unpack_from(data, at + 6)
    components = int.from_bytes(data[at + 38 : at + 40], "big")
    samples = max(right - left, 0) * max(bottom - top, 0) * components
    wide = components > 256
    while at + 4 <= len(data) and (marker := int.from_bytes(data[at : at + 2], "big")) != _TILE:
        if marker in (_STYLE, _COMPONENT_STYLE):
            if marker == _STYLE:
                flags, style = 4, 9
            else:
                flags, style = 5 + wide, 6 + wide
            levels, width, height = (*data[at + style : at + style + 3], 0, 0, 0)[:3]
            sizes = [(width & 15) + (height & 15) + 4]
            # Precincts, of the smallest resolution first.
            if int.from_bytes(data[at + flags : at + flags + 1]) & 1:
                sides = data[at + style + 5 : at + style + 6 + levels]
                sizes += [
                    (side & 15) + (side >> 4) + 2 * (levels - level)
                    for level, side in enumerate(sides)
                ]
            if sum(samples >> size for size in sizes) > _MAX_BLOCKS:
                raise Rejected(
                    "decode",
                    "too_much_work",
                    f"JPEG2000: over {_MAX_BLOCKS:,} code-blocks or precincts",
                )
        at += 2 + max(int.from_bytes(data[at + 2 : at + 4], "big"), 2)


_PLUGINS = {"WEBP": "WebP", "JPEG2000": "Jpeg2K"}
"""How Pillow's plugins spell a format, unless only its first letter is a capital."""


@cache
def _find_plugin(file_format: str) -> Callable[[io.BytesIO], ImageFile.ImageFile]:
    """Returns the class that opens a format.

    It is imported when first used: `pillow_heif` may be missing on a worker. For JPEG, it opens the
    first picture of a multi-picture file.
    """
    name = _PLUGINS.get(file_format, file_format.title())
    if file_format == "HEIC":
        module, name = "pillow_heif", "Heif"
    else:
        module, name = f"PIL.{name}ImagePlugin", name
    plugin: Callable[[io.BytesIO], ImageFile.ImageFile] = getattr(
        import_module(module), f"{name}ImageFile"
    )
    return plugin


_ENDS_EARLY = re.compile(
    r"truncated|not enough (?:image )?data|unexpected end|premature end|reached eof", re.IGNORECASE
)


class Loaded(NamedTuple):
    """A decoded first frame, of any mode.

    Attributes:
        image: the pixels as stored; TIFFs are already upright.
        orientation: 1 to 8, still to be applied.
        icc_profile: as embedded.
        changes: changes made by loading alone.
        low: the low bytes of colors of 16 bits, if `images.bits` needs them.
        declared: how many bits the file says that its values use, if they are more than 8; None if
            it does not say so.
    """

    image: Image.Image
    orientation: int
    icc_profile: bytes | None
    changes: frozenset[str]
    low: LowBytes | None = None
    declared: int | None = None

    @property
    def source(self) -> tuple[int, int, int]:
        """Width, height and orientation."""
        return (*self.image.size, self.orientation)


def open_image(data: bytes, file_format: str) -> ImageFile.ImageFile:
    """Reads the header; `.size`, `.mode` and `.info` are known then, and no pixels are allocated.

    Of a TIFF, the page with the main picture is opened.

    Raises:
        Rejected: `truncated`, `bad_header`, `too_much_work` or `raw_photograph`.
    """
    check_structure(data, file_format)
    if file_format == "JPEG":
        check_exif(data)
    elif file_format == "JPEG2000":
        check_codestream(data)
    is_later = False
    if file_format == "TIFF":
        pages = read_pages(data)
        page = find_main_page(data, pages)
        if is_later := page is not None and page is not pages[0]:
            data = with_first_page(data, page)
    plugin = _find_plugin(file_format)  # a missing one fails the run
    with _reject_errors(file_format, "bad_header", is_later):
        opened = plugin(CountedReads(data, file_format))
    opened.info[_IS_LATER_PAGE] = is_later
    if file_format in ("AVIF", "HEIC"):
        opened.info[_BITS] = read_bits(data)
    if file_format == "TIFF":
        _forget_directories(opened)
    elif file_format == "PNG":
        check_packed_pixels(data, *opened.size)
    elif file_format == "JPEG2000":
        opened.info["icc_profile"] = jpeg2000_profile(data)  # which Pillow does not report
    return opened


_IS_LATER_PAGE = "recordmill: a page before it is a reduced picture"
_BITS = "recordmill: the bits of a sample"


def is_later_page(opened: ImageFile.ImageFile) -> bool:
    """Tells if an opened picture is not the one that other readers show first."""
    return bool(opened.info.get(_IS_LATER_PAGE))


def _forget_directories(opened: ImageFile.ImageFile) -> None:
    """Keeps Pillow from reading Exif below a TIFF's first directory.

    No pixel depends on it, and Pillow fails if it cannot be read.
    """
    with suppress(Exception):  # see `_reject_errors`
        exif = opened.getexif()
        for tag in DIRECTORIES:
            if tag in exif:
                del exif[tag]


def pillow_opens(data: bytes, header: JpegHeader) -> bool:
    """Returns whether Pillow opens a JPEG, too, and finds the same size and components."""
    try:
        check_exif(data)
        opened = JpegImagePlugin.jpeg_factory(CountedReads(data, "JPEG"))
    except Exception:  # noqa: BLE001  # see `_reject_errors`
        return False
    return (
        opened.size == (header.width, header.height) and len(opened.getbands()) == header.components
    )


def decode_first_frame(
    opened: ImageFile.ImageFile, file_format: str, bits: int | None = None
) -> Loaded:
    """Decodes the first frame of an opened image.

    `bits` is `images.bits`.

    Raises:
        Rejected: `truncated`, `decode_error`, `too_much_work` or `value_too_large`.
    """
    changes, low, declared = set[str](), None, _find_declared(opened, file_format)
    is_reduced = file_format == "PPM" and _largest_of(opened) > 255
    if file_format == "BMP" and opened.tile and opened.tile[0].codec_name == "bmp_rle":
        check_runs(*opened.size)
    with _reject_errors(file_format, "decode_error", opened.info.pop(_IS_LATER_PAGE, False)):
        if file_format == "PPM":
            _read_samples(opened, bits)
        elif file_format == "TIFF":
            _correct_planes(opened)
        # Pillow drops the low bytes of colors silently.
        deep = any(";16" in str(tile.args) for tile in opened.tile)
        if file_format == "JPEG2000" and not is_deep(opened.mode):
            deep = _read_precision(_bytes_of(opened)) > 8
        if deep and not is_deep(opened.mode) and not declared and bits not in (None, 16):
            reopen = partial(_reopen, file_format)
            low = load_low_bytes(_bytes_of(opened), opened, reopen)
        if getattr(opened, "tag_v2", {}).get(0x0112, 1) in range(2, 9):
            changes.add("rotated")  # Pillow turns TIFFs while it loads them
        opened.load()
        if opened.im.mode != opened.mode:  # a GIF without palettes whose control blocks are damaged
            raise ValueError(f"{opened.im.mode} pixels in an image of mode {opened.mode}")
        # The decoder of an animation holds its last frames: 8 bytes for each pixel of a WebP.
        vars(opened).pop("_decoder", None)
    if deep or is_deep(opened.mode) or declared or is_reduced:
        changes.add("depth_reduced")
    key = opened.info.get("transparency")
    if deep and isinstance(key, tuple):  # Pillow reduces the pixels, but not the transparent color
        opened.info["transparency"] = tuple(value >> 8 for value in key)
    profile = opened.info.get("icc_profile")
    embedded = profile if isinstance(profile, bytes) and profile else None
    return Loaded(opened, read_orientation(opened), embedded, frozenset(changes), low, declared)


def _bytes_of(opened: ImageFile.ImageFile) -> bytes:
    assert isinstance(opened.fp, io.BytesIO)
    return opened.fp.getvalue()


def _reopen(file_format: str, data: bytes) -> ImageFile.ImageFile:
    opened = _find_plugin(file_format)(CountedReads(data, file_format))
    if file_format == "TIFF":
        _forget_directories(opened)
        _correct_planes(opened)
    return opened


def _read_precision(data: bytes) -> int:
    """Returns the bits of the first component of a JPEG 2000."""
    at = data.find(_START) + 42
    if 42 <= at < len(data):
        return (data[at] & 127) + 1
    return 8


def _correct_planes(opened: ImageFile.ImageFile) -> None:
    """Tells Pillow the depth of a TIFF's planes: it reads those of 16 bits as if they had 8."""
    assert isinstance(opened, TiffImagePlugin.TiffImageFile)
    tags = opened.tag_v2
    if tags.get(_PLANAR) != 2 or 16 not in tags.get(_DEPTHS, ()):
        return
    order = "L" if tags.prefix == b"II" else "B"
    for at, tile in enumerate(opened.tile):
        if tile.codec_name != "libtiff" and isinstance(tile.args, tuple) and len(tile.args[0]) == 1:
            args = (f"{tile.args[0]};16{order}", *tile.args[1:])
            opened.tile[at] = tile._replace(args=args)


_PLANAR, _DEPTHS = 284, 258
_SCALED = 16


def _find_declared(opened: ImageFile.ImageFile, file_format: str) -> int | None:
    """Returns how many bits an opened file says that its values of more than 8 bits use.

    Pillow scales the values of JPEG 2000 and PPM to 16 bits as the file says, and those of AVIF and
    HEIC to 8.
    """
    if opened.info.pop(_BITS, 0) > 8:
        return _SCALED
    raw_modes = [str(tile.args) for tile in opened.tile[:1]]
    if any("I;12" in each for each in raw_modes):
        return 12
    if file_format == "JPEG2000":
        precision = _read_precision(_bytes_of(opened))
        if 8 < precision < 16:
            return _SCALED
        return None
    if file_format == "PPM" and 255 < _largest_of(opened) < 65_535:
        return _SCALED
    return None


def _largest_of(opened: ImageFile.ImageFile) -> int:
    """Returns the largest value that the header of a PGM or PPM allows; 0 for other PNMs."""
    for codec, _, _, args in opened.tile:
        if codec in ("ppm", "ppm_plain") and isinstance(args, tuple):
            return int(args[-1])
    return 0


def reduce_loaded(loaded: Loaded, bits: int | None) -> tuple[Image.Image, Losses]:
    """Reduces a loaded image to 8 bits per channel, and says what is lost.

    Raises:
        Rejected: `value_too_large`.
    """
    image, low = loaded.image, loaded.low
    if low is None or bits is None:
        has_high_bytes = "depth_reduced" in loaded.changes
        return depth.reduce_to_8_bits(image, bits, loaded.declared, has_high_bytes)
    joined = depth.join_bytes(image, low.image, bits)
    if low.transparency is not None:
        joined.info["transparency"] = tuple(value >> (bits - 8) for value in low.transparency)
    return joined, {}


_MAX_STEPS = 2**24  # of Pillow's loop over text: less than ten seconds
_STEPS_OF_A_COMMENT = 128  # removing one copies a part of the text


def _read_samples(opened: ImageFile.ImageFile, bits: int | None) -> None:
    """Replaces the data of a PGM or PPM with the same samples in Pillow's own layout.

    This is done if Pillow would loop over the samples, at a microsecond per sample. Pillow loops
    over the numbers of plain files, too, which are limited instead.

    Args:
        opened: the file, in memory and not yet loaded.
        bits: `images.bits`.

    Raises:
        Rejected: `too_much_work`, for plain files of too many numbers or comments.
        ValueError: there are too few samples.
    """
    tile = opened.tile[0]
    codec, _, offset, args = tile
    if codec not in ("ppm", "ppm_plain"):
        return
    assert isinstance(opened.fp, io.BytesIO)
    data = opened.fp.getvalue()
    wanted = opened.width * opened.height * len(opened.getbands())
    is_affected = bits is not None and bits < _SCALED and _largest_of(opened) == 65_535
    if codec == "ppm_plain":
        if is_affected and opened.mode == "RGB":
            why = "images.bits cannot be applied to colors written as text: convert them to PNG"
            raise Rejected("decode", "bad_header", f"PPM: {why}")
        if wanted + _STEPS_OF_A_COMMENT * data.count(b"#", offset) > _MAX_STEPS:
            raise Rejected(
                "decode",
                "too_much_work",
                f"PPM: more than {_MAX_STEPS:,} numbers or comments as text",
            )
        return
    assert isinstance(args, tuple)
    largest = int(args[1])
    kind = np.dtype(np.uint8 if largest < 256 else ">u2")
    if (len(data) - offset) // kind.itemsize < wanted:
        raise ValueError("not enough image data")  # in Pillow's words
    if opened.mode == "I":
        white, layout = 65_535, "I;16B"
    else:
        white, layout = 255, opened.mode
    scaled = np.minimum(np.rint(np.arange(256**kind.itemsize) / largest * white), white)
    table = scaled.astype(">u2" if opened.mode == "I" else np.uint8)
    samples = np.frombuffer(data, kind, wanted, offset)
    if bits is not None and is_affected and opened.mode == "RGB":
        if (most := int(samples.max())) >> bits:
            raise depth.reject_value(most, bits)
        table = (np.arange(2**bits) >> (bits - 8)).astype(np.uint8)
    opened.fp = io.BytesIO(table[samples].tobytes())
    opened.tile = [tile._replace(codec_name="raw", offset=0, args=(layout, 0, 1))]


def has_more_frames(opened: ImageFile.ImageFile) -> bool:
    """Returns whether another frame follows the first, once that is loaded and copied.

    Pillow may lose it.

    A damaged frame does not count, nor one of a GIF that is found only after too many reads.
    """
    with suppress(Exception):  # see `_reject_errors`
        return bool(getattr(opened, "is_animated", False))
    return False


def count_encoded_channels(opened: ImageFile.ImageFile) -> int:
    """Returns the number of channels, 1 to 4, that a reader decodes if it keeps transparency."""
    transparent = "transparency" in opened.info
    if opened.mode in ("P", "PA"):
        if transparent or opened.mode == "PA":
            return 4
        return 3
    return len(opened.getbands()) + (transparent and opened.mode in ("1", "L", "I;16", "RGB"))


@contextmanager
def _reject_errors(file_format: str, code: str, is_later_page: bool = False) -> Iterator[None]:
    """Turns the plugins' errors into Rejected.

    On damaged files, plugins raise a dozen kinds with nothing in common. If the picture is a later
    page of a TIFF, the reason is `raw_photograph`, unless the data end early.
    """
    try:
        yield
    except Rejected:
        raise
    except Image.DecompressionBombError as error:  # a frame or tile far larger than the image
        raise Rejected(
            "decode", "too_many_pixels", f"{file_format}: {describe_error(error)}"
        ) from None
    except Exception as error:  # noqa: BLE001
        early = _ENDS_EARLY.search(str(error)) is not None
        if is_later_page and not early:
            why = "its first page is a reduced picture, and its whole one cannot be decoded"
            raise reject_raw(file_format, f"{why} ({describe_error(error)})") from None
        raise Rejected(
            "decode", "truncated" if early else code, f"{file_format}: {describe_error(error)}"
        ) from None


def read_orientation(opened: ImageFile.ImageFile) -> int:
    """Returns the orientation still to be applied, 1 to 8.

    Before a PNG is loaded, metadata after its pixels is not seen.
    """
    if opened.format == "TIFF":
        return 1
    return find_orientation(*embedded_metadata(opened))


def embedded_metadata(image: Image.Image) -> tuple[bytes, bytes]:
    """Returns Exif and XMP, each empty if there is none."""
    exif = image.info.get("exif")
    # ImageMagick's way of storing it in PNGs, as hex digits.
    if exif is None and "Raw profile type exif" in image.info:
        with suppress(ValueError):
            exif = bytes.fromhex("".join(image.info["Raw profile type exif"].split("\n")[3:]))
    xmp = image.info.get("XML:com.adobe.xmp") or image.info.get("xmp")
    if isinstance(xmp, str):
        xmp = xmp.encode("utf-8", "replace")
    return exif if isinstance(exif, bytes) else b"", xmp if isinstance(xmp, bytes) else b""


# simplejpeg contains its own libjpeg-turbo, determined by its version and not reported separately.
_PILLOW_LIBRARIES = {
    "jpg": "libjpeg",
    "libtiff": "libtiff",
    "webp": "libwebp",
    "zlib": "zlib",
    "littlecms2": "littlecms2",
}

_OPTIONAL = {"AVIF": ("avif", "libavif"), "JPEG2000": ("jpg_2000", "openjpeg")}


def find_missing_decoder(formats: Collection[str]) -> str | None:
    """Returns a sentence about the first format that cannot be decoded here, or None."""
    for name, (feature, library) in _OPTIONAL.items():
        if name in formats and not features.check(feature):
            return f"{name} needs a Pillow with {library}, and the one installed lacks it"
    if "HEIC" in formats and find_spec("pillow_heif") is None:
        return "HEIC needs pillow-heif, which is not installed: pip install '.[heic]' in a clone"
    return None


def imaging_versions(formats: Collection[str] = ()) -> dict[str, str]:
    """Returns the versions of the libraries that decode, convert and encode pixels.

    With the same versions, the same input gives the same bytes.

    Args:
        formats: the accepted formats; for those in `settings.OPTIONAL_FORMATS`, the decoders are
            added.
    """
    versions = {"pillow": pillow_version, "simplejpeg": simplejpeg.__version__}
    if (turbo := features.version_feature("libjpeg_turbo")) is not None:
        versions["pillow.libjpeg_turbo"] = turbo
    optional = dict(decoder for name, decoder in _OPTIONAL.items() if name in formats)
    for feature, library in (_PILLOW_LIBRARIES | optional).items():
        versions[f"pillow.{library}"] = features.version(feature) or "absent"
    if "HEIC" in formats:
        versions["pillow_heif"] = metadata.version("pillow_heif")
    return versions
