import random

from recordmill.storage.stores.object_stream import open_to_read
from recordmill.storage.stores.store import BLOCK_BYTES


class OneObject:
    """A store of one object, which notes each range that it is asked for."""

    def __init__(self, content):
        self.content, self.asked = content, []

    def read(self, uri, offset, length):
        self.asked.append((offset, length))
        return self.content[offset:][: None if length < 0 else length]

    def describe(self, uri):
        from apache_beam.io.filesystem import FileMetadata

        return FileMetadata(uri, len(self.content), 0.0)


def test_a_stream_requests_blocks_and_nothing_after_a_short_one():
    store = OneObject(random.Random(0).randbytes(2 * BLOCK_BYTES + 5))
    with open_to_read(store, "x") as stream:
        pieces = list(iter(lambda: stream.read(2**21), b""))
    assert b"".join(pieces) == store.content
    assert store.asked == [(start * BLOCK_BYTES, BLOCK_BYTES) for start in range(3)]


def test_what_is_left_of_a_stream_is_one_range():
    store = OneObject(random.Random(0).randbytes(2 * BLOCK_BYTES + 5))
    with open_to_read(store, "x") as stream:
        assert stream.read(3) == store.content[:3]
        assert stream.read() == store.content[3:]
        assert stream.read() == b""
    assert store.asked == [(0, BLOCK_BYTES), (BLOCK_BYTES, -1)]


def test_a_stream_can_be_entered_anywhere():
    store = OneObject(bytes(range(100)))
    with open_to_read(store, "x") as stream:
        assert (stream.seek(-3, 2), stream.read()) == (97, bytes([97, 98, 99]))
        assert (stream.seek(10), stream.read(2), stream.tell()) == (10, bytes([10, 11]), 12)
        assert (stream.seek(5, 1), stream.read(1)) == (17, bytes([17]))
        assert (stream.seek(1000), stream.read(1)) == (1000, b"")
