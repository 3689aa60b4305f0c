"""An image that is ready to be stored, with its properties."""

from dataclasses import dataclass, field

from recordmill.imaging.pixels import Raster

CHANGES = {
    "cmyk_converted": "CMYK was converted to RGB",
    "depth_reduced": "channels of more than 8 bits were reduced to 8",
    "first_frame": "only the first frame of an animation, or the first page of a document, is stored",
    "flattened": "transparency was replaced by the background",
    "grayscale_expanded": "one channel was repeated to make three",
    "icc_converted": "colours were converted from the embedded profile to sRGB",
    "icc_ignored": "an embedded profile was dropped because it is unreadable or made for another kind of image",
    "lab_converted": "CIELAB was converted to RGB",
    "metadata_stripped": "metadata were removed without re-encoding the image",
    "palette_expanded": "palette entries were replaced by their colours",
    "prepared": "`images.function` changed the pixels",
    "reencoded": "the stored bytes differ from the file's; accompanies every change except `metadata_stripped`",
    "resized": "the image was resized to the configured size",
    "rotated": "the image was rotated as its metadata require",
}


@dataclass(slots=True)
class PreparedImage:
    """A checked image that is ready to be stored.

    Attributes:
        encoded: the stored bytes: the file's own bytes if `changes` is empty, without its metadata if it is
            `metadata_stripped`, otherwise a baseline JPEG, a PNG, or the pixels as height x width x channels bytes.
        format: of `encoded`: `JPEG`, `PNG` or `RAW`, as `images.store` says; with `reencode: never` any of the
            accepted formats, in upper case.
        height: in pixels, as seen by a reader of `encoded` that ignores metadata.
        width: in pixels, as seen by the same reader.
        channels: 1 or 3; with `reencode: never` also 2 (gray and alpha) or 4 (RGBA, CMYK).
        moments: for each channel the sum and the sum of squares of its values (0 to 255), exact, over the pixels that
            `encoded` decodes to, as libjpeg's accurate methods (TensorFlow's `INTEGER_ACCURATE`) give them. One or
            three channels. None if they were not requested, if nothing was decoded, or if other readers would see other
            values: with `reencode: never`, for files other than JPEG and PNG or other than 8-bit gray or RGB.
        changes: sorted names from `CHANGES`; empty if the bytes are unchanged.
        difference_hash: see `imaging.resize.difference_hash`; None if it was not requested.
        pixels: digest of the file's pixels, see `imaging.pixels.digest_pixels`; None if they were not decoded in full.
        raster: the decoded pixels after all changes except re-encoding; None if they were not requested.
        sha256: of `encoded`, in hex, where it is known; else the empty string.
        has_position: whether the metadata in `encoded` have a GPS position.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    moments: tuple[tuple[int, int], ...] | None
    changes: tuple[str, ...]
    difference_hash: int | None = None
    pixels: str | None = field(default=None, compare=False)
    raster: Raster | None = field(default=None, compare=False, repr=False)
    sha256: str = field(default="", compare=False)
    has_position: bool = False
