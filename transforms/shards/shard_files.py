"""A shard's files: the TFRecord file, the sidecar that describes its records, and a note.

The note says that the other two are finished.

They are written in the staging folder under temporary names and renamed when complete; the note
comes last. A shard whose note matches its references was finished by an earlier run and is not
written again.

Next to them is a file of columns: numbers that publishing needs for every record; reading them is
faster than reading rows. It has one column after the other, each with one entry per record, in the
order of the records.

A shard with rejected files also has small pictures of some of them, for the report. They are made
with the shard, when the source is available, and published in `report.json`.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill import storage
from recordmill.imaging.previews import draw_preview
from recordmill.schemas.dataset.file_names import SHARD
from recordmill.schemas.dataset.json_values import MisfitError, from_json, to_json
from recordmill.schemas.dataset.marker import MARKER_FORMAT, PLAN_VERSION, ShardEntry
from recordmill.schemas.dataset.record_index import PLACE_BYTES, pack_place
from recordmill.schemas.dataset.side_files import (
    RejectedPicture,
    SidecarRow,
    row_to_json,
)
from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.rejection import TRANSIENT, Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.storage.dataset_files import read_object, shard_path
from recordmill.storage.tfrecord_file import DamagedFileError, FileContents, RecordSink, read_back
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.convert_image import ConvertedImage

DigestArray = NDArray[np.uint64]

NumbersColumn = Literal["places", "contents", "hashes"]
"""`places` are entries of the dataset's index (docs/format.md); `contents` are the first 64 bits of
each image's SHA-256; `hashes` are difference hashes, if they are computed."""

_WIDTHS: dict[NumbersColumn, int] = {"places": PLACE_BYTES, "contents": 8, "hashes": 8}


def add_to_columns(columns: Mapping[NumbersColumn, bytearray], row: SidecarRow, order: int) -> None:
    """Adds a record to a shard's columns; `order` is `KeyHashes.order` of its key."""
    columns["places"].extend(pack_place(row.offset, row.length, order))
    columns["contents"].extend(int(row.sha256[:16], 16).to_bytes(8, "little"))
    if row.difference_hash is not None:
        columns["hashes"].extend(int(row.difference_hash, 16).to_bytes(8, "little"))


def read_column(staging: str, report: ShardReport, column: NumbersColumn) -> bytes:
    """Reads a column of a shard.

    Raises:
        OSError: it cannot be read.
    """
    columns = list(_WIDTHS)
    before = sum(_WIDTHS[each] for each in columns[: columns.index(column)])
    path, records = shard_path(staging, report.split, report.index, "columns"), report.records
    if records:
        return storage.read_range(path, records * before, records * _WIDTHS[column])
    return b""


def as_numbers(column: bytes) -> DigestArray:
    """Returns the entries of a column."""
    return np.frombuffer(column, "<u8").astype(np.uint64, copy=False)


_OTHER_KINDS = ("jsonl", "columns", "versions")
"""The kinds of a finished shard's files, except for its records and its note."""

_ROWS_AT_ONCE = 256

_UNSEEN = frozenset({"bad_header", "empty", "too_many_bytes", "unknown_format"})
"""Reasons to reject files that cannot be shown, and are not read again for the report."""


class InputDigests(NamedTuple):
    """Digests of a shard's input, in hex.

    Attributes:
        digest: of its references, wherever and whenever they were listed.
        versions: of their files' sizes and times: it changes when an image is rewritten.
    """

    digest: str
    versions: str


def fingerprint(batch: ShardBatch) -> InputDigests:
    """Returns the fingerprint of a shard's references."""
    return InputDigests(f"{batch.digest:064x}", f"{batch.versions:064x}")


def find_finished(staging: str, split: str, index: int, mark: InputDigests) -> ShardReport | None:
    """Returns the report of a shard that an earlier run finished from the same references.

    Returns None if there is none. A shard does not count as finished if an image could not be read
    for a reason that may be gone by now.
    """
    try:
        done = read_object(shard_path(staging, split, index, "done.json"))
        report = from_json(ShardReport, {**done["report"], "reused": True})
    except (KeyError, TypeError, MisfitError):  # there is no note, or one of another version
        return None
    if (report.split, report.index) != (split, index):
        return None
    there = storage.size_of(shard_path(staging, split, index, SHARD)) == report.bytes
    there = there and all(
        storage.exists(shard_path(staging, split, index, kind)) for kind in _OTHER_KINDS
    )
    dropped = chain.from_iterable(each.dropped for each in report.annotations.values())
    is_transient = not TRANSIENT.isdisjoint((*report.rows.rejected, *dropped))
    is_same = (done.get("format"), done.get("fingerprint")) == (MARKER_FORMAT, list(mark))
    if not (there and is_same) or is_transient:
        return None
    return replace(report, contents=read_column(staging, report, "contents"))


class WrittenShard:
    """A shard whose files are written, or being written, but have not been read back yet.

    Args:
        staging: the folder.
        split: the shard's split.
        index: its place in the plan.
        mark: the fingerprint of its references.
        compression: `none` or `gzip`.
        orders: `KeyHashes.order` of each of its references, in their order.

    Attributes:
        report: the report so far.
        temporary: the paths of its TFRecord file and its sidecar until they are finished.
        shown: the keys of the first files that were rejected for each reason while they were
            decoded.
    """

    def __init__(
        self,
        staging: str,
        split: str,
        index: int,
        mark: InputDigests,
        compression: str,
        orders: Iterable[int],
    ) -> None:
        self.report = ShardReport(split, index, 0, RowTotals(), digest=mark.digest)
        self._path = partial(shard_path, staging, split, index)
        self.temporary = (
            storage.temporary_name(self._path(SHARD)),
            storage.temporary_name(self._path("jsonl")),
        )
        self._kept: FileContents | None = None
        self.shown: dict[str, list[str]] = {}
        self._mark, self._compression = mark, compression
        self._seconds = 0.0
        self._damaged: set[str] = set()
        self._origins = bytearray()
        self._columns: dict[NumbersColumn, bytearray] = {column: bytearray() for column in _WIDTHS}
        self._orders = iter(orders)
        self._sidecar_digest = hashlib.sha256()

    def write(self, images: Iterable[ConvertedImage]) -> None:
        """Writes the files under temporary names, streaming; `finish` does the rest.

        Args:
            images: the converted references, in their final order; each record is cleared once it
                is written.

        Raises:
            OSError: the files cannot be written; they are removed.
        """
        file, sidecar = self.temporary
        with (
            self.removed_on_failure(),
            closing(RecordSink(file, self._compression)) as sink,
            storage.open_to_write(sidecar) as rows,
        ):
            rows.writelines(self._count(_write_records(images, sink)))

    def keep(self, images: Iterable[ConvertedImage], path: str, file: ShardEntry) -> bool:
        """Uses an earlier shard's file, and writes the sidecar.

        Returns False if the file is damaged or cannot be used.

        Args:
            images: the images in the file, whose rows give their places.
            path: the path of the file.
            file: its entry in the marker.

        Raises:
            OSError: the sidecar cannot be written; it is removed.
        """
        if storage.keep_file(path, file.sha256, self.temporary[0]):
            self._kept = FileContents(file.bytes, file.sha256, file.records)
            with self.removed_on_failure(), storage.open_to_write(self.temporary[1]) as rows:
                rows.writelines(self._count(images))
        return self._kept is not None

    def _count(self, images: Iterable[ConvertedImage]) -> Iterator[bytes]:
        """Counts images and yields their sidecar lines, many at a time.

        One by one takes twice as long.
        """
        rest = iter(images)
        while some := list(islice(rest, _ROWS_AT_ONCE)):
            yield self._count_some(some)

    def _count_some(self, images: Sequence[ConvertedImage]) -> bytes:
        report = self.report
        report.rows.add([image.row for image in images], report.split)
        # `zip` ends with the images, which come first, and takes no order too many.
        for image, order in zip(images, self._orders, strict=False):
            if image.excluded:  # counting nothing takes a microsecond, too
                report.excluded.update(image.excluded)
            if image.correction is not None:
                report.corrections[image.correction] += 1
            if image.missing:
                report.missing.update(image.missing)
            self._damaged.update(image.damaged)
            row = image.row
            report.images.add(row)
            self._seconds += image.seconds
            report.images_reused += image.is_reused
            report.positions += image.has_position
            report.images_disputed += image.is_disputed
            if isinstance(row, SidecarRow):
                add_to_columns(self._columns, row, order)
            elif row.stage == "decode" and row.reason and row.reason not in _UNSEEN:
                self._choose_to_show(row.key, row.reason)
            if image.annotations:
                is_written = isinstance(row, SidecarRow)
                add_image(report.annotations, row.key, image.annotations, is_written=is_written)
        self._origins += b"".join([image.origin().as_line() for image in images])
        lines = b"".join(
            [
                orjson.dumps(row_to_json(each.row), option=orjson.OPT_APPEND_NEWLINE)
                for each in images
            ]
        )
        self._sidecar_digest.update(lines)
        return lines

    def _choose_to_show(self, key: str, reason: str) -> None:
        """Chooses a rejected file for the report if few have been rejected for this reason."""
        keys = self.shown.setdefault(reason, [])
        if len(keys) < MOST_SHOWN_OF_REASON:
            keys.append(key)

    def finish(self, previous: Mapping[str, str]) -> ShardReport:
        """Reads the file back, forces both files to disk, renames them, and writes the note.

        Returns the report.

        Args:
            previous: paths of the shards of the dataset that will be replaced, by digest, if links
                to them can be made. One with the same bytes becomes the shard's file: both datasets
                then share it, and renaming it to its own name does nothing.

        Raises:
            DamagedFileError: the file does not contain what was written.
            OSError: the files cannot be renamed, or the note cannot be written.
        """
        report = self.report
        with self.removed_on_failure():
            contents = self._kept or read_back(self.temporary[0], self._compression)
            if contents.records != report.rows.records:
                there = (
                    f"{report.rows.records} records were written and {contents.records} are there"
                )
                raise DamagedFileError(f"{report.split}-{report.index}: {there}")
            if not self._kept and (path := previous.get(contents.sha256)):
                storage.keep_file(path, contents.sha256, self.temporary[0])
            storage.force_to_disk(self.temporary)
            # An old note must never describe new files.
            storage.remove_files([self._path("done.json")])
            for temporary, kind in zip(self.temporary, (SHARD, "jsonl"), strict=True):
                storage.move_file(temporary, self._path(kind))
            storage.write_file(self._path("versions"), bytes(self._origins))
            storage.write_file(self._path("columns"), b"".join(self._columns.values()))
            report.references, report.sidecar_sha256 = (
                report.rows.references,
                self._sidecar_digest.hexdigest(),
            )
            report.records, report.bytes, report.sha256 = (
                contents.records,
                contents.bytes,
                contents.sha256,
            )
            report.damaged = tuple(sorted(self._damaged))
            kept = to_json(report)
            del kept["contents"]  # they are a column
            note = {
                "format": MARKER_FORMAT,
                "plan_version": PLAN_VERSION,
                "fingerprint": list(self._mark),
                "report": kept,
            }
            storage.write_file(self._path("done.json"), orjson.dumps(note))
        report.contents, report.milliseconds = (
            bytes(self._columns["contents"]),
            round(1000 * self._seconds),
        )
        return report

    @contextmanager
    def removed_on_failure(self) -> Iterator[None]:
        """Removes the temporary files if the block raises."""
        try:
            yield
        except BaseException:
            storage.remove_files(self.temporary)
            raise


def _write_records(images: Iterable[ConvertedImage], sink: RecordSink) -> Iterator[ConvertedImage]:
    for image in images:
        if image.record is not None and isinstance(image.row, SidecarRow):
            image.row.offset, image.row.length = sink.offset, len(image.record)
            sink.write(image.record)
            image.record = b""  # so only images that are being converted take memory
        yield image


def failed_report(split: str, index: int, references: int, problem: str) -> ShardReport:
    """Returns the report of a shard that could not be written, for a reason that a user can fix."""
    return ShardReport(split, index, references, RowTotals(), problem=problem)


MOST_SHOWN_OF_REASON = 5
"""The most rejected files of a shard, and of a dataset, with a picture for each reason."""


def write_rejected_pictures(
    path: str,
    refs: Iterable[ImageRef],
    shown: Mapping[str, Sequence[str]],
    settings: DatasetSettings,
) -> None:
    """Draws rejected files and writes the pictures as JSON.

    A file is left out if nothing of it can be seen.

    Args:
        path: the file.
        refs: the shard's references.
        shown: the keys of the files to show, by the reason why they were rejected.
        settings: what the dataset is.

    Raises:
        OSError: the file cannot be written.
    """
    reasons = dict[str, str]()
    for reason, keys in shown.items():
        reasons |= dict.fromkeys(keys, reason)
    drawn = [_draw_rejected(ref, reasons[ref.key], settings) for ref in refs if ref.key in reasons]
    storage.write_file(path, orjson.dumps([to_json(each) for each in drawn if each]))


def read_rejected_pictures(paths: Iterable[str]) -> tuple[RejectedPicture, ...]:
    """Reads the pictures in several files: the first ones for each reason.

    Raises:
        OSError: a file exists but cannot be read.
    """
    found: dict[str, list[RejectedPicture]] = {}
    for path in filter(storage.exists, paths):
        for fields in orjson.loads(storage.read_range(path)):
            picture = from_json(RejectedPicture, fields)
            found.setdefault(picture.reason, []).append(picture)
    first = (some[:MOST_SHOWN_OF_REASON] for some in found.values())
    return tuple(chain.from_iterable(first))


def _draw_rejected(ref: ImageRef, reason: str, settings: DatasetSettings) -> RejectedPicture | None:
    """Draws one rejected file; None if nothing of it can be seen."""
    try:
        content = settings.source.read(ref, settings.images.max_bytes)
    except (Rejected, OSError):  # the source may have been deleted meanwhile
        return None
    if not isinstance(content.image, bytes):
        return None
    preview = draw_preview(content.image)
    if preview is None:
        return None
    return RejectedPicture(ref.key, reason, base64.b64encode(preview).decode())
