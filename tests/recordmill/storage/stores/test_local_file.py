"""Files of this machine, whole and in parts."""

import errno
import os
import re
import threading

import pytest

from recordmill.storage.stores import local_file
from recordmill.storage.stores.local_file import force_to_disk, parts_kept_open, read_local


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    return str(tmp_path / "a")


def open_files():
    return len(os.listdir("/dev/fd"))


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
def test_kept_open_files_give_the_same_bytes(path, offset, length, read):
    assert read_local(path, offset, length) == read
    with parts_kept_open():
        assert [read_local(path, offset, length) for _ in range(2)] == [read, read]


def test_a_file_is_opened_once_for_all_its_parts_and_closed_after_the_block(path, monkeypatch):
    opened, before, really_open = [], open_files(), os.open
    monkeypatch.setattr(os, "open", lambda *how: opened.append(how) or really_open(*how))
    with parts_kept_open():
        assert b"".join(read_local(path, offset, 2) for offset in range(1, 9, 2)) == b"12345678"
        assert (len(opened), open_files()) == (1, before + 1)
    assert open_files() == before
    read_local(path, 1, 2)
    assert (len(opened), open_files()) == (2, before)


def test_files_are_closed_where_the_block_fails(path):
    def read_and_fail():
        with parts_kept_open():
            read_local(path, 1, 1)
            raise ZeroDivisionError

    before = open_files()
    with pytest.raises(ZeroDivisionError):
        read_and_fail()
    assert open_files() == before


def test_whole_files_are_not_kept(path):
    before = open_files()
    with parts_kept_open():
        read_local(path, 0, 10)
        assert open_files() == before


def test_no_more_files_are_kept_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(local_file, "MOST_KEPT", 3)
    paths = [str(tmp_path / str(number)) for number in range(10)]
    for number, path in enumerate(paths):
        (tmp_path / path).write_bytes(b"x%d" % number)
    before = open_files()
    with parts_kept_open():
        for number, path in enumerate(paths):
            assert read_local(path, 1, 1) == b"%d" % number
            assert open_files() <= before + 3
    assert open_files() == before


def test_other_threads_keep_nothing(path):
    before, counts = open_files(), []
    with parts_kept_open():
        read_local(path, 1, 1)
        thread = threading.Thread(target=lambda: counts.append((read_local(path, 2, 1), open_files())))
        thread.start()
        thread.join()
    assert counts == [(b"2", before + 1)]


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with parts_kept_open(), pytest.raises(FileNotFoundError):
        read_local(str(tmp_path / "none"), 1, 1)


def test_files_and_folders_are_forced_and_closed(path, monkeypatch):
    forced, really_force, before = [], os.fsync, open_files()
    monkeypatch.setattr(os, "fsync", lambda file: forced.append(os.fstat(file).st_ino) or really_force(file))
    force_to_disk(path)
    force_to_disk(os.path.dirname(path))
    assert forced == [os.stat(path).st_ino, os.stat(os.path.dirname(path)).st_ino]
    assert open_files() == before


def failing(code):
    def fail(_):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS])
def test_a_file_system_that_cannot_force_is_left_alone(path, monkeypatch, code):
    monkeypatch.setattr(os, "fsync", failing(code))
    force_to_disk(path)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_disk_is_reported(path, monkeypatch, code):
    monkeypatch.setattr(os, "fsync", failing(code))
    before = open_files()
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        force_to_disk(path)
    assert open_files() == before


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for offset in (0, 4):
        with pytest.raises(OSError, match="it is a pipe, not a file") as raised:
            read_local(str(tmp_path / "pipe"), offset, 10)
        assert raised.value.errno == errno.ESPIPE
