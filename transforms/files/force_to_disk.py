"""Files that have to be there after a power cut."""

import errno
import os
from collections.abc import Iterable

from transforms.files import storage

_CANNOT = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS})
"""What file systems answer that have nothing to force."""


def force_to_disk(paths: Iterable[str]) -> None:
    """Waits until files, and folders' lists of names, are on this machine's disk; stores keep what they have taken.

    A renamed file is there after a power cut when it was forced before it was renamed, and its folder behind that
    (fsync(2)).

    Raises:
        OSError: one of them is not there, or could not be written: some disks are found full, or broken, only now.
    """
    for path in filter(storage.is_local, paths):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        finally:
            os.close(file)
