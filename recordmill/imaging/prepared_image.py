"""What is stored of an image, and what is known about it."""

from dataclasses import dataclass, field

from recordmill.imaging.pixels import Raster

CHANGES = {
    "cmyk_converted": "CMYK inks were converted to RGB",
    "depth_reduced": "more than 8 bits a channel were reduced to 8",
    "first_frame": "the first frame was taken of an animation, or the first page of a document",
    "flattened": "transparency was replaced by the background",
    "grayscale_expanded": "one channel was repeated to make three",
    "icc_converted": "colours were converted from the embedded profile to sRGB",
    "icc_ignored": "an embedded profile was dropped, being unreadable or made for another kind of image",
    "lab_converted": "CIELAB was converted to RGB",
    "palette_expanded": "palette entries were replaced by their colours",
    "reencoded": "the bytes are not the source's; goes with every other change",
    "resized": "the image was brought to the size asked for",
    "rotated": "the orientation that the metadata ask for was applied",
}


@dataclass(slots=True)
class PreparedImage:
    """An image that was checked and is ready to be stored.

    Attributes:
        encoded: what is stored: the source's very bytes where `changes` is empty, otherwise a baseline JPEG, a PNG, or
            the pixels as height x width x channels bytes.
        format: of `encoded`: `JPEG`, `PNG` or `RAW`, as `images.store` asks for; with `reencode: never` any of the
            accepted formats, in upper case.
        height: in pixels, as a reader of `encoded` sees it that ignores metadata.
        width: likewise.
        channels: 1 or 3; with `reencode: never` also 2 (gray and alpha) or 4 (RGBA, CMYK).
        moments: for each channel the sum and the sum of squares of its values (0 to 255), exact, over the pixels that
            `encoded` decodes to, as libjpeg's accurate methods (TensorFlow's `INTEGER_ACCURATE`) give them. One or
            three channels. None where they were not asked for, nothing was decoded, or, with `reencode: never`, what
            is stored is neither JPEG nor PNG, or not 8 bits of gray or RGB: other readers would see other values.
        changes: sorted names from `CHANGES`; empty where the bytes passed through bit for bit.
        difference_hash: see `imaging.dhash`; None where it was not asked for.
        raster: what was decoded, after all changes but re-encoding; None where it was not asked for.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    moments: tuple[tuple[int, int], ...] | None
    changes: tuple[str, ...]
    difference_hash: int | None = None
    raster: Raster | None = field(default=None, compare=False, repr=False)
