"""Turns stored images into tensors of pixels, with TensorFlow's own operations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from recordmill.reading.load.split_info import SplitInfo
from recordmill.schemas.errors import LoadError

if TYPE_CHECKING:
    import tensorflow as tf

Fit = Literal["stretch", "crop", "pad"]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """The form of decoded images.

    Attributes:
        size: height and width that images are resized to; None: as stored.
        fit: how an image of another aspect ratio fills `size`: `stretch` distorts it, `crop` crops both sides equally,
            `pad` centres it on black.
        channels: 3 for red, green and blue, 1 for grayscale, 0 as stored.
        stored: height and width that all images must have as stored, so that they can be batched; None: any.
    """

    size: tuple[int, int] | None
    fit: Fit
    channels: int
    stored: tuple[int, int] | None

    def __post_init__(self) -> None:
        """Raises LoadError if no image can have this form."""
        if self.size is not None and (len(self.size) != 2 or min(self.size) < 1):
            raise LoadError(f"image_size is {self.size}: give (height, width) in pixels")
        if self.fit not in ("stretch", "crop", "pad"):
            raise LoadError(f"fit is {self.fit!r}: choose stretch, crop or pad")
        if self.channels not in (0, 1, 3):
            raise LoadError(f"channels is {self.channels}: give 3 (red, green, blue), 1 (grayscale) or 0 (as stored)")


def image_from(values: Mapping[str, Any], info: SplitInfo, key: str, layout: ImageLayout) -> "tf.Tensor":
    """One record's image: uint8 as stored, or resized bilinearly to float32; both from 0 to 255, height by width first.

    Args:
        values: the record's parsed features.
        info: its split.
        key: the image's feature.
        layout: its form.
    """
    import tensorflow as tf

    if info.raw:
        image = _raw_image(values, info, key, layout)
    else:
        image = tf.io.decode_image(values[key], channels=layout.channels, expand_animations=False)
        image.set_shape((None, None, layout.channels or None))
    if layout.size is None:
        return tf.ensure_shape(image, (*layout.stored, image.shape[2])) if layout.stored else image
    if layout.fit == "pad":
        return tf.image.resize_with_pad(image, *layout.size)
    return tf.image.resize(_crop(image, layout.size) if layout.fit == "crop" else image, layout.size)


def _raw_image(values: Mapping[str, Any], info: SplitInfo, key: str, layout: ImageLayout) -> "tf.Tensor":
    """Pixels of uint8; their shape is in the record, or the same for all."""
    import tensorflow as tf

    height, width = info.key_of("height"), info.key_of("width")
    if height and width:
        shape = tf.stack([values[height], values[width], -1])
    elif info.image_size:
        shape = tf.constant([*info.image_size, -1], tf.int64)
    else:
        raise LoadError(
            f"{info.folder} holds raw pixels of several sizes, and its records do not say which: use decode=False"
        )
    image = tf.reshape(tf.io.decode_raw(values[key], tf.uint8), shape)
    if layout.channels == 0:
        return image
    image = tf.broadcast_to(image, tf.concat([tf.shape(image)[:2], [layout.channels]], 0))
    image.set_shape((None, None, layout.channels))
    return image


def _crop(image: "tf.Tensor", size: tuple[int, int]) -> "tf.Tensor":
    """The largest centred part with the aspect ratio of `size`."""
    import tensorflow as tf

    height, width = tf.shape(image)[0], tf.shape(image)[1]
    kept_height = tf.minimum(height, tf.maximum(width * size[0] // size[1], 1))
    kept_width = tf.minimum(width, tf.maximum(height * size[1] // size[0], 1))
    return tf.image.crop_to_bounding_box(
        image, (height - kept_height) // 2, (width - kept_width) // 2, kept_height, kept_width
    )
