"""Paths that data name: they stay below the root that the user gave, or are refused."""

import errno
import os
import posixpath
import stat
import unicodedata

from recordmill import storage
from recordmill.schemas.rejection import Rejected


class NotAFileError(OSError):
    """What a path leads to is a folder, a device or a pipe."""


def reason_of(error: OSError) -> str:
    """The reason to reject what `size_and_version` could not look at."""
    return "not_a_file" if isinstance(error, NotAFileError) else "vanished"


def resolve_inside(root: str, path: str) -> str:
    """Where a path named in data leads: below the root, links followed.

    Args:
        root: a folder, on any file system.
        path: relative to it, `/`-separated; or the whole path or URL of something below it.

    Raises:
        Rejected: it leads elsewhere, is of another store, or is not a path at all. The message does not name the
            root: a rejection reads the same in every place.
    """
    prefix = root.rstrip("/") + "/"
    below = path[len(prefix) :] if path.startswith(prefix) else path
    if "://" in below or below.startswith(("/", "file:")):
        raise Rejected("list", "outside_root", f"{path!r:.200} is not below the input")
    normal = posixpath.normpath(below)
    if not below or "\0" in below or normal in (".", "..") or normal.startswith("../"):
        raise Rejected(
            "list", "outside_root", f"{path!r:.200} leads out of the input" if below else "the path is empty"
        )
    if ".." in below.split("/"):
        raise Rejected("list", "outside_root", f"{path!r:.200} has .. in it")
    found = prefix + normal
    if storage.is_local(root):
        real_root = os.path.realpath(root)
        if os.path.commonpath([real_root, os.path.realpath(found)]) != real_root:
            raise Rejected("list", "outside_root", f"{path!r:.200} is a link that leads out of the input")
    return found


def size_and_version(uri: str) -> tuple[int, str]:
    """A file's size and modification time as references have them; (-1, "") where asking would cost a request.

    Raises:
        NotAFileError: it is not a file.
        OSError: there is no such file, or it cannot be looked at.
    """
    if not storage.is_local(uri):
        return -1, ""
    status = os.stat(uri)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(errno.EINVAL, "it is a folder, a device or a pipe, and no file", uri)
    return status.st_size, str(status.st_mtime_ns)


def root_of(uri: str, path: str) -> str:
    """The input that a file was found in.

    Args:
        uri: of the file.
        path: of the file below its input, or as much of it as is not to be left: `uri` ends with it, however spelt.
    """
    return uri.rsplit("/", path.count("/") + 1)[0]


def spelled_path(uri: str, path: str) -> str:
    """A file's `path` below its input as the store spells it: what paths of its neighbours are built from.

    A folder's name may be in NFD on disk, while `path` is in NFC.

    Args:
        uri: of the file.
        path: as for `root_of`.
    """
    return uri[len(root_of(uri, path)) + 1 :]


def key_of(key: str, path: str, other: str) -> str:
    """The key of the path `other`, below the input whose file at `path` has the key `key`."""
    return key[: len(key) - len(path)] + unicodedata.normalize("NFC", posixpath.normpath(other))
