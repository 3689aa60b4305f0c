"""An object with its version, as the clients of stores describe it."""

from apache_beam.io.filesystem import FileMetadata


class VersionedObject(FileMetadata):
    """Path, size and time of an object, and its version.

    Attributes:
        version: a text that changes with the content: `generation:` or `etag:` and the store's
            value; empty if the store has none.
    """

    def __init__(
        self, path: str, size_in_bytes: int, last_updated_in_seconds: float, version: str
    ) -> None:
        super().__init__(path, size_in_bytes, last_updated_in_seconds)
        self.version = version


def version_of(file: FileMetadata) -> str:
    """Returns the version of an object; its time if the store has no versions."""
    version = ""
    if isinstance(file, VersionedObject):
        version = file.version
    return version or str(file.last_updated_in_seconds)
