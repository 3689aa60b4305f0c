"""Validates a long list of a JSON file in parts, because a tree of JSON takes ten times its memory.

An expression finds the entries' ends, and the parser then proves them: if the file without the
entries is valid JSON, and so is each part as a list, then the parts are the list.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

M = TypeVar("M", bound=BaseModel)

PART_BYTES = 2**20

_MOST_LEVELS = 6
"""Levels of objects in an entry; a list with deeper ones is not found."""

_SPACE = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _pattern_of_objects(levels: int) -> bytes:
    """Returns the pattern of an object; as nothing is tried twice, the time is linear."""
    value = objects = _STRING
    for _ in range(levels):
        objects = rb'\{[^"{}]*+(?:%b[^"{}]*+)*+\}' % value
        value = rb"(?:%b|%b)" % (_STRING, objects)
    return objects


_ENTRY = re.compile(_SPACE + _pattern_of_objects(_MOST_LEVELS) + _SPACE)
_ESCAPED_LETTER = re.compile(rb"\\u00[67]")
"""May spell the key in another way, so that there is a second list."""


@dataclass(frozen=True, slots=True)
class CutList:
    """A list of objects in a JSON file.

    Attributes:
        parts: where its entries are, some in each part, without the commas between parts.
        rest: the file with an empty list instead.
    """

    parts: list[slice]
    rest: bytes


def cut_list(data: bytes, key: str, part_bytes: int = PART_BYTES) -> CutList | None:
    """Finds the list at a key of an object in JSON that may not be valid.

    Args:
        data: the JSON.
        key: the list's key, of lower-case letters.
        part_bytes: the least size of each part but the last.

    Returns:
        The list; None if there is no list of objects at the key, or it may not be the only one.
    """
    head = rb'"%b"%b:' % (key.encode(), _SPACE)
    found = re.search(head + _SPACE + rb"\[" + _SPACE, data)
    if found is None:
        return None
    parts = []
    start = end = found.end()
    for end in _find_ends(data, start):
        if end - start >= part_bytes or data[end : end + 1] == b"]":
            parts.append(slice(start, end))
            start = end + 1
    if data[end : end + 1] != b"]":  # an entry is not an object, or a comma is missing
        return None
    rest = data[: found.end()] + data[end:]
    if len(re.findall(head, rest)) > 1 or _ESCAPED_LETTER.search(rest):
        return None
    return CutList(parts, rest)


def _find_ends(data: bytes, start: int) -> Iterator[int]:
    """Yields where each entry of a list ends: at a comma, unless it is the last."""
    while entry := _ENTRY.match(data, start):
        yield entry.end()
        if data[entry.end() : entry.end() + 1] != b",":
            return
        start = entry.end() + 1


def validate_in_parts(
    data: bytes, model: type[M], key: str, part_bytes: int = PART_BYTES
) -> M | None:
    """Validates JSON as `model.model_validate_json` does, in a fraction of the memory.

    Args:
        data: the JSON.
        model: its model, which validates each entry of the list alone.
        key: the key of its longest list, of lower-case letters.
        part_bytes: as in `cut_list`.

    Returns:
        The model; None if the JSON is shorter than a part, has no such list, or is not valid.
    """
    if len(data) < part_bytes:
        return None
    cut = cut_list(data, key, part_bytes)
    if cut is None:
        return None
    try:
        contents = model.model_validate_json(cut.rest)
        if key not in contents.model_fields_set:  # it is in an object below
            return None
        for place in cut.parts:
            part = b'{"%b":[%b]}' % (key.encode(), data[place])
            getattr(contents, key).extend(_list_model(model, key).validate_json(part)[key])
    except ValidationError:
        return None
    return contents


@cache
def _list_model(model: type[BaseModel], key: str) -> TypeAdapter[dict[str, list[Any]]]:
    entries: Any = model.model_fields[key].rebuild_annotation()
    return TypeAdapter(dict[str, entries])
