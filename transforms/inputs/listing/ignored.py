"""Which files and folders of an input are left alone, and why."""

import unicodedata
from functools import cache

import pathspec

from recordmill.schemas.settings.listing import ListingSettings

SYSTEM_NAMES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX"})
"""Files and folders that operating systems leave; they are never meant as images."""


def why_ignored(settings: ListingSettings, path: str, is_folder: bool) -> str:
    """Why a path is to be ignored: `system_file`, `hidden`, `ignored` or `settings.not_included`; else empty."""
    path = normal_path(path) or path  # patterns come in NFC too
    name = path.rpartition("/")[2]
    if name in SYSTEM_NAMES:
        return "system_file"
    if name.startswith("."):
        return "hidden"
    if settings.ignore and compile_globs(settings.ignore).match_file(f"{path}/" if is_folder else path):
        return "ignored"
    if settings.include and not is_folder and not compile_globs(settings.include).match_file(path):
        return settings.not_included
    return ""


def normal_path(path: str) -> str | None:
    """A path in NFC; None where it is not text."""
    if path.isascii():
        return path
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFC", path)


@cache
def compile_globs(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    """Patterns in gitignore's syntax."""
    return pathspec.GitIgnoreSpec.from_lines(patterns)
