"""Makes references from the rows of a manifest, and reads images that are stored in rows."""

import base64
import csv
import io
import os
import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import UNKNOWN_SIZE, ClassNames, ImageRef, boxes_of
from recordmill.schemas.packing import Gzip, TextCell, parse_packing
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.listing.folder_sketch import IMAGE_ENDINGS
from recordmill.transforms.inputs.listing.named_files import explain_os_error, key_of, locate, resolve_inside
from recordmill.transforms.inputs.manifests.columns import Entry, Reader
from recordmill.transforms.inputs.tables.cells import MAX_ROW_BYTES, Row, UnreadableTableError, bad_row
from recordmill.transforms.inputs.tables.parquet import read_parquet_cell
from recordmill.transforms.inputs.tables.read_table import TableFormat

ANY_ENDING = ".*"
"""The end of a path that may have the extension of any image."""

_SHA256 = re.compile("[0-9a-fA-F]{64}")


@dataclass(slots=True)
class RowReader:
    """Makes references from a manifest's rows.

    Attributes:
        file: the manifest.
        path: the manifest's path below the input, as `Source.list_references` receives it.
        root: the folder that contains the images, relative to the manifest's own; empty: the latter.
        packing: how an image is stored in its row, see `read_row_bytes`; empty if rows name files.
        uri_column: the column of the images' paths, for messages.
        joined: whether rows of boxes of the same image are joined. They are held in memory until the last row.
        word: the split word for rows that have none of their own.
    """

    file: ImageRef
    path: str
    root: str = ""
    packing: str = ""
    uri_column: str = ""
    joined: bool = False
    word: str = ""
    _below: str = field(init=False)  # the folder in the images' keys that is not in their paths
    _announced: set[str] = field(default_factory=set, init=False)
    _names: dict[str, Mapping[str, list[str]]] = field(default_factory=dict, init=False)
    _largest: float = field(default=0.0, init=False)  # of the coordinates of boxes in pixels

    def __post_init__(self) -> None:
        """Resolves the root."""
        self._below = "" if self.root else posixpath.dirname(self.path)
        folder = self.file.uri.rpartition("/")[0]
        self.root = (self.root if "://" in self.root else posixpath.join(folder, self.root)).rstrip("/") or "/"
        if storage.is_local(self.root):
            self.root = os.path.abspath(self.root)

    def list_references(self, rows: Iterable[Row], reader: Reader) -> Iterator[ImageRef | ClassNames]:
        """Yields a reference for each row, or for rows that are joined, after the classes that it announces.

        The last item may be a note about the whole manifest.
        """
        for row, entry in self._entries(rows, reader):
            try:
                if entry.fault:
                    raise bad_row(entry.fault)
                yield from self._make_references(row, entry)
            except Rejected as error:
                detail = f"{posixpath.basename(self.path)}, {row.place}: {error.detail}"
                ref = self.file.replace(key=self._row_key(row), size=UNKNOWN_SIZE, spelling="")
                yield ref.notice("rejected", error.reason, detail)
        if 0 < self._largest <= 1:
            what = f"the largest coordinate of its boxes in pixels is {self._largest:g}"
            advice = "set source.boxes_unit=fraction if they are parts of the image's width and height"
            yield self.file.notice("warning", "small_boxes", f"{what}: {advice}")

    def _entries(self, rows: Iterable[Row], reader: Reader) -> Iterator[tuple[Row, Entry]]:
        """Yields each row and its entry; joined rows come last, as the first row of the image with all of its boxes."""
        images: dict[str, tuple[Row, Entry]] = {}
        for row in rows:
            try:
                entry = Entry(fault=row.fault) if row.cells is None else reader(row.cells)
            except Rejected as error:
                entry = Entry(fault=error.detail)
            if self.joined and entry.boxes is not None:
                _join(images, replace(row, cells=None), entry)
            else:
                yield row, entry
        yield from images.values()

    def _row_key(self, row: Row) -> str:
        return f"{self.file.key}/{row.number:06}"

    def _make_references(self, row: Row, entry: Entry) -> Iterator[ImageRef | ClassNames]:
        ref = self._place(row, entry)
        fields = dict(entry.features)
        if entry.labels is not None:
            fields["label_texts"] = list(dict.fromkeys(entry.labels))
        if entry.boxes is not None:
            if not entry.fractions:
                self._largest = max(self._largest, *map(max, entry.boxes), 0.0)
            fields |= boxes_of(entry.boxes, entry.box_labels, drawn_on_size=entry.size, fractions=entry.fractions)
        named = {*(entry.labels or ()), *entry.box_labels} - self._announced
        if named:
            self._announced |= named
            yield ClassNames.of(self.file, named)
        yield ref.replace(
            label=entry.label,
            group=entry.group,
            split=entry.split or self.word or self.file.split,
            sha256=entry.sha256.lower(),
            features=orjson.dumps(fields).decode() if fields else "",
        )

    def _place(self, row: Row, entry: Entry) -> ImageRef:
        """A reference with the image's key and place."""
        if entry.sha256 and not _SHA256.fullmatch(entry.sha256):
            raise bad_row(f"its digest {entry.sha256!r:.70} is not a SHA-256 in hex")
        prefix = self.file.key[: len(self.file.key) - len(self.path)]
        key = prefix + unicodedata.normalize("NFC", entry.key) if entry.key else ""
        if self.packing:
            # The size of a Parquet cell is unknown until it is read.
            size = self.file.size if row.length >= 0 else UNKNOWN_SIZE
            place = (self.file.uri, size, self.file.version, row.offset, row.length, self.packing)
            return ImageRef(key or self._row_key(row), *place)
        column = f"column {self.uri_column!r}: " if self.uri_column else ""
        try:
            named = self._find_ending(entry.uri) if entry.uri.endswith(ANY_ENDING) else entry.uri
            uri, size, version = locate(self.root, named)
        except Rejected as rejected:
            why = f": {rejected.detail}"
            if rejected.reason == "outside_root":
                why = " is not below source.root, by default the manifest's own folder"
            elif entry.uri.startswith(" "):
                why += ", and the path begins with a space: set source.blanks=skip if that is not part of it"
            raise Rejected("list", rejected.reason, f"{column}{entry.uri!r:.200}{why}") from None
        below = posixpath.join(self._below, uri[len(self.root.rstrip("/")) + 1 :])
        return ImageRef(key or key_of(self.file.key, self.path, below), uri, size, version)

    def _find_ending(self, uri: str) -> str:
        """The path of the only image with the name before `ANY_ENDING`; each folder is listed once."""
        folder, _, wanted = uri.removesuffix(ANY_ENDING).rpartition("/")
        if folder not in self._names:
            names: dict[str, list[str]] = defaultdict(list)
            try:
                listed = storage.folder_names(resolve_inside(self.root, folder) if folder else self.root)
            except OSError as error:
                raise Rejected("list", "vanished", explain_os_error(error)) from None
            for name in listed:
                stem, ending = posixpath.splitext(name)
                if ending.lower() in IMAGE_ENDINGS:
                    names[unicodedata.normalize("NFC", stem)].append(name)
            self._names[folder] = names
        found = self._names[folder].get(unicodedata.normalize("NFC", wanted), [])
        if len(found) != 1:
            among = f": {', '.join(found)}" if found else ""
            raise Rejected("list", "bad_row" if found else "vanished", f"there are {len(found)} such images{among}")
        return posixpath.join(folder, found[0])


def _join(images: dict[str, tuple[Row, Entry]], row: Row, entry: Entry) -> None:
    """Adds a row of boxes to those of its image; the first bad row makes the whole image bad."""
    first, joined = images.setdefault(entry.uri, (row, entry))
    if first is not row and not joined.fault and (fault := entry.fault or joined.join(entry)):
        images[entry.uri] = row, replace(entry, fault=fault)


def read_row_bytes(ref: ImageRef, column: str, table_format: TableFormat, max_bytes: int) -> bytes:
    """Reads the bytes of the image in a reference's row.

    Args:
        ref: a reference whose packing is a `TextCell` or a `ParquetCell`.
        column: the column's name.
        table_format: the manifest's format.
        max_bytes: a longer image is rejected.

    Raises:
        Rejected: stage `read`: the bytes are missing, not base64 or too many, or the manifest has changed.
    """
    packing = parse_packing(ref.packing)
    if isinstance(packing, TextCell):
        text = _read_text_cell(ref, packing, column, table_format)
        try:
            data = base64.b64decode("".join(text.split()), validate=True)
        except ValueError as error:
            place = f"{posixpath.basename(ref.uri)}, the row at byte {ref.offset:,}"
            raise Rejected("read", "bad_row", f"{place}, column {column!r}: it is not valid base64 ({error})") from None
    else:
        data = _read_parquet_cell(ref, column, max_bytes)
    if len(data) > max_bytes:
        raise Rejected("read", "too_many_bytes", f"more than the {max_bytes} bytes that images.max_bytes allows")
    return data


def _read_text_cell(ref: ImageRef, packing: TextCell, column: str, table_format: TableFormat) -> str:
    """The cell's text; it was well-formed when listed, so any error means a change."""
    row = read_image(ref.replace(packing=str(Gzip()) if packing.is_gzip else ""), MAX_ROW_BYTES)
    text: Any = None
    with suppress(ValueError, LookupError, TypeError, csv.Error):
        line = row.decode(packing.codec)
        if packing.kind == "jsonl":
            text = orjson.loads(line)[column]
        else:
            (cells,) = table_format.csv_dialect(packing.kind).read(io.StringIO(line, newline=""))
            text = cells[packing.column]
    if not isinstance(text, str):
        raise Rejected("read", "changed", "the manifest has changed since it was listed")
    return text


def _read_parquet_cell(ref: ImageRef, column: str, max_bytes: int) -> bytes:
    try:
        data = read_parquet_cell(ref.uri, ref.version, column, ref.offset, max_bytes)
    except UnreadableTableError as error:
        raise Rejected("read", "bad_packing", str(error)) from None
    except FileNotFoundError:
        raise Rejected("read", "vanished", "the manifest was listed, and was gone when it was read") from None
    except IndexError as error:
        raise Rejected("read", "changed", str(error)) from None
    if data is None:
        place = f"{posixpath.basename(ref.uri)}, row {ref.offset + 1}"
        raise Rejected("read", "bad_row", f"{place}, column {column!r}: there are no bytes: embed the image")
    return data
