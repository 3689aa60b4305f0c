"""Turns the bytes of one image file into the stored image: the package's entry point."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFile

from recordmill.imaging.colour import apply_profile, judge_profile, to_gray_or_srgb
from recordmill.imaging.exif import has_position, is_turned_sideways, turn
from recordmill.imaging.geometry import Size, difference_hash, hash_reduction, jpeg_reduction, resize_image, target_size
from recordmill.imaging.jpeg_header import JpegHeader, Soundness, plain_copy, read_jpeg_header
from recordmill.imaging.limits import accepted_format, check_size
from recordmill.imaging.pillow_decode import (
    Loaded,
    count_encoded_channels,
    embedded_metadata,
    has_more_frames,
    load_image,
    open_image,
    pillow_opens,
    read_orientation,
)
from recordmill.imaging.pixels import (
    PreparedImage,
    Raster,
    copy_pixels,
    count_channels,
    digest_pixels,
    moments,
    to_image,
    to_raster,
)
from recordmill.imaging.png_soundness import is_sound_png
from recordmill.imaging.sniff import sniff
from recordmill.imaging.stored_form import (
    SMALLEST_REDUCTION,
    UnusualJpeg,
    as_stored,
    check_end,
    check_scans,
    decode_jpeg,
    encode_raster,
    stored_format,
)
from recordmill.imaging.strip_metadata import POSITION, UnstrippableError, find_metadata, strip_metadata
from recordmill.schemas.image_ref import Pixels
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import STRIPPABLE, ImageSettings


def _accept(width: int, height: int) -> None:
    """Accepts any size."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that run while an image is prepared; the caller sees whatever they raise.

    Attributes:
        check_size: takes the sides of the source, in either order, before it is decoded.
        change: takes the decoded pixels, upright and in sRGB, as height x width x 1 or 3 channels, and returns other
            pixels, which are then resized and encoded. None if `settings.function` is None.
    """

    check_size: Callable[[int, int], None] = _accept
    change: Callable[[Pixels], Pixels] | None = None


NO_HOOKS = Hooks()


def prepare_image(
    data: bytes, settings: ImageSettings, keep_pixels: bool = False, encode: bool = True, hooks: Hooks = NO_HOOKS
) -> PreparedImage:
    """Checks an image and converts it to the form that is stored.

    A pure function of its arguments and of `imaging_versions()`: same bytes in, same bytes out, on any number of
    threads. Sizes are checked before pixels are allocated.

    Args:
        data: the file.
        settings: limits, size and encoding.
        keep_pixels: whether the result has the decoded pixels; if so, every image is decoded in full.
        encode: whether pixels are encoded; if not, the result lacks only the bytes that they would give.
        hooks: functions to run in between.

    Raises:
        Rejected: the image is rejected, for one of `REASONS`. Nothing else is raised, whatever the bytes are.
        ValueError: the settings name a function, and `hooks` has none.
    """
    _check_hooks(settings, hooks)
    file_format = accepted_format(data, settings)
    if file_format != "JPEG":
        return _prepare_with_pillow(data, file_format, None, settings, keep_pixels, encode, hooks)
    header = read_jpeg_header(data)
    check_size(header.width, header.height, settings)
    hooks.check_size(header.width, header.height)
    check_scans(data, header, settings.max_pixels)
    if not header.is_widely_readable:
        return _prepare_with_pillow(data, file_format, header, settings, keep_pixels, encode, hooks)
    return _prepare_jpeg(data, header, settings, keep_pixels, encode, hooks)


def _check_hooks(settings: ImageSettings, hooks: Hooks) -> None:
    if settings.function and hooks.change is None:
        raise ValueError("images.function is run by conversions: pass it as hooks.change")


def prepare_pixels(
    pixels: Pixels, settings: ImageSettings, keep_pixels: bool = False, encode: bool = True, hooks: Hooks = NO_HOOKS
) -> PreparedImage:
    """Converts decoded pixels to the form that is stored; they are always encoded, whatever `reencode` says.

    Args:
        pixels: height x width x 1 or 3 channels, red first.
        settings: limits, size and encoding.
        keep_pixels: whether the result has them, too.
        encode: as for `prepare_image`.
        hooks: functions to run in between.

    Raises:
        Rejected: there are too many pixels.
        ValueError: the settings name a function, and `hooks` has none.
    """
    _check_hooks(settings, hooks)
    height, width, channels = pixels.shape
    check_size(width, height, settings)
    hooks.check_size(width, height)
    expanded = settings.grayscale == "expand" and channels == 1
    measured = settings.moments or settings.near_duplicates or keep_pixels or hooks.change
    if settings.store == "raw" and settings.resize is None and not measured and not expanded:
        return PreparedImage(pixels.tobytes(), "RAW", height, width, channels, None, ("reencoded",))
    whole = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    image, changes = _transform(whole, 1, target_size((width, height), settings.resize), settings, hooks)
    return _encode(to_raster(image), changes, None, settings, keep_pixels, None, encode)


def _prepare_jpeg(
    data: bytes, header: JpegHeader, settings: ImageSettings, keep_pixels: bool, encode: bool, hooks: Hooks
) -> PreparedImage:
    """The path that nearly all images take."""
    size = (header.height, header.width) if is_turned_sideways(header.orientation) else (header.width, header.height)
    target = target_size(size, settings.resize)
    profile = judge_profile(header.icc_profile, "L" if header.components == 1 else "RGB")
    fits = (
        header.orientation == 1
        and hooks.change is None
        and target == size
        and profile != "needed"
        and not (settings.grayscale == "expand" and header.components == 1)
    )
    reencoding = settings.reencoding
    passes = reencoding == "when_needed" and stored_format(settings) == "JPEG"
    never = reencoding == "never"
    untouched = never or (passes and fits and header.soundness is not Soundness.MALFORMED)
    shape = (header.height, header.width, header.components)
    copied = _copy(data, "JPEG", shape, header.orientation, header.has_position, settings) if untouched else None
    if copied is not None and header.soundness is not Soundness.PLAIN and not _pillow_opens_copy(data, header, copied):
        if never:
            raise Rejected("decode", "bad_header", "JPEG: Pillow cannot open it, and reencode is never")
        copied = None
    if copied is not None:
        return _check_copy(copied, data, header, size, settings, keep_pixels)
    reduction = jpeg_reduction(size, target) if hooks.change is None else 1
    raster = _decode(data, header, reduction)
    pixels = digest_pixels(raster, header.orientation) if reduction == 1 else None
    if fits:
        ignored = {"icc_ignored"} if profile == "unusable" else set()
        return _encode(raster, ignored, header, settings, keep_pixels, pixels, encode)
    image, changes = apply_profile(to_image(raster), header.icc_profile)
    image, more_changes = _transform(image, header.orientation, target, settings, hooks)
    return _encode(to_raster(image), changes | more_changes, header, settings, keep_pixels, pixels, encode)


def _pillow_opens_copy(data: bytes, header: JpegHeader, copied: PreparedImage) -> bool:
    """Whether Pillow opens a copy of an unusual JPEG; without its metadata, the copy may be a plain one."""
    if copied.encoded is not data:
        header = read_jpeg_header(copied.encoded)
    return header.soundness is Soundness.PLAIN or pillow_opens(copied.encoded, header)


def _check_copy(
    copied: PreparedImage, data: bytes, header: JpegHeader, size: Size, settings: ImageSettings, keep_pixels: bool
) -> PreparedImage:
    """Checks a copied JPEG as thoroughly as the settings ask."""
    raster = pixels = None
    if settings.check == "header" and not keep_pixels:
        check_end(data, header)
    else:
        reduction = 1
        if not settings.moments and not keep_pixels:
            # The pixels of an image that stays unchanged are not used: to check it, an eighth of each side is enough.
            reduction = hash_reduction(size) if settings.near_duplicates else SMALLEST_REDUCTION
        raster = _decode(data, header, reduction)
        pixels = digest_pixels(raster, header.orientation) if reduction == 1 else None
    return _measure(copied, raster, raster, settings, keep_pixels, pixels)


def _copy(
    data: bytes,
    file_format: str,
    shape: tuple[int, int, int],
    orientation: int,
    has_position: bool,
    settings: ImageSettings,
) -> PreparedImage | None:
    """Copies a file instead of re-encoding it, without unwanted metadata.

    Returns:
        None if its metadata cannot be located with certainty: it has to be re-encoded.

    Raises:
        Rejected: in the same case, with `reencode: never`.
    """
    if settings.metadata == "keep":
        return PreparedImage(data, file_format, *shape, None, (), has_position=has_position)
    try:
        stripped = strip_metadata(data, file_format, orientation if settings.metadata == "orientation" else 1)
    except UnstrippableError as error:
        if settings.reencoding != "never":
            return None
        raise Rejected("decode", "bad_header", f"{error}, so metadata may remain, and reencode is never") from None
    return PreparedImage(stripped, file_format, *shape, None, () if stripped is data else ("metadata_stripped",))


def _decode(data: bytes, header: JpegHeader, reduction: int) -> Raster:
    try:
        return decode_jpeg(data, header, reduction)
    except UnusualJpeg:
        # Like TensorFlow, Pillow tolerates stray bytes between segments and odd subsampling, but truncation too.
        with suppress(UnusualJpeg):
            decode_jpeg(plain_copy(data, header), header, SMALLEST_REDUCTION)
        return to_raster(load_image(open_image(data, "JPEG"), "JPEG").image)


def _prepare_with_pillow(
    data: bytes,
    file_format: str,
    header: JpegHeader | None,
    settings: ImageSettings,
    keep_pixels: bool,
    encode: bool,
    hooks: Hooks,
) -> PreparedImage:
    opened = open_image(data, file_format)
    check_size(*opened.size, settings)
    hooks.check_size(*opened.size)
    if settings.reencoding == "never":
        return _copy_with_pillow(data, file_format, opened, settings, keep_pixels)
    channels = count_encoded_channels(opened)
    loaded = load_image(opened, file_format)
    pixels = digest_pixels(loaded.image, loaded.orientation)
    image, changes = to_gray_or_srgb(loaded.image, loaded.icc_profile, settings.background)
    size = image.size[::-1] if is_turned_sideways(loaded.orientation) else image.size
    image, more_changes = _transform(image, loaded.orientation, target_size(size, settings.resize), settings, hooks)
    changes |= loaded.changes | more_changes
    if has_more_frames(data, opened):
        changes.add("first_frame")
    raster = to_raster(image)
    passes = settings.reencoding == "when_needed" and stored_format(settings) == file_format == "PNG"
    fits = not changes and _decodes_alike(loaded, file_format) and channels == len(image.getbands())
    if passes and fits and is_sound_png(data):
        shape = (image.height, image.width, channels)
        if copied := _copy(data, file_format, shape, 1, _has_position(data, file_format, opened), settings):
            return _measure(copied, raster, raster, settings, keep_pixels, pixels)
    return _encode(raster, changes, header, settings, keep_pixels, pixels, encode)


def _copy_with_pillow(
    data: bytes, file_format: str, opened: ImageFile.ImageFile, settings: ImageSettings, keep_pixels: bool
) -> PreparedImage:
    """The stored form of an opened image with `reencode: never`."""
    (width, height), channels = opened.size, count_encoded_channels(opened)
    late = file_format == "PNG" and settings.metadata == "orientation"  # a PNG may have it after the pixels
    shown = read = pixels = None
    if settings.check == "header" and not keep_pixels and not late:
        orientation = read_orientation(opened)
    else:
        loaded = load_image(opened, file_format)
        orientation = loaded.orientation
        pixels = digest_pixels(loaded.image, orientation)
        if file_format == "PNG" and not is_sound_png(data):
            raise Rejected("decode", "decode_error", "PNG: damaged, although Pillow decodes it, and reencode is never")
        if settings.moments and _decodes_alike(loaded, file_format):
            read = to_raster(loaded.image)
        if settings.near_duplicates or keep_pixels:
            shown = to_raster(to_gray_or_srgb(loaded.image, loaded.icc_profile, settings.background)[0])
    located = _has_position(data, file_format, opened)
    copied = _copy(data, file_format, (height, width, channels), orientation, located, settings)
    assert copied is not None  # it raises with `reencode: never`
    return _measure(copied, shown, read, settings, keep_pixels, pixels)


def holds_position(data: bytes) -> bool:
    """Whether an image that `prepare_image` left unchanged has a GPS position in its metadata."""
    file_format = sniff(data) or ""
    if file_format == "JPEG" and (header := read_jpeg_header(data)).is_widely_readable:
        return header.has_position
    return _has_position(data, file_format, open_image(data, file_format))


def _has_position(data: bytes, file_format: str, opened: ImageFile.ImageFile) -> bool:
    """Whether a GPS position can be found in a file's metadata."""
    if file_format not in STRIPPABLE:
        return any(map(has_position, (data if file_format == "TIFF" else b"", *embedded_metadata(opened))))
    try:
        return POSITION in find_metadata(data, file_format)
    except UnstrippableError:
        return False


def _decodes_alike(loaded: Loaded, file_format: str) -> bool:
    """Whether any reader gets the loaded values: `tf.io.decode_jpeg` reads JPEG and PNG, and converts CMYK its way."""
    return file_format in ("JPEG", "PNG") and loaded.image.mode in ("L", "RGB") and not loaded.changes


def _transform(
    image: Image.Image, orientation: int, target: Size, settings: ImageSettings, hooks: Hooks
) -> tuple[Image.Image, set[str]]:
    """Rotates, changes, resizes and expands an L or RGB image; returns it with the names of the changes."""
    changes = set()
    if orientation != 1:
        image = turn(image, orientation)
        changes.add("rotated")
    if hooks.change is not None:
        before = copy_pixels(to_raster(image))
        after = hooks.change(before.copy())
        if not np.array_equal(before, after):
            changes.add("prepared")
            image = to_image(after)
        target = target_size(image.size, settings.resize)
    mode = image.mode
    if settings.resize is not None and image.size != target:
        image = resize_image(image, target, settings.resize, settings.background)
        changes.add("resized")
    if settings.grayscale == "expand" and image.mode == "L":
        image = image.convert("RGB")
    if image.mode != mode:
        changes.add("grayscale_expanded")
    return image, changes


def _encode(
    raster: Raster,
    changes: set[str],
    header: JpegHeader | None,
    settings: ImageSettings,
    keep_pixels: bool,
    pixels: str | None,
    encode: bool,
) -> PreparedImage:
    encoded = encode_raster(raster, settings, header) if encode else b""
    height, width, _ = raster.shape
    read = as_stored(raster, encoded, settings) if settings.moments else None
    names = tuple(sorted(changes | {"reencoded"}))
    image = PreparedImage(encoded, stored_format(settings), height, width, count_channels(raster), None, names)
    return _measure(image, raster, read, settings, keep_pixels, pixels)


def _measure(
    image: PreparedImage,
    shown: Raster | None,
    read: Raster | None,
    settings: ImageSettings,
    keep_pixels: bool,
    pixels: str | None,
) -> PreparedImage:
    """Adds the requested properties of the pixels that people see (`shown`), and readers (`read`)."""
    if settings.moments and read is not None:
        image.moments = moments(read)
    if settings.near_duplicates and shown is not None:
        image.difference_hash = difference_hash(shown)
    image.pixels, image.raster = pixels, shown if keep_pixels else None
    return image
