"""The usual multi-process TensorFlow script: `int(0.8 * cpus) + 1` processes, each with a TFRecordWriter of its own.

The original deals the files round robin, writes `shard_<i>` from each process, and leaves the split to the reader. Ours
differs in one point: it joins the processes after all have started, where the original joined each before the next.
"""

import multiprocessing
import os
import sys
import time
from multiprocessing.synchronize import Barrier

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow as tf

from benchmarks.rivals import job


def feature(value: bytes | int) -> tf.train.Feature:
    """Wraps one value."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def example(features: job.Features) -> tf.train.Example:
    """Wraps the values of a record."""
    return tf.train.Example(
        features=tf.train.Features(feature={name: feature(value) for name, value in features.items()})
    )


def write(path: str, items: list[job.Item], mode: str, ready: Barrier) -> None:
    """Writes one shard: the body of a process."""
    ready.wait()
    with tf.io.TFRecordWriter(path) as writer:
        for item in items:
            writer.write(example(job.features(item, mode)).SerializeToString())


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    os.makedirs(arguments.output, exist_ok=True)
    count = int(0.8 * multiprocessing.cpu_count()) + 1
    ready = multiprocessing.Barrier(count + 1, timeout=60)
    items = job.items(arguments.input)
    paths = [f"{arguments.output}/shard_{index}" for index in range(count)]
    processes = [
        multiprocessing.Process(target=write, args=(path, items[index::count], arguments.mode, ready))
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
