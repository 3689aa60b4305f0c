"""Finds keys that occur twice in JSON: readers take the last, or the first, and people see both."""

import json
from collections.abc import Iterable
from typing import Any

import orjson


class _RepeatedKeyError(Exception):
    """Two keys of one object are the same; the argument is the key."""


def _pair(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return value


def find_repeated_key(content: bytes) -> str | None:
    """Returns a key that occurs twice in one object of a JSON text; None if there is none.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: its values are nested too deeply.
    """
    try:
        json.loads(content, object_pairs_hook=_pair)
    except _RepeatedKeyError as error:
        return str(error)
    return None


def find_repeated_in_lines(lines: Iterable[bytes]) -> tuple[int, str] | None:
    """Returns the first line of JSON lines with such a key, counted from 1, and the key.

    A line that is as Recordmill writes it is not parsed a second time.

    Raises:
        ValueError: a line is not JSON.
        RecursionError: its values are nested too deeply.
    """
    for number, line in enumerate(lines, start=1):
        written = line.rstrip(b"\r\n")
        if orjson.dumps(orjson.loads(written)) == written:
            continue
        if (key := find_repeated_key(written)) is not None:
            return number, key
    return None
