import gzip
import hashlib
import struct

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from crc32c import crc32c

from recordmill.storage.tfrecord_file import (
    DamagedFileError,
    FileContents,
    RecordSink,
    data_bytes,
    data_offset,
    describe_frames,
    frame_bytes,
    masked,
    read_back,
    unframe,
)

RECORDS = [b"", b"one", b"x" * 5000, bytes(range(256)), b"last"]


def frame(data):
    header = struct.pack("<Q", len(data))
    return (
        header
        + struct.pack("<I", masked(crc32c(header)))
        + data
        + struct.pack("<I", masked(crc32c(data)))
    )


def write(path, records, compression="none"):
    sink = RecordSink(str(path), compression)
    for record in records:
        sink.write(record)
    sink.close()
    return path


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_file_equals_stock_write_to_tfrecords(tmp_path, compression):
    kind = CompressionTypes.GZIP if compression == "gzip" else CompressionTypes.UNCOMPRESSED
    with beam.Pipeline(runner=FnApiRunner()) as root:
        # One bundle keeps the order.
        records = root | beam.Create([RECORDS]) | beam.FlatMap(lambda records: records)
        records | beam.io.WriteToTFRecord(
            str(tmp_path / "stock"), num_shards=1, compression_type=kind, shard_name_template=""
        )
    assert (
        write(tmp_path / "ours", RECORDS, compression).read_bytes()
        == (tmp_path / "stock").read_bytes()
    )


def test_a_plain_file_is_frames_and_nothing_else(tmp_path):
    assert write(tmp_path / "a", RECORDS).read_bytes() == b"".join(map(frame, RECORDS))


def test_the_extension_does_not_decide_the_compression(tmp_path):
    assert write(tmp_path / "a.gz", RECORDS).read_bytes() == b"".join(map(frame, RECORDS))
    assert gzip.decompress(
        write(tmp_path / "a.tfrecord", RECORDS, "gzip").read_bytes()
    ) == b"".join(map(frame, RECORDS))


def test_offsets_point_at_the_frames(tmp_path):
    sink = RecordSink(str(tmp_path / "a"), "none")
    offsets = []
    for record in RECORDS:
        offsets.append(sink.offset)
        sink.write(record)
    sink.close()
    content = (tmp_path / "a").read_bytes()
    assert [
        content[at:].startswith(frame(record)) for at, record in zip(offsets, RECORDS, strict=True)
    ] == [True] * 5


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_is_read_back_is_of_the_stored_bytes(tmp_path, compression):
    stored = write(tmp_path / "a", RECORDS, compression).read_bytes()
    expected = FileContents(len(stored), hashlib.sha256(stored).hexdigest(), len(RECORDS))
    assert read_back(str(tmp_path / "a"), compression) == expected


TWO = frame(b"first") + frame(b"second")
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


def test_a_plain_file_where_gzip_is_expected_says_so(tmp_path):
    (tmp_path / "a").write_bytes(TWO)
    with pytest.raises(DamagedFileError, match="the compression is none and should be gzip"):
        read_back(str(tmp_path / "a"), "gzip")


def test_damage_is_named_with_its_place(tmp_path):
    (tmp_path / "a").write_bytes(TWO[:-1] + b"\0")
    with pytest.raises(DamagedFileError) as caught:
        read_back(str(tmp_path / "a"), "none")
    assert str(caught.value) == "record 1 at byte 21: the data do not match their checksum"


@pytest.mark.parametrize("record", RECORDS)
def test_the_place_of_data_in_a_frame(record):
    framed = b"before" + frame(record)
    begin = data_offset(6)
    assert len(framed) - 6 == frame_bytes(len(record))
    assert data_bytes(len(framed) - 6) == len(record)
    assert framed[begin : begin + len(record)] == record


def test_the_data_of_several_frames():
    assert data_bytes(sum(len(frame(each)) for each in RECORDS), len(RECORDS)) == sum(
        map(len, RECORDS)
    )


def test_sizes_of_many_frames_are_computed_at_once():
    lengths = np.array([0, 3, 5000], np.uint64)
    sizes = frame_bytes(lengths)
    assert sizes.dtype == np.uint64
    assert sizes.tolist() == [16, 19, 5016]
    assert data_bytes(sizes).tolist() == [0, 3, 5000]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_taken_from_its_frame(record):
    assert unframe(frame(record), len(record)) == record


@pytest.mark.parametrize("record", RECORDS)
def test_no_record_is_taken_from_a_damaged_frame(record):
    framed = frame(record)
    for at in {0, 8, 12, len(framed) - 4, len(framed) - 1}:
        damaged = bytearray(framed)
        damaged[at] ^= 1
        assert unframe(bytes(damaged), len(record)) is None
    assert unframe(framed, len(record) + 1) is None
    assert unframe(framed[:-1], len(record)) is None
    assert unframe(b"", len(record)) is None


def test_an_index_has_a_line_for_each_frame():
    assert describe_frames([(0, 3), (19, 5)]) == b"0 19\n19 21\n"
    assert describe_frames([]) == b""
