"""A walk through a local folder that names everything it meets.

Beam's own match skips what it cannot read, linked folders and names with `[`, silently, and dies on a name that is
not UTF-8.
"""

import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Entry(NamedTuple):
    """One thing found: a file to convert, or something to be told.

    Attributes:
        path: where it is below the root, `/`-separated, as the file system spells it.
        size: bytes, for a file.
        version: modification time in nanoseconds, for a file.
        status: the empty string for a file, else as in `ImageRef.status`.
        reason: a code where status is set.
        detail: one line where status is set.
    """

    path: str
    size: int = 0
    version: str = ""
    status: str = ""
    reason: str = ""
    detail: str = ""


Ignore = Callable[[str, bool], str]
"""Says why a path (and whether it is a folder) is to be ignored: a reason code, or the empty string."""


def walk_folder(root: str, ignore: Ignore) -> Iterator[Entry]:
    """Yields every file below a folder, links followed, and everything that is not a plain, readable file.

    A folder that is ignored counts as one entry and is not entered. Links are followed; one that leads back to a
    folder on its own path is a `fatal` entry, since it would never end. So is a folder that cannot be read: how
    many images it holds cannot be known.
    """
    try:
        status = os.stat(root)
    except OSError as error:
        yield Entry("", status="fatal", reason="missing_input", detail=f"the input cannot be read ({_why(error)})")
        return
    yield from _walk(root, "", ignore, ((status.st_dev, status.st_ino),))


def _walk(root: str, below: str, ignore: Ignore, ancestors: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
    try:
        with os.scandir(os.path.join(root, below) if below else root) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        yield Entry(below, status="fatal", reason="folder_vanished", detail="the folder vanished while being listed")
        return
    except OSError as error:
        yield Entry(
            below, status="fatal", reason="unreadable_folder", detail=f"the folder cannot be read ({_why(error)})"
        )
        return
    if not found:
        yield Entry(below, status="warning", reason="empty_folder", detail="the folder is empty")
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            is_folder = entry.is_dir()
            if reason := ignore(path, is_folder):
                yield Entry(path, status="ignored", reason=reason)
            elif is_folder:
                yield from _enter(root, path, entry, ignore, ancestors)
            else:
                yield _describe_file(path, entry)
        except FileNotFoundError:
            missing = "the link leads nowhere" if entry.is_symlink() else "the file vanished while being listed"
            yield Entry(path, status="rejected", reason="vanished", detail=missing)
        except OSError as error:
            if error.errno == errno.ELOOP:
                yield Entry(path, status="fatal", reason="link_loop", detail="the link leads to itself")
            else:
                yield Entry(path, status="rejected", reason="unreadable", detail=_why(error))


def _enter(
    root: str, path: str, entry: os.DirEntry[str], ignore: Ignore, ancestors: tuple[tuple[int, int], ...]
) -> Iterator[Entry]:
    status = entry.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in ancestors:
        yield Entry(path, status="fatal", reason="link_loop", detail="the link leads back to a folder that holds it")
        return
    yield from _walk(root, path, ignore, (*ancestors, identity))


def _describe_file(path: str, entry: os.DirEntry[str]) -> Entry:
    status = entry.stat()
    if not entry.is_file():
        return Entry(path, status="rejected", reason="not_a_file", detail="a device, socket or pipe is no image")
    return Entry(path, status.st_size, str(status.st_mtime_ns))


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
