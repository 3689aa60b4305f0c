"""Small pictures for the report, read from the finished shards and nowhere else."""

import base64
import gzip
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from recordmill.schemas.coercion import FeatureValueError
from recordmill.schemas.features import Feature, parse_example
from recordmill.transforms.files import storage
from recordmill.transforms.files.record_reader import FRAMING_BYTES
from recordmill.transforms.imaging import BadImage, ImageSettings, Resize, prepare_image, prepare_pixels
from recordmill.transforms.imaging.draw_boxes import draw_boxes
from recordmill.transforms.imaging.geometry import Box
from recordmill.transforms.imaging.sniff import sniff
from recordmill.transforms.publishing.statistics import Sidecar

MOST_CLASSES = 24
"""Classes of which images are shown."""

MOST_IMAGES = 72
"""Images that are shown of all classes together."""

MOST_OF_CLASS = 24

ROW = 3
"""Images beside each other; rows are shown full."""

SIDE = 112
"""Pixels of a thumbnail's longer side at most: drawn at half of that, it is sharp on a dense screen."""

MOST_UNPACKED = 8 * 2**20
"""How far into a compressed shard pictures are looked for: it can only be read from its start."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded for a thumbnail."""

_HEADER_BYTES = 12  # of a record's frame: the length and its checksum
_READERS = 8  # each read of an object store waits for a network


def choose_samples(classes: Mapping[str, int]) -> dict[str, int]:
    """How many images of which classes are to be shown, by class name.

    Where there are too many classes they are taken evenly from the largest to the smallest, both of them included.

    Args:
        classes: images by class name.
    """
    names = sorted(classes, key=lambda name: (-classes[name], name))
    if len(names) > MOST_CLASSES:
        last = len(names) - 1
        names = [names[number * last // (MOST_CLASSES - 1)] for number in range(MOST_CLASSES)]
    each = min(MOST_IMAGES // max(len(names), 1), MOST_OF_CLASS)
    return dict.fromkeys(names, each - each % ROW)


def make_thumbnails(
    places: Sequence[tuple[Sidecar, dict[str, Any]]], features: Iterable[Feature], compression: str
) -> list[str]:
    """A `data:` URI for each image, its boxes drawn; the empty string for one that cannot be shown.

    Args:
        places: images by sidecar and row.
        features: of the dataset; what none of them holds as an encoded image cannot be shown.
        compression: of the shards.

    Raises:
        OSError: a shard cannot be read.
    """
    by_field = {feature.field: feature for feature in features}
    if "encoded" not in by_field:
        return [""] * len(places)

    def make(place: tuple[Sidecar, dict[str, Any]]) -> str:
        sidecar, row = place
        if not 0 < row.get("height", 0) * row.get("width", 0) <= MOST_PIXELS:
            return ""
        record = _read_record(sidecar.shard, row["offset"], row["length"], compression)
        return _thumbnail(record, by_field, row) if record else ""

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(make, places))


def _read_record(shard: str, offset: int, length: int, compression: str) -> bytes:
    if compression == "none":
        return storage.read_range(shard, offset + _HEADER_BYTES, length)
    if offset + length + FRAMING_BYTES > MOST_UNPACKED:
        return b""
    with storage.open_to_read(shard) as stored, gzip.GzipFile(fileobj=stored) as stream:
        return stream.read(offset + _HEADER_BYTES + length)[offset + _HEADER_BYTES :]


def _thumbnail(record: bytes, by_field: Mapping[str, Feature], row: Mapping[str, Any]) -> str:
    settings = ImageSettings(reencode="always", resize=Resize(longest=SIDE), quality=80, subsampling="4:2:0")
    shape = (row["height"], row["width"], row["channels"])
    try:
        stored = parse_example([by_field["encoded"]], record)[by_field["encoded"].key]
        boxes = _boxes(record, by_field)
        is_raw = sniff(stored) is None and len(stored) == math.prod(shape) and shape[2] in (1, 3)
        prepared = (
            prepare_pixels(np.frombuffer(stored, np.uint8).reshape(shape), settings)
            if is_raw
            else prepare_image(stored, settings)
        )
    except (BadImage, FeatureValueError):  # stored unseen (`check: header`), or an Example without an image
        return ""
    encoded = draw_boxes(prepared.encoded, boxes) if boxes else prepared.encoded
    return f"data:image/jpeg;base64,{base64.b64encode(encoded).decode()}"


def _boxes(record: bytes, by_field: Mapping[str, Feature]) -> list[Box]:
    """The boxes of an Example, as fractions of its image; none where its convention stores none."""
    if "bbox" in by_field:
        sides = parse_example([by_field["bbox"]], record)[by_field["bbox"].key]
        return [(left, top, right, bottom) for top, left, bottom, right in zip(*[iter(sides)] * 4, strict=True)]
    if not {"xmin", "ymin", "xmax", "ymax"} <= by_field.keys():
        return []
    features = [by_field[side] for side in ("xmin", "ymin", "xmax", "ymax")]
    found = parse_example(features, record)
    return list(zip(*(found[feature.key] for feature in features), strict=True))
