"""The records of a TFRecord file, as long as it is no bomb."""

from collections.abc import Iterator

from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile
from recordmill.storage.unpacking import TooLarge, check_ratio, most_unpacked

FREE_BYTES = 2**20
"""What a gzip file of records may become in any case: less than others may, for sixteen bytes are a record already."""


def read_bounded(records: RecordFile, stored: StoredFile, max_ratio: int) -> Iterator[tuple[int, memoryview | Damage]]:
    """Yields what `records` yields; of a gzip file that becomes too large a `Damage` instead, and then no more.

    Of a file that begins as a bomb nothing else is given.

    Args:
        records: of the file.
        stored: the file.
        max_ratio: a gzip file may become `FREE_BYTES` and so many times its size.
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
