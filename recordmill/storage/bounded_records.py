"""Reads the records of a TFRecord file, and stops if it is a decompression bomb."""

from collections.abc import Iterator

from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile
from recordmill.storage.unpacking import TooLarge, check_ratio, most_unpacked

FREE_BYTES = 2**20
"""Size to which any gzip file of records may unpack: less than for other files, since 16 bytes can be a record."""


def read_bounded(records: RecordFile, stored: StoredFile, max_ratio: int) -> Iterator[tuple[int, memoryview | Damage]]:
    """Yields what `records` yields; if a gzip file unpacks to too much, a `Damage`, and then nothing more.

    A file that begins as a bomb yields nothing else.

    Args:
        records: of the file.
        stored: the file.
        max_ratio: a gzip file may unpack to `FREE_BYTES` plus this multiple of its size.
    """
    too_large = Damage("gzip", f"the gzip file unpacks to more than {max_ratio} times its size")
    if records.compression == "none":
        yield from records
        return
    try:
        check_ratio(stored, max_ratio, FREE_BYTES)
    except TooLarge:
        yield 0, too_large
        return
    most = most_unpacked(stored.size, max_ratio, FREE_BYTES)
    for offset, record in records:
        if offset > most:
            yield offset, too_large
            return
        yield offset, record
