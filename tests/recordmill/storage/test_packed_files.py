import gzip
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from recordmill.schemas.image_ref import Gzip, ImageRef, NamedMember, ZipMember
from recordmill.schemas.rejection import Rejected
from recordmill.storage import packed_files
from recordmill.storage.packed_files import BadPacking, read_image, read_packed_range, unpack

TEXT = bytes(range(256)) * 40


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "data.gz"
    # Members one after the other are one file.
    path.write_bytes(gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:]))
    return str(path)


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 10), (4990, 20), (10_000, 1000), (7, -1), (0, 0)]
)
def test_a_range_is_one_of_the_unpacked_bytes(packed, offset, length):
    expected = TEXT[offset:] if length < 0 else TEXT[offset : offset + length]
    assert read_packed_range(packed, Gzip(), offset, length) == expected


def test_a_file_is_unpacked_once_and_again_after_it_changed(packed):
    first = unpack(packed, Gzip(), "1")
    assert unpack(packed, Gzip(), "1") is first
    assert first[1:] == (len(TEXT), None, False)
    Path(packed).write_bytes(gzip.compress(b"other"))
    second = unpack(packed, Gzip(), "2")
    assert (Path(first.path).read_bytes(), Path(second.path).read_bytes()) == (TEXT, b"other")


def test_bytes_before_the_damage_can_be_read(tmp_path):
    noise = os.urandom(50_000)
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(noise)[:-5000])
    assert read_packed_range(str(path), Gzip(), 100, 40_000) == noise[100:40_100]
    for offset, length in ((100, -1), (49_000, 1000)):
        with pytest.raises(BadPacking, match="the gzip file is damaged"):
            read_packed_range(str(path), Gzip(), offset, length)


def test_what_fails_its_checksum_is_read_only_where_records_have_their_own(tmp_path):
    content = bytearray(gzip.compress(TEXT))
    content[-8] ^= 1
    (tmp_path / "data.gz").write_bytes(content)
    with pytest.raises(BadPacking, match=r"the gzip file is damaged: .*incorrect data check"):
        read_packed_range(str(tmp_path / "data.gz"), Gzip(), 0, 5)
    assert (
        read_packed_range(str(tmp_path / "data.gz"), Gzip(has_checksums=True), 7, 5) == TEXT[7:12]
    )


def test_of_a_bomb_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("recordmill.storage.packed_files.FREE_BYTES", 1000)
    (tmp_path / "data.gz").write_bytes(gzip.compress(bytes(5_000_000)))
    found = unpack(str(tmp_path / "data.gz"), Gzip())
    assert (found.size, os.path.getsize(found.path)) == (0, 0)
    assert found.fault == "the gzip file unpacks to more than 100 times its size"


def test_an_unreadable_file_leaves_no_temporary_file(tmp_path, monkeypatch):
    (tmp_path / "unpacked").mkdir()
    monkeypatch.setattr(packed_files, "_folder", lambda: str(tmp_path / "unpacked"))
    with pytest.raises(FileNotFoundError):
        unpack(str(tmp_path / "gone.gz"), Gzip())
    assert os.listdir(tmp_path / "unpacked") == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zips_member_is_read_from_its_place(tmp_path, method):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a", TEXT)
        info = archive.getinfo("a")
    packing = ZipMember(method, 31, info.compress_size, len(TEXT), zlib.crc32(TEXT))
    assert read_packed_range(str(path), packing, 0, len(TEXT)) == TEXT


def test_an_image_in_a_packed_file_is_read_by_its_reference(packed, tmp_path):
    ref = ImageRef("a", packed, 100, "1", offset=300, length=5, packing="gzip")
    assert read_image(ref, 10) == TEXT[300:305]
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT)[:12])
    with pytest.raises(Rejected, match="bad_packing: the gzip file is damaged"):
        read_image(ImageRef("a", str(cut), 100, "1", offset=0, length=5, packing="gzip"), 10)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("in/ä", TEXT)
        file.writestr("other", b"x")
    return path


def test_a_member_of_a_zip_archive_is_unpacked_by_its_name(archive):
    assert read_packed_range(str(archive), NamedMember("in/ä"), 300, 5) == TEXT[300:305]
    assert read_packed_range(str(archive), NamedMember("other"), 0, -1) == b"x"
    assert read_packed_range(str(archive), NamedMember("in/ä"), 0, 7) == TEXT[:7]
    with pytest.raises(
        BadPacking, match="there cannot be unpacked: There is no item named 'there'"
    ):
        read_packed_range(str(archive), NamedMember("there"), 0, 1)


def test_a_member_whose_bytes_are_damaged(archive):
    content = bytearray(archive.read_bytes())
    content[60:64] = b"\xff\xff\xff\xff"
    archive.write_bytes(content)
    with pytest.raises(BadPacking):
        read_packed_range(str(archive), NamedMember("in/ä"), 0, 1)
    archive.write_bytes(b"no archive")
    with pytest.raises(BadPacking, match="in/ä cannot be unpacked: File is not a zip file"):
        read_packed_range(str(archive), NamedMember("in/ä"), 0, 1, "2")


def test_unpacked_files_go_with_the_process(packed):
    code = f"""
from recordmill.schemas.image_ref import Gzip
from recordmill.storage.packed_files import unpack
print(unpack({packed!r}, Gzip()).path)
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (os.path.exists(os.path.dirname(run.stdout.strip())), run.stderr) == (False, "")
