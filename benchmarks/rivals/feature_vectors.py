"""The usual multi-process script that writes a vector for each file: `sha256`, `feature`, `label`.

The original's `feature_transform` is any function of a file; here it decodes with Pillow and calls
the very function that ours calls, so that only processes, decoding and writing differ. It stores
base names under `sha256`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import numpy as np
import tensorflow as tf
from PIL import Image

from benchmarks.rivals import job, round_robin
from recordmill.transforms.records.image_functions import mean_std


def feature_transform(path: str) -> list[float]:
    """The vector of a file."""
    with Image.open(path) as image:
        return mean_std(np.asarray(image.convert("RGB")))


def example(item: job.Item, _mode: str) -> tf.train.Example:
    """The record of a file."""
    name = os.path.basename(item.path).encode()
    values = {
        "sha256": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name])),
        "feature": tf.train.Feature(
            float_list=tf.train.FloatList(value=feature_transform(item.path))
        ),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[item.label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=values))


if __name__ == "__main__":
    round_robin.convert(__doc__, example)
