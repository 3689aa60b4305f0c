"""Users' regular expressions, on an engine that never backtracks: no pattern or name can hang a worker."""

from functools import cache
from typing import Any

import re2

MAX_LETTERS = 1000
"""The longest pattern: search time grows with its length, and at two thousand a name can take seconds."""


@cache
def compile_pattern(pattern: str, key: str, *groups: str) -> Any:
    """Compiles a pattern in RE2's syntax.

    Args:
        pattern: the regular expression.
        key: the YAML key that it was written under, for the message.
        groups: named groups that it must have.

    Raises:
        ValueError: it is not a regular expression, or lacks a group; one sentence that names the key.
    """
    if len(pattern) > MAX_LETTERS:
        raise ValueError(f"{key} has {len(pattern):,} letters, and a pattern at most {MAX_LETTERS:,}: shorten it")
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True  # a line break in a file's name is a character like any other
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode(errors="replace")
        raise ValueError(f"{key} {pattern!r} is not a regular expression: {text}") from None
    for group in groups:
        if group not in compiled.groupindex:
            raise ValueError(f"{key} {pattern!r} has no group (?P<{group}>...): add it")
    return compiled


def check_template(text: str, key: str, *names: str) -> None:
    """Checks a setting in which names in braces are replaced.

    Args:
        text: the setting's value.
        key: the YAML key that it was written under, for the message.
        names: the names that have a value.

    Raises:
        ValueError: it uses other names, or its braces do not match.
    """
    try:
        text.format_map(dict.fromkeys(names, ""))
    except (LookupError, ValueError, AttributeError, TypeError):
        known = " and ".join(f"{{{name}}}" for name in sorted(names)) or "no names"
        raise ValueError(f"{key} is {text!r}: it can use only {known} in braces") from None
