"""The usual loop from CIFAR-10's binary files to TFRecords.

tf.data slices, reshapes and batches, and Python writes. `--mode float32` stores each pixel in four
bytes, as the original does; `uint8` as it means to. All goes into one file.
"""

import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow as tf

HEIGHT, WIDTH, CHANNELS = 32, 32, 3
BATCH = 100


def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A record's image as height, width, channels, and its label."""
    data = tf.io.decode_raw(record, tf.uint8)
    image = tf.reshape(data[1:], [CHANNELS, HEIGHT, WIDTH])
    return tf.transpose(image, [1, 2, 0]), tf.cast(data[0], tf.int64)


def example(image: bytes, label: int) -> tf.train.Example:
    """Wraps the values of a record."""
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
        )
    )


def main() -> None:
    """Converts the input folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="folder of CIFAR-10's binary files")
    parser.add_argument("--output", required=True, help="folder for the TFRecord file")
    parser.add_argument("--mode", choices=("uint8", "float32"), default="uint8")
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    started, count = time.perf_counter(), 0
    path = f"{arguments.output}/cifar.tfrecord"
    files = sorted(tf.io.gfile.glob(f"{arguments.input}/*.bin"))
    batches = (
        tf.data.FixedLengthRecordDataset(files, 1 + HEIGHT * WIDTH * CHANNELS)
        .map(decode)
        .batch(BATCH)
    )
    with tf.io.TFRecordWriter(path) as writer:
        for images, labels in batches.as_numpy_iterator():
            for image, label in zip(images, labels, strict=True):
                writer.write(
                    example(image.astype(arguments.mode).tobytes(), int(label)).SerializeToString()
                )
                count += 1
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {"records": count, "bytes": os.path.getsize(path), "seconds_working": round(seconds, 4)}
        )
    )


if __name__ == "__main__":
    main()
