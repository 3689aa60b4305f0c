"""Reads a TFRecord file that must be intact."""

from collections.abc import Iterator

from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile


def read_records(path: str) -> Iterator[bytes | memoryview]:
    with StoredFile(path) as stored:
        for _, data in RecordFile(stored):
            assert not isinstance(data, Damage), data.detail
            yield data
