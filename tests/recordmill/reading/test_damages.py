"""Each damage that TFRecord files are known to suffer is found, named with its place, and costs
nothing."""

import gzip
import json
import shutil
import struct
import tracemalloc
import zlib
from pathlib import Path

import google_crc32c
import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset

COMPRESSIONS = ("none", "gzip")


def split_frames(content: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        frames.append(content[at : at + length + 16])
        at += length + 16
    return frames


def flip(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]


class Victim:
    """A shard whose third record is the one to be damaged."""

    def __init__(self, folder: Path, compression: str) -> None:
        self.path = sorted(folder.glob("train-*"))[0]
        self.rows = list(
            map(
                json.loads,
                (folder / "sidecars" / f"{self.path.name}.jsonl").read_text().splitlines(),
            )
        )
        self.compression = compression
        stored = self.path.read_bytes()
        self.content = gzip.decompress(stored) if compression == "gzip" else stored
        self.frames = split_frames(self.content)
        self.offset = sum(map(len, self.frames[:2]))
        self.length = len(self.frames[2]) - 16

    def write(self, content: bytes) -> None:
        self.path.write_bytes(
            gzip.compress(content, mtime=0) if self.compression == "gzip" else content
        )


# Each gives the file's unpacked bytes, and the start of what is to be said of its third record.
RECORD_DAMAGES = {
    "flip in length": (
        lambda v: flip(v.content, v.offset),
        "the length does not match its checksum",
    ),
    "flip in length checksum": (
        lambda v: flip(v.content, v.offset + 9),
        "the length does not match its checksum",
    ),
    "flip in data": (
        lambda v: flip(v.content, v.offset + 40),
        "the data do not match their checksum",
    ),
    "flip in data checksum": (
        lambda v: flip(v.content, v.offset + 12 + v.length + 1),
        "the data do not match their checksum",
    ),
    "cut in header": (
        lambda v: v.content[: v.offset + 7],
        "the file ends inside the record's length: 7 bytes of its 12",
    ),
    "cut in data": (
        lambda v: v.content[: v.offset + 100],
        "the file ends inside the record's data: ",
    ),
    "cut in checksum": (
        lambda v: v.content[: v.offset + 12 + v.length + 2],
        "the file ends inside the record's checksum: ",
    ),
    "trailing zeros": (
        lambda v: v.content[: v.offset] + bytes(100),
        "100 zeros instead of a record",
    ),
    "few trailing zeros": (
        lambda v: v.content[: v.offset] + bytes(5),
        "5 zeros instead of a record",
    ),
    "forged length": (
        lambda v: v.content[: v.offset] + forge(2**40) + v.content[v.offset + 12 :],
        "the file ends inside the record's data: 1,099,511,627,776 bytes are claimed, by a length "
        "that matches",
    ),
    "forged length that fits the file": (
        lambda v: v.content[: v.offset] + forge(v.length + 50) + v.content[v.offset + 12 :],
        "the data do not match their checksum",
    ),
}


def forge(length: int) -> bytes:
    header = struct.pack("<Q", length)
    crc = google_crc32c.value(header)
    return header + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.fixture
def victim(tmp_path, published, request):
    compression = request.param
    shutil.copytree(published[compression], tmp_path / "dataset")
    return Victim(tmp_path / "dataset", compression)


both = pytest.mark.parametrize("victim", COMPRESSIONS, indirect=True)
packed = pytest.mark.parametrize("victim", ["gzip"], indirect=True)


def lines(path, level="frames"):
    return [str(finding) for finding in verify_dataset(open_dataset(str(path)), level).findings]


@both
@pytest.mark.parametrize("name", RECORD_DAMAGES)
@pytest.mark.parametrize("level", ["frames", "files"])
def test_seed_3_a_damaged_record_is_named_with_its_place_and_source(victim, name, level):
    damage, said = RECORD_DAMAGES[name]
    victim.write(damage(victim))
    found = lines(victim.path.parent, level)
    place = f"{victim.path.name}, record 2 at byte {victim.offset:,} ({victim.rows[2]['key']}): "
    assert found[0].startswith(place + said)
    rest_is_there = not name.startswith(("cut", "trailing", "few"))
    stated = f"expected {len(victim.rows)} records, found 2"
    assert found[1:] == ([] if rest_is_there else [f"{victim.path.name}: {stated}"])


@both
@pytest.mark.parametrize("name", RECORD_DAMAGES)
def test_damage_in_a_file_without_metadata_is_named_with_its_position(victim, name, tmp_path):
    damage, said = RECORD_DAMAGES[name]
    victim.write(damage(victim))
    alone = tmp_path / "alone"
    alone.mkdir()
    victim.path.rename(alone / victim.path.name)
    assert lines(alone / victim.path.name)[0].startswith(
        f"{victim.path.name}, record 2 at byte {victim.offset:,}: {said}"
    )


@both
def test_a_cut_at_a_boundary_shows_in_the_manifest_only(victim):
    victim.write(victim.content[: victim.offset])
    place = f"{victim.path.name}, record 2 at byte {victim.offset:,} ({victim.rows[2]['key']})"
    assert lines(victim.path.parent) == [f"{place}: expected {len(victim.rows)} records, found 2"]
    for name in ("recordmill.json", "dataset_info.json"):
        (victim.path.parent / name).unlink(missing_ok=True)
    assert lines(victim.path) == []


@both
def test_an_empty_file(victim):
    victim.path.write_bytes(b"")
    name, count = victim.path.name, len(victim.rows)
    first = f"{name}, record 0 at byte 0 ({victim.rows[0]['key']})"
    expected = [
        f"{name}: the file is empty: 0 bytes",
        f"{first}: expected {count} records, found 0",
    ]
    assert lines(victim.path.parent) == expected


@packed
def test_a_gzip_file_of_nothing(victim):
    victim.write(b"")
    assert lines(victim.path)[0] == f"{victim.path.name}: the file has no records"


@packed
def test_every_flip_in_a_gzip_file_is_found(victim):
    stored = victim.path.read_bytes()
    # Bytes 4 to 9 of the header are a time and notes that mean nothing to a reader.
    places = [*range(4), *range(10, len(stored), 211), *range(len(stored) - 8, len(stored))]
    for at in places:
        victim.path.write_bytes(flip(stored, at))
        assert lines(victim.path), at


@packed
def test_every_cut_of_a_gzip_file_is_found(victim):
    stored = victim.path.read_bytes()
    for at in [
        0,
        1,
        2,
        5,
        10,
        11,
        *range(20, len(stored), 397),
        *range(len(stored) - 10, len(stored)),
    ]:
        victim.path.write_bytes(stored[:at])
        assert lines(victim.path), at


@packed
def test_a_gzip_file_cut_at_a_boundary(victim):
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(victim.content[: victim.offset]) + packer.flush(zlib.Z_SYNC_FLUSH)
    victim.path.write_bytes(whole)
    place = f"{victim.path.name}, record 2 at byte {victim.offset:,} ({victim.rows[2]['key']})"
    assert (
        lines(victim.path.parent)[0]
        == f"{place}: the gzip stream ends early: the file was truncated"
    )


@packed
@pytest.mark.parametrize("missing", [1, 4, 8])
def test_a_missing_trailer(victim, missing):
    victim.path.write_bytes(victim.path.read_bytes()[:-missing])
    end = len(victim.content)
    place = f"{victim.path.name}, record {len(victim.rows)} at byte {end:,}"
    assert lines(victim.path.parent) == [
        f"{place}: the gzip stream ends early: the file was truncated"
    ]


@packed
def test_joined_members_are_all_read_and_reported(victim):
    count = len(victim.rows)
    halves = gzip.compress(victim.content[: victim.offset]) + gzip.compress(
        victim.content[victim.offset :]
    )
    victim.path.write_bytes(halves)
    note = f"{victim.path.name}: 2 concatenated gzip streams, all read"
    assert lines(victim.path.parent) == [note]
    assert lines(victim.path.parent, "files")[1].startswith(f"{victim.path.name}: ")
    victim.path.write_bytes(halves + gzip.compress(victim.frames[0]))
    expected = f"{victim.path.name}: expected {count} records, found {count + 1}"
    assert lines(victim.path.parent) == [note.replace("2 concatenated", "3 concatenated"), expected]


@packed
@pytest.mark.parametrize(
    ("tail", "what"), [(bytes(30), "zeros"), (b"no gzip at all", "bytes that are not gzip")]
)
def test_other_data_after_a_gzip_stream(victim, tail, what):
    victim.path.write_bytes(victim.path.read_bytes() + tail)
    place = f"{victim.path.name}, record {len(victim.rows)} at byte {len(victim.content):,}"
    assert lines(victim.path) == [f"{place}: {what} after the end of the gzip stream"]


@both
def test_a_name_that_says_the_wrong_compression(victim):
    if victim.compression == "gzip":
        victim.path.write_bytes(victim.content)
        expected = "the file is not gzip and its name says gzip: readers that trust the name fail"
    else:
        victim.path.write_bytes(gzip.compress(victim.content))
        expected = "the file is gzip and its name does not say so: readers that trust the name fail"
    assert lines(victim.path.parent) == [f"{victim.path.name}: {expected}"]


@pytest.mark.parametrize("length", [2**20, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1])
@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_forged_length_allocates_nothing(tmp_path, frame, example, length, kind):
    first = frame(example(a=b"x" * 1000))
    content = first + frame(example(a=b"y"), length) + frame(example(a=b"z" * 1000)) * 300
    path = tmp_path / ("forged.tfrecord" + ".gz" * (kind == "gzip"))
    path.write_bytes(gzip.compress(content) if kind == "gzip" else content)
    tracemalloc.start()
    try:
        verification = verify_dataset(open_dataset(str(path)), "frames", threads=1)
        assert tracemalloc.get_traced_memory()[1] < 12 * 2**20
    finally:
        tracemalloc.stop()
    assert verification.records == 301
    (finding,) = verification.findings
    assert (finding.record, finding.offset) == (1, len(first))
