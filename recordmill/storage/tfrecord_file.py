"""TFRecord files: written by Beam's own sink, read back frame by frame."""

from dataclasses import dataclass
from typing import Any

from apache_beam.io.filesystem import CompressedFile, CompressionTypes

from recordmill import storage
from recordmill.storage.record_reader import FRAMING_BYTES, Damage, RecordFile, StoredFile
from recordmill.storage.stores.find_store import record_sink


class RecordSink:
    """One TFRecord file, written through `WriteToTFRecord`'s sink; the caller assigns records to files.

    `offset` is the start of the next record in the uncompressed file, in bytes.
    """

    def __init__(self, path: str, compression: str) -> None:
        stored = storage.open_to_write(path)
        packed = compression == "gzip"
        self._file: Any = CompressedFile(stored, compression_type=CompressionTypes.GZIP) if packed else stored
        self._sink: Any = record_sink(path)
        self.offset = 0

    def write(self, record: bytes) -> None:
        """Appends one record."""
        self._sink.write_encoded_record(self._file, record)
        self.offset += len(record) + FRAMING_BYTES

    def close(self) -> None:
        """Finishes the file."""
        self._sink.close(self._file)


@dataclass(frozen=True, slots=True)
class FileContents:
    """The size in bytes, the hex digest and the number of records of a finished file, as read back."""

    bytes: int
    sha256: str
    records: int


class DamagedFileError(Exception):
    """A file is not a TFRecord file, or was truncated or changed; the message says where."""


def read_back(path: str, compression: str) -> FileContents:
    """Reads a whole file: checks every frame and both checksums, and computes the digest of the stored bytes.

    Args:
        path: the file.
        compression: `none` or `gzip`.

    Raises:
        DamagedFileError: a frame or a checksum (also gzip's) is wrong, or the file is not compressed as expected.
    """
    with StoredFile(path, digest=True) as stored:
        records = RecordFile(stored)
        if stored.size and records.compression != compression:
            raise DamagedFileError(f"the compression is {records.compression} and should be {compression}")
        count = 0
        for offset, data in records:
            if isinstance(data, Damage):
                raise DamagedFileError(f"record {count} at byte {offset}: {data.detail}")
            count += 1
        return FileContents(stored.size, stored.sha256(), count)
