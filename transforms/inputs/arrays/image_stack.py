"""Stacks of images of one size and their labels: makes references to the images, and reads their pixels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import orjson

from recordmill.schemas.content import Pixels
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.arrays.array_files import ArrayHeader, ParseHeader, Place, bad_array

Order = Literal["interleaved", "planar"]
Labels = list[int] | list[str]

SHAPE_FIELD = "array_shape"
"""The field of `ImageRef.features` with the image's shape, for `read_stacked_image`; it is not a feature."""

LONGEST_LABEL = 4096
"""The most bytes of a label; numpy stores every text of an array with the length of the longest."""


@dataclass(frozen=True, slots=True)
class ImageStack:
    """An array of images, and the array of their labels.

    Attributes:
        key: the array's name in the dataset; the images' keys are `key#0`, `key#1`, ...
        name: the array's name, for messages.
        word: the source's split word.
        images: the place of the images.
        labels_name: the name of the label array or file, for messages.
        labels: the place of the labels; None if there are none.
    """

    key: str
    name: str
    word: str
    images: Place
    labels_name: str
    labels: Place | None


def list_stack(
    file: ImageRef, stack: ImageStack, parse: ParseHeader, order: Order, classes: Mapping[str, int]
) -> Iterator[Listed]:
    """Yields a reference for each image, after the classes that the labels number.

    Args:
        file: the file that contains the images.
        stack: the arrays.
        parse: parses their headers.
        order: the place of the channels.
        classes: numbers by class name; empty if each number is its own class.

    Raises:
        Rejected: `bad_array`, `wrong_length`, `bad_packing` or `bad_labels`.
    """
    header = stack.images.read_header(parse)
    if header.dtype != np.uint8:
        raise bad_array(f"{stack.name} holds values of type {header.dtype}, not uint8")
    check_images(header, order)
    stack.images.check_size(header, header.described)
    count, *shape = header.shape
    names = None
    if stack.labels is not None:
        names, numbers = name_labels(read_labels(stack.labels, parse, stack.labels_name, count), classes)
        if numbers:  # classes named 0, 1, ..., 10 keep that order
            yield ClassNames.of(file, {str(number): number for number in sorted(numbers)})
    features = orjson.dumps({SHAPE_FIELD: shape}).decode()
    common = {"packing": str(stack.images.packing or ""), "split": file.split or stack.word, "features": features}
    begin = stack.images.offset + header.bytes
    yield from list_ranges(file, stack.key, begin, math.prod(shape), count, names, **common)


def check_images(header: ArrayHeader, order: Order) -> None:
    """Raises Rejected, `bad_array`, unless an array contains images.

    The shape is N x height x width, or has 1 or 3 channels too: last, or with `planar` before the height.
    """
    shape = header.shape
    channels = 1 if len(shape) == 3 else shape[1 if order == "planar" else -1] if len(shape) == 4 else 0
    if channels not in (1, 3):
        where = "channels x height x width" if order == "planar" else "height x width x channels"
        usual = f"N x height x width, or N x {where} (1 or 3)"
        raise bad_array(f"{header.described} is not an array of images: {usual}")
    if min(shape) < 1:
        raise bad_array(f"an array of {header.described} holds no image")


def list_ranges(
    file: ImageRef, key: str, begin: int, length: int, count: int, labels: Sequence[str] | None = None, **common: Any
) -> Iterator[ImageRef]:
    """Yields a reference for each of `count` consecutive ranges of one length, from `begin` on."""
    refer = partial(ImageRef, uri=file.uri, size=file.size, version=file.version, length=length, **common)
    for index in range(count):
        yield refer(key=f"{key}#{index}", offset=begin + index * length, label="" if labels is None else labels[index])


def read_labels(place: Place, parse: ParseHeader, name: str, count: int) -> Labels:
    """Reads the labels of images from an array of shape (N) or (N, 1).

    Args:
        place: the array's place.
        parse: parses its header.
        name: the array's name, for messages.
        count: the number of images; an array of another length is not read.

    Raises:
        Rejected: `bad_labels`: its type or shape is wrong, or it cannot be read.
    """
    try:
        header = place.read_header(parse)
        if header.dtype.kind not in "iuU":
            raise bad_array(f"values of type {header.dtype} are not labels: store integers or texts")
        if header.dtype.itemsize > LONGEST_LABEL:
            raise bad_array(f"texts of up to {header.dtype.itemsize:,} bytes are too long for labels")
        if header.shape not in ((count,), (count, 1)):
            raise bad_array(f"an array of {header.described} has no label for each of {count:,} images")
        place.check_size(header, f"{count:,} labels")
        data = place.read(header.bytes, header.total_bytes - header.bytes, header.total_bytes)
    except Rejected as error:
        raise Rejected("list", "bad_labels", f"{name}: {error.detail}") from None
    values = np.frombuffer(data, header.dtype)
    labels: Labels = [str(value) for value in values] if header.dtype.kind == "U" else values.astype(object).tolist()
    return labels


def name_labels(labels: Labels, classes: Mapping[str, int]) -> tuple[list[str], set[int]]:
    """Maps labels to the names of their classes.

    Args:
        labels: numbers or names.
        classes: numbers by class name; empty if each number is its own class, named as it is written.

    Returns:
        The names (a number without a class stays a number), and the numbers that are their own classes.
    """
    names = {number: name for name, number in classes.items()}
    numbers = {label for label in set(labels) if isinstance(label, int)}
    written = {number: names.get(number) or str(number) for number in numbers}
    return [written[label] if isinstance(label, int) else label for label in labels], set() if classes else numbers


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


def interleave(planes: bytes, channels: int) -> bytes | bytearray:
    """Reorders consecutive planes so that each pixel's channels are together.

    For 32 x 32 x 3, it takes half the time of copying numpy's transposed view: 3.4 of 6.4 us, including the array.
    """
    if channels == 1:
        return planes
    length = len(planes) // channels
    pixels = bytearray(len(planes))
    for channel in range(channels):
        pixels[channel::channels] = planes[channel * length : (channel + 1) * length]
    return pixels
