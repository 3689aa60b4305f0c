"""The usual multi-process script that writes a vector for each file: `sha256`, `feature`, `label`.

The original's `feature_transform` is any function of a file; here it decodes with Pillow and calls the very function
that ours calls, so that only processes, decoding and writing differ. It deals files round robin to
`int(0.8 * cpus) + 1` processes, writes `shard_<i>` from each and stores base names under `sha256`. Mended as in
`tensorflow_writer`: processes are joined after all have started, where the original joined each before the next.
"""

import multiprocessing
import os
import sys
import time
from multiprocessing.synchronize import Barrier

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import numpy as np
import tensorflow as tf
from PIL import Image

from benchmarks.rivals import job
from transforms.feature_functions.built_in import mean_std


def feature_transform(path: str) -> list[float]:
    """The vector of a file."""
    with Image.open(path) as image:
        return mean_std(np.asarray(image.convert("RGB")))


def example(item: job.Item) -> tf.train.Example:
    """The record of a file."""
    name = os.path.basename(item.path).encode()
    values = {
        "sha256": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name])),
        "feature": tf.train.Feature(float_list=tf.train.FloatList(value=feature_transform(item.path))),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[item.label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=values))


def write(path: str, items: list[job.Item], ready: Barrier) -> None:
    """Writes one shard: the body of a process."""
    ready.wait()
    with tf.io.TFRecordWriter(path) as writer:
        for item in items:
            writer.write(example(item).SerializeToString())


def main() -> None:
    """Makes vectors of the input folder's images."""
    arguments = job.arguments(__doc__)
    os.makedirs(arguments.output, exist_ok=True)
    count = int(0.8 * multiprocessing.cpu_count()) + 1
    ready = multiprocessing.Barrier(count + 1, timeout=60)
    items = job.items(arguments.input)
    paths = [f"{arguments.output}/shard_{index}" for index in range(count)]
    processes = [
        multiprocessing.Process(target=write, args=(path, items[index::count], ready))
        for index, path in enumerate(paths)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("a process failed")
    job.report(len(items), sum(map(os.path.getsize, paths)), time.perf_counter() - started)


if __name__ == "__main__":
    main()
