"""Walks a local folder and reports everything in it; decides which paths of an input are ignored.

Beam's own match silently skips unreadable files, linked folders and names with `[`, and fails on a name that is not
UTF-8.
"""

import errno
import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator, Set
from functools import cache
from itertools import accumulate

import orjson
import pathspec

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.listing.named_files import explain_os_error as _why

Ignore = Callable[[str, bool], str]
"""Takes a path and whether it is a folder; returns the reason code for ignoring it, or the empty string."""


def walk_folder(root: str, ignore: Ignore, below: str = "", without: Set[str] = frozenset()) -> Iterator[ImageRef]:
    """Yields every file below a folder, and a notice of everything that is not a plain, readable file.

    The key of each is its path below the root, `/`-separated, as the file system spells it; its URI is not set.

    An ignored folder counts as one entry and is not entered. Links are followed. A link back to a folder on its own
    path is a `fatal` entry, because following it would never end. So is a folder that cannot be read, because the
    number of its images is unknown. Their details say how to leave them out.

    Args:
        root: the folder; keys are paths below it.
        ignore: decides what to ignore.
        below: the folder below the root to walk; empty: the root itself.
        without: folders below the root that are not entered.
    """
    ancestors = []
    try:
        for path in accumulate(["", *below.split("/")] if below else [""], os.path.join):
            status = os.stat(os.path.join(root, path) if path else root)
            ancestors.append((status.st_dev, status.st_ino))
    except OSError as error:
        if not below:
            yield ImageRef("", "").notice("fatal", "missing_input", f"the input cannot be read ({_why(error)})")
            return
    yield from _walk(root, below, ignore, tuple(ancestors), without)


def _walk(
    root: str, below: str, ignore: Ignore, ancestors: tuple[tuple[int, int], ...], without: Set[str]
) -> Iterator[ImageRef]:
    try:
        with os.scandir(os.path.join(root, below) if below else root) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        yield ImageRef(below, "").notice("fatal", "folder_vanished", "the folder vanished while being listed")
        return
    except OSError as error:
        detail = f"the folder cannot be read ({_why(error)}): make it readable{_or_leave_out(below, True)}"
        yield ImageRef(below, "").notice("fatal", "unreadable_folder", detail)
        return
    if not found:
        what = "folder" if below else "input"
        yield ImageRef(below, "").notice("warning", "empty_folder", f"the {what} is empty")
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            is_folder = entry.is_dir()
            if reason := ignore(path, is_folder):
                yield ImageRef(path, "").notice("ignored", reason)
                continue
            status = entry.stat()
            identity = (status.st_dev, status.st_ino)
            if is_folder and identity in ancestors:
                detail = f"the link leads back to a folder that holds it: remove it{_or_leave_out(path, True)}"
                yield ImageRef(path, "").notice("fatal", "link_loop", detail)
            elif is_folder:
                yield from () if path in without else _walk(root, path, ignore, (*ancestors, identity), without)
            elif entry.is_file():
                yield ImageRef(path, "", status.st_size, str(status.st_mtime_ns))
            else:
                detail = "a device, socket or pipe is not an image"
                yield ImageRef(path, "").notice("rejected", "not_a_file", detail)
        except OSError as error:
            yield _describe_broken(path, entry, ignore, error)


def _describe_broken(path: str, entry: os.DirEntry[str], ignore: Ignore, error: OSError) -> ImageRef:
    if isinstance(error, FileNotFoundError):
        missing = "the link leads nowhere" if entry.is_symlink() else "the file vanished while being listed"
        return ImageRef(path, "").notice("rejected", "vanished", missing)
    if error.errno != errno.ELOOP:
        return ImageRef(path, "").notice("rejected", "unreadable", _why(error))
    if reason := ignore(path, False):
        return ImageRef(path, "").notice("ignored", reason)
    detail = f"the link leads to itself: remove it{_or_leave_out(path, False)}"
    return ImageRef(path, "").notice("fatal", "link_loop", detail)


def _or_leave_out(path: str, is_folder: bool) -> str:
    """The end of a message: the flag that ignores this one path; empty if no flag can name it."""
    try:
        # A backslash escapes gitignore's special characters; JSON is valid YAML.
        pattern = re.sub(r"[][*?\\]| $", r"\\\g<0>", f"/{path}/" if is_folder else f"/{path}")
        value = shlex.quote(f"ignore=[{orjson.dumps(pattern).decode()}]")
    except TypeError:  # a name that is not UTF-8, or the input itself
        return ""
    return f", or leave it out by --set {value}" if path else ""


SYSTEM_NAMES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX"})
"""Files and folders that operating systems create; they are never images."""


def why_ignored(settings: ListingSettings, path: str, is_folder: bool) -> str:
    """The reason for ignoring a path: `system_file`, `hidden`, `ignored` or `settings.not_included`; empty if none."""
    # Patterns are in NFC too, and can only be compared with text.
    path = normal_path(path) or escape_path(path)
    name = path.rpartition("/")[2]
    if name in SYSTEM_NAMES:
        return "system_file"
    if name.startswith(".") and name != "..":  # no folder lists `..`, and archive members with it are rejected
        return "hidden"
    if settings.ignore and compile_globs(settings.ignore).match_file(f"{path}/" if is_folder else path):
        return "ignored"
    if settings.include and not is_folder and not compile_globs(settings.include).match_file(path):
        return settings.not_included
    return ""


def normal_path(path: str) -> str | None:
    """A path in NFC; None if it is not valid text."""
    if path.isascii():
        return path
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFC", path)


def escape_path(path: str) -> str:
    """A path as valid text: bytes that are not UTF-8 become backslash escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@cache
def compile_globs(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    """Compiles patterns in gitignore's syntax."""
    return pathspec.GitIgnoreSpec.from_lines(patterns)
