import errno
import os
from dataclasses import replace

import pytest
from apache_beam.io.filesystem import BeamIOError

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage import packed_files as module
from recordmill.storage.packed_files import read_image

MANY = 2**30


@pytest.fixture
def ref(tmp_path):
    path = tmp_path / "a[1].gz"
    path.write_bytes(b"0123456789")
    return ImageRef("a", str(path), 10)


def rejection(ref, max_bytes=MANY):
    with pytest.raises(Rejected) as caught:
        read_image(ref, max_bytes)
    assert caught.value.stage == "read"
    return caught.value.reason, caught.value.detail


def test_a_file_is_read_as_stored(ref):
    assert read_image(ref, 10) == b"0123456789"


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(2, 3, b"234"), (2, -1, b"23456789"), (0, 0, b""), (7, 3, b"789")],
)
def test_a_range_is_read_exactly(ref, offset, length, expected):
    assert read_image(replace(ref, offset=offset, length=length), MANY) == expected


def test_what_is_too_long_is_not_read(ref):
    os.remove(ref.uri)
    assert rejection(ref, 9) == ("too_many_bytes", "10 bytes, where images.max_bytes allows 9")
    assert rejection(replace(ref, length=11), 10)[0] == "too_many_bytes"


def test_a_file_that_is_gone_is_rejected(ref):
    os.remove(ref.uri)
    assert rejection(ref) == ("vanished", "the file was listed, and was gone when it was read")


@pytest.mark.parametrize(("size", "more"), [(9, "more"), (11, "less"), (0, "more")])
def test_a_file_of_another_length_is_rejected(ref, size, more):
    assert rejection(replace(ref, size=size)) == (
        "changed",
        f"{size} bytes when it was listed, {more} when it was read",
    )


def test_a_range_beyond_the_end_is_rejected(ref):
    assert rejection(replace(ref, offset=8, length=3))[0] == "changed"
    assert rejection(replace(ref, offset=12, length=3))[0] == "changed"


def test_a_file_grown_huge_is_not_read_to_its_end(ref):
    os.truncate(ref.uri, 2**40)
    assert rejection(ref)[0] == "changed"


def test_what_cannot_be_read_is_rejected_with_the_systems_word(ref, tmp_path):
    assert rejection(replace(ref, uri=str(tmp_path))) == (
        "unreadable",
        "the file cannot be read (is a directory)",
    )


def failing(monkeypatch, *errors):
    """Reading raises these, then succeeds; gives how often it was tried."""
    tries, real = [], storage.read_range

    def read(*arguments):
        tries.append(arguments)
        if len(tries) <= len(errors):
            raise errors[len(tries) - 1]
        return real(*arguments)

    monkeypatch.setattr(storage, "read_range", read)
    monkeypatch.setattr(module, "RETRY_SECONDS", (0, 0))
    return tries


@pytest.mark.parametrize(
    ("code", "reason"),
    [(errno.ENOENT, "vanished"), (errno.ENOTDIR, "vanished")]
    + [
        (code, "unreadable")
        for code in (
            errno.EACCES,
            errno.EPERM,
            errno.EISDIR,
            errno.ELOOP,
            errno.ENAMETOOLONG,
            errno.ESPIPE,
        )
    ],
)
def test_what_concerns_one_file_is_rejected_at_once(ref, monkeypatch, code, reason):
    tries = failing(monkeypatch, OSError(code, os.strerror(code)))
    assert rejection(ref)[0] == reason
    assert len(tries) == 1


OUTAGES = [
    OSError(code, os.strerror(code))
    for code in (errno.EMFILE, errno.EIO, errno.ETIMEDOUT, errno.ECONNRESET)
]
OUTAGES += [
    BeamIOError("the store is down"),
    BeamIOError("the store is down", {"a": TimeoutError()}),
]


@pytest.mark.parametrize("error", OUTAGES)
def test_an_outage_raises_and_rejects_nothing(ref, monkeypatch, error):
    tries = failing(monkeypatch, error, error, error)
    with pytest.raises(type(error)) as caught:
        read_image(ref, MANY)
    assert (caught.value, len(tries)) == (error, 3)


@pytest.mark.parametrize("error", OUTAGES)
def test_an_outage_that_ends_is_not_an_error(ref, monkeypatch, error):
    failing(monkeypatch, error, error)
    assert read_image(ref, MANY) == b"0123456789"
