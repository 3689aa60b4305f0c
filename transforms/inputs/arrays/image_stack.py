"""Images of one size, one after another: a reference for each, and back from its bytes to its pixels."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import orjson

from recordmill.schemas.content import Pixels
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.interleave import interleave
from recordmill.transforms.inputs.arrays.place import Place
from recordmill.transforms.inputs.read_image import read_image

Order = Literal["interleaved", "planar"]

SHAPE_FIELD = "array_shape"
"""The field of `ImageRef.features` that carries an image's shape to whoever reads it; no feature is made of it."""


@dataclass(frozen=True, slots=True)
class ImageStack:
    """Where images are.

    Attributes:
        place: of the array with its header.
        header: bytes before the first image.
        count: how many images.
        shape: of each, as it is stored.
    """

    place: Place
    header: int
    count: int
    shape: tuple[int, ...]

    @property
    def image_bytes(self) -> int:
        """Bytes of one image."""
        return math.prod(self.shape)


def locate_images(place: Place, header: int, shape: Sequence[int], order: Order) -> ImageStack:
    """The images of an array of bytes.

    Args:
        place: of the array with its header.
        header: bytes of that.
        shape: of the array: images, height, width; and channels, 1 or 3: last, or with `planar` before the height.
        order: where the channels are.

    Raises:
        Rejected: `bad_array`, the array is none of images; `wrong_length`, there are more or fewer bytes.
    """
    channels = 1 if len(shape) == 3 else shape[1 if order == "planar" else -1] if len(shape) == 4 else 0
    shown = " x ".join(map(str, shape)) or "a single value"
    if channels not in (1, 3):
        where = "channels x height x width" if order == "planar" else "height x width x channels"
        raise Rejected(
            "list", "bad_array", f"{shown} is no array of images: N x height x width, or N x {where} (1 or 3)"
        )
    if min(shape) < 1:
        raise Rejected("list", "bad_array", f"an array of {shown} holds no image")
    stack = ImageStack(place, header, shape[0], tuple(shape[1:]))
    place.check_size(header + stack.count * stack.image_bytes, f"{header:,} of header and {shown}")
    return stack


def refer_images(
    file: ImageRef, key: str, stack: ImageStack, labels: Sequence[str] | None, word: str
) -> Iterator[ImageRef]:
    """A reference for each image.

    Args:
        file: the file that the array is in.
        key: the array's name in the dataset; images are called `key#0`, `key#1`, ...
        stack: where they are.
        labels: of each; None for images without.
        word: the source's for their split.

    Raises:
        Rejected: `bad_labels`: there are not as many labels as images.
    """
    if labels is not None and len(labels) != stack.count:
        raise Rejected("list", "bad_labels", f"there are {len(labels):,} labels for {stack.count:,} images")
    begin, length = stack.place.offset + stack.header, stack.image_bytes
    features = orjson.dumps({SHAPE_FIELD: stack.shape}).decode()
    refer = partial(
        ImageRef,
        uri=file.uri,
        size=file.size,
        version=file.version,
        length=length,
        packing=stack.place.packing,
        split=file.split or word,
        features=features,
    )
    for index in range(stack.count):
        label = "" if labels is None else labels[index]
        yield refer(f"{key}#{index}", offset=begin + index * length, label=label)


def read_stacked_image(ref: ImageRef, max_bytes: int, order: Order) -> tuple[bytes, Pixels]:
    """Reads one image: its bytes, and its pixels as height, width, channels.

    Raises:
        Rejected: see `read_image`.
    """
    data = read_image(ref, max_bytes)
    shape = orjson.loads(ref.features)[SHAPE_FIELD]
    if order == "planar" and len(shape) == 3:
        channels, height, width = shape
        return data, np.ndarray((height, width, channels), np.uint8, interleave(data, channels))
    return data, np.ndarray(shape if len(shape) == 3 else (*shape, 1), np.uint8, data)
