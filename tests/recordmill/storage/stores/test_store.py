import errno
import hashlib
import random

import pytest

from recordmill import storage
from recordmill.storage import keep_file, map_each, move_files
from recordmill.storage.stores.find_store import find_store
from recordmill.storage.stores.store import (
    BLOCK_BYTES,
    in_parallel,
    open_object,
    split_uri,
    system_error,
)


def test_a_url_is_a_bucket_and_an_object():
    assert split_uri("gs://b/a/c#1?.jpg") == ("b", "a/c#1?.jpg")
    assert split_uri("s3://b/") == split_uri("s3://b") == ("b", "")


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (404, FileNotFoundError, errno.ENOENT),
        (403, PermissionError, errno.EACCES),
        (401, PermissionError, errno.EACCES),
        (503, OSError, errno.EIO),
        (None, OSError, errno.EIO),
    ],
)
def test_an_answer_is_an_error_of_the_system(status, kind, code):
    error = system_error(status, "slow down", "s3://b/a")
    assert (type(error), error.errno, error.filename) == (kind, code, "s3://b/a")
    assert ("slow down" in str(error)) == (code == errno.EIO)


def test_parallel_calls_raise_the_first_items_error():
    done = []

    def call(number):
        if number % 3 == 2:
            raise ValueError(number)
        done.append(number)

    with pytest.raises(ValueError, match=r"^2$"):
        in_parallel(call, range(9))
    in_parallel(call, [0])
    assert in_parallel(str, range(40)) == [str(number) for number in range(40)]
    assert {0, 1} <= set(done) <= {0, 1, 3, 4, 6, 7}


CONTENT = bytes(range(256)) * 5
RANGES = [
    (0, -1),
    (7, -1),
    (0, 1280),
    (0, 1281),
    (7, 3),
    (1279, 9),
    (1280, 1),
    (2000, 5),
    (0, 0),
    (5, 0),
]


@pytest.mark.parametrize(("offset", "length"), RANGES)
def test_a_range_is_exact_and_one_request(either, offset, length):
    served, folder = either
    storage.write_file(f"{folder}a b#1?.gz", CONTENT)
    before = len(served.requests())
    expected = CONTENT[offset:] if length < 0 else CONTENT[offset : offset + length]
    assert storage.read_range(f"{folder}a b#1?.gz", offset, length) == expected
    assert [method for method, _ in served.requests()[before:]] == ["GET"]


@pytest.mark.parametrize("read", [storage.read_range, lambda uri: storage.open_to_read(uri).read()])
def test_an_empty_object_reads_as_nothing_and_an_absent_one_raises(either, read):
    _, folder = either
    storage.write_file(f"{folder}empty", b"")
    assert read(f"{folder}empty") == b""
    with pytest.raises(FileNotFoundError):
        read(f"{folder}absent")


def test_a_file_may_come_in_pieces(either):
    _, folder = either
    storage.write_file(f"{folder}pieces", iter([b"ab", b"", b"cd"]))
    assert storage.read_range(f"{folder}pieces") == b"abcd"


def test_an_object_whose_pieces_fail_is_not_written(either):
    def pieces():
        yield b"ab"
        raise ValueError("no more")

    _, folder = either
    storage.write_file(f"{folder}kept", b"old")
    for name in ("kept", "absent"):
        with pytest.raises(ValueError, match="no more"):
            storage.write_file(f"{folder}{name}", pieces())
    assert (storage.read_range(f"{folder}kept"), storage.exists(f"{folder}absent")) == (
        b"old",
        False,
    )


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 12_345])
def test_a_stream_becomes_an_object_when_it_is_closed(either, size):
    _, folder = either
    content = random.Random(size).randbytes(size)
    with storage.open_to_write(f"{folder}large") as stream:
        for start in range(0, size, 1_000_003):
            stream.write(content[start : start + 1_000_003])
        assert not storage.exists(f"{folder}large")
    assert storage.size_of(f"{folder}large") == size
    assert storage.read_range(f"{folder}large") == content
    with storage.open_to_read(f"{folder}large") as stream:
        assert stream.read() == content


def test_a_folder_is_what_names_have_in_common(either):
    _, folder = either
    for name in ("x/a", "x/b/c", "x/b/d", "x/.e", "xy", "x/"):
        storage.write_file(f"{folder}{name}", b"12")
    assert storage.folder_names(f"{folder}x") == [".e", "a", "b"]
    assert storage.folder_names(f"{folder}absent") == []
    assert storage.folder_names(f"{folder.split('://')[0]}://no-such-bucket/x") == []
    found = {
        file.path.removeprefix(folder): file.size_in_bytes
        for file in storage.list_below(f"{folder}x/")
    }
    assert found == {"x/": 2, "x/.e": 2, "x/a": 2, "x/b/c": 2, "x/b/d": 2}
    (one,) = (file for file in storage.list_below(f"{folder}x") if file.path.endswith("x/a"))
    described = storage.describe(f"{folder}x/a")
    assert (described.size_in_bytes, int(described.last_updated_in_seconds)) == (
        2,
        int(one.last_updated_in_seconds),
    )
    assert storage.describe(f"{folder}x/b") is None


@pytest.mark.parametrize("start", ["", "a", "b/", "b/d", "z"])
def test_a_listing_starts_anywhere_and_goes_on_in_the_order_of_names(either, start):
    _, folder = either
    names = ["a", "b-", "b.c", "b/c", "b/d", "c", "é"]
    for name in names:
        storage.write_file(f"{folder}x/{name}", b"12")
    assert storage.starts_anywhere(folder)
    found = [
        file.path.removeprefix(f"{folder}x/") for file in storage.list_below(f"{folder}x", start)
    ]
    assert [name for name in found if name >= start] == [name for name in names if name >= start]
    assert found == sorted(found)


def test_names_are_not_listed_recursively(either):
    served, folder = either
    for number in range(5):
        storage.write_file(f"{folder}sidecars/{number}", b"")
    before = len(served.requests())
    assert storage.folder_names(folder) == ["sidecars"]
    ((_, path),) = served.requests()[before:]
    assert "delimiter=%2F" in path or "delimiter=/" in path


def test_moves_replace_and_may_be_done_twice(either):
    _, folder = either
    pairs = [(f"{folder}old{number}", f"{folder}new{number}") for number in range(20)]
    for number, (source, _) in enumerate(pairs):
        storage.write_file(source, b"%d" % number)
    storage.write_file(pairs[3][1], b"in the way")
    move_files(pairs)
    move_files(pairs)
    assert [storage.read_range(target) for _, target in pairs] == [
        b"%d" % number for number in range(20)
    ]
    assert storage.folder_names(folder) == sorted(f"new{number}" for number in range(20))
    with pytest.raises(FileNotFoundError):
        storage.move_file(f"{folder}absent", f"{folder}absent too")


def test_a_file_is_kept_as_a_copy_only_if_the_copy_is_whole(either, monkeypatch):
    _, folder = either
    source, target, digest = f"{folder}a", f"{folder}b", hashlib.sha256(CONTENT).hexdigest()
    storage.write_file(source, CONTENT)
    assert not keep_file(f"{folder}absent", digest, target)
    assert not keep_file(source, "0" * 64, target)
    assert storage.folder_names(folder) == ["a"]
    store = type(find_store(source))
    copy = store.copy

    def change_and_copy(self, *names):
        self.write(source, b"x" + CONTENT[1:])
        copy(self, *names)

    def copy_and_change(self, *names):
        copy(self, *names)
        self.write(source, b"other")

    with monkeypatch.context() as patch:
        patch.setattr(store, "copy", change_and_copy)
        assert not keep_file(source, digest, target)
        assert storage.folder_names(folder) == ["a"]
        storage.write_file(source, CONTENT)
        patch.setattr(store, "copy", copy_and_change)
        assert keep_file(source, digest, target)
    assert (storage.read_range(source), storage.read_range(target)) == (b"other", CONTENT)
    assert storage.folder_names(folder) == ["a", "b"]


def test_a_copy_of_a_large_object_is_whole_and_replaces(either):
    _, folder = either
    content = random.Random(7).randbytes(2 * BLOCK_BYTES + 12_345)
    storage.write_file(f"{folder}a", content)
    storage.write_file(f"{folder}b", b"in the way")
    find_store(folder).copy(f"{folder}a", f"{folder}b")
    assert storage.read_range(f"{folder}a") == storage.read_range(f"{folder}b") == content
    with pytest.raises(FileNotFoundError):
        find_store(folder).copy(f"{folder}absent", f"{folder}b")


def test_a_copy_downloads_nothing(either):
    served, folder = either
    storage.write_file(f"{folder}a", CONTENT)
    before = len(served.requests())
    find_store(folder).copy(f"{folder}a", f"{folder}b")
    methods = [method for method, _ in served.requests()[before:]]
    assert methods == (["POST"] if folder.startswith("gs") else ["HEAD", "PUT"])


def test_sizes_take_a_request_each(either):
    served, folder = either
    for number in range(5):
        storage.write_file(f"{folder}{number}", bytes(number))
    before = len(served.requests())
    assert map_each(storage.size_of, (f"{folder}{number}" for number in (4, 0, 9, 2))) == [
        4,
        0,
        None,
        2,
    ]
    assert len(served.requests()) - before == 4


def test_what_is_removed_may_be_gone_already(either):
    _, folder = either
    names = [f"{folder}{name}" for name in ("a*", "a[1]", "ab", "sub/c")]
    for name in names:
        storage.write_file(name, b"x")
    storage.remove_files([*names[:2], f"{folder}absent"])
    assert storage.folder_names(folder) == ["ab", "sub"]
    storage.remove_folder(folder)
    storage.remove_folder(folder)
    assert storage.folder_names(folder) == []


class OneObject:
    """A store of one object, which notes each range that it is asked for."""

    def __init__(self, content):
        self.content, self.asked = content, []

    def read(self, uri, offset, length):
        self.asked.append((offset, length))
        return self.content[offset:][: None if length < 0 else length]

    def describe(self, uri):
        from apache_beam.io.filesystem import FileMetadata

        return FileMetadata(uri, len(self.content), 0.0)


def test_a_stream_requests_blocks_and_nothing_after_a_short_one():
    store = OneObject(random.Random(0).randbytes(2 * BLOCK_BYTES + 5))
    with open_object(store, "x") as stream:
        pieces = list(iter(lambda: stream.read(2**21), b""))
    assert b"".join(pieces) == store.content
    assert store.asked == [(start * BLOCK_BYTES, BLOCK_BYTES) for start in range(3)]


def test_what_is_left_of_a_stream_is_one_range():
    store = OneObject(random.Random(0).randbytes(2 * BLOCK_BYTES + 5))
    with open_object(store, "x") as stream:
        assert stream.read(3) == store.content[:3]
        assert stream.read() == store.content[3:]
        assert stream.read() == b""
    assert store.asked == [(0, BLOCK_BYTES), (BLOCK_BYTES, -1)]


def test_a_stream_can_be_entered_anywhere():
    store = OneObject(bytes(range(100)))
    with open_object(store, "x") as stream:
        assert (stream.seek(-3, 2), stream.read()) == (97, bytes([97, 98, 99]))
        assert (stream.seek(10), stream.read(2), stream.tell()) == (10, bytes([10, 11]), 12)
        assert (stream.seek(5, 1), stream.read(1)) == (17, bytes([17]))
        assert (stream.seek(1000), stream.read(1)) == (1000, b"")
