import gzip
import os
import zipfile

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import BadPacking, read_image
from recordmill.transforms.inputs.archives.members import Limits, list_members

LIMITS = Limits(10_000, 100, 100)
FILES = {"cat/1.jpg": b"one" * 50, "cat/2.jpg": bytes(range(256)), "dog/1.jpg": b"three"}


def read_member(file, member):
    return read_image(member.place_in(file), 10_000)


@pytest.fixture
def written(tmp_path):
    def write(content, name="pets.bin"):
        path = tmp_path / name
        path.write_bytes(content)
        return ImageRef(name, str(path), len(content), str(path.stat().st_mtime_ns))

    return write


def test_what_an_archive_is_its_bytes_say(make_tar, make_zip, written):
    kinds = {
        "tar": make_tar(FILES),
        "gzip": make_tar(FILES, "w:gz"),
        "stored": make_zip(FILES, zipfile.ZIP_STORED),
        "deflated": make_zip(FILES),
        "extracting.zip": b"MZ" + make_zip(FILES),
    }
    for name, content in kinds.items():
        file = written(content, name)
        found = {each.name: read_member(file, each) for each in list_members(file, LIMITS)}
        assert found == FILES, name


def test_no_more_members_are_read_than_allowed(make_tar, written):
    found = list_members(written(make_tar(FILES)), Limits(10_000, 2, 100))
    assert [next(found).name, next(found).name] == ["cat/1.jpg", "cat/2.jpg"]
    with pytest.raises(Rejected, match=r"more members than source\.max_members allows \(2\)"):
        next(found)
    assert len(list(list_members(written(make_tar(FILES)), Limits(10_000, 3, 100)))) == 3


def test_members_before_the_damage_of_a_packed_tar_stay(make_tar, written):
    noise = {"a": os.urandom(9000), "b": os.urandom(9000)}
    file = written(make_tar(noise, "w:gz")[:-7000])
    found = list_members(file, LIMITS)
    assert read_member(file, next(found)) == noise["a"]
    with pytest.raises(Rejected, match="the gzip file is damaged: the gzip stream ends early"):
        next(found)


def test_a_packed_bomb_is_not_unpacked(written, monkeypatch):
    monkeypatch.setattr("recordmill.storage.packed_files.FREE_BYTES", 1000)
    with pytest.raises(Rejected, match="unpacks to more than 100 times its size"):
        list(list_members(written(gzip.compress(bytes(5_000_000))), LIMITS))


def test_a_damaged_member_is_found_when_it_is_read(make_zip, written):
    content = make_zip({"a": b"a" * 30, "b": b"b"}, zipfile.ZIP_STORED).replace(b"a" * 30, b"a" * 29 + b"x")
    file = written(content)
    one, other = list_members(file, LIMITS)
    assert read_member(file, other) == b"b"
    with pytest.raises(BadPacking, match="does not match its checksum"):
        read_member(file, one)
