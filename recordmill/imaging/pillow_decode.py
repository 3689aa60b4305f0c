"""Opens and loads files with Pillow, with one plugin per accepted format; a warnings filter is the only global change.

The plugin's class is called instead of `Image.open`: the format is known by then, and `Image.open` compares the size
with `Image.MAX_IMAGE_PIXELS`, one value for the whole process, whereas each caller here has its own limits.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from recordmill.imaging.box_formats import avif_depth, check_codestream, jpeg2000_depth, jpeg2000_profile
from recordmill.imaging.depth import is_deep
from recordmill.imaging.gif_frames import has_second_frame
from recordmill.imaging.jpeg_header import JpegHeader
from recordmill.imaging.netpbm import read_samples
from recordmill.imaging.orientation import find_orientation
from recordmill.imaging.work_limits import CountedReads, check_packed_pixels, check_runs, check_structure
from recordmill.schemas.rejection import Rejected, describe_error

# Pillow warns about odd metadata of each file: on a million images that drowns everything else, and no pixel depends
# on it. `warnings.catch_warnings` would be narrower, but swaps state that all threads share.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning, module=r"PIL\.")

_PLUGINS: dict[str, Callable[[io.BytesIO], ImageFile.ImageFile]] = {
    "JPEG": JpegImagePlugin.JpegImageFile,  # the first picture of a multi-picture file
    "PNG": PngImagePlugin.PngImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "PPM": PpmImagePlugin.PpmImageFile,
    "AVIF": AvifImagePlugin.AvifImageFile,
    "JPEG2000": Jpeg2KImagePlugin.Jpeg2KImageFile,
}

_ENDS_EARLY = re.compile(
    r"truncated|not enough (?:image )?data|unexpected end|premature end|reached eof", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A decoded first frame, of whatever mode.

    Attributes:
        image: the pixels as stored; TIFFs are already upright.
        orientation: 1 to 8, still to be applied.
        icc_profile: as embedded.
        changes: changes made by loading alone.
    """

    image: Image.Image
    orientation: int
    icc_profile: bytes | None
    changes: frozenset[str]


def open_image(data: bytes, file_format: str) -> ImageFile.ImageFile:
    """Reads the header; `.size`, `.mode` and `.info` are known then, and no pixels are allocated.

    Raises:
        Rejected: `truncated`, `bad_header` or `too_much_work`.
    """
    check_structure(data, file_format)
    if file_format == "JPEG2000":
        check_codestream(data)
    if file_format == "HEIC" and file_format not in _PLUGINS:
        from pillow_heif import HeifImageFile  # an extra; missing on a worker, it fails the run

        _PLUGINS[file_format] = HeifImageFile
    with _translated(file_format, "bad_header"):
        opened = _PLUGINS[file_format](CountedReads(data, file_format))
    match file_format:
        case "PNG":
            check_packed_pixels(data, *opened.size)
        case "AVIF":
            opened.info["bit_depth"] = avif_depth(data)
        case "JPEG2000":
            opened.info.update(bit_depth=jpeg2000_depth(data), icc_profile=jpeg2000_profile(data))
    return opened


def opens_elsewhere(data: bytes, header: JpegHeader) -> bool:
    """Whether Pillow too opens a JPEG, and finds the same size and components."""
    try:
        opened = JpegImagePlugin.jpeg_factory(CountedReads(data, "JPEG"))
    except Exception:  # noqa: BLE001  # see `_translated`
        return False
    return opened.size == (header.width, header.height) and len(opened.getbands()) == header.components


def load_image(opened: ImageFile.ImageFile, file_format: str) -> Loaded:
    """Decodes the first frame of an opened image.

    Raises:
        Rejected: `truncated`, `decode_error` or `too_much_work`.
    """
    changes = set()
    if file_format == "BMP" and opened.tile and opened.tile[0].codec_name == "bmp_rle":
        check_runs(*opened.size)
    with _translated(file_format, "decode_error"):
        if file_format == "PPM":
            read_samples(opened)
        deep = any(";16" in str(tile.args) for tile in opened.tile)  # Pillow drops the low bytes of colours silently
        deep |= opened.info.get("bit_depth", 8) > 8
        if getattr(opened, "tag_v2", {}).get(0x0112, 1) in range(2, 9):
            changes.add("rotated")  # Pillow turns TIFFs while it loads them
        opened.load()
        if opened.im.mode != opened.mode:  # a GIF without palettes whose control blocks are damaged
            raise ValueError(f"{opened.im.mode} pixels in an image of mode {opened.mode}")
    if deep or is_deep(opened.mode):
        changes.add("depth_reduced")
    key = opened.info.get("transparency")
    if deep and isinstance(key, tuple):  # Pillow reduces the pixels, but not the transparent colour
        opened.info["transparency"] = tuple(value >> 8 for value in key)
    profile = opened.info.get("icc_profile")
    return Loaded(
        opened,
        read_orientation(opened),
        profile if isinstance(profile, bytes) and profile else None,
        frozenset(changes),
    )


def has_more_frames(data: bytes, opened: ImageFile.ImageFile) -> bool:
    """Whether another frame follows the first; a damaged one does not count."""
    if opened.format != "GIF":
        return bool(getattr(opened, "is_animated", False))
    return has_second_frame(data)  # Pillow would read on to find out, and may lose the first frame


def count_encoded_channels(opened: ImageFile.ImageFile) -> int:
    """The number of channels, 1 to 4, that a reader decodes if it keeps transparency."""
    transparent = "transparency" in opened.info
    if opened.mode in ("P", "PA"):
        return 4 if transparent or opened.mode == "PA" else 3
    return len(opened.getbands()) + (transparent and opened.mode in ("1", "L", "I;16", "RGB"))


@contextmanager
def _translated(file_format: str, code: str) -> Iterator[None]:
    """Turns the plugins' errors into Rejected: on damaged files they raise a dozen kinds with nothing in common."""
    try:
        yield
    except Rejected:
        raise
    except Image.DecompressionBombError as error:  # a frame or tile far larger than the image
        raise Rejected("decode", "too_many_pixels", f"{file_format}: {describe_error(error)}") from None
    except Exception as error:  # noqa: BLE001
        early = _ENDS_EARLY.search(str(error)) is not None
        raise Rejected("decode", "truncated" if early else code, f"{file_format}: {describe_error(error)}") from None


def read_orientation(opened: ImageFile.ImageFile) -> int:
    """The orientation, 1 to 8, still to be applied; of a PNG before it is loaded, only from before its pixels."""
    return 1 if opened.format == "TIFF" else find_orientation(*embedded_metadata(opened))


def embedded_metadata(image: Image.Image) -> tuple[bytes, bytes]:
    """Exif and XMP, each empty if there is none."""
    exif = image.info.get("exif")
    if exif is None and "Raw profile type exif" in image.info:  # ImageMagick's way of storing it in PNGs, as hex digits
        with suppress(ValueError):
            exif = bytes.fromhex("".join(image.info["Raw profile type exif"].split("\n")[3:]))
    xmp = image.info.get("XML:com.adobe.xmp") or image.info.get("xmp")
    xmp = xmp.encode("utf-8", "replace") if isinstance(xmp, str) else xmp
    return exif if isinstance(exif, bytes) else b"", xmp if isinstance(xmp, bytes) else b""
