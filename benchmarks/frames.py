"""Counts the records that are really in TFRecord and tar files.

It shares no code with any program that is measured.
"""

import os
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import google_crc32c

# What the contenders call their files: train-00000-of-00002.tfrecord, shard_0,
# x-train.tfrecord-00000-of-00001.
PATTERNS = ("*.tfrecord", "*.tfrecords", "*.tfrecord-*", "*.record", "shard_*", "*.tar")


class Damaged(Exception):
    """A file is not a row of whole TFRecord frames with right checksums."""


def records(path: Path) -> Iterator[bytes]:
    """Yields the data of each frame, after checking both checksums.

    No length is believed beyond the file's end. Of a tar file, which has no checksums of data, it
    yields the JPEGs. Ray Data calls TFRecord files `.tar`.

    Raises:
        Damaged: naming the file and the offset of the frame.
    """
    left = path.stat().st_size
    if path.suffix == ".tar" and tarfile.is_tarfile(path):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith(".jpg") and (image := tar.extractfile(member)) is not None:
                    yield image.read()
        return
    with path.open("rb") as file:
        while left:
            offset = file.tell()
            header = file.read(12)
            if len(header) < 12 or struct.unpack("<I", header[8:])[0] != masked(header[:8]):
                raise Damaged(f"{path}: broken header at byte {offset}")
            (length,) = struct.unpack("<Q", header[:8])
            left -= length + 16
            if left < 0:
                raise Damaged(f"{path}: the record at byte {offset} is cut")
            data, checksum = file.read(length), file.read(4)
            if struct.unpack("<I", checksum)[0] != masked(data):
                raise Damaged(f"{path}: wrong checksum of the record at byte {offset}")
            yield data


def count(folder: Path) -> tuple[int, int]:
    """Returns the number of records below the folder, and the bytes of their files.

    It counts all TFRecord and tar files.

    Raises:
        Damaged: if one of the files is.
    """
    paths = sorted({path for pattern in PATTERNS for path in folder.rglob(pattern)})
    return sum(1 for path in paths for _ in records(path)), sum(
        os.path.getsize(path) for path in paths
    )


def masked(data: bytes) -> int:
    """Returns the checksum that TFRecord stores.

    It is crc32c rotated right by 15 bits, plus a constant.
    """
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
