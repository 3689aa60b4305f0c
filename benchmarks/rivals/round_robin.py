"""The usual way to write in several processes, a shard each.

Files are dealt round robin to `int(0.8 * cpus) + 1` processes. The original writes `shard_<i>` from
each process and leaves the split to the reader. One thing is corrected: processes are joined after
all have started, where the original joined each before it started the next.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow as tf

from benchmarks.rivals import job

MakeExample = Callable[[job.Item, str], tf.train.Example]
"""An image and the mode to the image's record."""


def write(
    path: str, items: list[job.Item], mode: str, example: MakeExample, ready: Barrier
) -> None:
    """Writes one shard: the body of a process."""
    ready.wait()
    with tf.io.TFRecordWriter(path) as writer:
        for item in items:
            writer.write(example(item, mode).SerializeToString())


def convert(description: str | None, example: MakeExample) -> None:
    """Converts the input folder that the command line names, and prints the last line."""
    arguments = job.arguments(description)
    os.makedirs(arguments.output, exist_ok=True)
    count = int(0.8 * multiprocessing.cpu_count()) + 1
    ready = multiprocessing.Barrier(count + 1, timeout=60)
    items = job.items(arguments.input)
    paths = [f"{arguments.output}/shard_{index}" for index in range(count)]
    processes = [
        multiprocessing.Process(
            target=write, args=(path, items[index::count], arguments.mode, example, ready)
        )
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
