"""Turns the bytes of one image file into the stored image: the package's entry point."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFile

from recordmill.imaging import pillow_decode, pixels
from recordmill.imaging.acceptance import accepted_format, check_size, is_sound_png, sniff
from recordmill.imaging.color import apply_profile, judge_profile, to_gray_or_srgb
from recordmill.imaging.deep_gray import (
    DeepGray,
    encode_deep_gray,
    ignores_profile,
    place_deep_gray,
    read_deep_gray,
    take_high_bytes,
)
from recordmill.imaging.depth import Losses
from recordmill.imaging.exif import has_position, is_turned_sideways, turn
from recordmill.imaging.geometry import (
    Size,
    hash_differences,
    hash_reduction,
    jpeg_reduction,
    resize_image,
    target_size,
)
from recordmill.imaging.jpeg_header import JpegHeader, Soundness, read_jpeg_header
from recordmill.imaging.large_images import BYTES_PER_PIXEL, take_turn
from recordmill.imaging.pixels import PreparedImage, Raster
from recordmill.imaging.strip_metadata import (
    POSITION,
    UnstrippableError,
    find_metadata,
    strip_metadata,
)
from recordmill.imaging.tiff_pages import count_whole_pages, reject_raw
from recordmill.schemas.image_ref import Pixels
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import STRIPPABLE, ImageSettings


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that run while an image is prepared; the caller sees whatever they raise.

    Attributes:
        check_size: takes the sides of the source, in either order, before it is decoded. None
            accepts any size.
        change: takes the decoded pixels, upright and in sRGB, as height x width x 1 or 3 channels,
            and returns other pixels, which are then resized and encoded. None if
            `settings.function` is None.
    """

    check_size: Callable[[int, int], None] | None = None
    change: Callable[[Pixels], Pixels] | None = None


NO_HOOKS = Hooks()


def prepare_image(
    data: bytes | Pixels,
    settings: ImageSettings,
    keep_pixels: bool = False,
    encode: bool = True,
    hooks: Hooks = NO_HOOKS,
) -> PreparedImage:
    """Checks an image and converts it to the form that is stored.

    A pure function of its arguments and of `imaging_versions()`: same bytes in, same bytes out, on
    any number of threads. Sizes are checked before pixels are allocated.

    Example:
        with open("photos/cat/0001.jpg", "rb") as file:
            prepared = recordmill.prepare_image(file.read(), recordmill.ImageSettings(quality=90))
        print(prepared.height, prepared.width, len(prepared.encoded))

    Args:
        data: the file, or decoded pixels, which are always encoded, whatever `reencode` says:
            height x width x 1 or 3 channels, red first.
        settings: limits, size and encoding.
        keep_pixels: whether the result has the decoded pixels; if so, every image is decoded in
            full.
        encode: whether pixels are encoded; if not, the result lacks only the bytes that they would
            give.
        hooks: functions to run in between.

    Raises:
        Rejected: the image is rejected, for one of `REASONS`. Nothing else is raised, whatever the
            bytes are.
        ValueError: the settings name a function, and `hooks` has none.
    """
    preparation = _Preparation(settings, keep_pixels, encode, hooks)
    if isinstance(data, np.ndarray):
        return preparation.prepare_pixels(data)
    file_format = accepted_format(data, settings)
    if file_format != "JPEG":
        return preparation.prepare_with_pillow(data, file_format, None)
    header = read_jpeg_header(data)
    preparation.check_size(header.width, header.height)
    pixels.check_scans(data, header, settings.max_pixels)
    if not header.is_widely_readable:
        return preparation.prepare_with_pillow(data, file_format, header)
    return preparation.prepare_jpeg(data, header)


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Prepares one image; its attributes are arguments of `prepare_image`."""

    settings: ImageSettings
    keep_pixels: bool
    encode: bool
    hooks: Hooks

    def __post_init__(self) -> None:
        if self.settings.function and self.hooks.change is None:
            raise ValueError("images.function is run by conversions: pass it as hooks.change")

    def check_size(self, width: int, height: int) -> None:
        """Rejects images of too many pixels, or whatever the hook rejects."""
        check_size(width, height, self.settings)
        if self.hooks.check_size is not None:
            self.hooks.check_size(width, height)

    def prepare_pixels(self, decoded: Pixels) -> PreparedImage:
        """Returns the path of decoded pixels."""
        settings = self.settings
        height, width, channels = decoded.shape
        self.check_size(width, height)
        expanded = settings.grayscale == "expand" and channels == 1
        measured = (
            settings.moments or settings.near_duplicates or self.keep_pixels or self.hooks.change
        )
        if settings.store == "raw" and settings.resize is None and not measured and not expanded:
            return PreparedImage(
                decoded.tobytes(), "RAW", height, width, channels, None, ("reencoded",)
            )
        whole = Image.fromarray(decoded[:, :, 0] if channels == 1 else decoded)
        image, changes = self._transform(whole, 1, target_size((width, height), settings.resize))
        return self._encode(pixels.to_raster(image), changes, None, None)

    def prepare_jpeg(self, data: bytes, header: JpegHeader) -> PreparedImage:
        """Returns the path that nearly all images take."""
        settings, size = self.settings, (header.width, header.height)
        if is_turned_sideways(header.orientation):
            size = size[::-1]
        target = target_size(size, settings.resize)
        profile, _ = judge_profile(header.icc_profile, "L" if header.components == 1 else "RGB")
        fits = (
            header.orientation == 1
            and self.hooks.change is None
            and target == size
            and profile != "needed"
            and not (settings.grayscale == "expand" and header.components == 1)
        )
        passes = settings.reencoding == "when_needed" and pixels.stored_format(settings) == "JPEG"
        never = settings.reencoding == "never"
        if never or (passes and fits and header.soundness is not Soundness.MALFORMED):
            shape = (header.height, header.width, header.components)
            copied = self._copy(data, "JPEG", shape, header.orientation, header.has_position)
            if copied and (
                header.soundness is Soundness.PLAIN or _pillow_opens_copy(data, header, copied)
            ):
                return self._check_copy(copied, data, header, size)
            if never:
                raise Rejected(
                    "decode", "bad_header", "JPEG: Pillow cannot open it, and reencode is never"
                )
        reduction = 1
        if self.hooks.change is None:
            reduction = jpeg_reduction(size, target)
        with take_turn(_estimate_jpeg(data, header, reduction, is_changed=not fits)):
            raster, digest = _decode(data, header, reduction, settings.max_pixels)
            if fits:
                return self._encode(
                    raster, {"icc_ignored"} if profile == "unusable" else set(), header, digest
                )
            image, changes = apply_profile(pixels.to_image(raster), header.icc_profile)
            image, more_changes = self._transform(image, header.orientation, target)
            return self._encode(pixels.to_raster(image), changes | more_changes, header, digest)

    def _check_copy(
        self, copied: PreparedImage, data: bytes, header: JpegHeader, size: Size
    ) -> PreparedImage:
        """Validates a JPEG that is stored unchanged, as `images.check` says."""
        settings = self.settings
        if settings.check == "header" and not self.keep_pixels:
            if data.rfind(b"\xff\xd9", header.scan_start) < 0:  # data after the marker do no harm
                raise Rejected("decode", "truncated", "JPEG: no end of image marker")
            return copied
        reduction = 1
        if not settings.moments and not self.keep_pixels:
            # The pixels of an image that stays unchanged are not used: to check it, an eighth of
            # each side is enough.
            if settings.near_duplicates:
                reduction = hash_reduction(size)
            else:
                reduction = pixels.SMALLEST_REDUCTION
        with take_turn(_estimate_jpeg(data, header, reduction)):
            raster, digest = _decode(data, header, reduction, settings.max_pixels)
            return self._measure(copied, raster, raster, digest)

    def _copy(
        self,
        data: bytes,
        file_format: str,
        shape: tuple[int, int, int],
        orientation: int,
        has_position: bool,
    ) -> PreparedImage | None:
        """Copies a file instead of re-encoding it, without unwanted metadata.

        Returns:
            None if its metadata cannot be located with certainty: it has to be re-encoded.

        Raises:
            Rejected: in the same case, with `reencode: never`.
        """
        metadata = self.settings.metadata
        if metadata == "keep":
            return PreparedImage(data, file_format, *shape, None, (), has_position=has_position)
        try:
            stripped = strip_metadata(
                data, file_format, orientation if metadata == "orientation" else 1
            )
        except UnstrippableError as error:
            if self.settings.reencoding != "never":
                return None
            raise Rejected(
                "decode", "bad_header", f"{error}, so metadata may remain, and reencode is never"
            ) from None
        return PreparedImage(
            stripped, file_format, *shape, None, () if stripped is data else ("metadata_stripped",)
        )

    def prepare_with_pillow(
        self, data: bytes, file_format: str, header: JpegHeader | None
    ) -> PreparedImage:
        """Returns the path of all formats but JPEG, and of unusual JPEGs, whose header is given."""
        settings, opened = self.settings, pillow_decode.open_image(data, file_format)
        self.check_size(*opened.size)
        area = opened.width * opened.height
        with take_turn(area * BYTES_PER_PIXEL[file_format] + 2 * len(data)):
            if settings.reencoding == "never":
                return self._copy_with_pillow(data, file_format, opened)
            return self._convert_with_pillow(data, file_format, opened, header)

    def _convert_with_pillow(
        self,
        data: bytes,
        file_format: str,
        opened: ImageFile.ImageFile,
        header: JpegHeader | None,
    ) -> PreparedImage:
        """Returns the stored form of an opened image without `reencode: never`."""
        settings = self.settings
        channels = pillow_decode.count_encoded_channels(opened)
        loaded = pillow_decode.decode_first_frame(opened, file_format, settings.bits)
        source, digest = loaded.source, pixels.digest_pixels(loaded.image, loaded.orientation)
        if settings.depth > pixels.USUAL_DEPTH:
            values = read_deep_gray(loaded.image)
            if values is not None:
                return self._convert_deep(data, file_format, opened, loaded, values)
        reduced, losses = pillow_decode.reduce_loaded(loaded, settings.bits)
        image, changes = to_gray_or_srgb(reduced, loaded.icc_profile, settings.background)
        if is_turned_sideways(loaded.orientation):
            size = image.size[::-1]
        else:
            size = image.size
        image, more_changes = self._transform(
            image, loaded.orientation, target_size(size, settings.resize)
        )
        changes |= loaded.changes | more_changes
        if file_format == "TIFF":
            if further := count_whole_pages(data) - 1:
                changes.add("first_frame")
                losses = {**losses, "pages": further}
        elif pillow_decode.has_more_frames(opened):
            changes.add("first_frame")
        raster = pixels.to_raster(image)
        passes = (
            settings.reencoding == "when_needed"
            and pixels.stored_format(settings) == file_format == "PNG"
        )
        fits = (
            not changes
            and _decodes_alike(loaded, file_format)
            and channels == len(image.getbands())
        )
        copied = None
        if passes and fits and is_sound_png(data):
            shape = (image.height, image.width, channels)
            copied = self._copy(
                data, file_format, shape, 1, _has_position(data, file_format, opened)
            )
        if copied:
            prepared = self._measure(copied, raster, raster, digest)
        else:
            prepared = self._encode(raster, changes, header, digest)
        prepared.source, prepared.losses = source, losses
        return prepared

    def _convert_deep(
        self,
        data: bytes,
        file_format: str,
        opened: ImageFile.ImageFile,
        loaded: pillow_decode.Loaded,
        values: DeepGray,
    ) -> PreparedImage:
        """Returns the stored form of a gray image of 16 bits, which keeps them."""
        settings = self.settings
        digest = pixels.digest_pixels(loaded.image, loaded.orientation)
        width, height = loaded.image.size
        if is_turned_sideways(loaded.orientation):
            width, height = height, width
        target = target_size((width, height), settings.resize)
        changes = set(loaded.changes - {"depth_reduced"})
        changes |= {"rotated"} if loaded.orientation != 1 else set()
        changes |= {"resized"} if target != (width, height) else set()
        changes |= {"icc_ignored"} if ignores_profile(loaded.icc_profile) else set()
        losses: Losses = {}
        further = count_whole_pages(data) - 1 if file_format == "TIFF" else 0
        if further or (file_format != "TIFF" and pillow_decode.has_more_frames(opened)):
            changes.add("first_frame")
            losses = {"pages": further} if further else {}
        placed = place_deep_gray(
            values, loaded.orientation, target, settings.resize, settings.background
        )
        shown, copied = take_high_bytes(placed), None
        height, width = placed.shape
        is_wanted = settings.reencoding == "when_needed" and file_format == "PNG" and not changes
        if is_wanted and is_sound_png(data):
            located = _has_position(data, file_format, opened)
            copied = self._copy(data, file_format, (height, width, 1), 1, located)
        if copied is None:
            encoded = encode_deep_gray(placed) if self.encode else b""
            names = tuple(sorted(changes | {"reencoded"}))
            copied = PreparedImage(encoded, "PNG", height, width, 1, None, names)
        prepared = self._measure(copied, shown, shown, digest)
        prepared.source, prepared.losses = loaded.source, losses
        return prepared

    def _copy_with_pillow(
        self, data: bytes, file_format: str, opened: ImageFile.ImageFile
    ) -> PreparedImage:
        """Returns the stored form of an opened image with `reencode: never`."""
        if pillow_decode.is_later_page(opened):
            why = "its first page is a reduced picture, and reencode is never"
            raise reject_raw(file_format, why)
        settings, (width, height), channels = (
            self.settings,
            opened.size,
            pillow_decode.count_encoded_channels(opened),
        )
        # A PNG may have it after the pixels.
        late = file_format == "PNG" and settings.metadata == "orientation"
        shown = read = digest = source = None
        if settings.check == "header" and not self.keep_pixels and not late:
            orientation = pillow_decode.read_orientation(opened)
        else:
            loaded = pillow_decode.decode_first_frame(opened, file_format)
            orientation, source = loaded.orientation, loaded.source
            digest = pixels.digest_pixels(loaded.image, orientation)
            if file_format == "PNG" and not is_sound_png(data):
                problem = "PNG: damaged, although Pillow decodes it, and reencode is never"
                raise Rejected("decode", "decode_error", problem)
            if settings.moments and _decodes_alike(loaded, file_format):
                read = pixels.to_raster(loaded.image)
            if settings.near_duplicates or self.keep_pixels:
                shown = pixels.to_raster(
                    to_gray_or_srgb(loaded.image, loaded.icc_profile, settings.background)[0]
                )
        located = _has_position(data, file_format, opened)
        copied = self._copy(data, file_format, (height, width, channels), orientation, located)
        assert copied is not None  # it raises with `reencode: never`
        copied.source = source
        return self._measure(copied, shown, read, digest)

    def _transform(
        self, image: Image.Image, orientation: int, target: Size
    ) -> tuple[Image.Image, set[str]]:
        """Rotates, changes, resizes and expands an L or RGB image.

        Returns:
            The image, and the names of the changes.
        """
        settings, changes = self.settings, set()
        if orientation != 1:
            image = turn(image, orientation)
            changes.add("rotated")
        if self.hooks.change is not None:
            before = pixels.copy_pixels(pixels.to_raster(image))
            after = self.hooks.change(before.copy())
            if not np.array_equal(before, after):
                changes.add("prepared")
                image = pixels.to_image(after)
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
        self, raster: Raster, changes: set[str], header: JpegHeader | None, digest: str | None
    ) -> PreparedImage:
        encoded = b""
        if self.encode:
            encoded = pixels.encode_raster(raster, self.settings, header)
        kind, (height, width, _) = pixels.stored_format(self.settings), raster.shape
        names = tuple(sorted(changes | {"reencoded"}))
        image = PreparedImage(
            encoded, kind, height, width, pixels.count_channels(raster), None, names
        )
        read = raster
        if self.settings.moments and kind == "JPEG":  # which changes the pixels a little
            read = pixels.decode_jpeg(encoded, read_jpeg_header(encoded))
        return self._measure(image, raster, read, digest)

    def _measure(
        self, image: PreparedImage, shown: Raster | None, read: Raster | None, digest: str | None
    ) -> PreparedImage:
        """Adds the requested properties of the pixels.

        `shown` are the pixels that people see, and `read` those that readers get.
        """
        if self.settings.moments and read is not None:
            image.moments = pixels.moments(read)
        if self.settings.near_duplicates and shown is not None:
            image.difference_hash = hash_differences(shown)
        image.pixels, image.raster = digest, shown if self.keep_pixels else None
        return image


def _pillow_opens_copy(data: bytes, header: JpegHeader, copied: PreparedImage) -> bool:
    """Returns whether Pillow opens a copy of an unusual JPEG.

    Without its metadata, the copy may be a plain one.
    """
    if copied.encoded is not data:
        header = read_jpeg_header(copied.encoded)
    return header.soundness is Soundness.PLAIN or pillow_decode.pillow_opens(copied.encoded, header)


def _decode(
    data: bytes, header: JpegHeader, reduction: int, max_pixels: int
) -> tuple[Raster, str | None]:
    """Returns the pixels of a JPEG, and their digest if they are decoded in full."""
    try:
        raster = pixels.decode_jpeg(data, header, reduction)
    except pixels.UnusualJpeg:
        pixels.check_scans(data, header, max_pixels, decoders=2)
        # Like TensorFlow, Pillow tolerates stray bytes between segments and odd subsampling, but
        # truncation too.
        with suppress(pixels.UnusualJpeg, UnstrippableError):
            pixels.decode_jpeg(strip_metadata(data, "JPEG"), header, pixels.SMALLEST_REDUCTION)
        raster = pixels.to_raster(
            pillow_decode.decode_first_frame(pillow_decode.open_image(data, "JPEG"), "JPEG").image
        )
    return raster, pixels.digest_pixels(raster, header.orientation) if reduction == 1 else None


def _estimate_jpeg(
    data: bytes, header: JpegHeader, reduction: int, is_changed: bool = False
) -> int:
    """Returns about how many bytes of memory it takes to decode a JPEG.

    A file of several scans needs two bytes for each coefficient, in full. Pixels take four bytes,
    and up to three copies of them are made if the image changes; a file that libjpeg-turbo may
    leave to Pillow counts as one of those.
    """
    area = header.width * header.height
    if header.soundness is not Soundness.PLAIN:
        return area * BYTES_PER_PIXEL["JPEG"] + 2 * len(data)
    if pixels.has_one_scan(data, header):
        coefficients = 0
    else:
        coefficients = 2 * header.components * area
    return coefficients + area * (16 if is_changed else 5) // reduction**2 + 2 * len(data)


def holds_position(data: bytes) -> bool:
    """Tells if an image that `prepare_image` left unchanged has a GPS position in its metadata."""
    file_format = sniff(data) or ""
    if file_format == "JPEG" and (header := read_jpeg_header(data)).is_widely_readable:
        return header.has_position
    return _has_position(data, file_format, pillow_decode.open_image(data, file_format))


def _has_position(data: bytes, file_format: str, opened: ImageFile.ImageFile) -> bool:
    """Returns whether a GPS position can be found in a file's metadata."""
    if file_format not in STRIPPABLE:
        exif, xmp = pillow_decode.embedded_metadata(opened)
        return (
            has_position(exif)
            or has_position(xmp)
            or (file_format == "TIFF" and has_position(data))
        )
    try:
        return POSITION in find_metadata(data, file_format)
    except UnstrippableError:
        return False


def _decodes_alike(loaded: pillow_decode.Loaded, file_format: str) -> bool:
    """Returns whether any reader gets the loaded values.

    `tf.io.decode_jpeg` reads JPEG and PNG, and converts CMYK in its own way.
    """
    return (
        file_format in ("JPEG", "PNG") and loaded.image.mode in ("L", "RGB") and not loaded.changes
    )
