import gzip
import os
import struct
import zlib

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import DEFLATED, STORED, ZipMember
from recordmill.storage import packed_files
from recordmill.storage.packed_files import (
    BadPacking,
    TooLarge,
    gunzip,
    read_bounded,
    read_zip_member,
)
from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile, masked

TEXT = bytes(range(256)) * 40


@pytest.fixture
def unpack(tmp_path):
    """What comes out of packed bytes, and what goes wrong."""

    def run(packed, **more):
        path, pieces = tmp_path / "data.gz", []
        path.write_bytes(packed)
        with StoredFile(str(path)) as stored:
            try:
                for piece in gunzip(stored, **more):
                    pieces.append(bytes(piece))
            except BadPacking as damage:
                return b"".join(pieces), damage
        return b"".join(pieces), None

    return run


def test_a_file_of_several_members_is_one(unpack):
    large = os.urandom(1000) * 5000
    assert unpack(gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:])) == (TEXT, None)
    assert unpack(gzip.compress(large, 1)) == (large, None)


def test_what_came_before_a_cut_is_good(unpack):
    noise = os.urandom(50_000)
    found, damage = unpack(gzip.compress(noise)[:-5000])
    assert noise.startswith(found)
    assert len(found) > 40_000
    assert (damage.detail, damage.is_doubtful) == (
        "the gzip file is damaged: the gzip stream ends early: the file was truncated",
        False,
    )


@pytest.mark.parametrize("at", [-8, -4])
def test_what_does_not_fit_its_checksum_is_doubtful(unpack, at):
    packed = bytearray(gzip.compress(TEXT))
    packed[at] ^= 1
    found, damage = unpack(bytes(packed))
    assert (found, damage.is_doubtful) == (TEXT, True)


def test_other_bytes_after_the_end_keep_the_records_before(unpack):
    found, damage = unpack(gzip.compress(TEXT) + b"rubbish!")
    assert (found, damage.is_doubtful) == (TEXT, False)


def test_a_bomb_is_stopped(unpack, monkeypatch):
    monkeypatch.setattr(packed_files, "FREE_BYTES", 1000)
    bomb = gzip.compress(bytes(10_000_000))
    found, damage = unpack(bomb)
    assert found == b"", "nothing is made of what is a bomb from its first byte on"
    assert isinstance(damage, TooLarge)
    assert damage.detail == "the gzip file unpacks to more than 100 times its size"
    assert unpack(bomb, max_ratio=1100) == (bytes(10_000_000), None)
    assert unpack(bomb, free_bytes=10_000_000) == (bytes(10_000_000), None)


def test_a_bomb_that_begins_as_an_ordinary_file_is_stopped(unpack):
    packed = gzip.compress(os.urandom(20_000) + bytes(50_000_000))
    found, damage = unpack(packed, free_bytes=0)
    assert 0 < len(found) <= 100 * len(packed)
    assert isinstance(damage, TooLarge)


def test_a_high_ratio_only_at_the_beginning_is_not_a_bomb(unpack):
    content = bytes(3_000_000) + os.urandom(200_000)
    assert unpack(gzip.compress(content), free_bytes=0) == (content, None)


def place(data, method, **changes):
    compress = zlib.compressobj(wbits=-15)
    stored = compress.compress(data) + compress.flush() if method == DEFLATED else data
    values = {
        "method": method,
        "start": 3,
        "packed": len(stored),
        "size": len(data),
        "crc": zlib.crc32(data),
    }
    return b"xyz" + stored + b"more", ZipMember(**{**values, **changes})


@given(st.binary(max_size=3000), st.sampled_from([STORED, DEFLATED]))
def test_a_member_unpacks(data, method):
    archive, member = place(data, method)
    assert read_zip_member(member, archive[3 : 3 + member.packed]) == data


@pytest.mark.parametrize("method", [STORED, DEFLATED])
@pytest.mark.parametrize("changes", [{"size": 10_239}, {"size": 10_241}, {"crc": 1}])
def test_a_member_that_does_not_match_its_header_is_damaged(method, changes):
    archive, member = place(TEXT, method, **changes)
    with pytest.raises(BadPacking, match="does not match its size and checksum"):
        read_zip_member(member, archive[3 : 3 + member.packed])


def test_a_cut_or_garbled_member_is_damaged():
    archive, member = place(TEXT, DEFLATED)
    with pytest.raises(BadPacking, match="does not match its size and checksum"):
        read_zip_member(member, archive[3:9])
    with pytest.raises(BadPacking, match="the member is damaged"):
        read_zip_member(member, b"\xff" * member.packed)


TOO_LARGE = Damage("gzip", "the gzip file unpacks to more than 100 times its size")


def frame(record):
    length = struct.pack("<Q", len(record))
    checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
    return length + checksums[0] + record + checksums[1]


@pytest.fixture
def read_frames(tmp_path):
    def run(content, max_ratio=100):
        (tmp_path / "a.tfrecord").write_bytes(content)
        with StoredFile(str(tmp_path / "a.tfrecord")) as stored:
            records = read_bounded(RecordFile(stored), stored, max_ratio)
            return [
                (offset, each if isinstance(each, Damage) else bytes(each))
                for offset, each in records
            ]

    return run


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ordinary_files_are_read_whole(read_frames, pack):
    records = [os.urandom(1000) for _ in range(50)]
    assert [record for _, record in read_frames(pack(b"".join(map(frame, records))))] == records


@pytest.mark.parametrize("content", [frame(b"") * 500_000, bytes(50_000_000)])
def test_of_a_bomb_nothing_is_given(read_frames, content):
    """Two million records that are empty are 100 KB: each became a rejected image, for minutes."""
    assert read_frames(gzip.compress(content)) == [(0, TOO_LARGE)]


def test_what_comes_before_a_bomb_is_given(read_frames):
    noise = [os.urandom(5_000) for _ in range(40)]
    *found, last = read_frames(gzip.compress(b"".join(map(frame, [*noise, *[bytes(10**5)] * 400]))))
    assert [record for _, record in found[:40]] == noise
    assert len(found) < 300
    assert last[1] == TOO_LARGE


def test_another_ratio_may_be_allowed(read_frames):
    assert len(read_frames(gzip.compress(frame(b"") * 100_000), 2000)) == 100_000
    assert len(read_frames(frame(b"") * 1000, 1)) == 1000, "a plain file is what it is"
