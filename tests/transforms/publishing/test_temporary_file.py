import gc
import os
import resource
import signal
import tempfile

import pytest

from recordmill.transforms.publishing.temporary_file import TemporaryFile, TemporaryFileError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_was_put_in_comes_back_from_its_offset(folder):
    file = TemporaryFile()
    assert [file.append(data) for data in (b"abc", b"", bytearray(b"de"))] == [0, 3, 3]
    assert (file.read(0, 3), file.read(3, 2), file.read(1, 3)) == (b"abc", b"de", b"bcd")
    assert file.append(b"f") == 5
    assert file.read(0, 6) == b"abcdef"


def test_a_file_without_content_is_not_created(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    assert TemporaryFile().read(0, 9) == b""


def test_no_name_is_left_and_no_open_file(folder):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    file = TemporaryFile()
    file.append(b"abc")
    assert list(folder.iterdir()) == []
    del file
    gc.collect()
    assert before is None or len(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_is_one_sentence(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        file = TemporaryFile()
        file.append(bytes(900))
        with pytest.raises(TemporaryFileError) as caught:
            file.append(bytes(200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(caught.value) == (
        "temporary files cannot be written (file too large): set TMPDIR to a folder with more room"
    )
