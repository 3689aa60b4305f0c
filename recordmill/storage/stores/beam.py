"""Beam's file systems as a store, and what Recordmill uses of Beam's internals; the test names the version."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.tfrecordio import WriteToTFRecord
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.storage.stores.store import Store

_PLAIN = CompressionTypes.UNCOMPRESSED  # by default Beam unpacks by extension
_HTTP_CODES = {404: FileNotFoundError, 403: PermissionError}


def file_system_options() -> PipelineOptions | None:
    """The options that the pipeline of this process has set for file systems; None where it has set none."""
    return FileSystems._pipeline_options


def record_sink(path: str) -> Any:
    """What writes frames for `WriteToTFRecord`: `write_record(file, record)` and `close(file)`."""
    return WriteToTFRecord(path)._sink


@contextmanager
def beam_errors_as_systems(path: str) -> Iterator[None]:
    """Turns a store's own errors for a missing or forbidden object, which Beam passes on, into OSErrors."""
    try:
        yield
    except Exception as error:  # Google's and Amazon's are not OSErrors, and their packages may not be installed
        details = getattr(error, "exception_details", None)  # of a BeamIOError, by path
        for cause in (error, error.__cause__, *(details.values() if isinstance(details, dict) else ())):
            kind = _system_error(cause)
            if kind is not None:
                code = errno.ENOENT if kind is FileNotFoundError else errno.EACCES
                raise OSError(code, os.strerror(code), path) from error
        raise


def _system_error(error: Any) -> type[OSError] | None:
    for kind in _HTTP_CODES.values():
        if isinstance(error, kind):
            return kind
    code = getattr(error, "code", None)
    return _HTTP_CODES.get(code) if isinstance(code, int) else None


class BeamStore(Store):
    """Files on any of Beam's file systems, which may show a file before it is complete."""

    is_atomic = False

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Opens the file, and reads a range."""
        with beam_errors_as_systems(uri), FileSystems.open(uri, compression_type=_PLAIN) as stream:
            if offset:
                stream.seek(offset)
            data: bytes = stream.read() if length < 0 else stream.read(length)
            return data

    def describe(self, uri: str) -> FileMetadata | None:
        """Size and time of one file."""
        files = FileSystems.match([_like(uri)])[0].metadata_list
        return next((file for file in files if file.path == uri), None)

    def list_below(self, prefix: str) -> Iterator[FileMetadata]:
        """Every file whose URL has this prefix."""
        filesystem = FileSystems.get_filesystem(prefix)
        if filesystem.has_dirs():
            found = filesystem.match([_like(prefix) + "**"])[0].metadata_list
        else:  # `match` would hold all of them
            found = filesystem._list(prefix)
        yield from (file for file in found if file.path.startswith(prefix))

    def names(self, prefix: str) -> Iterator[str]:
        """The next part of each URL with this prefix; everything below is listed."""
        for file in self.list_below(prefix):
            name, slash, _ = file.path[len(prefix) :].partition("/")
            yield name + slash

    def open_to_write(self, uri: str) -> BinaryIO:
        """A stream into the file."""
        stream: BinaryIO = FileSystems.create(uri, compression_type=_PLAIN)
        return stream

    def move(self, source: str, target: str) -> None:
        """Renames a file."""
        FileSystems.rename([source], [target])

    def delete(self, uris: list[str]) -> None:
        """Deletes files."""
        there = [uri for uri in uris if self.describe(uri)]
        FileSystems.delete(["".join(f"[{letter}]" if letter in "*?[" else letter for letter in uri) for uri in there])


def _like(path: str) -> str:
    """A pattern that matches a path and few others; Beam's own escape, `[[]`, makes Python warn."""
    return "".join("?" if letter in "*?[" else letter for letter in path)
