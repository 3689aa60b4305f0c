"""Reads a TFRecord file that must be intact."""

from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile


def read_records(path):
    with StoredFile(path) as stored:
        for _, data in RecordFile(stored):
            assert not isinstance(data, Damage), data.detail
            yield data
