import io
import os
import sys
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill import storage
from recordmill.storage.stores import find_store as stores
from recordmill.storage.stores.find_store import (
    BeamStore,
    _make_store,
    file_system_options,
    find_store,
    record_sink,
)


def test_the_version_whose_insides_these_are():
    assert version("apache-beam").startswith("2.77."), (
        "read the private names in storage/stores/find_store.py against the new one"
    )


@pytest.fixture
def options_before():
    """Gives the process its options back after the test."""
    before = file_system_options()
    yield
    FileSystems.set_options(before)


def test_other_stores_are_left_to_beam():
    assert [type(find_store(path)) for path in ("/a", "hdfs://a/b", "shelf://a/b")] == [
        BeamStore
    ] * 3


def test_one_store_serves_a_process_until_its_options_change(monkeypatch, options_before):
    made = SimpleNamespace(AmazonStore=lambda options: [options])  # the real one needs boto3
    monkeypatch.setitem(sys.modules, "recordmill.storage.stores.amazon_store", made)
    _make_store.cache_clear()
    FileSystems.set_options(None)
    before = find_store("s3://a/b")
    assert find_store("s3://c/d") is before
    options = PipelineOptions([])
    FileSystems.set_options(options)
    after = find_store("s3://a/b")
    assert after[0] is options
    assert find_store("s3://c/d") is after
    _make_store.cache_clear()


@pytest.mark.parametrize("options", [PipelineOptions(["--s3_region_name=x"]), None])
def test_options_are_those_that_beams_file_systems_were_given(options, options_before):
    FileSystems.set_options(options)
    assert file_system_options() is options


class CrateFileSystem(LocalFileSystem):
    """An object store: it has no folders, and its names are those of a list."""

    objects = ("a/1", "a/2/3", "a[/4", "ab/5", "b/6")

    @classmethod
    def scheme(cls):
        return "crate"

    def has_dirs(self):
        return False

    def _list(self, prefix):
        uris = [f"crate://{name}" for name in self.objects]
        yield from (FileMetadata(uri, 1) for uri in uris if uri.startswith(prefix))


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("a/", ["a/1", "a/2/3"]),
        ("a", ["a/1", "a/2/3", "a[/4", "ab/5"]),
        ("a[", ["a[/4"]),
        ("c", []),
    ],
)
def test_a_store_without_folders_is_listed_by_prefix(prefix, names):
    found = [file.path for file in find_store("crate://a").list_below(f"crate://{prefix}")]
    assert found == [f"crate://{name}" for name in names]


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


@pytest.mark.parametrize("read", [storage.read_range, lambda uri: storage.open_to_read(uri).read()])
def test_what_beam_does_not_find_is_absent(monkeypatch, read):
    monkeypatch.setattr(BeamStore, "describe", lambda self, uri: None)
    with pytest.raises(FileNotFoundError) as caught:
        read("other://bucket/a")
    assert caught.value.filename == "other://bucket/a"
