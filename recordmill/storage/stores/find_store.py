"""Finds the store of a URL, and adapts Beam's file systems.

`record_sink` uses what is private to Beam: its test names the version.

Beam's file systems make a client for every call (85 ms of CPU on S3, a new connection on GCS), ask
for an object's size before they read it, and read 16 MiB for any range. On `gs://` and `s3://`, a
process has one client here, and a range takes one request. All other URLs go through Beam.
"""

import os
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.io.tfrecordio import WriteToTFRecord
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.storage.stores.store import (
    BLOCK_BYTES,
    BrokenBodyError,
    Store,
    read_resuming,
    system_error,
)

_PLAIN = CompressionTypes.UNCOMPRESSED  # by default Beam unpacks by extension


def record_sink(path: str) -> Any:
    """Returns the sink of `WriteToTFRecord`.

    It has `write_encoded_record(file, record)` and `close(file)`.
    """
    return WriteToTFRecord(path)._sink


class BeamStore(Store):
    """Files on any of Beam's file systems, which may show a file before it is complete."""

    is_atomic = False

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Opens the file, and reads a range."""
        if self.describe(uri) is None:  # each file system has its own error for that
            raise system_error(404, "", uri)

        def ask(done: int) -> Iterator[bytes]:
            left = BLOCK_BYTES
            if length >= 0:
                left = length - done
            try:
                with FileSystems.open(uri, compression_type=_PLAIN) as stream:
                    if offset + done:
                        stream.seek(offset + done)
                    while left > 0 and (piece := stream.read(min(left, BLOCK_BYTES))):
                        yield piece
                        if length >= 0:
                            left -= len(piece)
            except PermissionError:
                raise
            except Exception as error:  # each file system has errors of its own
                raise BrokenBodyError(str(error) or type(error).__name__, uri) from error

        return read_resuming(ask, uri)

    def describe(self, uri: str) -> FileMetadata | None:
        """Returns size and time of one file."""
        files = FileSystems.match([_make_pattern(uri)])[0].metadata_list
        return next((file for file in files if file.path == uri), None)

    def list_below(self, prefix: str, start: str = "") -> Iterator[FileMetadata]:
        """Yields every file whose URL has this prefix; `start` is ignored."""
        found = FileSystems.match([_make_pattern(prefix) + "**"])[0].metadata_list
        yield from (file for file in found if file.path.startswith(prefix))

    def names(self, prefix: str) -> Iterator[str]:
        """Yields the next part of each URL with this prefix, found by listing everything below."""
        for file in self.list_below(prefix):
            name, slash, _ = file.path[len(prefix) :].partition("/")
            yield name + slash

    def open_to_write(self, uri: str) -> BinaryIO:
        """Returns a stream into the file."""
        return FileSystems.create(uri, compression_type=_PLAIN)

    def move(self, source: str, target: str) -> None:
        """Renames a file."""
        FileSystems.rename([source], [target])

    def delete(self, uris: list[str]) -> None:
        """Deletes files."""
        there = [uri for uri in uris if self.describe(uri)]
        FileSystems.delete([re.sub(r"([*?\[])", r"[\1]", uri) for uri in there])


def _make_pattern(path: str) -> str:
    """Returns a pattern that matches a path and few others.

    Beam's own escape, `[[]`, makes Python warn.
    """
    return re.sub(r"[*?\[]", "?", path)


class _OptionsOnly(LocalFileSystem):
    """A file system without files: Beam gives its options to each file system that it makes."""

    def __init__(self, pipeline_options: Any) -> None:
        super().__init__(pipeline_options)
        self.options = pipeline_options

    @classmethod
    def scheme(cls) -> str:
        return "recordmill-options"


def file_system_options() -> PipelineOptions | None:
    """Returns what `FileSystems.set_options` was given, by the launcher or by a worker of Beam."""
    made = FileSystems.get_filesystem(f"{_OptionsOnly.scheme()}://")
    assert isinstance(made, _OptionsOnly)
    return made.options if isinstance(made.options, PipelineOptions) else None


_lock = threading.Lock()
_BEAM = BeamStore()


def find_store(uri: str) -> Store:
    """Finds this process's store for a URL."""
    scheme = FileSystems.get_scheme(uri)
    if scheme not in ("gs", "s3"):
        return _BEAM
    with _lock:
        return _make_store(scheme, file_system_options())


def _forget_clients() -> None:
    """Forgets the clients in each forked process.

    Connections, and a lock that another thread held, belong to the parent.
    """
    global _lock
    _lock = threading.Lock()
    _make_store.cache_clear()


os.register_at_fork(after_in_child=_forget_clients)


@lru_cache(maxsize=2)
def _make_store(scheme: str, set_options: PipelineOptions | None) -> Store:
    options = set_options or PipelineOptions([])
    try:
        if scheme == "gs":
            from recordmill.storage.stores.google_store import GoogleStore

            return GoogleStore(options)
        from recordmill.storage.stores.amazon_store import AmazonStore

        return AmazonStore(options)
    except ImportError:  # Beam's own error says which of its extras is missing
        return _BEAM
