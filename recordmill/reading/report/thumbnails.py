"""Makes small pictures of stored images, with their annotations, and chooses the images shown."""

import gzip
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np

from recordmill import storage
from recordmill.annotations.shapes import Shape, color_of_class
from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.previews import as_data_uri, draw_layer
from recordmill.reading.dataset import Dataset
from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.reading.report.image_statistics import ImagePlace, choose_evenly
from recordmill.reading.trace_shapes import ShapeTracer
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.formatting import most_frequent
from recordmill.schemas.rejection import Rejected
from recordmill.storage.tfrecord_file import data_offset, frame_bytes

MOST_CLASSES = 24
"""The most classes with images."""

MOST_IMAGES = 72
"""The most images shown, of all classes together."""

MOST_OF_CLASS = 24

SIDE = 224
"""The most pixels of a thumbnail's longer side: shown at a third of that size, and enlarged on a
click."""

MOST_DRAWN_ON = 24
"""The most images shown if annotations are drawn on them: fewer, and larger."""

MOST_OF_CLASS_DRAWN_ON = 6

SIDE_DRAWN_ON = 384

MOST_SHAPES = 100
"""The most shapes that are drawn on one picture."""

MOST_UNPACKED = 8 * 2**20
"""Bytes of a compressed shard in which pictures are looked for: it can only be read from its
start."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded for a thumbnail."""

DRAWN_AT_ONCE = 2
"""Pictures of a local dataset that are drawn at the same time: more take only memory."""

STORE_READS = 8
"""The same for a dataset on an object store, where each read waits for a network."""


def choose_samples(classes: Mapping[str, int], are_drawn_on: bool = False) -> dict[str, int]:
    """Returns how many images to show, by class name, the largest class first.

    If there are too many classes, they are chosen evenly from the largest to the smallest,
    including both.

    Args:
        classes: images, or annotations, by class name.
        are_drawn_on: whether annotations are drawn on them.
    """
    if are_drawn_on:
        most, of_class = MOST_DRAWN_ON, MOST_OF_CLASS_DRAWN_ON
    else:
        most, of_class = MOST_IMAGES, MOST_OF_CLASS
    chosen = choose_evenly(most_frequent(classes), MOST_CLASSES)
    return dict.fromkeys(chosen, min(most // max(len(chosen), 1), of_class))


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small picture of a stored image, and what is drawn over it.

    Attributes:
        uri: the JPEG as a `data:` URI.
        width: its width in pixels.
        height: its height in pixels.
        shapes: the annotations of the image.
    """

    uri: str
    width: int
    height: int
    shapes: tuple[Shape, ...] = ()


def make_thumbnails(
    dataset: Dataset, places: Sequence[ImagePlace], side: int = SIDE
) -> list[Thumbnail | None]:
    """Returns a picture of each image, or None if it cannot be shown.

    Args:
        dataset: the dataset; if none of its features holds an encoded image, nothing can be shown.
        places: where the images are.
        side: the most pixels of a thumbnail's longer side.

    Raises:
        OSError: a shard cannot be read.
    """
    keys = {feature.field: feature.key for feature in dataset.features}
    if "encoded" not in keys:
        return [None] * len(places)
    tracer = ShapeTracer(dataset.features, dataset.labels, dataset.marker)
    is_packed = dataset.marker.plan.for_readers.compression != "none"

    def make(place: ImagePlace) -> Thumbnail | None:
        shard, row = place
        if not 0 < (row.height or 0) * (row.width or 0) <= MOST_PIXELS:
            return None
        record = _read_record(shard.path, row.offset, row.length, is_packed)
        if record:
            return _draw_thumbnail(record, keys["encoded"], tracer, row, side)
        return None

    at_once = DRAWN_AT_ONCE if storage.is_local(dataset.folder) else STORE_READS
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(make, places))


def _read_record(shard: str, offset: int, length: int, is_packed: bool) -> bytes:
    begin = data_offset(offset)
    if not is_packed:
        return storage.read_range(shard, begin, length)
    if offset + frame_bytes(length) > MOST_UNPACKED:
        return b""
    with storage.open_to_read(shard) as stored, gzip.GzipFile(fileobj=stored) as stream:
        return stream.read(begin + length)[begin:]


def _draw_thumbnail(
    record: bytes, image: str, tracer: ShapeTracer, row: SidecarRow, side: int
) -> Thumbnail | None:
    """Draws a picture; None if the image cannot be shown.

    Args:
        record: the Example.
        image: the key of the feature with its image.
        tracer: gives its annotations as shapes.
        row: its row in the sidecar.
        side: the most pixels of the longer side.
    """
    settings = ImageSettings(
        reencode="always", resize=Resize(longest=side), quality=80, subsampling="4:2:0"
    )
    shape = (row.height or 0, row.width or 0, row.channels or 0)
    try:
        example = ParsedExample(record)
        (stored,) = example.values(image) or (b"",)
        is_raw = sniff(stored) is None and len(stored) == math.prod(shape) and shape[2] in (1, 3)
        prepared = prepare_image(
            np.frombuffer(stored, np.uint8).reshape(shape) if is_raw else stored, settings
        )
    except (
        Rejected,
        DamagedExampleError,
    ):
        # Stored without decoding (`check: header`), or an Example without an image.
        return None
    uri = as_data_uri(prepared.encoded, "jpeg")
    return Thumbnail(uri, prepared.width, prepared.height, tuple(tracer.trace_all(example)))


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """A picture with what is drawn over it.

    Attributes:
        uri: the JPEG as a `data:` URI.
        width: its width in pixels; 0 if nothing is drawn over it.
        height: its height in pixels.
        layers: transparent pictures of the same size, as `data:` URIs, one for each region.
        shapes: the shapes, at most `MOST_SHAPES`.
    """

    uri: str
    width: int = 0
    height: int = 0
    layers: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()

    @classmethod
    def of(cls, picture: Thumbnail) -> Self:
        """Draws the regions of a picture's shapes as layers."""
        shapes, size = picture.shapes[:MOST_SHAPES], (picture.width, picture.height)
        layers = (
            draw_layer(shape.region, color_of_class(shape.class_id), size)
            for shape in shapes
            if shape.region is not None
        )
        uris = tuple(as_data_uri(layer, "png") for layer in layers)
        return cls(picture.uri, *size, uris, shapes)
