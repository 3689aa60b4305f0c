import errno
import hashlib
import io
import os
import threading

import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from recordmill import storage
from recordmill.storage import (
    check_targets,
    describe_output_error,
    explain_output_error,
    force_to_disk,
    hash_file,
    keep_file,
    map_each,
    move_files,
)


@pytest.mark.parametrize("name", ["a.bin", "a.gz", "a[1]*.gz"])
@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, -1, b"0123456789"),
        (3, -1, b"3456789"),
        (3, 4, b"3456"),
        (8, 9, b"89"),
        (20, 5, b""),
        (0, 0, b""),
    ],
)
def test_ranges_are_read_exactly_and_never_unpacked(tmp_path, name, offset, length, expected):
    (tmp_path / name).write_bytes(b"0123456789")
    assert storage.read_range(str(tmp_path / name), offset, length) == expected


def test_streams_carry_stored_bytes_whatever_the_extension(tmp_path):
    path = str(tmp_path / "a.gz")
    with storage.open_to_write(path) as file:
        file.write(b"plain")
    assert (tmp_path / "a.gz").read_bytes() == b"plain"
    with storage.open_to_read(path) as file:
        assert file.read() == b"plain"


def test_reading_what_is_absent_raises():
    with pytest.raises(FileNotFoundError):
        storage.read_range("/nowhere/a")


@pytest.mark.parametrize("length", [10, 11, 7, -1])
def test_a_file_system_that_gives_less_than_asked_is_asked_again(tmp_path, monkeypatch, length):
    (tmp_path / "a").write_bytes(b"0123456789")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda file, count, offset: real(file, min(count, 3), offset))
    expected = b"0123456789" if length < 0 else b"0123456789"[:length]
    assert storage.read_range(str(tmp_path / "a"), 0, length) == expected
    assert (
        storage.read_range(str(tmp_path / "a"), 2, length)
        == b"0123456789"[2 : None if length < 0 else 2 + length]
    )


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.json", []
    monkeypatch.setattr(
        os, "fsync", lambda file: seen.append((os.fstat(file).st_size, path.exists()))
    )
    storage.write_file(str(path), iter([b"12", b"3"]))
    assert seen == [(3, False)]


def test_a_file_is_written_over_whatever_is_there_and_leaves_no_temporary(tmp_path):
    path = tmp_path / "a.json"
    storage.write_file(str(path), b"one")
    storage.write_file(str(path), b"two")
    assert path.read_bytes() == b"two"
    storage.write_file(str(path), iter([b"thr", b"", b"ee"]))
    assert path.read_bytes() == b"three"
    assert os.listdir(tmp_path) == ["a.json"]


def test_temporary_names_are_hidden_distinct_and_in_the_same_folder(tmp_path):
    names = {storage.temporary_name(str(tmp_path / "a.tfrecord")) for _ in range(50)}
    assert len(names) == 50
    assert {os.path.dirname(name) for name in names} == {str(tmp_path)}
    assert all(
        os.path.basename(name).startswith(".a.tfrecord.") and name.endswith(".tmp")
        for name in names
    )


def test_a_temporary_name_of_a_file_in_the_root_folder_is_there_too():
    assert os.path.dirname(storage.temporary_name("/a")) == "/"


def test_a_move_replaces_and_may_be_done_twice(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    storage.move_file(str(source), str(target))
    assert (source.exists(), target.read_bytes()) == (False, b"new")
    storage.move_file(str(source), str(target))
    assert target.read_bytes() == b"new"


def test_a_move_of_what_was_never_there_raises(tmp_path):
    with pytest.raises((BeamIOError, OSError)):
        storage.move_file(str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_move_that_fails_raises_and_keeps_the_source(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    for target, kind in (("absent/b", FileNotFoundError), ("folder", IsADirectoryError)):
        with pytest.raises(kind) as raised:
            storage.move_file(str(tmp_path / "a"), str(tmp_path / target))
        assert raised.value.filename2 == str(tmp_path / target)
    assert (tmp_path / "a").read_bytes() == b"x"


def test_removing_a_missing_file_does_nothing(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "keep").touch()
    storage.remove_files([str(tmp_path / "a"), str(tmp_path / "b")])
    storage.remove_files([str(tmp_path / "a")])
    assert os.listdir(tmp_path) == ["keep"]


def test_a_folder_is_removed_with_all_below_it(tmp_path):
    storage.make_folder(str(tmp_path / "x/y"))
    storage.make_folder(str(tmp_path / "x/y"))
    (tmp_path / "x/y/.hidden").touch()
    storage.remove_folder(str(tmp_path / "x"))
    storage.remove_folder(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("writes", [1, 3, 100])
def test_a_folder_into_which_another_run_writes_is_deleted_unless_that_goes_on(
    tmp_path, monkeypatch, writes
):
    folder, written = tmp_path / "x", []
    folder.mkdir()
    real = os.rmdir

    def write(path, **options):
        if len(written) < writes:
            written.append(path)
            (folder / f"{len(written)}").write_bytes(b"")
        return real(path, **options)

    monkeypatch.setattr(os, "rmdir", write)
    storage.remove_folder(str(folder))
    assert folder.exists() == (writes == 100)


def test_the_names_in_a_folder_are_sorted(tmp_path):
    assert storage.folder_names(str(tmp_path / "absent")) == []
    for name in ("b", "a", ".c"):
        (tmp_path / name).mkdir()
    assert storage.folder_names(str(tmp_path)) == [".c", "a", "b"]


def test_one_file_is_described_whatever_its_name(tmp_path):
    for name in ("a[1]?*.jpg", "a1x.jpg"):
        (tmp_path / name).write_bytes(b"12345")
    described = storage.describe(str(tmp_path / "a[1]?*.jpg"))
    assert (described.path, described.size_in_bytes) == (str(tmp_path / "a[1]?*.jpg"), 5)
    assert storage.describe(str(tmp_path / "absent")) is None


def test_a_url_is_not_local():
    assert [storage.is_local(path) for path in ("/a", "a/b", "./a:b", "gs://b/a", "s3://b/a")] == [
        True
    ] * 3 + [False] * 2


@pytest.mark.parametrize(
    "path",
    [
        "/a/b",
        "a",
        "C:/a",
        "gs://b/a",
        "s3://b/a",
        "x-y+1.z://",
        "://a",
        "a/gs://b",
        "gs:/a",
        "a\ngs://b",
    ],
)
def test_local_paths_are_local_for_beam(path):
    assert storage.is_local(path) == (FileSystems.get_scheme(path) is None)


def test_many_files_move_as_one_does(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name)
    pairs = [(str(tmp_path / name), str(tmp_path / name.upper())) for name in "abc"]
    move_files(iter(pairs))
    move_files(pairs)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "A": "a",
        "B": "b",
        "C": "c",
    }
    with pytest.raises((BeamIOError, OSError)):
        move_files([(str(tmp_path / "x"), str(tmp_path / "y"))])


def test_sizes_come_in_the_order_of_the_files(tmp_path):
    for size in range(5):
        (tmp_path / f"{size}[*").write_bytes(bytes(size))
    names = ["3[*", "absent", "0[*", "4[*", "3[*", ""]
    assert map_each(storage.size_of, (str(tmp_path / name) for name in names)) == [
        3,
        None,
        0,
        4,
        3,
        None,
    ]
    assert map_each(storage.size_of, []) == []


def test_sizes_on_a_network_are_asked_for_at_once(monkeypatch):
    # Eight questions that are each answered only when all of them have been asked.
    together = threading.Barrier(8, timeout=30)

    def size_of(path):
        together.wait()
        return int(path[-1])

    monkeypatch.setattr(storage, "size_of", size_of)
    assert map_each(storage.size_of, (f"gs://bucket/{number}" for number in range(8))) == list(
        range(8)
    )


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
        patch.setattr(
            os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no links"))
        )
        assert not keep_file(str(other), digest, str(target))
    assert target.read_bytes() == b"mine"
    for _ in range(2):  # the second time, both are links to one file already
        assert keep_file(str(other), digest, str(target))
        assert os.path.samefile(other, target)
    assert sorted(os.listdir(tmp_path)) == ["other", "target"]


def test_nothing_is_kept_where_a_store_has_no_copies(monkeypatch):
    removed = []
    monkeypatch.setattr(storage, "remove_files", removed.extend)
    assert not keep_file("shelf://a/b", "0" * 64, "shelf://a/c")
    assert removed == ["shelf://a/c"]


def test_files_can_be_renamed_to_free_names_and_over_files(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    check_targets([str(tmp_path / name) for name in ("file", "link", "free")])
    # Stores have neither folders nor short names.
    check_targets(["gs://bucket/a/b", "gs://bucket/" + "n" * 300])


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
    # Root may do everything.
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("closed"))
    with pytest.raises(kind) as raised:
        check_targets([str(tmp_path / name)])
    assert str(tmp_path) in raised.value.filename


def test_digests_come_in_the_order_of_the_files(tmp_path):
    contents = [b"", b"abc", bytes(range(256)) * 10_000]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}").write_bytes(content)
    paths = [str(tmp_path / name) for name in "201"]
    assert map_each(hash_file, iter(paths)) == [
        hashlib.sha256(contents[number]).hexdigest() for number in (2, 0, 1)
    ]
    with pytest.raises(FileNotFoundError):
        map_each(hash_file, [*paths, str(tmp_path / "absent")])


def test_digests_on_a_network_are_taken_at_once(monkeypatch):
    together = threading.Barrier(8, timeout=30)

    def open_to_read(path):
        together.wait()
        return io.BytesIO(path.encode())

    monkeypatch.setattr(storage, "open_to_read", open_to_read)
    paths = [f"gs://bucket/{number}" for number in range(8)]
    assert map_each(hash_file, paths) == [
        hashlib.sha256(path.encode()).hexdigest() for path in paths
    ]


@pytest.mark.parametrize(
    ("code", "why"),
    [(errno.ENOSPC, "no space left on device"), (errno.EROFS, "read-only file system")],
)
def test_errors_that_a_user_can_fix_are_one_sentence(code, why):
    error = OSError(code, os.strerror(code))
    assert (
        explain_output_error(error, "gs://b/out")
        == f"the output gs://b/out cannot be written: {why}"
    )


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, None])
def test_an_outage_of_a_store_is_raised_again(code):
    error = OSError(code, "down")
    with pytest.raises(OSError, match="down") as caught:
        explain_output_error(error, "gs://b/out")
    assert caught.value is error
    assert (
        describe_output_error(error, "gs://b/out")
        == "the output gs://b/out cannot be written: down"
    )


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), OSError("Rename operation failed\nwith")]
)
def test_whatever_this_machine_says_is_one_sentence(error):
    why = str(error.strerror or error).lower().replace("\n", " ")
    assert explain_output_error(error, "out") == f"the output out cannot be written: {why}"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (errno.EISDIR, "is a directory (out/labels.txt)"),
        (errno.ENAMETOOLONG, "file name too long (out/labels.txt)"),
        (errno.ENOTDIR, "not a directory (out/labels.txt)"),
    ],
)
def test_a_name_that_cannot_be_used_is_reported(code, why):
    sentence = f"the output out cannot be written: {why}"
    assert (
        explain_output_error(OSError(code, os.strerror(code), "out/labels.txt"), "out") == sentence
    )
    assert (
        explain_output_error(
            OSError(code, os.strerror(code), "a.part", None, "out/labels.txt"), "out"
        )
        == sentence
    )
