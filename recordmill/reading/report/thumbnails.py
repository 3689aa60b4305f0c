"""Small pictures for the report, read only from the published shards."""

import base64
import gzip
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from recordmill import storage
from recordmill.imaging import ImageSettings, Resize, prepare_image, prepare_pixels
from recordmill.imaging.before_and_after import draw_boxes
from recordmill.imaging.geometry import Box
from recordmill.imaging.sniff import sniff
from recordmill.reading.dataset import Dataset
from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.reading.report.image_statistics import Place, choose_evenly, read_boxes
from recordmill.schemas.dataset.totals import most_frequent
from recordmill.schemas.rejection import Rejected
from recordmill.storage.record_reader import FRAMING_BYTES

MOST_CLASSES = 24
"""The most classes with images."""

MOST_IMAGES = 72
"""The most images shown, of all classes together."""

MOST_OF_CLASS = 24

ROW = 3
"""Images per row; only full rows are shown."""

SIDE = 112
"""The most pixels of a thumbnail's longer side; shown at half that size, it is sharp on a dense screen."""

MOST_WITH_BOXES = 24
"""The most images shown if boxes are drawn on them: fewer, and larger."""

MOST_CLASSES_WITH_BOXES = 96
"""The most classes shown then; if there are more than `MOST_WITH_BOXES`, each has one smaller picture."""

MOST_OF_CLASS_WITH_BOXES = 6

SIDE_WITH_BOXES = 384

SIDE_OF_MANY_WITH_BOXES = 224

MOST_UNPACKED = 8 * 2**20
"""Bytes of a compressed shard in which pictures are looked for: it can only be read from its start."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded for a thumbnail."""

_HEADER_BYTES = 12  # of a record's frame: the length and its checksum
_READERS = 8  # each read of an object store waits for a network


@dataclass(frozen=True, slots=True)
class Wanted:
    """An image to show: its place, the class whose boxes to highlight (None: all), and its maximum side."""

    place: Place
    class_name: str | None = None
    side: int = SIDE


def choose_samples(classes: Mapping[str, int], with_boxes: bool = False) -> dict[str, int]:
    """How many images to show, by class name, the largest class first.

    If there are too many classes, they are chosen evenly from the largest to the smallest, including both.

    Args:
        classes: images, or boxes, by class name.
        with_boxes: whether boxes are drawn on them.
    """
    most_classes, most, of_class, row = (
        (MOST_CLASSES_WITH_BOXES, MOST_WITH_BOXES, MOST_OF_CLASS_WITH_BOXES, 2)
        if with_boxes
        else (MOST_CLASSES, MOST_IMAGES, MOST_OF_CLASS, ROW)
    )
    chosen = choose_evenly(most_frequent(classes), most_classes)
    each = min(most // max(len(chosen), 1), of_class)
    return dict.fromkeys(chosen, max(each - each % row, 1))


def make_thumbnails(dataset: Dataset, wanted: Sequence[Wanted]) -> list[str]:
    """A `data:` URI for each image, its boxes drawn; the empty string for one that cannot be shown.

    Args:
        dataset: the dataset; if none of its features holds an encoded image, nothing can be shown.
        wanted: the images.

    Raises:
        OSError: a shard cannot be read.
    """
    keys = {feature.field: feature.key for feature in dataset.features}
    if "encoded" not in keys:
        return [""] * len(wanted)
    is_packed = dataset.marker is not None and dataset.marker.plan.settings.compression != "none"

    def make(each: Wanted) -> str:
        shard, row = each.place
        if not 0 < (row.height or 0) * (row.width or 0) <= MOST_PIXELS:
            return ""
        record = _read_record(shard.path, row.offset, row.length, is_packed)
        return _thumbnail(record, keys, each, dataset.labels) if record else ""

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(make, wanted))


def _read_record(shard: str, offset: int, length: int, is_packed: bool) -> bytes:
    if not is_packed:
        return storage.read_range(shard, offset + _HEADER_BYTES, length)
    if offset + length + FRAMING_BYTES > MOST_UNPACKED:
        return b""
    with storage.open_to_read(shard) as stored, gzip.GzipFile(fileobj=stored) as stream:
        return stream.read(offset + _HEADER_BYTES + length)[offset + _HEADER_BYTES :]


def _thumbnail(record: bytes, keys: Mapping[str, str], wanted: Wanted, labels: Mapping[str, int]) -> str:
    _, row = wanted.place
    settings = ImageSettings(reencode="always", resize=Resize(longest=wanted.side), quality=80, subsampling="4:2:0")
    shape = (row.height or 0, row.width or 0, row.channels or 0)
    try:
        example = ParsedExample(record)
        (stored,) = example.values(keys["encoded"]) or (b"",)
        is_raw = sniff(stored) is None and len(stored) == math.prod(shape) and shape[2] in (1, 3)
        prepared = (
            prepare_pixels(np.frombuffer(stored, np.uint8).reshape(shape), settings)
            if is_raw
            else prepare_image(stored, settings)
        )
    except (Rejected, DamagedExampleError):  # stored without decoding (`check: header`), or an Example without an image
        return ""
    encoded, boxes = prepared.encoded, [tuple(box) for box in read_boxes(example, keys).tolist()]
    if boxes:
        own = _boxes_of_class(example, keys, boxes, wanted.class_name, labels)
        encoded = draw_boxes(encoded, own, set(boxes) - set(own))
    return f"data:image/jpeg;base64,{base64.b64encode(encoded).decode()}"


def _boxes_of_class(
    example: ParsedExample, keys: Mapping[str, str], boxes: list[Box], name: str | None, labels: Mapping[str, int]
) -> list[Box]:
    """The boxes to highlight: those of the class, or all if no class is given or the records have no classes."""
    for field, wanted in (("box_label_texts", (name or "").encode()), ("box_labels", labels.get(name or ""))):
        if name is not None and field in keys:
            found = example.values(keys[field]) or ()
            return [box for box, each in zip(boxes, found, strict=True) if each == wanted]
    return boxes
