"""Verifies what the files next to the shards say about the dataset, and about each other.

A marker with the right digests may still contradict them: `rejected.jsonl` repeats the sidecars'
rows, `README.md` repeats the ledger, and `records.versions` says which images have a position.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args, get_origin
from unicodedata import normalize

import orjson

from recordmill import storage
from recordmill.reading.dataset import FORGED, Dataset
from recordmill.reading.repeated_keys import find_repeated_in_lines, find_repeated_key
from recordmill.reading.verify_shard import Finding, ShardCheck
from recordmill.schemas.dataset.compare_plans import LISTED_ALL_SETTINGS
from recordmill.schemas.dataset.file_names import (
    INDEX,
    MARKER,
    REJECTED,
    REPORT,
    REPORT_DATA,
    VERSIONS,
)
from recordmill.schemas.dataset.json_values import json_keys
from recordmill.schemas.dataset.marker import Marker, in_present_format
from recordmill.schemas.dataset.side_files import Row
from recordmill.schemas.dataset.totals import add_hex, digest_rejected, sum_rejected
from recordmill.schemas.formatting import escape_controls, show_text
from recordmill.schemas.version import VERSION
from recordmill.storage.dataset_files import (
    MOST_OBJECT_BYTES,
    holds_report,
    is_sealed,
    read_rows,
)

CARD = "README.md"


def find_other_contents(
    dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]
) -> Iterator[str]:
    """Yields what other files say otherwise than the marker, in a few words.

    Files that cannot be read are reported elsewhere.
    """
    yield from _find_names(marker)
    yield from _find_keys(dataset, marker)
    for compare in (_compare_rejected, _compare_positions, _compare_card, _compare_remarks):
        with suppress(OSError, RecursionError, *FORGED):
            yield from compare(dataset, marker, checks)


def _find_names(marker: Marker) -> Iterator[str]:
    for key, name, expected in (
        ("index", marker.index, INDEX),
        ("run.file_versions", marker.run.file_versions, VERSIONS),
    ):
        if name != expected:
            yield f"it contradicts itself: {key} is {name}, not {expected}"


def _find_keys(dataset: Dataset, marker: Marker) -> Iterator[str]:
    """Yields keys of the marker that are lacking, unknown or given twice."""
    earlier = set[str]()
    if marker.plan.version <= LISTED_ALL_SETTINGS:
        earlier.add("plan.settings is missing")
    content = storage.read_whole(storage.join(dataset.folder, MARKER), MOST_OBJECT_BYTES)
    with suppress(ValueError, RecursionError):
        value: Any = in_present_format(orjson.loads(content))
        if (key := find_repeated_key(content)) is not None:
            yield f"it contradicts itself: the key {key} is given twice"
        is_ours = value.get("run", {}).get("recordmill") == VERSION
        yield from (
            f"it contradicts itself: {each}"
            for each in _compare_keys(Marker, value, "", is_ours)
            if each not in earlier
        )


def _compare_keys(kind: Any, value: Any, path: str, is_ours: bool) -> Iterator[str]:
    """Yields keys that objects lack, and those that this version would not have written."""
    if not isinstance(value, dict):
        return
    parts = {part.key: part for part in json_keys(kind)}
    for key in sorted(parts.keys() - value.keys()):
        # What is not required has a value in any marker: only in `run`, older versions had less.
        if not parts[key].is_omitted and (is_ours or not path.startswith("run")):
            yield f"{path}{key} is missing"
    is_known = is_ours and not path.startswith("about")  # its license had another spelling
    for key in sorted(value.keys() - parts.keys()) if is_known else ():
        yield f"{path}{key} is not a key of this version"
    for key in sorted(parts.keys() & value.keys()):
        for inner, each, below in _objects_in(parts[key].kind, value[key], f"{path}{key}"):
            yield from _compare_keys(inner, each, f"{below}.", is_ours)


def _objects_in(kind: Any, value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """Yields the objects of a value that a dataclass describes: class, object and place."""
    if hasattr(kind, "__dataclass_fields__"):
        yield kind, value, path
        return
    inner = [each for each in get_args(kind) if each is not type(None) and each is not Ellipsis]
    if not inner or get_origin(kind) is None:
        return
    if isinstance(value, dict):
        if hasattr(inner[0], "__dataclass_fields__"):  # an optional object
            yield inner[0], value, path
            return
        for key, each in value.items():
            yield from _objects_in(inner[-1], each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _objects_in(inner[0], each, f"{path}[{number}]")


def _compare_rejected(
    dataset: Dataset, marker: Marker, checks: Sequence[ShardCheck]
) -> Iterator[str]:
    """Compares `rejected.jsonl` with the rows of the sidecars, and its paths with the inputs."""
    if any(check.rejected is None for check in checks):
        return
    listed, folders = add_hex("0"), [place.rstrip("/") for place in marker.run.inputs.values()]
    for line in dataset.lines(REJECTED):
        if "key" not in line:  # an older version's
            return
        values = [line[key] for key in ("stage", "reason", "detail", "bytes", "sha256", "class")]
        listed = add_hex(listed, digest_rejected(line["key"], *values))
        uri = normalize("NFC", line["uri"])
        if not any(uri.startswith(normalize("NFC", folder)) for folder in folders):
            yield f"{REJECTED} says otherwise: {line['uri']} is in none of run.inputs"
            break
    rows = add_hex("0", *(check.rejected or "0" for check in checks))
    rows = add_hex(rows, *(sum_rejected(read) for read in _other_sidecars(dataset, marker)))
    if rows != listed:
        yield f"{REJECTED} says otherwise: its lines are not the rejected rows of the sidecars"


def _other_sidecars(dataset: Dataset, marker: Marker) -> Iterator[Iterable[Row]]:
    for name in marker.sidecars_without_records:
        yield read_rows(storage.join(dataset.folder, name))


def _compare_positions(dataset: Dataset, marker: Marker, _: Sequence[ShardCheck]) -> Iterator[str]:
    """Compares the number of images with a position with what `records.versions` has kept."""
    if VERSIONS not in marker.files:
        return
    found = sum(
        b'"has_position":true' in line
        for line in storage.read_lines(storage.join(dataset.folder, VERSIONS))
    )
    if found != (marker.gps_positions or 0):
        yield f"{VERSIONS} says otherwise: gps_positions: {marker.gps_positions} -> {found or None}"


def _compare_card(dataset: Dataset, marker: Marker, _: Sequence[ShardCheck]) -> Iterator[str]:
    """Compares the marker with `README.md`, unless people have edited that."""
    if CARD not in marker.files:
        return
    content = storage.read_whole(storage.join(dataset.folder, CARD), MOST_OBJECT_BYTES)
    if hashlib.sha256(content).hexdigest() != marker.run.digests.get(CARD):
        return
    lines = content.decode().splitlines()
    written = _read_ledger(lines)
    if written is None:
        return
    ledger = _list_ledger(marker)
    for key in sorted({*ledger, *written}):
        if ledger.get(key) != written.get(key):
            name = ".".join(filter(None, key))
            yield f"{CARD} says otherwise: ledger.{name}: {ledger.get(key)} -> {written.get(key)}"
    if f"| split | {marker.unit}s | files | bytes | names |" not in lines:
        yield f"{CARD} says otherwise: unit is not {marker.unit}"
    said = [("notes", text) for text in marker.notes]
    said += [("remarks", text) for text in marker.remarks]
    for part, text in said:
        if text and escape_controls(f"- {show_text(text)}") not in lines:
            yield f"{CARD} says otherwise: {part} has a line that is not there: {text[:80]}"


_LEDGER = re.compile(
    r"\| (?P<fate>listed|written|rejected|ignored|left out) \| "
    r"(?:`(?P<reason>[^`]*)`: .*)?\s*\| (?P<count>[\d,]+) \|"
)


def _list_ledger(marker: Marker) -> dict[tuple[str, str], int]:
    """Returns the marker's ledger as a card has it."""
    ledger = {("listed", ""): marker.ledger.listed, ("written", ""): marker.ledger.written}
    for fate, counts in marker.ledger.by_fate().items():
        ledger |= {(fate.replace("_", " "), reason): count for reason, count in counts.items()}
    return ledger


def _read_ledger(lines: Sequence[str]) -> Mapping[tuple[str, str], int] | None:
    """Returns the ledger in a card: counts by fate and reason; None if it has none."""
    found = [match for match in map(_LEDGER.fullmatch, lines) if match]
    if not any(match["fate"] == "listed" for match in found):
        return None
    return {
        (match["fate"], match["reason"] or ""): int(match["count"].replace(",", ""))
        for match in found
    }


def _compare_remarks(dataset: Dataset, marker: Marker, _: Sequence[ShardCheck]) -> Iterator[str]:
    """Compares the remarks with those that the report shows."""
    if REPORT_DATA not in marker.files:
        return
    path = storage.join(dataset.folder, REPORT_DATA)
    data: Any = orjson.loads(storage.read_whole(path, MOST_OBJECT_BYTES))
    if [each["text"] for each in data["remarks"]] != [*marker.remarks]:
        yield f"{REPORT_DATA} says otherwise: it has other remarks"


def find_repeated_keys(dataset: Dataset, marker: Marker) -> Iterator[Finding]:
    """Yields findings for files of JSON in which a key is given twice."""
    for name in marker.files:
        path, repeated = storage.join(dataset.folder, name), None
        with suppress(OSError, RecursionError, *FORGED):
            if name.endswith(".json"):
                repeated = find_repeated_key(storage.read_whole(path, MOST_OBJECT_BYTES))
            elif name.endswith(".jsonl"):
                line = find_repeated_in_lines(storage.read_lines(path))
                repeated = line and f"{line[1]} in line {line[0]:,}"
        if repeated is not None:
            yield Finding("marker", f"it contradicts itself: {repeated} is given twice", name)


def check_report(dataset: Dataset, marker: Marker) -> Iterator[Finding]:
    """Yields a finding if `report.html` is not a file, or not the report of this dataset.

    A page of the user's may have any content; in place of the report, it is worth a note.
    """
    path = storage.join(dataset.folder, REPORT)
    try:
        content = storage.read_whole(path, MOST_OBJECT_BYTES)
    except FileNotFoundError:
        if storage.is_link(path):
            yield Finding("unreadable", "it is a link that leads nowhere", REPORT)
        return
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        yield Finding("unreadable", f"the file cannot be read: {why}", REPORT)
        return
    if not holds_report(dataset.folder):
        if REPORT_DATA in marker.files:
            yield Finding("edited", "it is not the report that was made of this dataset", REPORT)
        return
    text = content.decode("utf-8", "replace")
    plan = f"Plan <code>{marker.plan.id}</code>"
    started = marker.run.started
    is_dated = started is None or "<dt>started</dt>" not in text or f"<dd>{started}</dd>" in text
    if plan not in text or not is_dated:
        yield Finding(
            "marker",
            "it is the report of another dataset: recordmill inspect --report makes it again",
            REPORT,
        )
    elif not is_sealed(content):
        yield Finding(
            "sha256",
            "it was changed or cut after it was made: recordmill inspect --report makes it again",
            REPORT,
        )
