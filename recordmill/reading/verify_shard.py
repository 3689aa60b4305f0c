"""Verifies one TFRecord file, with its sidecar if it has one; each finding is one line."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from google.protobuf.message import DecodeError

from recordmill import storage
from recordmill.reading.dataset import FORGED, MOST_MORE_BYTES, StoredShard
from recordmill.reading.example import (
    DamagedExampleError,
    Expectations,
    ParsedExample,
    Profile,
    parse_intact,
)
from recordmill.reading.repeated_keys import find_repeated_in_lines
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.totals import RowTotals, sum_rejected
from recordmill.schemas.digests import digest_record, find_images
from recordmill.schemas.formatting import format_count, show_names
from recordmill.storage.dataset_files import MOST_SIDECAR_BYTES, parse_rows
from recordmill.storage.tfrecord_file import (
    Damage,
    RecordFile,
    StoredFile,
    data_offset,
    frame_bytes,
)

if TYPE_CHECKING:
    from recordmill.reading.verify_images import ImageFeatures

NOTES = frozenset({"members", "edited", "duplicate", "feature_lists"})
"""Kinds reported, but not as failures: readers tolerate them, people may edit the file, or the
input has them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem.

    Attributes:
        kind: a word for programs; docs/verify.md lists all.
        detail: the problem, in a few words.
        shard: the file's name below the dataset's folder.
        record: the record's number in its file, from 0; after damage, only a count unless a sidecar
            has the number.
        offset: the byte at which its frame begins, in the unpacked file.
        source: the key of the source file, if a sidecar has it.
    """

    kind: str
    detail: str
    shard: str = ""
    record: int | None = None
    offset: int | None = None
    source: str = ""

    @property
    def is_note(self) -> bool:
        """Whether it is reported, but not as a failure."""
        return self.kind in NOTES

    def __str__(self) -> str:
        """Returns the line: shard, record, byte, source, and problem."""
        place = self.shard
        if self.record is not None:
            place += f", record {self.record:,}"
        if self.offset is not None:
            place += f" at byte {self.offset:,}"
        if self.source:
            place += f" ({self.source})"
        if place:
            return f"{place}: {self.detail}"
        return self.detail


Level = Literal["frames", "files", "pixels"]
LEVELS: tuple[Level, ...] = ("frames", "files", "pixels")

MOST_FINDINGS = 1_000
"""The most findings reported per file; further ones are only counted."""


@dataclass(slots=True)
class ShardCheck:
    """The result for one file.

    Attributes:
        shard: the file.
        level: how thoroughly it was checked.
        records: number of intact frames.
        damages: number of places where a frame was expected and not found.
        bytes: size of the file.
        kinds: number and offset of the first record that has a feature with this key and kind, if
            the features are unknown.
        findings: the problems, in the file's order.
        hidden: number of findings beyond `MOST_FINDINGS`.
        images: number of images in which metadata was looked for.
        totals: totals of the sidecar's rows, for Recordmill's shards above level `frames`; None if
            the sidecar does not have the digest in the marker.
        rejected: the sum of the digests of its rejected references, see `sum_rejected`; None if
            `totals` is.
    """

    shard: StoredShard
    level: Level = "frames"
    records: int = 0
    damages: int = 0
    bytes: int = 0
    kinds: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    hidden: int = 0
    images: int = 0
    totals: RowTotals | None = None
    rejected: str | None = None

    def add(self, kind: str, detail: str, *place: Any) -> None:
        """Adds one finding.

        The place is a record's number, offset and source, as far as they are known.
        """
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(kind, detail, self.shard.name, *place))
        else:
            self.hidden += 1


class _Reader:
    """Checks one file, and reads its sidecar when it is first needed.

    Attributes:
        totals: totals of the sidecar's rows, including those of rejected references; None if the
            rows are malformed.
        sidecar_sha256: hex digest of the sidecar; the empty string until it is read, or if it
            cannot be read.
    """

    def __init__(self, stored: StoredFile, check: ShardCheck, expected: Expectations) -> None:
        self._stored, self._check, self._expected = stored, check, expected
        self._records = RecordFile(stored)
        self._images = find_images((key, each.field) for key, each in expected.features.items())
        self._by_offset: dict[int, int] = {}
        self._reported = {""}  # problems of class names; the empty string is none
        self.sidecar_sha256 = ""
        self.totals: RowTotals | None = None
        self.rejected: str | None = None

    @cached_property
    def rows(self) -> list[SidecarRow]:
        """Returns the records' rows, in order.

        If the sidecar cannot be read, there are none, and a finding is added.
        """
        if not (sidecar := self._check.shard.sidecar):
            return []
        try:
            content = storage.read_whole(sidecar, MOST_SIDECAR_BYTES)
            lines = content.splitlines()
            everything = list(parse_rows(lines))
            if (repeated := find_repeated_in_lines(lines)) is not None:
                number, key = repeated
                what = f"in line {number:,} of the sidecar, {key} is given twice ({sidecar})"
                self._check.add("sidecar", what)
            rows = [row for row in everything if isinstance(row, SidecarRow)]
            self._by_offset = {row.offset: number for number, row in enumerate(rows)}
        except FileNotFoundError:
            self._check.add("missing", f"the sidecar is missing ({sidecar})")
            return []
        except (OSError, *FORGED) as error:
            why = getattr(error, "strerror", None) or error
            self._check.add("sidecar", f"the sidecar cannot be read: {why} ({sidecar})")
            return []
        with suppress(*FORGED):
            self.totals = RowTotals.of(everything, self._check.shard.split)
            self.rejected = sum_rejected(everything)
        self.sidecar_sha256 = hashlib.sha256(content).hexdigest()
        return rows

    def is_as_written(self) -> bool:
        """Returns whether the file and its sidecar are byte for byte as read back after writing.

        The number of records, the classes and their ids are in the marker, not in the shard; the
        sidecar's rows must match them, too.
        """
        shard, ids = self._check.shard, self._expected.label_ids
        if (
            not shard.sha256
            or self._stored.size != shard.bytes
            or self._stored.sha256() != shard.sha256
        ):
            return False
        rows = self.rows
        if self.sidecar_sha256 != shard.sidecar_sha256 or len(rows) != shard.records:
            return False
        if ids and not {label for row in rows if isinstance(label := row.label, int)} <= ids:
            return False
        return not any(map(self._expected.judge_row, rows)) and self._has_right_ids(rows)

    def _has_right_ids(self, rows: Sequence[SidecarRow]) -> bool:
        """Returns whether the classes of annotations have the marker's ids.

        Rows have only their names. One record of each class is read, since the label map is the
        same for all.
        """
        expected, first = self._expected, dict[int, SidecarRow]()
        seen = set[str]()
        for row in rows if expected.class_ids else ():
            if new := set(row.classes or ()) - seen:
                seen |= new
                first[row.offset] = row
        for offset, example in self._read_at(first):
            if example is None or expected.judge_lists(example, first[offset]):
                return False
            if any(expected.judge_names(example)):
                return False
        return True

    def _read_at(
        self, rows: Mapping[int, SidecarRow]
    ) -> Iterator[tuple[int, ParsedExample | None]]:
        """Yields the Example of each row by its offset; None if it cannot be read."""
        if self._records.compression == "none":
            for offset, row in rows.items():
                start, length = data_offset(offset), row.length
                is_inside = data_offset(0) <= start <= start + length <= self._stored.size
                data = self._stored.read_at(start, length) if is_inside else b"\0"
                yield offset, parse_intact(data)
            return
        for offset, record in RecordFile(self._stored) if rows else ():
            if offset in rows:
                yield offset, parse_intact(record)
            if offset >= max(rows):
                return

    def _expected_classes(self) -> Expectations:
        if self._check.level == "frames":
            return replace(self._expected, label_ids=frozenset(), class_ids={})
        return self._expected

    def check_records(self, no_metadata: bool, progress: Callable[[int], None]) -> None:
        """Checks every record, then the whole file against the metadata."""
        check, expected = self._check, self._expected
        reads_images = check.level == "pixels" or no_metadata
        classes = self._expected_classes()
        judged: dict[Profile, str | None] = {}
        image_features, sequences = self._watch_images(), Counter[str]()
        offsets: list[int] = []
        end = 0
        # If an image crashes the process, it is known which one.
        reported_every = 1 if reads_images else 256

        for number, (offset, data) in enumerate(self._records):
            if isinstance(data, Damage):
                check.damages += 1
                self._report(data.kind, data.detail, number, offset)
                continue
            offsets.append(offset)
            end = offset + frame_bytes(len(data))
            self._report("sidecar", self._compare_with_row(offset, data), number, offset)
            example = self._parse(data, number, offset)
            if example is None:
                continue
            self._report_lists(example, number, offset)
            profile = example.profile
            sequences.update(example.feature_lists)
            if image_features:
                image_features.add(example, (number, offset))
            if profile not in judged:
                judged[profile] = expected.judge(profile)
                self._note_kinds(profile, number, offset)
            self._report_values(example, judged[profile], number, offset)
            self._report("label", classes.judge_labels(example), number, offset)
            if reads_images:
                self._check_images(example, no_metadata, number, offset)
            for problem in classes.judge_names(example):
                self._report_name(problem, number, offset)
            if not len(offsets) % reported_every:
                progress(reported_every)
        progress(len(offsets) % reported_every)
        check.records = len(offsets)
        self._report_features(image_features, sequences)
        self.judge_file()
        self._compare_count(end)
        if check.level != "frames":
            self._compare_with_marker(offsets)
            self._compare_names()

    def _report_lists(self, example: ParsedExample, number: int, offset: int) -> None:
        """Reports ids of several classes that are not those of the names in the row."""
        rows = self.rows if self._check.level != "frames" and self._expected.list_keys else []
        place = self._by_offset.get(offset) if rows else None
        if place is not None:
            self._report_name(self._expected.judge_lists(example, rows[place]), number, offset)

    def _report_values(
        self, example: ParsedExample, problem: str | None, number: int, offset: int
    ) -> None:
        """Reports the problem with a record's features; if there is none, with its annotations."""
        self._report("feature", problem, number, offset)
        if not problem:
            decodes = self._check.level == "pixels"
            wrong = self._expected.judge_annotations(example, decodes)
            self._report("annotations", wrong, number, offset)

    def _report(self, kind: str, problem: str | None, number: int, offset: int) -> None:
        """Adds a finding on a record, if there is a problem."""
        if problem:
            self._check.add(kind, problem, *self._place(offset, number))

    def _parse(self, data: memoryview, number: int, offset: int) -> ParsedExample | None:
        """Parses a record; if it is not an Example, adds a finding and returns None."""
        try:
            example = ParsedExample(data)
        except DamagedExampleError as error:
            self._report("example", str(error), number, offset)
            return None
        if example.profile:
            return example
        text = "the record is not a tf.train.Example, or it has no features"
        self._report("example", text, number, offset)
        return None

    def _watch_images(self) -> "ImageFeatures | None":
        """What finds features without images, if the file has no metadata that declares them."""
        expected = self._expected
        if self._check.level != "pixels" or expected.images_are_declared or not expected.image_keys:
            return None
        # Other checks do without Pillow.
        from recordmill.reading.verify_images import ImageFeatures

        return ImageFeatures(expected)

    def _report_features(
        self, image_features: "ImageFeatures | None", sequences: Mapping[str, int]
    ) -> None:
        """Reports what is known of features only after the last record, in the file's order."""
        check = self._check
        if problems := image_features.find_problems() if image_features else []:
            for (number, offset), problem in problems:
                self._report("pixels", problem, number, offset)
            check.findings.sort(key=lambda each: inf if each.offset is None else each.offset)
        if sequences:
            most = format_count(max(sequences.values()), "SequenceExample")
            keys = show_names(sorted(sequences))
            check.add("feature_lists", f"{most} with feature_lists, which nothing reads: {keys}")

    def _check_images(
        self, example: ParsedExample, no_metadata: bool, number: int, offset: int
    ) -> None:
        # Other checks do without Pillow.
        from recordmill.reading.verify_images import (
            check_metadata,
            check_pixels,
        )

        if self._check.level == "pixels":
            rows = self.rows
            place = self._by_offset.get(offset)
            row = None if place is None else rows[place]
            if found := check_pixels(example, self._expected, row):
                self._report(*found, number, offset)
        for found in check_metadata(example, self._expected) if no_metadata else ():
            self._check.images += 1
            if found:
                self._report(*found, number, offset)

    def _note_kinds(self, profile: Profile, number: int, offset: int) -> None:
        """Notes the first record with a kind of a feature, if the features are unknown."""
        for key, kind, _ in profile if not self._expected.features else ():
            if kind is not None:  # a feature without values may have any
                self._check.kinds.setdefault((key, kind), (number, offset))

    def _report_name(self, problem: str | None, number: int, offset: int) -> None:
        """Adds a finding on a problem with a name, once per problem.

        If two names were swapped, every record of both classes is wrong.
        """
        if problem and problem not in self._reported:
            self._reported.add(problem)
            self._report("names", problem, number, offset)

    def _place(self, offset: int, counted: int) -> tuple[int, int, str]:
        """Returns the number of the record at an offset, the offset, and its source's key.

        The number is `counted` if no row has the offset.
        """
        rows = self.rows
        number = self._by_offset.get(offset)
        if number is None:
            return counted, offset, ""
        return number, offset, str(rows[number].key)

    def _compare_with_row(self, offset: int, record: memoryview) -> str | None:
        """Returns the problem if a record does not match its row.

        At level `frames`, records are not compared.
        """
        if self._check.level == "frames" or not self.rows:
            return None
        number = self._by_offset.get(offset)
        if number is None:
            return None
        row = self.rows[number]
        with suppress(DecodeError, ValueError):
            if digest_record(bytes(record), self._images if row.rest else {}) == row.record:
                return None
        return "the record is not the one that its row in the sidecar describes"

    def judge_file(self) -> None:
        """Checks properties of the whole file."""
        check, members = self._check, self._records.members
        compression, name = self._records.compression, check.shard.name.lower()
        if not check.bytes:
            check.add("empty", "the file is empty: 0 bytes")
        elif not check.records and not check.findings:
            check.add("empty", "the file has no records")
        is_named_gzip = name.endswith((".gz", ".gzip"))
        if compression == "zlib" and not name.endswith((".zlib", ".zz")):
            named = "its name does not say so"
            if is_named_gzip:
                named = "its name says gzip"
            detail = f"the file is compressed with ZLIB and {named}: readers cannot know that"
            check.add("name", detail)
        elif compression != "zlib" and check.bytes and (compression == "gzip") != is_named_gzip:
            if compression == "gzip":
                is_packed, named = "", "its name does not say so"
            else:
                is_packed, named = "not ", "its name says gzip"
            check.add(
                "name", f"the file is {is_packed}gzip and {named}: readers that trust the name fail"
            )
        if members > 1:
            check.add("members", f"{members} concatenated gzip streams, all read")

    def _compare_count(self, end: int) -> None:
        """Compares the number of records with the expected one.

        A file truncated after a record ends where the first missing one began.
        """
        check = self._check
        expected, there = check.shard.records, check.records
        if expected is not None and expected not in (there, there + check.damages):
            detail = f"expected {expected:,} records, found {there:,}"
            if there < expected and not check.damages:
                check.add("count", detail, *self._place(end, there))
            else:
                check.add("count", detail)

    def _compare_with_marker(self, offsets: list[int]) -> None:
        """Compares the sizes and digests of the file and its sidecar with the marker's.

        Damage is not reported twice.
        """
        check, shard = self._check, self._check.shard
        if not check.damages:
            if shard.bytes is not None and shard.bytes != self._stored.size:
                check.add("size", f"expected {shard.bytes:,} bytes, found {self._stored.size:,}")
            elif shard.sha256 and (digest := self._stored.sha256()) != shard.sha256:
                check.add(
                    "sha256", f"the file has the sha256 {digest}, another than recordmill.json says"
                )
        rows = self.rows
        if self.sidecar_sha256 and self.sidecar_sha256 != shard.sidecar_sha256:
            check.add(
                "sha256",
                f"the sidecar has another sha256 than recordmill.json says ({shard.sidecar})",
            )
        elif self.sidecar_sha256 and not check.damages and [row.offset for row in rows] != offsets:
            check.add(
                "sidecar",
                f"the sidecar's {len(rows):,} rows do not match the records ({shard.sidecar})",
            )

    def _compare_names(self) -> None:
        """Compares the classes of the sidecar's rows with the marker's.

        If the records already have such a problem, the rows are not compared.
        """
        if not any(finding.kind in ("label", "names") for finding in self._check.findings):
            for number, row in enumerate(self.rows):
                self._report_name(self._expected.judge_row(row), number, row.offset)


def verify_shard(
    shard: StoredShard,
    expected: Expectations,
    level: Level,
    no_metadata: bool = False,
    progress: Callable[[int], None] = lambda records: None,
) -> ShardCheck:
    """Reads one file from its first byte to its last.

    At level `files`, the records of a Recordmill shard are not checked one by one if the shard and
    its sidecar have the SHA-256 in the marker: their frames and checksums were read back when the
    shard was written. If a digest differs or is missing, all records are checked to find the
    damaged ones.

    Args:
        shard: the file and its metadata.
        expected: the expectations for its records.
        level: how thoroughly to check; see `verify_dataset`.
        no_metadata: whether images must have no metadata; if so, all records are read.
        progress: called repeatedly with the number of records since the last call.

    Returns:
        The findings; no content of a file makes this raise.
    """
    check = ShardCheck(shard, level)
    try:
        with StoredFile(shard.path, digest=level != "frames" and bool(shard.sha256)) as stored:
            check.bytes = stored.size
            if shard.bytes is not None and stored.size > shard.bytes + MOST_MORE_BYTES:
                check.add("size", f"expected {shard.bytes:,} bytes, found {stored.size:,}")
                return check
            reader = _Reader(stored, check, expected)
            if level == "files" and not no_metadata and reader.is_as_written():
                check.records = len(reader.rows)
                progress(check.records)
                reader.judge_file()
            else:
                reader.check_records(no_metadata, progress)
            if (
                level != "frames"
                and reader.sidecar_sha256
                and reader.sidecar_sha256 == shard.sidecar_sha256
            ):
                check.totals, check.rejected = reader.totals, reader.rejected
                if check.totals is None:
                    check.add("sidecar", f"the sidecar's rows are malformed ({shard.sidecar})")
    except FileNotFoundError:
        check.add("missing", "the file is missing")
    except OSError as error:
        check.add(
            "unreadable", f"the file cannot be read: {(error.strerror or str(error)).lower()}"
        )
    if check.hidden:
        check.findings.append(
            Finding("more", f"{check.hidden:,} further findings in this file", shard.name)
        )
    return check
