"""Names of folders that are not classes: splits, parts, people, layers, and digits of hashes."""

import re
from collections.abc import Collection

from recordmill.transforms.inputs.folder_sketch import split_of

_PART = re.compile(
    r"(part|batch|chunk|shard|set|subset|fold|vol|volume|seq|sequence|session|scene|cam|camera"
    r"|day|night|week|month|year|run|page|frame|frames|group|folder|dir|disc|disk|series|block|tile"
    r"|section|video|clip|patient|subject|subj|sub|case|person|participant|donor|specimen|pat|pt"
    r"|study|visit|exam|layer|level|slice|depth|plane|stack|channel|band|p|s|z|c|t|id|no)"
    r"[ _.-]*[0-9]+[a-z]?"
)
"""A part, a person, or a layer by its number, in lower case."""

_HASH = re.compile(r"[0-9a-f]{6,}|[0-9a-f]{8}-[0-9a-f-]{9,}")
_HEX = re.compile(r"[0-9a-f]{1,2}")
_NUMBER = re.compile(r"[0-9]{3,}")


def are_hex_digits(names: Collection[str]) -> bool:
    """Whether folders are named after the first digits of hashes: `0` to `f`, or `00` to `ff`."""
    lower = [name.lower() for name in names]
    has_both = any(map(str.isdigit, lower)) and any(not name.isdigit() for name in lower)
    is_one_length = len({len(name) for name in lower}) == 1
    return len(lower) > 7 and has_both and is_one_length and all(map(_HEX.fullmatch, lower))


def are_unlikely_classes(names: Collection[str]) -> bool:
    """Whether names are not those of classes, but of splits, parts, people, layers or hashes.

    Single digits may be classes.
    """
    lower = [name.lower() for name in names]
    if not lower or are_hex_digits(lower):
        return True
    kinds = (split_of, _PART.fullmatch, _HASH.fullmatch, _NUMBER.fullmatch)
    return any(all(map(kind, lower)) for kind in kinds)


def are_numbered(names: Collection[str]) -> bool:
    """Whether folders are counted through: `character01`, `character02`."""
    return len({re.sub("[0-9]+", "0", name) for name in names}) == 1 and all(
        re.search("[0-9]", name) for name in names
    )
