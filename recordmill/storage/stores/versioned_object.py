"""An object with what its store says of its version."""

from apache_beam.io.filesystem import FileMetadata


class VersionedObject(FileMetadata):
    """Path, size and time of an object, and its version.

    Attributes:
        version: another text for each content: `generation:` or `etag:` and what the store gives; empty if it gives
            none.
    """

    def __init__(self, path: str, size_in_bytes: int, last_updated_in_seconds: float, version: str) -> None:
        super().__init__(path, size_in_bytes, last_updated_in_seconds)
        self.version = version


def version_of(file: FileMetadata) -> str:
    """The version of an object; the time if its store gives none."""
    version = file.version if isinstance(file, VersionedObject) else ""
    return version or str(file.last_updated_in_seconds)
