"""The flow of tensorflow-recorder on today's Beam.

A table becomes rows, rows become images, and images become Examples.

As in the original, an image is stored as its pixels in base64, an unreadable one is logged and
goes on without them, the table says which split a row belongs to, and Beam's own sink writes. The
original numbers the classes with TensorFlow Transform; here, a set of the classes is a side input,
which costs less. `--mode` changes nothing.
"""

import base64
import csv
import glob
import hashlib
import io
import logging
import os
import time
from collections.abc import Iterable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import apache_beam as beam
import tensorflow as tf
from PIL import Image

from benchmarks.rivals import job

Row = dict[str, str | int | bytes]
SPLITS = ("TRAIN", "TEST")


def table(items: list[job.Item]) -> list[str]:
    """The lines of a CSV file: split, path and label."""
    lines = io.StringIO()
    for item in items:
        tested = hashlib.sha256(item.name.encode()).digest()[0] < 26
        csv.writer(lines).writerow((SPLITS[tested], item.path, item.text))
    return lines.getvalue().splitlines()


def read_row(line: str) -> Row:
    """A line's values by name."""
    return dict(zip(("split", "image_name", "label"), next(csv.reader([line])), strict=True))


def read_image(row: Row) -> Row:
    """The row with the pixels of its image."""
    try:
        with tf.io.gfile.GFile(row["image_name"], "rb") as file, Image.open(file) as image:
            row["image"] = base64.urlsafe_b64encode(image.tobytes())
            row["image_width"], row["image_height"] = image.size
            row["image_channels"] = len(image.getbands())
    except Exception as error:  # noqa: BLE001  # as the original does
        logging.warning("could not load %s: %s", row["image_name"], error)
    return row


def number_of_split(row: Row, _: int) -> int:
    """The place of the row's split in `SPLITS`."""
    return SPLITS.index(str(row["split"]))


def encode(row: Row, classes: Iterable[str]) -> bytes:
    """The row as a serialized Example; its label as a number."""
    values = {**row, "label": sorted(classes).index(str(row["label"]))}
    features = {}
    for name, value in values.items():
        if isinstance(value, int):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        else:
            data = value if isinstance(value, bytes) else value.encode()
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    started, items = time.perf_counter(), job.items(arguments.input)
    with beam.Pipeline(runner="DirectRunner") as root:
        rows = root | beam.Create(table(items)) | beam.Map(read_row)
        classes = beam.pvalue.AsIter(rows | beam.Map(lambda row: row["label"]) | beam.Distinct())
        # Beam's annotation is narrower than what it takes.
        by_split = beam.Partition(number_of_split, len(SPLITS))  # type: ignore[arg-type]
        parts = rows | beam.Map(read_image) | by_split
        for split, part in zip(SPLITS, parts, strict=True):
            path = f"{arguments.output}/{split.lower()}"
            sink = beam.io.WriteToTFRecord(path, file_name_suffix=".tfrecord")
            _ = part | f"Encode{split}" >> beam.Map(encode, classes) | f"Write{split}" >> sink
    size = sum(map(os.path.getsize, glob.glob(f"{arguments.output}/*.tfrecord")))
    job.report(len(items), size, time.perf_counter() - started)


if __name__ == "__main__":
    main()
