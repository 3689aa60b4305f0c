import errno
import hashlib
import io
import os
import threading

import pytest
from apache_beam.io.filesystem import BeamIOError

from recordmill import storage
from recordmill.storage.many_files import check_targets, digest_of, force_to_disk, keep_file, map_each, move_files


def test_many_files_move_as_one_does(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name)
    pairs = [(str(tmp_path / name), str(tmp_path / name.upper())) for name in "abc"]
    move_files(iter(pairs))
    move_files(pairs)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"A": "a", "B": "b", "C": "c"}
    with pytest.raises((BeamIOError, OSError)):
        move_files([(str(tmp_path / "x"), str(tmp_path / "y"))])


def test_sizes_come_in_the_order_of_the_files(tmp_path):
    for size in range(5):
        (tmp_path / f"{size}[*").write_bytes(bytes(size))
    names = ["3[*", "absent", "0[*", "4[*", "3[*", ""]
    assert map_each(storage.size_of, (str(tmp_path / name) for name in names)) == [3, None, 0, 4, 3, None]
    assert map_each(storage.size_of, []) == []


def test_sizes_on_a_network_are_asked_for_at_once(monkeypatch):
    # Eight questions that are each answered only when all of them have been asked.
    together = threading.Barrier(8, timeout=30)

    def size_of(path):
        together.wait()
        return int(path[-1])

    monkeypatch.setattr(storage, "size_of", size_of)
    assert map_each(storage.size_of, (f"gs://bucket/{number}" for number in range(8))) == list(range(8))


def test_what_is_on_this_machine_is_forced_to_its_disk(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(os, "fsync", lambda file: forced.append(os.fstat(file).st_ino))
    (tmp_path / "a").touch()
    force_to_disk(iter([str(tmp_path / "a"), "gs://bucket/a", "hdfs://host/a", str(tmp_path)]))
    assert forced == [os.stat(tmp_path / "a").st_ino, os.stat(tmp_path).st_ino]
    with pytest.raises(FileNotFoundError):
        force_to_disk([str(tmp_path / "absent")])


def test_a_file_becomes_a_link_to_another_one_only_if_that_is_whole(tmp_path, monkeypatch):
    other, target = tmp_path / "other", tmp_path / "target"
    other.write_bytes(b"abc")
    target.write_bytes(b"mine")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert not keep_file(str(other), "0" * 64, str(target))
    assert not keep_file(str(tmp_path / "absent"), digest, str(target))
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no links")))
        assert not keep_file(str(other), digest, str(target))
    assert target.read_bytes() == b"mine"
    for _ in range(2):  # the second time, both are links to one file already
        assert keep_file(str(other), digest, str(target))
        assert os.path.samefile(other, target)
    assert sorted(os.listdir(tmp_path)) == ["other", "target"]


def test_nothing_is_kept_where_a_store_has_no_copies(monkeypatch):
    removed = []
    monkeypatch.setattr(storage, "remove_files", removed.extend)
    with pytest.raises(OSError, match="not supported") as raised:
        storage.link_or_copy("shelf://a/b", "shelf://a/c")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOTSUP, "shelf://a/b")
    assert not keep_file("shelf://a/b", "0" * 64, "shelf://a/c")
    assert removed == ["shelf://a/c"]


def test_files_can_be_renamed_to_free_names_and_over_files(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    check_targets([str(tmp_path / name) for name in ("file", "link", "free")])
    check_targets(["gs://bucket/a/b", "gs://bucket/" + "n" * 300])  # stores have neither folders nor short names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("folder", IsADirectoryError),
        ("absent/file", FileNotFoundError),
        ("file/file", NotADirectoryError),
        ("n" * 256, OSError),
        ("closed/file", PermissionError),
    ],
)
def test_what_files_cannot_be_renamed_to_raises(tmp_path, name, kind, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("closed"))  # root may do everything
    with pytest.raises(kind) as raised:
        check_targets([str(tmp_path / name)])
    assert str(tmp_path) in raised.value.filename


def test_digests_come_in_the_order_of_the_files(tmp_path):
    contents = [b"", b"abc", bytes(range(256)) * 10_000]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}").write_bytes(content)
    paths = [str(tmp_path / name) for name in "201"]
    assert map_each(digest_of, iter(paths)) == [hashlib.sha256(contents[number]).hexdigest() for number in (2, 0, 1)]
    with pytest.raises(FileNotFoundError):
        map_each(digest_of, [*paths, str(tmp_path / "absent")])


def test_digests_on_a_network_are_taken_at_once(monkeypatch):
    together = threading.Barrier(8, timeout=30)

    def open_to_read(path):
        together.wait()
        return io.BytesIO(path.encode())

    monkeypatch.setattr(storage, "open_to_read", open_to_read)
    paths = [f"gs://bucket/{number}" for number in range(8)]
    assert map_each(digest_of, paths) == [hashlib.sha256(path.encode()).hexdigest() for path in paths]
