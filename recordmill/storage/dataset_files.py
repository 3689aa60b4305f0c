"""A dataset's own files: its marker, the rows of its sidecars, and the staging folder."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER, REPORT, REPORT_HEAD, STAGING_PREFIX, shard_name
from recordmill.schemas.dataset.json_values import MisfitError
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.sidecar_row import Row, row_from_json
from recordmill.schemas.errors import LoadError


class DamagedMarkerError(LoadError):
    """A `recordmill.json` that this version of Recordmill cannot read."""


def read_marker(folder: str) -> Marker:
    """The marker of a finished dataset.

    Raises:
        FileNotFoundError: there is none.
        DamagedMarkerError: it is not a valid marker; the message says why.
    """
    return read_marker_json(folder)[0]


def read_marker_json(folder: str) -> tuple[Marker, dict[str, Any]]:
    """Like `read_marker`, with the whole content of the file."""
    try:
        value: Any = orjson.loads(storage.read_range(storage.join(folder, MARKER)))
        return Marker.from_json(value), value
    except orjson.JSONDecodeError as error:
        problem = f"it is not JSON: {error}"
    except MisfitError as misfit:
        problem = str(misfit)
    raise DamagedMarkerError(f"{folder}/{MARKER} cannot be understood: {problem}")


def find_marker(output: str) -> Marker | None:
    """The marker of an output's finished dataset; None if there is none that can be read."""
    try:
        return read_marker(output)
    except (FileNotFoundError, NotADirectoryError, DamagedMarkerError):
        return None


def holds_report(output: str) -> bool:
    """Whether an output has a `report.html` that Recordmill made: the user's own page must not be touched."""
    try:
        start = storage.read_range(storage.join(output, REPORT), 0, 1_000)
    except OSError:
        return False
    return start.lstrip().startswith(REPORT_HEAD)


def staging_folder(output: str, plan_id: str) -> str:
    """The hidden folder in the output to which a plan's shards are written until they are published."""
    return storage.join(output, f"{STAGING_PREFIX}{plan_id}")


def shard_path(staging: str, split: str, index: int, kind: str) -> str:
    """The path of a shard's file in staging; see `shard_name`."""
    return storage.join(staging, shard_name(split, index, kind))


def read_rows(sidecar: str) -> Iterator[Row]:
    """The rows of a sidecar, one after the other."""
    with storage.open_to_read(sidecar) as lines:
        yield from parse_rows(lines)


def parse_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows that a sidecar's lines hold."""
    return map(row_from_json, map(orjson.loads, lines))
