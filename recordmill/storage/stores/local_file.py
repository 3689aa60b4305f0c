"""Files on this machine."""

import errno
import os
from typing import BinaryIO

_CANNOT_FORCE = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS})
"""Error codes of file systems on which nothing needs to be forced."""

_BUFFER_BYTES = 32 * 2**10  # thumbnails are written ten at a time, and photographs are not copied


def read_local(path: str, offset: int, length: int) -> bytes:
    """Reads by system calls; Beam's `open` takes four times as long (43 instead of 10 us for a 100 KB file).

    A pipe raises OSError; reading it would block until it is written to.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return read_open(file, offset, length)
    except OSError as error:
        if error.errno == errno.ESPIPE:
            raise OSError(errno.ESPIPE, "it is a pipe, not a file", path) from None
        raise
    finally:
        os.close(file)


def read_open(file: int, offset: int, length: int) -> bytes:
    """Reads a range of an open file, without moving its position; -1 reads to the end."""
    rest = max(os.fstat(file).st_size - offset, 0)
    length = rest if length < 0 else min(length, rest)
    data = os.pread(file, length, offset)
    while len(data) < length and (more := os.pread(file, length - len(data), offset + len(data))):
        data += more  # network file systems may return less
    return data


def create_local(path: str) -> BinaryIO:
    """Opens a file for writing as a stream, and makes its folder if it is missing."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return open(path, "wb", _BUFFER_BYTES)


def force_to_disk(path: str) -> None:
    """Waits until a file, or a folder's list of names, is on the disk.

    A renamed file survives a power cut if it was forced before it was renamed, and its folder after that (fsync(2)).

    Raises:
        OSError: it does not exist, or could not be written: only now do some full or broken disks report an error.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _CANNOT_FORCE:
            raise
    finally:
        os.close(file)
