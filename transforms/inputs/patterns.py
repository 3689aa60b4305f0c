"""Users' patterns, and the paths of an input that they select.

Patterns are in gitignore's syntax, or regular expressions. Regular expressions run on an engine
that never backtracks: no pattern or name can hang a worker.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pathspec
import re2

from recordmill.schemas.errors import SettingError
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.system_files import is_system_name

Ignore = Callable[[str, bool], str | None]
"""Takes a path and whether it is a folder; returns the reason code for ignoring it, or the empty
string."""

MAX_LETTERS = 1000
"""The longest pattern: search time grows with its length, and at two thousand a name can take
seconds."""


@cache
def compile_pattern(pattern: str, key: str, *groups: str) -> Any:
    """Compiles a pattern in RE2's syntax.

    Args:
        pattern: the regular expression.
        key: the YAML key that it was written under, for the message.
        groups: named groups that it must have.

    Raises:
        SettingError: it is not a regular expression, or lacks a group.
    """
    if len(pattern) > MAX_LETTERS:
        raise SettingError(
            key,
            f"has {len(pattern):,} letters, and a pattern at most {MAX_LETTERS:,}: shorten it",
        )
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True  # a line break in a file's name is a character like any other
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode(errors="replace")
        raise SettingError(key, f"{pattern!r} is not a regular expression: {text}") from None
    for group in groups:
        if group not in compiled.groupindex:
            raise SettingError(key, f"{pattern!r} has no group (?P<{group}>...): add it")
    return compiled


def move_patterns(patterns: Sequence[str], folder: str) -> list[str]:
    """Returns a folder's patterns (gitignore's syntax) for an input that is this folder.

    Those that begin elsewhere are left out.
    """
    begin = f"/{escape_glob(folder)}/"
    found = []
    for each in patterns:
        sign = "!" if each.startswith("!") else ""
        path = each.removeprefix("!")
        if path.startswith(begin) and path != begin:
            found.append(f"{sign}/{path.removeprefix(begin)}")
        elif not path.startswith("/"):
            found.append(each)
    return found


def find_split_word(pattern: str, *texts: str) -> str | None:
    """Returns the group `split` of `source.split` in the first string that the pattern matches.

    Returns None if it does not match any, or the group is not in the match.
    """
    matches = map(compile_pattern(pattern, "source.split", "split").search, texts)
    match = next(filter(None, matches), None)
    if match is None:
        return None
    word: str | None = match["split"]
    return word


def check_template(text: str, key: str, *names: str) -> None:
    """Checks a setting in which names in braces are replaced.

    Args:
        text: the setting's value.
        key: the YAML key that it was written under, for the message.
        names: the names that have a value.

    Raises:
        SettingError: it uses other names, or its braces do not match.
    """
    try:
        text.format_map(dict.fromkeys(names, ""))
    except (LookupError, ValueError, AttributeError, TypeError):
        known = " and ".join(f"{{{name}}}" for name in sorted(names)) or "no names"
        raise SettingError(key, f"is {text!r}: it can use only {known} in braces") from None


def why_ignored(settings: ListingSettings, path: str, is_folder: bool) -> str | None:
    """Returns the reason for ignoring a path; None if it is not ignored.

    The reason is `system_file`, `hidden`, `ignored` or `settings.not_included`.
    """
    # Patterns are in NFC too, and can only be compared with text.
    path = normal_path(path) or escape_path(path)
    name = path.rpartition("/")[2]
    if is_system_name(name):
        return "system_file"
    # No folder lists `..`, and archive members with it are rejected.
    if name.startswith(".") and name != "..":
        return "hidden"
    if settings.ignore and compile_globs(settings.ignore).match_file(
        f"{path}/" if is_folder else path
    ):
        return "ignored"
    if settings.include and not is_folder and not compile_globs(settings.include).match_file(path):
        return settings.not_included
    return None


def normal_path(path: str) -> str | None:
    """Returns a path in NFC; None if it is not valid text."""
    if path.isascii():
        return path
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFC", path)


def escape_path(path: str) -> str:
    """Returns a path as valid text: bytes that are not UTF-8 become backslash escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@cache
def compile_globs(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    """Compiles patterns in gitignore's syntax."""
    return pathspec.GitIgnoreSpec.from_lines(patterns)


def escape_glob(path: str) -> str:
    """Returns a path as a pattern in gitignore's syntax."""
    text = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    text = re.sub(r"( +)$", lambda found: "\\ " * len(found[1]), text)
    return f"\\{text}" if text.startswith(("#", "!")) else text
