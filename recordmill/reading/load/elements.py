"""Turns serialised Examples into the elements of a training loop, with TensorFlow: parses, decodes, selects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from recordmill.reading.load.split_info import SplitInfo
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import tensorflow_features

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
    """One record's image, height by width by channels, 0 to 255: uint8 as stored, or float32 if resized (bilinearly).

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
    """Raw pixels as uint8; their shape is in the record, or the same for all."""
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


Shape = Literal["pair", "dict", "tuple"]


@dataclass(frozen=True, slots=True)
class ElementLayout:
    """The structure of an element.

    Attributes:
        shape: `pair`: (image, label), `dict`: values by key, `tuple`: values in the order of `keys`.
        keys: its features' keys.
        image: the key of the image to decode; None if none is decoded.
        multi_hot: the key of the labels that become multi-hot; None if none do.
        is_ragged: whether elements have features with a varying number of values.
    """

    shape: Shape
    keys: tuple[str, ...]
    image: str | None
    multi_hot: str | None
    is_ragged: bool

    @property
    def label(self) -> str:
        """The key of a pair's label."""
        return self.keys[1]


def choose_elements(info: SplitInfo, features: Literal["all"] | Sequence[str] | None, decode: bool) -> ElementLayout:
    """Decides the structure of the elements.

    Args:
        info: the split.
        features: keys for a tuple of them, `all` for a dict of all; None for pairs of image and label if the
            dataset has both, otherwise a dict of all.
        decode: whether the image is decoded.

    Raises:
        LoadError: a key is not a feature of the dataset.
    """
    image = info.key_of("encoded")
    label = info.key_of("label") or info.key_of("labels") or info.key_of("label_text")
    decoded = image if decode else None
    every = tuple(feature.key for feature in info.features)
    many = {feature.key for feature in info.features if feature.many}
    if features is None and image and label:
        hot = label if decoded and label in many else None
        return ElementLayout("pair", (image, label), decoded, hot, label in many and not hot)
    if features is None or features == "all":
        return ElementLayout("dict", every, decoded, None, bool(many))
    keys = (features,) if isinstance(features, str) else tuple(features)
    unknown = [key for key in keys if key not in every]
    if unknown or not keys:
        missing = unknown[0] if unknown else ""
        raise LoadError(f"{info.folder} has no feature {missing!r}: choose from {', '.join(every)}")
    return ElementLayout("tuple", keys, decoded if decoded in keys else None, None, not many.isdisjoint(keys))


def parse_function(info: SplitInfo, layout: ElementLayout, padded: bool) -> "Callable[[tf.Tensor], dict[str, Any]]":
    """Makes the function that parses a batch of serialised Examples into tensors by key; class names become ids.

    Features with several values become ragged tensors, or are `padded` with zeros to the longest in the batch. Features
    that the elements do not need are not parsed.
    """
    import tensorflow as tf

    needed = set(layout.keys)
    if layout.image and info.raw:
        needed |= {key for field in ("height", "width") if (key := info.key_of(field))}
    description = tensorflow_features(feature for feature in info.features if feature.key in needed)
    by_name = layout.shape == "pair" and layout.label == info.key_of("label_text")
    names = tf.constant(list(info.labels), tf.string)
    ids = tf.constant(list(info.labels.values()), tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(names, ids), -1) if by_name else None

    def parse(records: "tf.Tensor") -> dict[str, Any]:
        parsed = tf.io.parse_example(records, description)
        many = tf.sparse.to_dense if padded else tf.RaggedTensor.from_sparse
        values = {key: many(value) if isinstance(value, tf.SparseTensor) else value for key, value in parsed.items()}
        if table is not None:
            values[layout.label] = table.lookup(values[layout.label])
        return values

    return parse


def finish_function(
    info: SplitInfo, layout: ElementLayout, images: ImageLayout
) -> "Callable[[Mapping[str, Any]], Any]":
    """Makes the function that turns parsed values (one record's if it decodes an image) into an element."""
    import tensorflow as tf

    def finish(values: Mapping[str, Any]) -> Any:
        chosen = {key: values[key] for key in layout.keys}
        if layout.image:
            chosen[layout.image] = image_from(values, info, layout.image, images)
        if layout.multi_hot:
            one_hot = tf.one_hot(values[layout.multi_hot], info.label_depth, on_value=True, off_value=False)
            chosen[layout.multi_hot] = tf.cast(tf.reduce_any(one_hot, axis=0), tf.float32)
        return chosen if layout.shape == "dict" else tuple(chosen[key] for key in layout.keys)

    return finish
