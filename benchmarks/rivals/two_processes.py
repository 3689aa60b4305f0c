"""Two processes that write TFRecords by hand.

A good engineer who wants speed would write them instead of a pipeline. They use neither TensorFlow
nor Beam: an Example is packed field by field and framed with google_crc32c. Files are split into
90 % train and 10 % test by a hash of their name; each process takes the next shard that no one has
begun.
"""

import hashlib
import os
import struct
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import Barrier
from typing import NamedTuple

import google_crc32c

from benchmarks.rivals import job

PROCESSES = 2
SHARDS = {"train": 18, "test": 2}


class Shard(NamedTuple):
    """A file to write and the images that go into it."""

    path: str
    items: list[job.Item]


def shards(items: list[job.Item], output: str) -> list[Shard]:
    """Deals the images to shards in the order of a hash of their names.

    This mixes the classes, too.
    """
    keyed = sorted((hashlib.sha256(item.name.encode()).digest(), item) for item in items)
    cut = 2**64 // 10
    splits: dict[str, list[job.Item]] = {"train": [], "test": []}
    for digest, item in keyed:
        # The tail of the digest: its head is the sort key.
        splits["test" if int.from_bytes(digest[-8:]) < cut else "train"].append(item)
    return [
        Shard(
            f"{output}/{split}-{index:05}-of-{SHARDS[split]:05}.tfrecord",
            members[index :: SHARDS[split]],
        )
        for split, members in splits.items()
        for index in range(SHARDS[split])
    ]


def write(shard: Shard, mode: str) -> int:
    """Writes one shard and returns its bytes."""
    with open(shard.path, "wb", buffering=1 << 20) as file:
        for item in shard.items:
            record = example(job.features(item, mode))
            header = struct.pack("<Q", len(record))
            file.write(header + checksum(header))
            file.write(record)
            file.write(checksum(record))
        return file.tell()


def checksum(data: bytes) -> bytes:
    """Returns TFRecord's masked crc32c."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def example(features: job.Features) -> bytes:
    """Serializes a tf.train.Example: a map from names to features, in sorted order."""
    return field(
        1,
        b"".join(
            field(1, field(1, name.encode()) + field(2, feature(features[name])))
            for name in sorted(features)
        ),
    )


def feature(value: bytes | int) -> bytes:
    """Serializes a tf.train.Feature: a BytesList (1) or an Int64List (3) of one value."""
    return (
        field(1, field(1, value)) if isinstance(value, bytes) else field(3, field(1, varint(value)))
    )


def field(number: int, payload: bytes) -> bytes:
    """Serializes a length-delimited protobuf field."""
    return bytes((number << 3 | 2,)) + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    """Serializes a number from 0 up, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    os.makedirs(arguments.output, exist_ok=True)
    ready = Barrier(PROCESSES + 1, timeout=60)
    with ProcessPoolExecutor(PROCESSES, initializer=ready.wait) as pool:
        for _ in range(PROCESSES):
            pool.submit(int)  # the pool starts its processes when work arrives
        ready.wait()
        started = time.perf_counter()
        items = job.items(arguments.input)
        sizes = list(pool.map(partial(write, mode=arguments.mode), shards(items, arguments.output)))
        job.report(len(items), sum(sizes), time.perf_counter() - started)


if __name__ == "__main__":
    main()
