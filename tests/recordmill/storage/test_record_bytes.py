import gzip
import hashlib
import random
import zlib

import pytest

from recordmill.storage.tfrecord_file import GzipBytes, StoredFile

CONTENT = random.Random(1).randbytes(3_000_000)


@pytest.fixture
def store(tmp_path):
    """`store(content)`: an open file of these bytes."""
    opened = []

    def write(content, **options):
        (tmp_path / "a").write_bytes(content)
        opened.append(StoredFile(str(tmp_path / "a"), **options))
        return opened[-1]

    yield write
    for stored in opened:
        stored.__exit__(None, None, None)


def test_bytes_are_read_by_place(store):
    stored = store(CONTENT)
    assert stored.size == 3_000_000
    assert stored.read_at(1000, 50) == CONTENT[1000:1050]
    assert stored.read_at(2_999_990, 50) == CONTENT[-10:]
    assert stored.read_at(3_000_000, 50) == b""


def test_an_absent_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        StoredFile(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    "reads", [[], [(0, 10)], [(0, 2_000_000), (1_500_000, 1_500_000)], [(500, 20), (0, 3_000_000)]]
)
def test_the_digest_is_of_the_whole_file_however_it_was_read(store, reads):
    stored = store(CONTENT, digest=True)
    for offset, count in reads:
        stored.read_at(offset, count)
    assert stored.sha256() == hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("kind", ["plain", "gzip", "members"])
def test_unpacked_bytes_are_read_by_place_going_forward(store, kind):
    halves = gzip.compress(CONTENT[:1_000_000], 1) + gzip.compress(CONTENT[1_000_000:], 1)
    stored = store({"plain": CONTENT, "gzip": gzip.compress(CONTENT, 1), "members": halves}[kind])
    source = stored if kind == "plain" else GzipBytes(stored)
    for offset, count in (
        (0, 12),
        (5, 700_000),
        (700_005, 1),
        (999_990, 20),
        (2_500_000, 100),
        (2_999_999, 50),
    ):
        view = source.read(offset, count)
        assert len(view) >= min(count, 3_000_000 - offset)
        assert view == CONTENT[offset : offset + len(view)]
        assert source.max_remaining(offset) >= 3_000_000 - offset
    assert len(source.read(3_000_000, 1)) == 0
    assert source.fault is None


def test_all_that_comes_before_a_fault_is_unpacked(store):
    text = b"".join(b"line %d\n" % number for number in range(50_000))
    packer = zlib.compressobj(wbits=31)
    good = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
    source = GzipBytes(store(good + b"\xff" * 100))
    assert source.read(0, 10**9) == text
    assert source.fault.startswith("the gzip stream is damaged (invalid ")


@pytest.mark.parametrize(
    ("change", "fault", "is_checksum"),
    [
        (lambda packed: packed[:-1], "the gzip stream ends early: the file was truncated", False),
        (
            lambda packed: packed[:-8] + bytes(8),
            "the gzip stream is damaged (incorrect data check)",
            True,
        ),
        (
            lambda packed: packed[:-4] + bytes(4),
            "the gzip stream is damaged (incorrect length check)",
            True,
        ),
        (lambda packed: packed + bytes(9), "zeros after the end of the gzip stream", False),
        (
            lambda packed: packed + b"more",
            "bytes that are not gzip after the end of the gzip stream",
            False,
        ),
    ],
)
def test_faults(store, change, fault, is_checksum):
    source = GzipBytes(store(change(gzip.compress(b"text" * 1000))))
    assert source.read(0, 10**6) == b"text" * 1000
    assert (source.fault, source.is_checksum_fault) == (fault, is_checksum)
