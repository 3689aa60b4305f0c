"""What Recordmill uses of Beam's internals; the test of this module names the version that has them."""

from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.tfrecordio import WriteToTFRecord
from apache_beam.options.pipeline_options import PipelineOptions


def file_system_options() -> PipelineOptions | None:
    """The options that the pipeline of this process has set for file systems; None where it has set none."""
    return FileSystems._pipeline_options


def list_pages(filesystem: FileSystem, prefix: str) -> Iterator[FileMetadata]:
    """Every file whose path begins with the prefix, page by page: the public `match` would hold all of them."""
    yield from filesystem._list(prefix)


def record_sink(path: str) -> Any:
    """What writes frames for `WriteToTFRecord`: `write_record(file, record)` and `close(file)`."""
    return WriteToTFRecord(path)._sink
