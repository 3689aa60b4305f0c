import gzip
import io
import os
import zipfile

import pytest

from recordmill.schemas.image_ref import Gzip, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import BadPacking, read_image
from recordmill.transforms.inputs import archive_members as member_module
from recordmill.transforms.inputs.archive_members import (
    BoundedStream,
    Limits,
    Member,
    check_member_names,
    list_members,
)

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


def test_zeros_after_a_packed_tar_are_nothing(make_tar, written):
    file = written(make_tar(FILES, "w:gz") + bytes(512))
    assert {each.name: read_member(file, each) for each in list_members(file, LIMITS)} == FILES


def test_a_packed_tar_whose_checksum_is_wrong_is_not_read(make_tar, written):
    content = bytearray(make_tar(FILES, "w:gz"))
    content[-8] ^= 1
    with pytest.raises(Rejected, match="incorrect data check"):
        list(list_members(written(bytes(content)), LIMITS))


def test_a_packed_bomb_is_not_unpacked(written, monkeypatch):
    monkeypatch.setattr("recordmill.storage.packed_files.FREE_BYTES", 1000)
    with pytest.raises(Rejected, match="unpacks to more than 100 times its size"):
        list(list_members(written(gzip.compress(bytes(5_000_000))), LIMITS))


def test_a_damaged_member_is_found_when_it_is_read(make_zip, written):
    content = make_zip({"a": b"a" * 30, "b": b"b"}, zipfile.ZIP_STORED).replace(
        b"a" * 30, b"a" * 29 + b"x"
    )
    file = written(content)
    one, other = list_members(file, LIMITS)
    assert read_member(file, other) == b"b"
    with pytest.raises(BadPacking, match="does not match its size and checksum"):
        read_member(file, one)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("cat/1.jpg", "cat/1.jpg"),
        ("./cat//1.jpg", "cat/1.jpg"),
        ("u\u0308/1.jpg", "ü/1.jpg"),
        ("a\n/b", "a\n/b"),
    ],
)
def test_a_name_becomes_a_path(name, key):
    assert list(check_member_names([Member(name, 5, 7, Gzip())])) == [Member(key, 5, 7, Gzip())]


BAD_NAME = "its name is empty, absolute or repeated, or has .. or a zero byte in it"


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "C:\\x.jpg", "\\\\host\\x.jpg", "../x.jpg", "a/../../x.jpg", "./", "a\0b"],
)
def test_a_name_that_leads_out_is_refused(name):
    (found,) = check_member_names([Member(name, 5, 7)])
    assert (found.reason, found.detail, found.length) == ("bad_member", BAD_NAME, 0)


def test_a_name_that_is_not_utf8_is_printed_with_its_bytes():
    (found,) = check_member_names([Member(b"caf\xe9.jpg".decode("utf-8", "surrogateescape"))])
    assert (found.name, found.reason) == ("caf\\xe9.jpg", "bad_name")


def test_the_second_member_of_a_name_is_refused():
    link = Member("a/b", reason="bad_member", detail="it is a link")
    first, second, third, again = check_member_names(
        [Member("a/b", 1), Member("./a//b", 2), Member("a/c", 3), link]
    )
    assert (first.reason, second.reason, third.reason) == ("", "bad_member", "")
    assert second.detail == BAD_NAME
    assert (second.name, again.name) == ("a/b (member 2)", "a/b (member 4)"), (
        "keys differ, or the run would fail"
    )
    assert again.detail == "it is a link"


def test_what_was_refused_before_keeps_its_reason():
    refused = Member("a", reason="bad_member", detail="it is a device")
    assert list(check_member_names([refused])) == [refused]


def test_a_limit_is_the_largest_that_is_allowed():
    limits = Limits(10, 1, 1)
    assert limits.refuse_large(10) is None
    assert limits.refuse_large(11) == "it has 11 bytes, where source.max_member_bytes allows 10"


def test_no_header_makes_the_stream_read_much(monkeypatch):
    monkeypatch.setattr(member_module, "MAX_RECORD_BYTES", 8)
    stream = BoundedStream(io.BytesIO(bytes(range(9))))
    assert stream.read(8) == bytes(range(8))
    stream.seek(0)
    with pytest.raises(Rejected, match="a header claims more than 8 bytes"):
        stream.read(9)
    assert (stream.seek(-2, 2), stream.tell(), stream.read()) == (7, 7, b"\x07\x08")
    stream.seek(0)
    with pytest.raises(Rejected, match="a header claims more than 8 bytes"):
        stream.read()
