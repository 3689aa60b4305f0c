import errno
import io
import os
import sys
from http import HTTPStatus
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill import storage
from recordmill.storage.stores import find_store as stores
from recordmill.storage.stores.find_store import (
    BeamStore,
    VersionedObject,
    _make_store,
    find_store,
    record_sink,
    version_of,
)


def test_the_version_whose_insides_these_are():
    assert version("apache-beam").startswith("2.77."), (
        "read the private names in storage/stores/find_store.py against the new one"
    )


def test_other_stores_are_left_to_beam():
    assert [type(find_store(path)) for path in ("/a", "hdfs://a/b", "shelf://a/b")] == [BeamStore] * 3


def test_one_store_serves_a_process_until_its_options_change(monkeypatch):
    made = SimpleNamespace(AmazonStore=lambda options: [options])  # the real one needs boto3
    monkeypatch.setitem(sys.modules, "recordmill.storage.stores.amazon_store", made)
    _make_store.cache_clear()
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    before = find_store("s3://a/b")
    assert find_store("s3://c/d") is before
    options = PipelineOptions([])
    FileSystems.set_options(options)
    after = find_store("s3://a/b")
    assert after[0] is options
    assert find_store("s3://c/d") is after
    _make_store.cache_clear()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_makes_a_client_of_its_own(monkeypatch):
    made = SimpleNamespace(AmazonStore=lambda options: [os.getpid()])
    monkeypatch.setitem(sys.modules, "recordmill.storage.stores.amazon_store", made)
    _make_store.cache_clear()
    assert find_store("s3://a/b") == [os.getpid()]
    with stores._lock:  # as if another thread had it
        child = os.fork()
        if child == 0:
            os._exit(0 if find_store("s3://a/b") == [os.getpid()] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert find_store("s3://a/b") == [os.getpid()]
    _make_store.cache_clear()


def test_the_sink_writes_frames():
    written = io.BytesIO()
    record_sink("unused").write_record(written, b"abc")
    assert written.getvalue()[:8] == (3).to_bytes(8, "little")
    assert written.getvalue()[12:15] == b"abc"
    assert len(written.getvalue()) == 19


class StoreError(Exception):
    """As Google's and Amazon's: no OSError, with a status."""

    def __init__(self, code):
        super().__init__(f"status {code}")
        self.code = code


def caused(code):
    error = BeamIOError("open failed")
    error.__cause__ = StoreError(code)
    return error


ABSENT = [StoreError(404), StoreError(HTTPStatus.NOT_FOUND), caused(404), BeamIOError("x", {"p": StoreError(404)})]
ABSENT += [FileNotFoundError("p"), BeamIOError("x", {"p": FileNotFoundError("p")})]
DENIED = [StoreError(403), caused(HTTPStatus.FORBIDDEN), BeamIOError("x", {"p": StoreError(403)})]
DENIED += [BeamIOError("x", {"p": PermissionError("p")})]
OTHERS = [StoreError(503), StoreError(None), BeamIOError("x"), BeamIOError("x", {"p": StoreError(500)}), OSError(5, "")]


@pytest.mark.parametrize("read", [storage.read_range, lambda uri: storage.open_to_read(uri).read()])
@pytest.mark.parametrize(
    ("error", "code"),
    [(error, errno.ENOENT) for error in ABSENT] + [(error, errno.EACCES) for error in DENIED],
)
def test_a_stores_errors_for_absent_and_forbidden_objects_become_the_systems(monkeypatch, read, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(FileSystems, "open", fail)
    with pytest.raises({errno.ENOENT: FileNotFoundError, errno.EACCES: PermissionError}[code]) as caught:
        read("other://bucket/a")
    assert (caught.value.errno, caught.value.filename, caught.value.__cause__) == (code, "other://bucket/a", error)


@pytest.mark.parametrize("error", OTHERS)
def test_other_errors_of_a_store_stay(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(FileSystems, "open", fail)
    with pytest.raises(type(error)) as caught:
        storage.read_range("other://bucket/a")
    assert caught.value is error


def test_an_object_found_absent_at_the_first_read_is_absent(monkeypatch):
    class Lazy(io.BytesIO):
        def read(self, *_):
            raise StoreError(404)

    monkeypatch.setattr(FileSystems, "open", lambda *_, **__: Lazy())
    with pytest.raises(FileNotFoundError):
        storage.read_range("other://bucket/a", 3, 4)


def test_the_version_of_an_object_is_what_its_store_gives_or_the_time():
    assert version_of(VersionedObject("gs://b/a", 1, 2.5, "generation:7")) == "generation:7"
    assert version_of(VersionedObject("gs://b/a", 1, 2.5, "")) == "2.5"
    assert version_of(FileMetadata("hdfs://a", 1, 2.5)) == "2.5"
