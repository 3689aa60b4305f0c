import gzip
import struct
import tracemalloc

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from recordmill.storage import tfrecord_file
from recordmill.storage.tfrecord_file import (
    Damage,
    RecordFile,
    StoredFile,
    is_not_tfrecord,
    looks_like_records,
    masked,
)


def frame(data, length=None):
    header = struct.pack("<Q", len(data) if length is None else length)
    return (
        header
        + struct.pack("<I", masked(crc32c(header)))
        + data
        + struct.pack("<I", masked(crc32c(data)))
    )


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """`read(content)`: what is found in a file of these bytes; records as bytes."""
    path = tmp_path_factory.mktemp("records") / "a"

    def go(content):
        path.write_bytes(content)
        with StoredFile(str(path)) as stored:
            return [
                (at, each if isinstance(each, Damage) else bytes(each))
                for at, each in RecordFile(stored)
            ]

    return go


def offsets(records):
    ends = [0]
    for record in records:
        ends.append(ends[-1] + len(record) + 16)
    return ends[:-1]


def test_the_checksum_is_the_one_of_the_format():
    # crc32c("123456789") is e3069283 in every description of the checksum.
    assert (
        masked(crc32c(b"123456789")) == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32
    )
    assert frame(b"")[:12] == bytes.fromhex("0000000000000000 29039807")  # of every empty record


packings = pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])


@packings
@given(records=st.lists(st.binary(max_size=300), max_size=8))
def test_framed_records_are_read(read, pack, records):
    assert read(pack(b"".join(map(frame, records)))) == list(
        zip(offsets(records), records, strict=True)
    )


@packings
@given(records=st.lists(st.binary(max_size=40), min_size=1, max_size=4), data=st.data())
def test_every_flipped_bit_is_found_and_costs_its_record_only(read, pack, records, data):
    content = bytearray(b"".join(map(frame, records)))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    hit = max(number for number, offset in enumerate(offsets(records)) if offset <= at)
    found = read(pack(bytes(content)))
    expected = list(zip(offsets(records), records, strict=True))
    assert isinstance(found[hit][1], Damage)
    assert found[:hit] == expected[:hit]
    assert found[hit + 1 :] == expected[hit + 1 :]
    assert found[hit][0] == expected[hit][0]


@packings
@given(records=st.lists(st.binary(max_size=40), min_size=1, max_size=4), data=st.data())
def test_every_cut_inside_a_record_is_found(read, pack, records, data):
    content = b"".join(map(frame, records))
    boundaries = {*offsets(records), len(content)}
    at = data.draw(st.integers(0, len(content)).filter(lambda at: at not in boundaries))
    *whole, (offset, damage) = read(pack(content[:at]))
    assert whole == [
        pair
        for pair in zip(offsets(records), records, strict=True)
        if pair[0] + len(pair[1]) + 16 <= at
    ]
    assert offset == max(each for each in boundaries if each < at)
    assert damage.kind in ("cut", "zeros")


@packings
@given(garbage=st.binary(max_size=2000))
def test_nothing_that_a_file_holds_makes_reading_raise(read, pack, garbage):
    for content in (pack(garbage), garbage, b"\x1f\x8b\x08" + garbage):
        assert all(isinstance(each, bytes | Damage) for _, each in read(content))


@given(garbage=st.binary(max_size=100), zeros=st.integers(0, 40))
def test_the_next_whole_record_is_found_after_anything(read, garbage, zeros):
    content = b"\xff" + garbage + bytes(zeros)
    found = read(content + frame(b"found"))
    assert found[-1] == (len(content), b"found")


TWO = frame(b"first") + frame(b"second")


@pytest.mark.parametrize(
    ("content", "kind", "detail"),
    [
        (TWO[:30], "cut", "the file ends inside the record's length: 9 bytes of its 12"),
        (
            TWO[:36],
            "cut",
            "the file ends inside the record's data: 6 bytes are claimed, by a length that matches "
            "its checksum, "
            "and 3 are left",
        ),
        (
            TWO[:39],
            "cut",
            "the file ends inside the record's checksum: 6 bytes are claimed, by a length that "
            "matches its checksum, "
            "and 6 are left",
        ),
        (
            TWO[:-1],
            "cut",
            "the file ends inside the record's checksum: 6 bytes are claimed, by a length that "
            "matches its checksum, "
            "and 9 are left",
        ),
        (TWO[:22] + b"\1" + TWO[23:], "length", "the length does not match its checksum"),
        (TWO[:30] + b"\1" + TWO[31:], "length", "the length does not match its checksum"),
        (TWO[:35] + b"S" + TWO[36:], "data", "the data do not match their checksum"),
        (TWO[:21] + bytes(22), "zeros", "22 zeros instead of a record, up to the end of the file"),
        (TWO[:21] + bytes(3), "zeros", "3 zeros instead of a record, up to the end of the file"),
    ],
)
def test_damage_says_what_does_not_fit(read, content, kind, detail):
    assert read(content) == [(0, b"first"), (21, Damage(kind, detail))]


@packings
@pytest.mark.parametrize("length", [2**20, 2**40, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1])
def test_a_forged_length_with_a_right_checksum_allocates_nothing(read, pack, length):
    content = pack(frame(b"good") + frame(b"short", length))
    tracemalloc.start()
    try:
        (_, good), (offset, damage) = read(content)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert (good, offset, damage.kind) == (b"good", 20, "cut")


@packings
def test_records_over_many_blocks_are_read(read, pack):
    records = [bytes([number]) * (700_000 + number) for number in range(8)] + [
        b"",
        b"x" * (18 * 2**20),
        b"end",
    ]
    assert read(pack(b"".join(map(frame, records)))) == list(
        zip(offsets(records), records, strict=True)
    )


def test_millions_of_zeros_are_passed_quickly(read, monkeypatch):
    tried = []
    monkeypatch.setattr(
        tfrecord_file, "masked", lambda checksum: tried.append(1) or masked(checksum)
    )
    content = frame(b"first") + b"\xff" + bytes(5_000_000) + frame(b"second")
    assert [each for _, each in read(content) if isinstance(each, bytes)] == [b"first", b"second"]
    assert len(tried) < 1000


@given(length=st.integers(0, 300))
def test_a_plain_file_whose_first_length_looks_like_gzip_is_plain(read, length):
    record = bytes(0x088B1F)  # the length's bytes are 1f 8b 08, as gzip's first are
    assert read(frame(record) + frame(bytes(length))) == [
        (0, record),
        (len(record) + 16, bytes(length)),
    ]


def test_members_are_counted(tmp_path):
    path = tmp_path / "a"
    for content, members in ((TWO, 0), (gzip.compress(TWO), 1), (gzip.compress(TWO) * 3, 3)):
        path.write_bytes(content)
        with StoredFile(str(path)) as stored:
            records = RecordFile(stored)
            assert len(list(records)) == 2 * max(members, 1)
            assert records.members == members


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (TWO, True),
        (gzip.compress(TWO, mtime=0), True),
        (b"", False),
        (b"text" * 9, False),
        (gzip.compress(b"text" * 9, mtime=0), False),
    ],
)
def test_files_of_whole_records_look_like_records(tmp_path, content, answer):
    (tmp_path / "a").write_bytes(content)
    assert looks_like_records(str(tmp_path / "a")) is answer


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"<!doctype html>" * 99, True),
        (b"text", True),
        (gzip.compress(b"text" * 9, mtime=0), True),
        (frame(b"ab"), False),
        (frame(b"ab")[:12], False),
        (b"\1" + frame(b"ab")[1:] + frame(b"cd"), False),  # a damaged record, and a sound one
        (b"", False),
        (bytes(99), False),
        (gzip.compress(frame(b"ab"), mtime=0)[:10] + b"\xff" * 9, False),
    ],
)
def test_damaged_files_of_records_are_still_files_of_records(tmp_path, content, answer):
    (tmp_path / "a").write_bytes(content)
    assert is_not_tfrecord(str(tmp_path / "a")) is answer
