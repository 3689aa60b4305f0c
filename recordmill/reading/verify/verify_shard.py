"""Reads one file once and checks every frame, every Example, and what the dataset's metadata say of them."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from google.protobuf.message import DecodeError

from recordmill import storage
from recordmill.reading.example import DamagedExampleError, ParsedExample, Profile
from recordmill.reading.expectations import Expectations, NameProblems, judge_labels, judge_names, judge_row
from recordmill.reading.shard import FORGED, Shard
from recordmill.reading.verify.finding import Finding
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.dataset.totals import RowTotals
from recordmill.schemas.digests import digest_record, find_images
from recordmill.storage.dataset_files import parse_rows
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import FRAMING_BYTES, Damage, RecordFile

Level = Literal["frames", "files", "pixels"]
LEVELS: tuple[Level, ...] = ("frames", "files", "pixels")

MOST_FINDINGS = 1_000
"""The most findings reported per file; further ones are only counted."""

_REPORTED_EVERY = 256  # records

ImageCheck = Callable[[ParsedExample], Iterable[tuple[str, str]]]
"""Yields the kind and the text of each problem with a record's images."""


def unchecked(example: ParsedExample) -> Iterable[tuple[str, str]]:
    """The check of images where none was asked for: finds nothing."""
    return ()


@dataclass(slots=True)
class ShardCheck:
    """The result for one file.

    Attributes:
        shard: the file.
        level: how thoroughly it was checked.
        records: number of intact frames.
        damages: number of places where a frame was expected and not found.
        bytes: size of the file.
        kinds: the kind of each feature by key, with the number of the first record that has it.
        findings: the problems, in the file's order.
        hidden: number of findings beyond `MOST_FINDINGS`.
        totals: what the rows of the sidecar add up to, for shards of Recordmill above level `frames`; None if the
            sidecar is not the one in the marker.
        keys_by_digest: keys by the source's sha256, for shards of Recordmill above level `frames`.
    """

    shard: Shard
    level: Level = "frames"
    records: int = 0
    damages: int = 0
    bytes: int = 0
    kinds: dict[str, tuple[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    hidden: int = 0
    totals: RowTotals | None = None
    keys_by_digest: dict[str, str] = field(default_factory=dict)

    def add(
        self, kind: str, detail: str, record: int | None = None, offset: int | None = None, source: str = ""
    ) -> None:
        """Adds one finding."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(kind, detail, self.shard.name, record, offset, source))
        else:
            self.hidden += 1


class SidecarRows:
    """A shard's sidecar, read at its first use.

    Attributes:
        sha256: hex digest of the sidecar; the empty string until it is read, or if it cannot be read.
        totals: totals of its rows, including those of rejected references; None if they are not Recordmill's.
    """

    def __init__(self, check: ShardCheck, expected: Expectations) -> None:
        self._check = check
        self._images = find_images((key, each.field) for key, each in expected.features.items())
        self._rows: list[SidecarRow] | None = None
        self._by_offset: dict[int, int] = {}
        self.sha256 = ""
        self.totals: RowTotals | None = None

    def read(self) -> Sequence[SidecarRow]:
        """The rows of the records, in their order; if the sidecar cannot be read, none, and a finding is added."""
        sidecar = self._check.shard.sidecar
        if self._rows is None:
            self._rows = []
            try:
                content = storage.read_range(sidecar) if sidecar else b""
                everything = list(parse_rows(content.splitlines()))
                rows = [row for row in everything if isinstance(row, SidecarRow)]
                self._by_offset = {row.offset: number for number, row in enumerate(rows)}
                with suppress(*FORGED):
                    self.totals = RowTotals.of(everything, self._check.shard.split)
                self._rows, self.sha256 = rows, hashlib.sha256(content).hexdigest() if sidecar else ""
            except FileNotFoundError:
                self._check.add("missing", f"the sidecar is missing ({sidecar})")
            except (OSError, *FORGED) as error:
                self._check.add("sidecar", f"the sidecar cannot be read: {error} ({sidecar})")
        return self._rows

    def contradict(self, offset: int, record: memoryview) -> str:
        """What the row of the record at an offset says otherwise, above level `frames`; else the empty string."""
        if self._check.level == "frames":
            return ""
        rows = self.read()
        number = self._by_offset.get(offset)
        row = None if number is None else rows[number]
        if row is None or row.record is None:
            return ""
        with suppress(DecodeError, ValueError):
            if digest_record(bytes(record), self._images if row.rest else {}) == row.record:
                return ""
        return "the record is not the one that its row in the sidecar describes"

    def place(self, offset: int, counted: int) -> tuple[int, int, str]:
        """The number of the record that begins at an offset, the offset, and the key of its source.

        Args:
            offset: in the unpacked file.
            counted: the number by counting, which is used if no row has the offset.
        """
        rows = self.read()
        number = self._by_offset.get(offset)
        return (counted, offset, "") if number is None else (number, offset, str(rows[number].key))


def verify_shard(
    shard: Shard,
    expected: Expectations,
    level: Level,
    check_images: ImageCheck = unchecked,
    progress: Callable[[int], None] = lambda records: None,
) -> ShardCheck:
    """Reads one file from its first byte to its last.

    At level `files`, the records of a Recordmill shard are not checked one by one if the shard and its sidecar have
    the SHA-256 in the marker: their frames and checksums were read back when the shard was written. If a digest
    differs or is missing, all records are checked to find the damaged ones.

    Args:
        shard: the file and its metadata.
        expected: what the metadata say of its records.
        level: how thoroughly to check; see `verify_dataset`.
        check_images: the decoder at level `pixels`, and what looks for metadata. With one, all records are read.
        progress: called repeatedly with the number of records since the last call.

    Returns:
        The findings; no content of a file makes this raise.
    """
    check = ShardCheck(shard, level)
    try:
        with StoredFile(shard.path, digest=level != "frames" and bool(shard.sha256)) as stored:
            check.bytes = stored.size
            records, rows = RecordFile(stored), SidecarRows(check, expected)
            if level == "files" and check_images is unchecked and _is_as_written(stored, shard, rows, expected):
                check.records = len(rows.read())
                progress(check.records)
                _judge_file(records, check)
            else:
                offsets, end = _read_records(records, check, expected, check_images, rows, progress)
                check.records = len(offsets)
                _judge_file(records, check)
                _compare_count(check, rows, end)
                if level != "frames":
                    _compare(stored, check, rows, offsets)
                    _compare_names(check, rows, expected)
            if level != "frames":
                read = rows.read()
                if rows.sha256 and rows.sha256 == shard.sidecar_sha256:
                    check.totals = rows.totals
                    if rows.totals is None:
                        check.add("sidecar", f"the sidecar's rows are malformed ({shard.sidecar})")
                check.keys_by_digest = {row.sha256: row.key for row in read if row.sha256}
    except FileNotFoundError:
        check.add("missing", "the file is missing")
    except OSError as error:
        check.add("unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}")
    if check.hidden:
        check.findings.append(Finding("more", f"{check.hidden:,} further findings in this file", shard.name))
    return check


def _is_as_written(stored: StoredFile, shard: Shard, rows: SidecarRows, expected: Expectations) -> bool:
    """Whether a shard and its sidecar are, byte for byte, as they were read back after writing.

    The number of records, the classes and their ids are in the marker, not in the shard: the sidecar's rows must match
    them.
    """
    if not shard.sha256 or stored.size != shard.bytes or stored.sha256() != shard.sha256:
        return False
    read = rows.read()
    if rows.sha256 != shard.sidecar_sha256 or len(read) != shard.records:
        return False
    labels = {label for row in read if isinstance(label := row.label, int)}
    if expected.label_ids and not labels <= expected.label_ids:
        return False
    return not any(judge_row(row, expected.class_ids) for row in read)


def _read_records(
    records: RecordFile,
    check: ShardCheck,
    expected: Expectations,
    check_images: ImageCheck,
    rows: SidecarRows,
    progress: Callable[[int], None],
) -> tuple[list[int], int]:
    """Checks every record; returns the offset of each, and the end of the last one's frame."""
    classes = expected if check.level != "frames" else replace(expected, label_ids=frozenset(), class_ids={})
    names = NameProblems()
    judged: dict[Profile, str] = {}
    offsets: list[int] = []
    end = 0

    report = partial(_report, check, rows)
    for number, (offset, data) in enumerate(records):
        if isinstance(data, Damage):
            check.damages += 1
            report([(data.kind, data.detail)], number, offset)
            continue
        offsets.append(offset)
        end = offset + len(data) + FRAMING_BYTES
        report([("sidecar", rows.contradict(offset, data))], number, offset)
        try:
            example = ParsedExample(data)
        except DamagedExampleError as error:
            report([("example", str(error))], number, offset)
            continue
        profile = example.profile
        if profile not in judged:
            judged[profile] = expected.judge(profile) or _compare_kinds(profile, check, number)
        found = [("feature", judged[profile]), ("label", judge_labels(example, classes)), *check_images(example)]
        report(found, number, offset)
        for problem in judge_names(example, classes):
            names.add(problem, number, offset)
        if not len(offsets) % _REPORTED_EVERY:
            progress(_REPORTED_EVERY)
    for problem, place in names:
        report([("names", problem)], *place)
    progress(len(offsets) % _REPORTED_EVERY)
    return offsets, end


def _report(
    check: ShardCheck, rows: SidecarRows, problems: Iterable[tuple[str, str]], number: int, offset: int
) -> None:
    for kind, problem in problems:
        if problem:
            check.add(kind, problem, *rows.place(offset, number))


def _compare_kinds(profile: Profile, check: ShardCheck, number: int) -> str:
    """Each key has one kind in all records; a feature without values may have any."""
    for key, kind, _ in profile:
        if kind is None:
            continue
        first, there = check.kinds.setdefault(key, (kind, number))
        if first != kind:
            return f"feature {key} is {kind} and is {first} in record {there:,}"
    return ""


def _judge_file(records: RecordFile, check: ShardCheck) -> None:
    """Checks properties of the whole file."""
    packed, name = records.compression == "gzip", check.shard.name
    if not check.bytes:
        check.add("empty", "the file is empty: 0 bytes")
    elif not check.records and not check.findings:
        check.add("empty", "the file has no records")
    if check.bytes and packed != name.lower().endswith((".gz", ".gzip")):
        named = "its name does not say so" if packed else "its name says gzip"
        check.add("name", f"the file is {'' if packed else 'not '}gzip and {named}: readers that trust the name fail")
    if records.members > 1:
        check.add("members", f"{records.members} concatenated gzip streams, all read")


def _compare_count(check: ShardCheck, rows: SidecarRows, end: int) -> None:
    """A file that was truncated between two records ends where the first missing one began."""
    expected, there = check.shard.records, check.records
    if expected is not None and expected not in (there, there + check.damages):
        place = rows.place(end, there) if there < expected and not check.damages else ()
        check.add("count", f"expected {expected:,} records, found {there:,}", *place)


def _compare(stored: StoredFile, check: ShardCheck, rows: SidecarRows, offsets: list[int]) -> None:
    """Compares the file and its sidecar with the marker; damage is not reported twice."""
    shard = check.shard
    if not check.damages:
        if shard.bytes is not None and shard.bytes != stored.size:
            check.add("size", f"expected {shard.bytes:,} bytes, found {stored.size:,}")
        elif shard.sha256 and (digest := stored.sha256()) != shard.sha256:
            check.add("sha256", f"the file has the sha256 {digest}, another than recordmill.json says")
    if not shard.sidecar:
        return
    read = rows.read()
    if rows.sha256 and rows.sha256 != shard.sidecar_sha256:
        check.add("sha256", f"the sidecar has another sha256 than recordmill.json says ({shard.sidecar})")
    elif rows.sha256 and not check.damages and [row.offset for row in read] != offsets:
        check.add("sidecar", f"the sidecar's {len(read):,} rows do not match the records ({shard.sidecar})")


def _compare_names(check: ShardCheck, rows: SidecarRows, expected: Expectations) -> None:
    """Compares the classes of the sidecar's rows with the marker's, unless the records have the same problem."""
    if not any(finding.kind in ("label", "names") for finding in check.findings):
        names = NameProblems()
        for number, row in enumerate(rows.read()):
            names.add(judge_row(row, expected.class_ids), number, row.offset, str(row.key))
        for problem, place in names:
            check.add("names", problem, *place)
