"""What Recordmill uses of Beam's internals, and its errors; the test of this module names the version."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.tfrecordio import WriteToTFRecord
from apache_beam.options.pipeline_options import PipelineOptions

_HTTP_CODES = {404: FileNotFoundError, 403: PermissionError}


def file_system_options() -> PipelineOptions | None:
    """The options that the pipeline of this process has set for file systems; None where it has set none."""
    return FileSystems._pipeline_options


def list_pages(filesystem: FileSystem, prefix: str) -> Iterator[FileMetadata]:
    """Every file whose path begins with the prefix, page by page: the public `match` would hold all of them."""
    yield from filesystem._list(prefix)


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
