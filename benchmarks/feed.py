"""Times one epoch of a reader, start-up apart: from its first batch to its last.

python -m benchmarks.feed ours DATASET --size 224
"""

import argparse
import json
import os
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import tensorflow as tf

import recordmill
from benchmarks.rivals import tf_data

BATCH = 32


def ours(folder: str, batch_size: int, size: tuple[int, int] | None) -> tf.data.Dataset:
    """`load`, free to deliver in whichever order is quickest, as the hand-written reader is."""
    return recordmill.load(folder, batch_size=batch_size, image_size=size, deterministic=False)


def ours_in_order(folder: str, batch_size: int, size: tuple[int, int] | None) -> tf.data.Dataset:
    """`load` as it is called without further ado: the same order each time."""
    return recordmill.load(folder, batch_size=batch_size, image_size=size)


READERS = {"ours": ours, "ours_in_order": ours_in_order, "tf_data": tf_data.read}


def feed(dataset: tf.data.Dataset) -> dict[str, Any]:
    """Goes through a dataset once.

    Returns:
        `records`, all of them; `fed`, those after the first batch; wall and CPU seconds that these
        took.
    """
    batches = iter(dataset)
    records = first = len(next(batches)[1])
    wall, processor = time.perf_counter(), time.process_time()
    for _, labels in batches:
        records += len(labels)
    return {
        "records": records,
        "fed": records - first,
        "seconds_working": time.perf_counter() - wall,
        "cpu_seconds_working": time.process_time() - processor,
    }


def main() -> None:
    """Prints what was measured as one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", choices=sorted(READERS))
    parser.add_argument("folder", help="a dataset with one split, train, of images of one size")
    parser.add_argument("--size", type=int, help="height and width that images are resized to")
    arguments = parser.parse_args()
    size = (arguments.size, arguments.size) if arguments.size else None
    print(json.dumps(feed(READERS[arguments.reader](arguments.folder, BATCH, size))), flush=True)


if __name__ == "__main__":
    main()
