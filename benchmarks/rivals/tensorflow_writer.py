"""The usual multi-process TensorFlow script for images and their labels.

Each process has a TFRecordWriter of its own.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow as tf

from benchmarks.rivals import job, round_robin


def feature(value: bytes | int) -> tf.train.Feature:
    """Wraps one value."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def example(item: job.Item, mode: str) -> tf.train.Example:
    """The record of a file."""
    features = job.features(item, mode)
    return tf.train.Example(
        features=tf.train.Features(
            feature={name: feature(value) for name, value in features.items()}
        )
    )


if __name__ == "__main__":
    round_robin.convert(__doc__, example)
