"""What a record is turned into: numpy arrays by key, or what `load` yields: the decoded image and its label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from recordmill.imaging.pillow_decode import load_image, open_image
from recordmill.imaging.sniff import sniff
from recordmill.reading.dataset import Dataset
from recordmill.reading.example import ParsedExample
from recordmill.reading.expectations import Expectations, expect
from recordmill.reading.load.elements import ElementLayout, choose_elements
from recordmill.reading.load.examples_as_numpy import as_array, example_as_numpy
from recordmill.reading.load.image_tensors import ImageLayout
from recordmill.reading.load.split_info import SplitInfo, describe_dataset
from recordmill.reading.verify.verify_pixels import find_image
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature, parse_example

Form = Literal["image", "numpy", "raw"]


@dataclass(frozen=True, slots=True)
class ImageForm:
    """A record of a Recordmill dataset as `load` yields it without a batch, with numpy's arrays and scalars."""

    info: SplitInfo
    layout: ElementLayout
    features: tuple[Feature, ...]
    channels: int

    @property
    def is_pair(self) -> bool:
        """Whether it gives pairs of a decoded image and a label."""
        return self.layout.shape == "pair" and not self.info.raw

    def __call__(self, record: bytes, room: NDArray[np.uint8] | None = None) -> Any:
        """A pair of image and label, a dict, or a tuple; see `decode` for `room`."""
        values = parse_example(self.features, record)
        arrays = {each.key: _as_scalars(each, values[each.key]) for each in self.features}
        if (key := self.layout.image) is not None:
            arrays[key] = self._raw_pixels(values, key) if self.info.raw else decode(values[key], self.channels, room)
        if (key := self.layout.multi_hot) is not None:
            label = np.zeros(self.info.label_depth, np.float32)
            label[[each for each in values[key] if 0 <= each < len(label)]] = 1
            arrays[key] = label
        elif self.layout.shape == "pair" and self.layout.label == self.info.key_of("label_text"):
            arrays[self.layout.label] = np.int64(self.info.labels.get(values[self.layout.label].decode(), -1))
        chosen = {key: arrays[key] for key in self.layout.keys}
        return chosen if self.layout.shape == "dict" else tuple(chosen.values())

    def _raw_pixels(self, values: Mapping[str, Any], key: str) -> NDArray[np.uint8]:
        height, width = self.info.key_of("height"), self.info.key_of("width")
        size = (values[height], values[width]) if height and width else self.info.image_size
        if size is None:
            raise LoadError(
                f"{self.info.folder} holds raw pixels of several sizes, and its records do not say which: read "
                "form='numpy'"
            )
        pixels = np.frombuffer(values[key], np.uint8).reshape(*size, -1)
        return np.broadcast_to(pixels, (*size, self.channels or pixels.shape[2])).copy()


@dataclass(frozen=True, slots=True)
class GuessedForm:
    """A record of files without metadata: a dict of arrays by key, and its image decoded."""

    expected: Expectations
    channels: int

    def __call__(self, record: bytes) -> dict[str, NDArray[Any]]:
        """Arrays by key; the image is of shape (height, width, channels)."""
        key, image = find_image(ParsedExample(record), self.expected)
        arrays = example_as_numpy(record)
        return {**arrays, key: decode(image, self.channels)} if key else arrays


def choose_form(
    dataset: Dataset, split: str, form: Form, features: Literal["all"] | Sequence[str] | None, channels: int
) -> Callable[[bytes], Any] | None:
    """What turns a split's records into elements; None leaves them as serialised Examples.

    Raises:
        LoadError: there is no such form, or the records cannot have it.
    """
    if form not in ("image", "numpy", "raw"):
        raise LoadError(f"form is {form!r}: choose image, numpy or raw")
    if form != "image" and features is not None:
        raise LoadError(f"features is {features!r}, and form={form!r} gives all: use form='image'")
    if form != "image":
        return example_as_numpy if form == "numpy" else None
    ImageLayout(None, "stretch", channels, None)
    if dataset.marker is None:
        if features not in (None, "all"):
            raise LoadError(f"features is {features!r}, and files without metadata give all: remove it")
        return GuessedForm(expect(dataset), channels)
    info = describe_dataset(dataset, split)
    layout = choose_elements(info, features, decode=True)
    needed = {*layout.keys, *((info.key_of("height"), info.key_of("width")) if info.raw else ())}
    own = tuple(feature for feature in info.features if feature.key in needed)
    return ImageForm(replace(info, shards=info.shards[:1]), layout, own, channels)


def decode(data: bytes, channels: int, room: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """An image as `tf.io.decode_image` shows it: without rotation, colour profile or transparency.

    Args:
        data: the file.
        channels: 3, 1 (grayscale) or 0 (as stored).
        room: where to put the pixels of a JPEG of this shape; it is then what is returned.

    Raises:
        Rejected: it cannot be decoded.
    """
    if channels and data.startswith(b"\xff\xd8"):
        try:
            fits = room is not None and simplejpeg.decode_jpeg_header(data)[:2] == room.shape[:2]
            space = "GRAY" if channels == 1 else "RGB"
            pixels = simplejpeg.decode_jpeg(data, space, strict=True, buffer=room if fits else None)
            return room if fits and room is not None else pixels
        except ValueError:  # Pillow reads more, and says what is wrong
            pass
    kind = sniff(data) or "JPEG"
    image = load_image(open_image(data, kind), kind).image
    pixels = np.array(image.convert({1: "L", 3: "RGB"}[channels]) if channels else image)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _as_scalars(feature: Feature, value: Any) -> Any:
    if feature.many:
        return as_array(feature.kind, value)
    return value if feature.kind == "bytes" else as_array(feature.kind, [value])[0]
