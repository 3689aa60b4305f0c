"""A contender that reads a dataset from first to last record, repeatedly, and times itself.

    python -m benchmarks.passes frames DIR
    python -m benchmarks.passes tensorflow DIR

The first pass is not timed: what it costs to start is set apart. The last line is JSON: records,
and seconds a pass.
"""

import argparse
import atexit
import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recordmill.reading.verify_shard import Level

BATCH = 256


def verify(level: "Level", folder: Path) -> Callable[[], int]:
    """Our verifier at a level; a pass fails where anything is wrong."""
    from recordmill.reading import verify_dataset as module
    from recordmill.reading.dataset import open_dataset
    from recordmill.reading.verify_processes import ShardWorkers

    workers = ShardWorkers(os.cpu_count() or 1)
    atexit.register(workers.__exit__)
    # Started in the first pass, and kept for the others.
    vars(module)["ShardWorkers"] = lambda count: nullcontext(workers)

    def read() -> int:
        verification = module.verify_dataset(open_dataset(str(folder)), level)
        if verification.findings:
            raise SystemExit(f"{len(verification.findings)} findings: {verification.findings[0]}")
        return verification.records

    return read


def tensorflow(folder: Path) -> Callable[[], int]:
    """Returns what TensorFlow's users write to read all records.

    It has parallel reads, batches and `parse_example`.
    """
    import tensorflow as tf

    from recordmill.reading.dataset import open_dataset
    from recordmill.schemas.features import tensorflow_features

    dataset = open_dataset(str(folder))
    files = [shard.path for shard in dataset.shards]
    features = tensorflow_features(dataset.features)

    def read() -> int:
        records = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).batch(BATCH)
        parsed = records.map(
            lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=tf.data.AUTOTUNE
        )
        key = next(iter(features))
        return sum(int(batch[key].shape[0]) for batch in parsed.prefetch(tf.data.AUTOTUNE))

    return read


CONTENDERS: dict[str, Callable[[Path], Callable[[], int]]] = {
    "frames": partial(verify, "frames"),
    "files": partial(verify, "files"),
    "tensorflow": tensorflow,
}


def main() -> None:
    """Times the passes of one contender."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passes", type=int, default=3, help="timed ones (%(default)s)")
    arguments = parser.parse_args()
    read = CONTENDERS[arguments.contender](arguments.folder)
    records = read()
    seconds = []
    for _ in range(arguments.passes):
        started = time.perf_counter()
        if read() != records:
            raise SystemExit("two passes gave different numbers of records")
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"records": records, "seconds": seconds}))


if __name__ == "__main__":
    main()
