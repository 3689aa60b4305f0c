import gzip
import os
import struct

import pytest
from crc32c import crc32c

from recordmill.storage.bounded_records import read_bounded
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile, masked

TOO_LARGE = Damage("gzip", "the gzip file unpacks to more than 100 times its size")


def frame(record):
    length = struct.pack("<Q", len(record))
    checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
    return length + checksums[0] + record + checksums[1]


@pytest.fixture
def read(tmp_path):
    def run(content, max_ratio=100):
        (tmp_path / "a.tfrecord").write_bytes(content)
        with StoredFile(str(tmp_path / "a.tfrecord")) as stored:
            records = read_bounded(RecordFile(stored), stored, max_ratio)
            return [(offset, each if isinstance(each, Damage) else bytes(each)) for offset, each in records]

    return run


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ordinary_files_are_read_whole(read, pack):
    records = [os.urandom(1000) for _ in range(50)]
    assert [record for _, record in read(pack(b"".join(map(frame, records))))] == records


@pytest.mark.parametrize("content", [frame(b"") * 500_000, bytes(50_000_000)])
def test_of_a_bomb_nothing_is_given(read, content):
    """Two million records that are empty are 100 KB: each became a rejected image, for minutes."""
    assert read(gzip.compress(content)) == [(0, TOO_LARGE)]


def test_what_comes_before_a_bomb_is_given(read):
    noise = [os.urandom(50_000) for _ in range(40)]
    *found, last = read(gzip.compress(b"".join(map(frame, [*noise, *[bytes(10**6)] * 400]))))
    assert [record for _, record in found[:40]] == noise
    assert len(found) < 300
    assert last[1] == TOO_LARGE


def test_another_ratio_may_be_allowed(read):
    assert len(read(gzip.compress(frame(b"") * 100_000), 2000)) == 100_000
    assert len(read(frame(b"") * 1000, 1)) == 1000, "a plain file is what it is"
