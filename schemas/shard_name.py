"""Patterns for the names of shards: their placeholders, and the names they may give."""

import re

SHARD_NAME = "{split}-{index:05d}-of-{count:05d}.tfrecord"
"""The names of files, unless a convention defines others."""

PLACEHOLDERS = {
    "name": "the setting `name`, or the output folder's name",
    "split": "the split, or the convention's own word for it",
    "index": "the shard's place in its split, from 0",
    "number": "the same from 1",
    "count": "how many shards the split has",
    "records": "how many records are in this one",
}
"""What a pattern may hold, each with Python's format codes."""

MOST_BYTES = 240
"""Most file systems take names of 255 bytes, and those of sidecars and indexes are longer."""


def fill_pattern(pattern: str, *, name: str, split: str, index: int, count: int, records: int) -> str:
    """The name of a shard; `index` counts from 0."""
    return pattern.format(name=name, split=split, index=index, number=index + 1, count=count, records=records)


def check_pattern(pattern: str, key: str) -> None:
    """Raises ValueError if a pattern is invalid, or gives invalid names.

    Args:
        pattern: as users write it.
        key: the setting that it is written under.
    """
    if re.search(r":[^}]*[0-9]{5}", pattern):
        raise ValueError(f"{key} {pattern!r:.80} gives names that are too long: use format codes of fewer digits")
    try:
        filled = fill_pattern(pattern, name="n", split="s", index=0, count=1, records=1)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        *known, last = (f"{{{each}}}" for each in PLACEHOLDERS)
        known_ones = f"{', '.join(known)} and {last}"
        raise ValueError(f"{key} {pattern!r} is not a valid pattern ({error}): it may use {known_ones}") from None
    check_file_name(filled, pattern, key)


def check_file_name(name: str, pattern: str, key: str) -> None:
    """Raises ValueError if a pattern gives names that no file can have."""
    if not name.strip() or name.startswith(".") or "/" in name:
        raise ValueError(f"{key} {pattern!r} must name a visible file without folders, not {name!r}")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise ValueError(f"{key} {pattern!r} gives names with control characters ({name!r}): remove them")
    if len(name.encode()) > MOST_BYTES:
        long = f"{name[:20]!r}... has {len(name.encode())} bytes"
        raise ValueError(
            f"{key} {pattern!r} gives names that are too long ({long}): at most {MOST_BYTES} can be written"
        )
