"""One file, read once: every frame, every Example, and what is stated of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from recordmill.reading.example import DamagedExampleError, ParsedExample, Profile
from recordmill.reading.expectations import Expectations
from recordmill.reading.label_names import LabelNames, fit_names, judge_labels, judge_rows
from recordmill.reading.shard import Shard
from recordmill.reading.sidecar_rows import SidecarRows
from recordmill.reading.verify.finding import Finding
from recordmill.schemas.row_totals import RowTotals
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import FRAMING_BYTES, Damage, RecordFile

Level = Literal["frames", "files", "pixels"]
LEVELS: tuple[Level, ...] = ("frames", "files", "pixels")

MOST_FINDINGS = 1_000
"""Told of one file; the rest are counted."""

_TOLD_EVERY = 256  # records

LookAtPixels = Callable[[ParsedExample], tuple[str, str]]
"""The kind of what is wrong with a record's image, and what; two empty strings where nothing is."""


@dataclass(slots=True)
class ShardCheck:
    """What came of one file.

    Attributes:
        shard: the file.
        level: how closely it was looked at.
        records: how many good frames it holds.
        damages: how often a frame was expected and none was there.
        bytes: its size.
        kinds: the kind of each feature by key, with the number of the record that has it first.
        findings: what is wrong, in the file's order.
        hidden: findings beyond `MOST_FINDINGS`.
        totals: of one of ours, where not only its frames were looked at: what the rows of its sidecar add up to; None
            where the sidecar is not the one that the marker states.
        keys_by_digest: of one of ours, where not only its frames were looked at: keys by the source's sha256.
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


def verify_shard(
    shard: Shard,
    expected: Expectations,
    level: Level,
    look_at_pixels: LookAtPixels | None = None,
    progress: Callable[[int], None] = lambda records: None,
) -> ShardCheck:
    """Reads one file from its first byte to its last.

    At level `files` the records of a shard of ours are not looked at one by one where the shard and its sidecar have
    the SHA-256 that the marker states: their frames and checksums were read back when the shard was written.
    Where a digest is another one, or none is stated, all are looked at, to tell which are damaged.

    Args:
        shard: the file, with what is stated of it.
        expected: what is stated of its records.
        level: how closely to look; see `verify_dataset`.
        look_at_pixels: at level `pixels`, what decodes.
        progress: called now and then with the number of records since the last call.

    Returns:
        What was found; nothing that a file holds makes this raise.
    """
    check = ShardCheck(shard, level)
    try:
        with StoredFile(shard.path, digest=level != "frames" and bool(shard.sha256)) as stored:
            check.bytes = stored.size
            records, rows = RecordFile(stored), SidecarRows(check)
            if level == "files" and _is_as_written(stored, shard, rows, expected):
                check.records = len(rows.read())
                progress(check.records)
                _judge_file(records, check)
            else:
                offsets, end = _read_records(records, check, expected, look_at_pixels, rows, progress)
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
                        check.add("sidecar", f"the sidecar's rows cannot be understood ({shard.sidecar})")
                check.keys_by_digest = {row["sha256"]: row["key"] for row in read if row.get("sha256")}
    except FileNotFoundError:
        check.add("missing", "the file is not there")
    except OSError as error:
        check.add("unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}")
    if check.hidden:
        check.findings.append(Finding("more", f"{check.hidden:,} further findings in this file", shard.name))
    return check


def _is_as_written(stored: StoredFile, shard: Shard, rows: SidecarRows, expected: Expectations) -> bool:
    """Whether a shard and its sidecar are, byte for byte, those that were read back when they were written.

    The number of records, and the classes and their ids, stand in the marker, not in the shard: the sidecar's rows must
    fit them.
    """
    if not shard.sha256 or stored.size != shard.bytes or stored.sha256() != shard.sha256:
        return False
    read = rows.read()
    if rows.sha256 != shard.sidecar_sha256 or len(read) != shard.records:
        return False
    labels = {label for row in read if isinstance(label := row.get("label"), int)}
    return (not expected.label_ids or labels <= expected.label_ids) and fit_names(read, expected.class_ids)


def _read_records(
    records: RecordFile,
    check: ShardCheck,
    expected: Expectations,
    look_at_pixels: LookAtPixels | None,
    rows: SidecarRows,
    progress: Callable[[int], None],
) -> tuple[list[int], int]:
    """Looks at every record; returns where each one begins, and where the last one's frame ends."""
    classes = expected if check.level != "frames" else replace(expected, label_ids=frozenset(), class_ids={})
    names = LabelNames(classes)
    judged: dict[Profile, str] = {}
    offsets: list[int] = []
    end = 0
    for number, (offset, data) in enumerate(records):
        if isinstance(data, Damage):
            check.damages += 1
            check.add(data.kind, data.detail, *rows.place(offset, number))
            continue
        offsets.append(offset)
        end = offset + len(data) + FRAMING_BYTES
        try:
            example = ParsedExample(data)
        except DamagedExampleError as error:
            check.add("example", str(error), *rows.place(offset, number))
            continue
        profile = example.profile
        verdict = judged.get(profile)
        if verdict is None:
            verdict = judged[profile] = expected.judge(profile) or _compare_kinds(profile, check, number)
        if verdict:
            check.add("feature", verdict, *rows.place(offset, number))
        if problem := judge_labels(example, classes):
            check.add("label", problem, *rows.place(offset, number))
        names.look(example, number, offset)
        if look_at_pixels:
            kind, problem = look_at_pixels(example)
            if problem:
                check.add(kind, problem, *rows.place(offset, number))
        if not len(offsets) % _TOLD_EVERY:
            progress(_TOLD_EVERY)
    _tell_names(names, check, rows)
    progress(len(offsets) % _TOLD_EVERY)
    return offsets, end


def _tell_names(names: LabelNames, check: ShardCheck, rows: SidecarRows) -> None:
    for problem, number, offset in names.findings():
        check.add("names", problem, *rows.place(offset, number))


def _compare_kinds(profile: Profile, check: ShardCheck, number: int) -> str:
    """Each key is of one kind throughout; a feature without values may be anything."""
    for key, kind, _ in profile:
        if kind is None:
            continue
        first, there = check.kinds.setdefault(key, (kind, number))
        if first != kind:
            return f"feature {key} is {kind} and is {first} in record {there:,}"
    return ""


def _judge_file(records: RecordFile, check: ShardCheck) -> None:
    """What only the whole file shows."""
    packed, name = records.compression == "gzip", check.shard.name
    if not check.bytes:
        check.add("empty", "the file is empty: 0 bytes")
    elif not check.records and not check.findings:
        check.add("empty", "the file holds no record")
    if check.bytes and packed != name.lower().endswith((".gz", ".gzip")):
        called = "its name does not say so" if packed else "its name says gzip"
        check.add("name", f"the file is {'gzip' if packed else 'not packed'} and {called}: readers that go by it fail")
    if records.members > 1:
        check.add("members", f"{records.members} gzip streams one behind the other, all of them read")


def _compare_count(check: ShardCheck, rows: SidecarRows, end: int) -> None:
    """A file that was cut between two records ends where the first of those that are missing began."""
    stated, there = check.shard.records, check.records
    if stated is not None and stated not in (there, there + check.damages):
        place = rows.place(end, there) if there < stated and not check.damages else ()
        check.add("count", f"{stated:,} records are stated and {there:,} are there", *place)


def _compare(stored: StoredFile, check: ShardCheck, rows: SidecarRows, offsets: list[int]) -> None:
    """The file and its sidecar with what is stated of them; a damage is not told a second time."""
    shard = check.shard
    if not check.damages:
        if shard.bytes is not None and shard.bytes != stored.size:
            check.add("size", f"{shard.bytes:,} bytes are stated and {stored.size:,} are there")
        elif shard.sha256 and (digest := stored.sha256()) != shard.sha256:
            check.add("sha256", f"the file's sha256 is {digest} and not as stated")
    if not shard.sidecar:
        return
    read = rows.read()
    if rows.sha256 and rows.sha256 != shard.sidecar_sha256:
        check.add("sha256", f"the sidecar's sha256 is not as stated ({shard.sidecar})")
    elif rows.sha256 and not check.damages and [row["offset"] for row in read] != offsets:
        check.add("sidecar", f"the sidecar's {len(read):,} rows are not those of the records ({shard.sidecar})")


def _compare_names(check: ShardCheck, rows: SidecarRows, expected: Expectations) -> None:
    """The classes of the sidecar's rows with the marker's, where the records have not told the same."""
    if not any(finding.kind in ("label", "names") for finding in check.findings):
        for problem, number, offset, key in judge_rows(rows.read(), expected.class_ids):
            check.add("names", problem, number, offset, key)
