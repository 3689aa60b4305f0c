import io
import stat
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import BadPacking, read_zip_member
from recordmill.transforms.inputs.archive_members import Limits, zip_members

LIMITS = Limits(10_000_000, 100, 100)
FILES = {
    "cat/1.jpg": b"one" * 50,
    "dög/1.jpg": bytes(range(256)) * 4,
    "empty": b"",
    "a folder/": b"",
}


def members_of(content, limits=LIMITS):
    return list(zip_members(io.BytesIO(content), limits))


def contents_of(content, member):
    place = member.packing
    return read_zip_member(place, content[place.start : place.start + place.packed])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n" * 20])
def test_each_member_is_where_its_bytes_are(make_zip, method, before):
    content = before + make_zip(FILES, method)
    found = {each.name: contents_of(content, each) for each in members_of(content)}
    assert found == {name: data for name, data in FILES.items() if not name.endswith("/")}
    assert list(found) == sorted(found)


def test_names_are_utf8_whether_or_not_the_archive_says_so(make_zip):
    content = make_zip({"ABCD.jpg": b"1", "caf\xe9.jpg": b"2"})
    content = content.replace(b"ABCD", "äö".encode())
    assert [each.name for each in members_of(content)] == ["café.jpg", "äö.jpg"]


def test_if_one_name_is_not_utf8_no_name_is_taken_for_it(make_zip):
    content = make_zip({"ABCD.jpg": b"1", "caf\xe9.jpg": b"2", "wxyz.jpg": b"3"})
    content = content.replace(b"ABCD", "äö".encode()).replace(b"wxyz", b"xy\xe9z")
    assert [each.name for each in members_of(content)] == [
        "café.jpg",
        "xy\udce9z.jpg",
        "\udcc3\udca4\udcc3\udcb6.jpg",
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["cat\\1.jpg", "cat\\", "dog\\a\\2.jpg", "3.jpg"], ["3.jpg", "cat/1.jpg", "dog/a/2.jpg"]),
        (["cat\\1.jpg", "dog/2.jpg"], ["cat\\1.jpg", "dog/2.jpg"]),
        (["..\\1.jpg", "C:\\2.jpg"], ["../1.jpg", "C:/2.jpg"]),
    ],
)
def test_backslashes_separate_folders_where_nothing_else_does(names, expected):
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        for name in names:
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, b"" if name.endswith("\\") else b"data")
    assert [each.name for each in members_of(stream.getvalue())] == expected


SPECIAL = "it is a link, a device, a sparse file or another special file"
DAMAGED = "its header is damaged, or it does not end before the next begins"


OTHER_METHOD = "it is encrypted, or packed by another method than stored and deflated"


def entry(**values):
    info = zipfile.ZipInfo("evil.jpg")
    for key, value in values.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    ("info", "detail"),
    [
        (entry(external_attr=(stat.S_IFLNK | 0o777) << 16), SPECIAL),
        (entry(external_attr=(stat.S_IFCHR | 0o666) << 16), SPECIAL),
    ],
)
def test_members_that_are_not_files_are_refused(make_zip, info, detail):
    good, evil = members_of(make_zip({"a.jpg": b"a", info: b"/etc/passwd"}))
    assert (good.reason, evil.name, evil.reason, evil.detail) == (
        "",
        "evil.jpg",
        "bad_member",
        detail,
    )


def test_encrypted_members_and_other_methods_are_refused(make_zip):
    content = bytearray(make_zip({"a.jpg": b"a"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert [each.detail for each in members_of(bytes(content))] == [OTHER_METHOD]
    (packed,) = members_of(make_zip({"a.jpg": b"a"}, zipfile.ZIP_LZMA))
    assert packed.detail == OTHER_METHOD


def test_bombs_are_refused_by_what_they_state(make_zip):
    content = make_zip(
        {"bomb": bytes(5_000_000), "large": bytes(11_000_000), "small": bytes(1_000_000)}
    )
    bomb, large, small = members_of(content)
    assert (
        bomb.detail
        == "it would unpack to more than 100 times its size, the limit of source.max_ratio"
    )
    assert large.detail == bomb.detail
    assert contents_of(content, small) == bytes(1_000_000)  # up to a mebibyte nobody minds
    assert [each.reason for each in members_of(content, Limits(20_000_000, 9, 2000))] == [
        "",
        "",
        "",
    ]
    (large,) = members_of(make_zip({"large": bytes(11)}), Limits(10, 9, 9))
    assert large.detail == "it has 11 bytes, where source.max_member_bytes allows 10"


def test_a_bomb_with_a_false_size_is_stopped_at_that_size(make_zip):
    content = bytearray(make_zip({"bomb": bytes(5_000_000)}))
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    (member,) = members_of(bytes(content))
    with pytest.raises(BadPacking, match="does not match its size and checksum"):
        contents_of(bytes(content), member)


def test_members_that_share_bytes_are_refused(make_zip):
    content = bytearray(make_zip({"a": bytes(range(200)), "b": b"b"}, zipfile.ZIP_STORED))
    directory = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", directory + 1)
    content[second + 42 : second + 46] = (0).to_bytes(4, "little")  # b begins where a does
    content[second + 20 : second + 28] = content[directory + 20 : directory + 28]
    assert DAMAGED in [each.detail for each in members_of(bytes(content))]


def test_a_header_that_is_not_what_the_directory_says_is_one_bad_member(make_zip):
    content = make_zip({"a": b"a", "b": b"b"}).replace(b"PK\x03\x04", b"XX\x03\x04", 1)
    assert [each.detail for each in members_of(content)] == [DAMAGED, ""]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(17), b"x" * 100])
def test_a_file_without_a_directory_is_not_an_archive(content):
    with pytest.raises(Rejected, match="it is not a zip archive, or its end is missing"):
        members_of(content)


def test_a_member_without_a_name_is_a_member(make_zip):
    content = bytearray(make_zip({"a": b"a"}))
    at = content.index(b"PK\x01\x02")
    content[at + 28], content[at + 32] = 0, 1  # the letter becomes a comment
    assert [each.name for each in members_of(bytes(content))] == [""]


@given(st.data())
def test_whatever_the_bytes_members_are_inside_the_file(data):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "ö", "c"):
            archive.writestr(name, bytes(range(200)))
    content = bytearray(stream.getvalue())
    directory = content.index(b"PK\x01\x02")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(directory, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    try:
        found = members_of(bytes(content))
    except Rejected:
        return
    for each in found:
        if each.reason:
            continue
        place = each.packing
        assert 0 <= place.start <= place.start + place.packed <= len(content)
        with suppress(BadPacking):
            assert len(contents_of(bytes(content), each)) == each.length
