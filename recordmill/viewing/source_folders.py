"""Reads the sources of images below folders that the user names, and nothing else."""

import os
from dataclasses import dataclass

from recordmill import storage
from recordmill.schemas.errors import LoadError

MOST_SOURCE_BYTES = 2**27
"""The largest source that is shown."""


@dataclass(frozen=True, slots=True)
class SourceFolders:
    """Folders with the files that a dataset was made from.

    Attributes:
        folders: their paths; keys are paths below them.
    """

    folders: tuple[str, ...] = ()

    def read(self, key: str) -> bytes:
        """Returns the source with a key, from the first folder that has it.

        Keys come from data: one that leads out of a folder, also through a link, finds nothing.

        Raises:
            LoadError: no folder has it.
            OSError: it cannot be read, or is too large.
        """
        for folder in self.folders:
            path = _find(folder, key)
            if path is not None and storage.size_of(path) is not None:
                return storage.read_whole(path, MOST_SOURCE_BYTES)
        raise LoadError(f"no folder of --source has {key!r:.200}")


def _find(folder: str, key: str) -> str | None:
    """Returns the path of a source; None if the key leads out of the folder."""
    parts = key.split("/")
    if not key or "\0" in key or not {"", ".", ".."}.isdisjoint(parts):
        return None
    if not storage.is_local(folder):
        return storage.join(folder, key)
    root, path = os.path.realpath(folder), os.path.realpath(os.path.join(folder, *parts))
    if os.path.commonpath([root, path]) != root:
        return None
    return path
