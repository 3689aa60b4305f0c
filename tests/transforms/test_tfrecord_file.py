import gzip
import hashlib
import io
import struct
import tracemalloc

import apache_beam as beam
import pytest
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from hypothesis import given
from hypothesis import strategies as st

from transforms.tfrecord_file import DamagedFileError, FileContents, RecordSink, masked_crc32c, read_back, read_records

RECORDS = [b"", b"one", b"x" * 5000, bytes(range(256)), b"last"]


def frame(data, length=None):
    header = struct.pack("<Q", len(data) if length is None else length)
    return header + struct.pack("<I", masked_crc32c(header)) + data + struct.pack("<I", masked_crc32c(data))


def write(path, records, compression="none"):
    sink = RecordSink(str(path), compression)
    for record in records:
        sink.write(record)
    sink.close()
    return path


def read(content):
    return list(read_records(io.BytesIO(content)))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_file_equals_stock_write_to_tfrecords(tmp_path, compression):
    kind = CompressionTypes.GZIP if compression == "gzip" else CompressionTypes.UNCOMPRESSED
    with beam.Pipeline(runner=FnApiRunner()) as root:
        records = root | beam.Create([RECORDS]) | beam.FlatMap(lambda records: records)  # one bundle keeps the order
        records | beam.io.WriteToTFRecord(
            str(tmp_path / "stock"), num_shards=1, compression_type=kind, shard_name_template=""
        )
    assert write(tmp_path / "ours", RECORDS, compression).read_bytes() == (tmp_path / "stock").read_bytes()


def test_a_plain_file_is_frames_and_nothing_else(tmp_path):
    assert write(tmp_path / "a", RECORDS).read_bytes() == b"".join(map(frame, RECORDS))


def test_the_extension_does_not_decide_the_compression(tmp_path):
    assert write(tmp_path / "a.gz", RECORDS).read_bytes() == b"".join(map(frame, RECORDS))
    assert gzip.decompress(write(tmp_path / "a.tfrecord", RECORDS, "gzip").read_bytes()) == b"".join(
        map(frame, RECORDS)
    )


def test_offsets_point_at_the_frames(tmp_path):
    sink = RecordSink(str(tmp_path / "a"), "none")
    offsets = []
    for record in RECORDS:
        offsets.append(sink.offset)
        sink.write(record)
    sink.close()
    content = (tmp_path / "a").read_bytes()
    assert [content[at:].startswith(frame(record)) for at, record in zip(offsets, RECORDS, strict=True)] == [True] * 5


def test_the_checksum_is_the_one_of_the_format():
    assert masked_crc32c(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32
    assert frame(b"")[:12] == bytes.fromhex("0000000000000000 29039807")  # of every empty record


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_what_is_framed_is_read(records):
    assert read(b"".join(map(frame, records))) == records


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_every_flipped_bit_is_found(records, data):
    content = bytearray(b"".join(map(frame, records)))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamagedFileError):
        read(bytes(content))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_every_cut_inside_a_record_is_found(records, data):
    frames = [frame(record) for record in records]
    content = b"".join(frames)
    boundaries = {sum(map(len, frames[:count])) for count in range(len(frames) + 1)}
    at = data.draw(st.integers(0, len(content)).filter(lambda at: at not in boundaries))
    with pytest.raises(DamagedFileError, match="the file ends inside the record"):
        read(content[:at])


TWO = frame(b"first") + frame(b"second")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TWO[:30], "record 1 at byte 21: the file ends inside the record's length"),
        (TWO[:36], "record 1 at byte 21: the file ends inside the record"),
        (TWO[:-1], "record 1 at byte 21: the file ends inside the record"),
        (TWO[:22] + b"\1" + TWO[23:], "record 1 at byte 21: the checksum of the length does not fit"),
        (TWO[:30] + b"\1" + TWO[31:], "record 1 at byte 21: the checksum of the length does not fit"),
        (TWO[:35] + b"S" + TWO[36:], "record 1 at byte 21: the checksum of the data does not fit"),
        (TWO[:-1] + b"\0", "record 1 at byte 21: the checksum of the data does not fit"),
        (TWO + bytes(16), "record 2 at byte 43: the checksum of the length does not fit"),
        (TWO + bytes(3), "record 2 at byte 43: the file ends inside the record's length"),
        (gzip.compress(TWO, mtime=0), "record 0 at byte 0: the checksum of the length does not fit"),
    ],
)
def test_damage_is_named_with_its_place(content, message):
    with pytest.raises(DamagedFileError) as caught:
        read(content)
    assert str(caught.value) == message


@pytest.mark.parametrize("length", [2**20, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_forged_length_with_a_right_checksum_allocates_nothing(tmp_path, length):
    path = tmp_path / "forged"
    path.write_bytes(frame(b"good") + frame(b"short", length))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedFileError, match="record 1 at byte 20: the file ends inside the record"):
            read_back(str(path), "none")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_an_empty_file_has_no_records():
    assert read(b"") == []


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_is_read_back_is_of_the_stored_bytes(tmp_path, compression):
    stored = write(tmp_path / "a", RECORDS, compression).read_bytes()
    expected = FileContents(len(stored), hashlib.sha256(stored).hexdigest(), len(RECORDS))
    assert read_back(str(tmp_path / "a"), compression) == expected


def test_many_megabytes_are_read_back(tmp_path):
    records = [bytes([n]) * (700_000 + n) for n in range(12)]
    write(tmp_path / "a", records)
    assert read((tmp_path / "a").read_bytes()) == records


PACKED = gzip.compress(TWO, mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        PACKED[:-1],
        PACKED[:-8],
        PACKED[: len(PACKED) // 2],
        PACKED[:5],
        PACKED[:12] + bytes([PACKED[12] ^ 1]) + PACKED[13:],
        PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:],
        PACKED[:-2] + bytes([PACKED[-2] ^ 1]) + PACKED[-1:],
        TWO,
        PACKED + b"trailing",
    ],
    ids=[
        "cut by 1",
        "no trailer",
        "cut inside",
        "cut in header",
        "flip in data",
        "flip in crc",
        "flip in size",
        "plain",
        "more",
    ],
)
def test_damage_of_a_gzip_file_is_found(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DamagedFileError):
        read_back(str(tmp_path / "a"), "gzip")
