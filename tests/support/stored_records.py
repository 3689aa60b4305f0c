"""Reads a TFRecord file that must be intact."""

from collections.abc import Iterator
from pathlib import Path

from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile


def read_records(path: str) -> Iterator[bytes | memoryview]:
    with StoredFile(path) as stored:
        for _, data in RecordFile(stored):
            assert not isinstance(data, Damage), data.detail
            yield data


def sorted_records(folder: Path, pattern: str) -> list[bytes]:
    """The records of all files in a folder with such names, in the order of their bytes."""
    return sorted(bytes(each) for path in folder.glob(pattern) for each in read_records(str(path)))
