import io

import pytest

from recordmill.schemas.packing import Gzip
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archives import members as member_module
from recordmill.transforms.inputs.archives.members import BoundedStream, Limits, Member, check_names


@pytest.mark.parametrize(
    ("name", "key"),
    [("cat/1.jpg", "cat/1.jpg"), ("./cat//1.jpg", "cat/1.jpg"), ("u\u0308/1.jpg", "ü/1.jpg"), ("a\n/b", "a\n/b")],
)
def test_a_name_becomes_a_path(name, key):
    assert list(check_names([Member(name, 5, 7, Gzip())])) == [Member(key, 5, 7, Gzip())]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("/etc/passwd", "its name is absolute"),
        ("C:\\x.jpg", "its name is absolute"),
        ("\\\\host\\x.jpg", "its name is absolute"),
        ("../x.jpg", "its name has .. in it"),
        ("a/../../x.jpg", "its name has .. in it"),
        ("./", "it has no name"),
        ("a\0b", "its name has a zero byte in it"),
    ],
)
def test_a_name_that_leads_out_is_refused(name, detail):
    (found,) = check_names([Member(name, 5, 7)])
    assert (found.reason, found.detail, found.length) == ("bad_member", detail, 0)


def test_a_name_that_is_not_utf8_is_printed_with_its_bytes():
    (found,) = check_names([Member(b"caf\xe9.jpg".decode("utf-8", "surrogateescape"))])
    assert (found.name, found.reason) == ("caf\\xe9.jpg", "bad_name")


def test_the_second_member_of_a_name_is_refused():
    link = Member("a/b", reason="bad_member", detail="it is a link")
    first, second, third, again = check_names([Member("a/b", 1), Member("./a//b", 2), Member("a/c", 3), link])
    assert (first.reason, second.reason, third.reason) == ("", "bad_member", "")
    assert second.detail == "the archive holds this name twice"
    assert (second.name, again.name) == ("a/b (member 2)", "a/b (member 4)"), "keys differ, or the run would fail"
    assert again.detail == "it is a link"


def test_what_was_refused_before_keeps_its_reason():
    refused = Member("a", reason="bad_member", detail="it is a device")
    assert list(check_names([refused])) == [refused]


def test_a_limit_is_the_largest_that_is_allowed():
    limits = Limits(10, 1, 1)
    assert limits.refuse_large(10) == ""
    assert limits.refuse_large(11) == "it has 11 bytes, where source.max_member_bytes allows 10"


def test_no_header_makes_the_stream_read_much(monkeypatch):
    monkeypatch.setattr(member_module, "MAX_RECORD_BYTES", 8)
    stream = BoundedStream(io.BytesIO(bytes(range(9))))
    assert stream.read(8) == bytes(range(8))
    with pytest.raises(Rejected, match="a header claims 9 bytes"):
        stream.read(9)
    assert (stream.seek(-2, 2), stream.tell(), stream.read()) == (7, 7, b"\x07\x08")
    stream.seek(0)
    with pytest.raises(Rejected, match="claims the whole file"):
        stream.read()
    with pytest.raises(Rejected, match="an impossible place"):
        stream.seek(-1)
