import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import Gzip
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archive_members import Limits, Member, tar_members

LIMITS = Limits(10_000, 100, 100)
FILES = {"cat/1.jpg": b"one", "dög/" + "n" * 200 + ".jpg": bytes(600), "empty": b""}


def members_of(content, limits=LIMITS, **more):
    """The members, and what ended them."""
    found = []
    try:
        for member in tar_members(io.BytesIO(content), len(content), limits, **more):
            found.append(member)
    except Rejected as error:
        return found, error.detail
    return found, ""


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_each_member_is_where_its_bytes_are(make_tar, form):
    content = make_tar(FILES, form=form)
    found, damage = members_of(content, packing=Gzip())
    assert damage == ""
    assert {each.name: content[each.offset : each.offset + each.length] for each in found} == FILES
    assert {each.packing for each in found} == {Gzip()}


SPECIAL = "it is a link, a device, a sparse file or another special file"


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_members_that_are_not_files_are_refused(make_tar, kind):
    info = tarfile.TarInfo("evil.jpg")
    info.type, info.linkname = kind, "/etc/passwd"
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    found, damage = members_of(make_tar({"a": b"a"}, headers=[info, folder]))
    assert (found[0].name, found[0].reason, damage) == ("a", "", "")
    assert found[1:] == [Member("evil.jpg", reason="bad_member", detail=SPECIAL)]


def test_a_sparse_file_is_refused(make_tar):
    info = tarfile.TarInfo("sparse")
    info.type = tarfile.GNUTYPE_SPARSE
    found, _ = members_of(make_tar({}, form=tarfile.GNU_FORMAT, headers=[info]))
    assert [each.detail for each in found] == [SPECIAL]


def test_a_large_member_is_refused_and_passed_over(make_tar):
    found, damage = members_of(make_tar({"large": bytes(10_001), "small": b"s"}))
    assert [(each.name, each.reason) for each in found] == [("large", "bad_member"), ("small", "")]
    assert damage == ""


@pytest.mark.parametrize("where", ["data", "header", "mark"])
def test_the_members_before_a_cut_stay(make_tar, where):
    content = make_tar({"a": bytes(1000), "b": bytes(1000), "c": bytes(1000)})
    place = {"data": 2 * 1536 + 600, "header": 2 * 1536 + 100, "mark": 2 * 1536}[where]
    found, damage = members_of(content[:place])
    assert [each.name for each in found] == ["a", "b"]
    assert {"data": "ends inside 'c'", "header": "byte 3072 is damaged", "mark": "no end mark"}[
        where
    ] in damage


def test_a_damaged_header_is_not_an_end(make_tar):
    content = bytearray(make_tar({"a": b"a", "b": b"b", "c": b"c"}))
    content[1024 + 150] ^= 1  # in b's checksum
    found, damage = members_of(bytes(content))
    assert ([each.name for each in found], damage) == (["a"], "the header at byte 1024 is damaged")


def test_a_header_cannot_claim_all_memory(make_tar):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 2**40
    content = make_tar({"a": b"a"})[:1024] + info.tobuf(tarfile.GNU_FORMAT) + bytes(2048)
    found, damage = members_of(content)
    assert [each.name for each in found] == ["a"]
    assert "the header after byte 0 cannot be read" in damage


def test_endless_headers_of_headers_are_damage(make_tar):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 0
    found, damage = members_of(make_tar({"a": b"a"})[:1024] + info.tobuf(tarfile.GNU_FORMAT) * 3000)
    assert [each.name for each in found] == ["a"]
    assert "the header after byte 0 cannot be read" in damage


@pytest.mark.parametrize("content", [b"", b"no archive", bytes(1024), bytes(range(256)) * 8])
def test_files_that_are_not_archives_give_nothing(content):
    assert members_of(content)[0] == []


@given(st.data())
def test_whatever_the_bytes_members_are_inside_the_file(data):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in ("a", "ö" * 120, "c"):
            info = tarfile.TarInfo(name)
            info.size = 700
            tar.addfile(info, io.BytesIO(bytes(700)))
    content = bytearray(stream.getvalue()[:7000])
    for _ in range(data.draw(st.integers(1, 6))):
        at = (
            data.draw(st.sampled_from(range(len(content))))
            if data.draw(st.booleans())
            else data.draw(st.integers(0, 4)) * 512 + data.draw(st.integers(100, 160))
        )
        content[min(at, len(content) - 1)] = data.draw(st.integers(0, 255))
    fix_checksums(content)
    found, _ = members_of(bytes(content))
    for each in found:
        assert each.reason or 0 <= each.offset <= each.offset + each.length <= len(content)


def fix_checksums(content):
    """Makes the changed headers valid again, so that more than the checksum is tried."""
    for at in range(0, len(content) - 511, 512):
        if content[at + 257 : at + 262] == b"ustar":
            header = content[at : at + 512]
            header[148:156] = b" " * 8
            content[at + 148 : at + 156] = b"%06o\0 " % sum(header)
