"""Files of this machine, whole and in parts."""

import contextlib
import errno
import os
import re

import pytest

from recordmill.storage import NotAFileError, force_to_disk, read_range


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    return str(tmp_path / "a")


def open_files(path):
    """The open files below a folder: threads of other tests may open and close theirs meanwhile."""
    found = []
    for number in os.listdir("/dev/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the list itself
            found.append(os.readlink(f"/dev/fd/{number}"))
    return [each for each in found if each.startswith(os.path.dirname(path))]


@pytest.mark.parametrize(
    ("offset", "length", "read"),
    [
        (0, -1, b"0123456789"),
        (0, 3, b"012"),
        (4, 3, b"456"),
        (8, 5, b"89"),
        (4, -1, b"456789"),
        (10, 5, b""),
        (12, -1, b""),
        (4, 2**40, b"456789"),
        (12, 2**40, b""),
        (0, 0, b""),
    ],
)
def test_a_range_ends_with_its_file(path, offset, length, read):
    assert read_range(path, offset, length) == read


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_range(str(tmp_path / "none"), 1, 1)


def test_files_and_folders_are_forced_and_closed(path, monkeypatch):
    forced, really_force, before = [], os.fsync, open_files(path)
    monkeypatch.setattr(
        os, "fsync", lambda file: forced.append(os.fstat(file).st_ino) or really_force(file)
    )
    force_to_disk([path])
    force_to_disk([os.path.dirname(path)])
    assert forced == [os.stat(path).st_ino, os.stat(os.path.dirname(path)).st_ino]
    assert open_files(path) == before


def failing(code):
    def fail(_):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS])
def test_a_file_system_that_cannot_force_is_left_alone(path, monkeypatch, code):
    monkeypatch.setattr(os, "fsync", failing(code))
    force_to_disk([path])


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_disk_is_reported(path, monkeypatch, code):
    monkeypatch.setattr(os, "fsync", failing(code))
    before = open_files(path)
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        force_to_disk([path])
    assert open_files(path) == before


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for offset in (0, 4):
        with pytest.raises(NotAFileError, match="it is a pipe or a device"):
            read_range(str(tmp_path / "pipe"), offset, 10)
