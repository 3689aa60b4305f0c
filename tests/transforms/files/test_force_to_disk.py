import errno
import os
import re

import pytest

from transforms.files.force_to_disk import force_to_disk


@pytest.fixture
def forced(monkeypatch):
    """The inodes that were forced."""
    inodes, really = [], os.fsync

    def record(file):
        inodes.append(os.fstat(file).st_ino)
        really(file)

    monkeypatch.setattr(os, "fsync", record)
    return inodes


def test_files_and_folders_are_forced_and_closed(tmp_path, forced):
    (tmp_path / "a").write_bytes(b"x")
    before = len(os.listdir("/dev/fd"))
    force_to_disk(iter([str(tmp_path / "a"), str(tmp_path)]))
    assert forced == [os.stat(tmp_path / "a").st_ino, os.stat(tmp_path).st_ino]
    assert len(os.listdir("/dev/fd")) == before


def test_a_store_keeps_what_it_has_taken(forced):
    force_to_disk(["gs://bucket/a", "s3://bucket/a", "hdfs://host/a"])
    assert forced == []


def test_what_is_not_there_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        force_to_disk([str(tmp_path / "absent")])


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS])
def test_a_file_system_that_cannot_is_left_alone(tmp_path, monkeypatch, code):
    def refuse(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    force_to_disk([str(tmp_path)])


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_failed_is_told(tmp_path, monkeypatch, code):
    def fail(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        force_to_disk([str(tmp_path)])
    assert len(os.listdir("/dev/fd")) == before
