"""Files that say no more than the class folders, such as `class_names.txt`."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import orjson
import yaml

_NUMBERED = re.compile(r"([0-9]+)[ \t]*[:;,= \t][ \t]*(.+)")
_WITH_NUMBER = re.compile(r"(.+?)[ \t]*[:;,= \t][ \t]*([0-9]+)")
_KEYS = ("classes", "names", "labels", "categories", "class_names", "class_to_idx")

_DESCRIPTIVE = frozenset(
    {
        *("author", "authors", "citation", "contact", "contributor", "copyright", "created"),
        *("creator", "date", "date_created", "description", "doi", "download", "email", "funding"),
        *("homepage", "id", "keywords", "language", "languages", "license", "licenses", "links"),
        *("maintainer", "name", "pretty_name", "publisher", "readme", "reference", "source"),
        *("subtitle", "tags", "title", "updated", "url", "urls", "version", "website", "year"),
    }
)
"""Keys, in lower case, of a mapping that describes a collection and not its images."""


def name_levels(folders: Iterable[str]) -> list[frozenset[str]]:
    """Returns the names of folders at each depth, from the paths of those with images."""
    levels: defaultdict[int, set[str]] = defaultdict(set)
    for path in folders:
        for depth, name in enumerate(path.split("/") if path else ()):
            levels[depth].add(name)
    return [frozenset(levels[depth]) for depth in sorted(levels)]


def says_nothing_new(head: bytes, levels: Collection[frozenset[str]]) -> bool:
    """Tells if a file lists exactly the class folders in order, or describes the collection.

    Args:
        head: the whole file.
        levels: the names of folders at each depth, as `name_levels`.
    """
    try:
        text = head.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return False
    found = _parse(text)
    if isinstance(found, dict) and found and {str(key).lower() for key in found} <= _DESCRIPTIVE:
        return all(isinstance(value, str | int | float | list | None) for value in found.values())
    names = [*_names_of(found if found is not None else text.splitlines())]
    return len(names) > 1 and names == sorted(names) and frozenset(names) in levels


def _parse(text: str) -> Any:
    """Returns what a text is in JSON or YAML; None if it is in neither, or a plain text."""
    try:
        if text[:1] in ("{", "["):
            return orjson.loads(text)
        found = yaml.load(text, Loader=yaml.BaseLoader) if ":" in text else None
    except (ValueError, yaml.YAMLError):
        return None
    return found if isinstance(found, dict | list) else None


def _names_of(found: Any) -> Iterator[str]:
    """Yields the names in a list of classes, in the order of their numbers; else nothing."""
    if isinstance(found, dict):
        inner = [value for key, value in found.items() if str(key).lower() in _KEYS]
        if len(inner) == 1 and isinstance(inner[0], dict | list):
            yield from _names_of(inner[0])
            return
        found = [f"{key}:{value}" for key, value in found.items()]
    if not isinstance(found, list) or not found:
        return
    if all(isinstance(each, dict) and {"id", "name"} <= each.keys() for each in found):
        found = [f"{each['id']}:{each['name']}" for each in found]
    lines = [str(each).strip() for each in found if str(each).strip()]
    for form, number, name in ((_NUMBERED, 1, 2), (_WITH_NUMBER, 2, 1)):
        matches = [form.fullmatch(line) for line in lines]
        pairs = [(int(each[number]), each[name].strip()) for each in matches if each]
        if len(pairs) == len(lines):
            yield from (each for _, each in sorted(pairs))
            return
    yield from lines
