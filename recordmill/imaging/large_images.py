"""Large images wait for one another, so that their memory does not add up.

Decoders need up to 17 bytes for each pixel of the formats that are accepted by default: 1.5 GiB for
the largest image. Threads and processes of a user on one machine take turns. The system releases a
process's lock however that ends, and who waits longer than a decoder needs goes on without a turn:
a process that was stopped does not hold up the others.
"""

import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

LARGE_BYTES = 256 * 2**20
"""The most memory that an image may need without waiting for a turn."""

MOST_SECONDS = 300.0
"""How long an image waits while no other image ends."""

_POLL_SECONDS = 0.02

BYTES_PER_PIXEL = {
    "JPEG": 16,
    "PNG": 17,
    "GIF": 17,
    "WEBP": 17,
    "BMP": 17,
    "TIFF": 17,
    "PPM": 17,
    "AVIF": 20,
    "JPEG2000": 25,
    "HEIC": 20,
}
"""The most memory that loading a file through Pillow and converting it takes, as measured."""

_NOTHING = nullcontext()


class _Turns:
    """The state of this process; a forked one starts with none, since locks are not inherited."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner: int | None = None

    def reset(self) -> None:
        """Forgets the locks of threads that a fork did not copy."""
        self.__init__()  # type: ignore[misc]


_TURNS = _Turns()
os.register_at_fork(after_in_child=_TURNS.reset)


def take_turn(estimate: int) -> AbstractContextManager[None]:
    """Waits for other large images if this one needs more than `LARGE_BYTES`.

    Args:
        estimate: the bytes of memory that it needs.
    """
    if estimate <= LARGE_BYTES or _TURNS.owner == threading.get_ident():
        return _NOTHING
    return _turn()


@contextmanager
def _turn() -> Iterator[None]:
    turns = _TURNS
    lock = turns.lock
    is_mine = lock.acquire(timeout=MOST_SECONDS)
    try:
        if is_mine:
            turns.owner = threading.get_ident()
        with _machine_lock(lock_path()) if is_mine else _NOTHING:
            yield
    finally:
        if is_mine:
            turns.owner = None
            lock.release()


def lock_path() -> str:
    """Returns the file that processes lock: one for each user, in the temporary folder."""
    return os.path.join(tempfile.gettempdir(), f"recordmill-large-images-{os.getuid()}.lock")


@contextmanager
def _machine_lock(path: str) -> Iterator[None]:
    """Holds the lock on a file, and deletes the file at the end; goes on if that cannot be had."""
    file = None
    with suppress(OSError):  # no temporary folder, a full disk, a file system without locks
        file = _lock(path)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):
                os.unlink(path)  # while it is locked: see `_lock`
            os.close(file)


def _lock(path: str) -> int | None:
    """Returns the descriptor of the locked file; None if that takes too long."""
    waited, last = time.monotonic(), -1
    while time.monotonic() - waited < MOST_SECONDS:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                raise OSError("it is not our file")
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, found):  # else its holder has deleted it meanwhile
                return file
        except BlockingIOError:
            if found.st_ino != last:  # another one has its turn now
                waited, last = time.monotonic(), found.st_ino
            time.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    return None


def _is_at(path: str, found: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        there = os.stat(path, follow_symlinks=False)
        return (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)
    return False
