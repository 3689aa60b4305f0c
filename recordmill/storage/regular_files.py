"""Opens local files to read, and nothing else: a pipe would block, and a device may never end.

A folder from another person may hold both, or links to them, under the names of a dataset's files.
"""

import errno
import os
import stat


class NotAFileError(OSError):
    """What has the name of a file is a pipe, a device or a socket, or is too large to be one."""


_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: str) -> int:
    """Opens a local file to read; returns its descriptor, which the caller closes.

    Raises:
        FileNotFoundError: it does not exist.
        IsADirectoryError: it is a folder.
        NotAFileError: it is a pipe, a device or a socket.
        OSError: it cannot be opened.
    """
    try:
        file = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device without a driver
            raise _refuse(path) from None
        raise
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise _refuse(path)


def _refuse(path: str) -> NotAFileError:
    return NotAFileError(errno.EINVAL, "it is a pipe or a device", path)
