"""Finds the objects of images that are in no record: which, why, and where they were."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from recordmill import storage
from recordmill.annotations.annotation import DroppedAnnotation, PlacedSides
from recordmill.annotations.kinds import KINDS
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.schemas.dataset import record_index
from recordmill.schemas.dataset.file_names import VERSIONS
from recordmill.schemas.formatting import plural_of

MOST_OBJECTS = 200
"""The most dropped objects of an image."""

_Details = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DroppedObject:
    """An object, or an annotation of one, that is in no record.

    Attributes:
        what: what such annotations are called, in the plural.
        reason: why, in a word.
        class_name: its class, or the class's number if it has no name.
        place: its place among the image's annotations of its kind, from 1.
        sides: where it would be on the stored image; None if that is not known.
    """

    what: str
    reason: str
    class_name: str
    place: int
    sides: PlacedSides | None


def find_dropped(
    dataset: Dataset, shard: StoredShard, key: str, stored: Sequence[PlacedSides | None]
) -> list[DroppedObject]:
    """Returns the dropped objects of an image; none if the run has not kept them.

    Args:
        dataset: the dataset, or the unfinished work of a run.
        shard: the image's shard.
        key: its key.
        stored: the sides of its objects that are in its record, in their order.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is damaged.
    """
    details = _read_details(dataset, shard).get(key, {})
    located: dict[int, PlacedSides | None] = {}
    for each in details.values():
        located |= {place: _as_sides(sides) for place, sides in each.get("located", ())}
    found = []
    for name, each in details.items():
        what = plural_of(KINDS[name].unit) if name in KINDS else name
        for values in each.get("dropped", ())[:MOST_OBJECTS]:
            dropped = DroppedAnnotation(*values)
            sides = located.get(dropped.place)
            if dropped.place not in located:  # its object is stored
                before = sum(place < dropped.place for place in located)
                sides = _at(stored, dropped.place - 1 - before)
            of = what, dropped.reason, dropped.class_name
            found.append(DroppedObject(*of, dropped.place, sides))
    return found


def _at(stored: Sequence[PlacedSides | None], number: int) -> PlacedSides | None:
    if number < len(stored):
        return stored[number]
    return None


def _as_sides(values: Sequence[float] | None) -> PlacedSides | None:
    if values is None:
        return None
    left, top, right, bottom = values
    return left, top, right, bottom


def _read_details(dataset: Dataset, shard: StoredShard) -> Mapping[str, _Details]:
    """Returns the details of the annotations of each image in a shard that has some dropped."""
    section = _find_section(dataset, shard)
    if section is None or not shard.sidecar:
        return {}
    return _parse_details(shard.sidecar, *section)


@lru_cache(4)
def _parse_details(sidecar: str, path: str, start: int, length: int) -> dict[str, _Details]:
    found = {}
    lines = storage.read_range(path, start, length).splitlines()
    for row, origin in zip(storage.read_lines(sidecar), _parse_counts(lines), strict=False):
        if any("dropped" in each for each in origin.values()):
            found[str(orjson.loads(row)["key"])] = origin
    return found


def _parse_counts(lines: Sequence[bytes]) -> Iterator[_Details]:
    for origin in record_index.parse_origins(lines):
        yield (origin.counts or {}).get("annotations", {})


def _find_section(dataset: Dataset, shard: StoredShard) -> tuple[str, int, int] | None:
    """Returns the file that has the details of a shard, and the part of it; None if none has."""
    marker = dataset.marker_or_none
    if marker is None:
        path = f"{posixpath.splitext(shard.sidecar)[0]}.versions"
        return (path, 0, -1) if storage.exists(path) else None
    path, names = (
        storage.join(dataset.folder, VERSIONS),
        [entry.name for entry in record_index.list_shards(marker)],
    )
    if shard.name not in names or not storage.exists(path):
        return None
    at = record_index.SECTION_BYTES * names.index(shard.name)
    (section,) = record_index.parse_table(storage.read_range(path, at, record_index.SECTION_BYTES))
    return path, section.offset, section.length
