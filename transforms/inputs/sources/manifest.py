"""Manifests: tables (CSV, TSV, JSON lines, Parquet) whose rows name images or contain them."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from recordmill.schemas.image_ref import ClassNames, Content, ImageRef, Listed
from recordmill.schemas.packing import ParquetCell, TextCell
from recordmill.schemas.setting_fields import added_setting
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.manifests.columns import CellReader, Columns, FeatureColumn, Reader, did_you_mean
from recordmill.transforms.inputs.manifests.presets import PRESETS
from recordmill.transforms.inputs.manifests.recognise_columns import recognise_tables
from recordmill.transforms.inputs.manifests.row_reader import RowReader, read_row_bytes
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.cells import Row, UnreadableTableError
from recordmill.transforms.inputs.tables.parquet import bytes_type_fault, class_names
from recordmill.transforms.inputs.tables.read_table import LIST_FILES, TABLE_FILES, Table, TableFormat, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(TableFormat, Source):
    r"""The source `manifest`; `TableFormat` has further keys.

    Attributes:
        preset: `vertex` for Vertex AI's JSON lines, `automl` for AutoML's CSV, whose columns are known. Empty: none.
        columns: the columns and their meanings; by default only `uri`, which names the image.
        features_from: additional features from columns, by feature key: `{image/age: {column: age, type: int64}}`.
        root: the folder that contains all images; paths are relative to it. By default the manifest's own folder, from
            which a relative `root` starts too.
        separator: separates several labels or values in one cell of text.
        boxes_unit: the unit of box coordinates: `pixels`, or `fraction` of the image's width and height.
        class_names: class names for integer labels, which count from 0; empty: those that Hugging Face stores in
            Parquet, or else the integers themselves.
        unlabelled: what to do with rows whose class is empty: `reject`, or `keep` as images without a label.
        split: for one manifest per split, a regular expression (RE2's syntax) that a manifest's name must match as a
            whole: `(?P<split>[a-z]+)\.(csv|txt)`. Its group `split` is the word that `splits.from_source` may use.
            Other files are ignored, and `.txt` files may be manifests.
    """

    preset: Literal["", "vertex", "automl"] = ""
    columns: Columns = field(default_factory=lambda: Columns(uri="uri"))
    features_from: Mapping[str, FeatureColumn] = field(default_factory=dict)
    root: str = ""
    separator: str = "|"
    boxes_unit: Literal["pixels", "fraction"] = "pixels"
    class_names: tuple[str, ...] = ()
    unlabelled: Literal["reject", "keep"] = "reject"
    split: str = added_setting("")

    other_files: ClassVar[str] = "taken_only_by_name"
    split_settings: ClassVar[tuple[str, ...]] = ("columns.split",)
    group_setting: ClassVar[str] = "columns.group"

    def __post_init__(self) -> None:
        """Raises ValueError if the settings contradict each other."""
        if self.preset:
            if self.columns != Columns(uri="uri") or self.features_from or self.names or self.class_names:
                own = "columns, features_from, names and class_names"
                raise ValueError(f"source.preset {self.preset} knows its columns: remove {own}")
        else:
            self.columns.check()
        for key, feature in self.features_from.items():
            feature.check(key)
        self.check_format()
        if not self.separator:
            raise ValueError("source.separator is empty: write a character, such as |")
        if self.split:
            compile_pattern(self.split, "source.split", "split")
        self.classes()

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        """Files named like tables; also like lists if `split` says which of them are manifests."""
        return (*TABLE_FILES, *LIST_FILES) if self.split else TABLE_FILES

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises tables with a column that names images or contains them."""
        return recognise_tables(sketch)

    def annotations(self) -> Mapping[str, str]:
        """The annotations that have a column; with a preset, there may be either."""
        if self.preset:
            return {"boxes": "", "labels": ""}
        boxes = next((name for name in ("boxes", "xmin") if getattr(self.columns, name)), "objects")
        keys = {"boxes": boxes, "labels": "labels"}
        return {what: f"source.columns.{key}" for what, key in keys.items() if getattr(self.columns, key)}

    @property
    def gives_labels(self) -> bool:
        """Whether any column holds classes; a preset's table has one."""
        return bool(self.preset or self.columns.of_classes)

    def idle_settings(self) -> dict[str, str]:
        """Settings for text if tables are not text, and for boxes, classes or lists if no column has any."""
        idle = TableFormat.idle_settings(self._table_format())
        if self.preset:
            return idle | dict.fromkeys(("boxes_unit", "unlabelled"), f"source.preset {self.preset} knows it")
        if "boxes" not in self.annotations():
            idle["boxes_unit"] = "no column of boxes is named"
        if not (self.columns.label or self.columns.labels):
            idle["unlabelled"] = "no column of classes is named"
        if not self.columns.uri:
            idle["root"] = "no column names images"
        lists = (self.columns.labels, self.columns.box_labels, *(each.many for each in self.features_from.values()))
        if not any(lists):
            idle["separator"] = "no column has several values"
        return idle

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per row, or per image if each row has one box."""
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path)) if self.split else None
        if self.split and not match:
            yield file.notice("ignored", "not_annotations")
            return
        wanted = dict((column, key) for key, column in self.columns.named())
        for key, feature in self.features_from.items():
            wanted.setdefault(feature.column, f"source.features_from.{key}.column")
        unread = (self.columns.bytes,) if self.columns.bytes else ()
        count, blank = 0, ""
        try:
            with read_table(file.uri, self._table_format(), wanted, unread, self.preset == "automl") as table:
                packing = self._packing(table)
                names = self._class_names(table)
                yield from _announce(file, () if self.class_names else names.values())
                column = PRESETS[self.preset].uri_column if self.preset else self.columns.uri
                joined = self.preset == "automl" or bool(self.columns.row_boxes)
                word = (match["split"] or "") if match else ""
                row_reader = RowReader(file, path, self.root, packing, column, joined=joined, word=word)
                seen: set[str] = set()
                rows = _collect_columns(table.rows, seen) if table.kind == "jsonl" and not self.preset else table.rows
                for ref in row_reader.list_references(rows, self._reader(table, names)):
                    if isinstance(ref, ImageRef):
                        count += 1
                        blank = blank or (ref.label if ref.label.startswith(" ") and table.as_text else "")
                    yield ref
        except UnreadableTableError as error:
            yield file.notice("fatal", "bad_manifest", f"{error}{self._leave_out(error.key)}")
            return
        for column in sorted(wanted.keys() - seen) if seen else ():
            if wanted[column].startswith("source.columns."):
                detail = f"none of its rows has a column {column!r} ({wanted[column]}){did_you_mean(column, seen)}"
                yield file.notice("warning", "no_column", detail)
        if blank:
            advice = "set source.blanks=skip if that is not part of them"
            yield file.notice("warning", "blanks", f"labels begin with a blank, such as {blank!r:.60}: {advice}")
        if not count:
            yield file.notice("ignored", "no_rows")

    def _leave_out(self, key: str) -> str:
        """The end of a message: how to leave out a feature whose column is missing."""
        name = key.removeprefix("source.features_from.").removesuffix(".column")
        if name not in self.features_from:
            return ""
        flag = " with --set source.features_from={}" if len(self.features_from) == 1 else ""
        return f"; or leave out the feature {name}{flag}"

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads the image where its row says, or from the row."""
        if not ref.packing:
            return Source.read(self, ref, max_bytes)
        data = read_row_bytes(ref, self.columns.bytes, self, max_bytes)
        return Content(data, data)

    def _table_format(self) -> TableFormat:
        return replace(self, format=PRESETS[self.preset].format) if self.preset else self

    def _packing(self, table: Table) -> str:
        if not (column := self.columns.bytes):
            return ""
        if table.schema is not None:
            if fault := bytes_type_fault(table.schema, column):
                raise UnreadableTableError(f"column {column!r} (source.columns.bytes): {fault}")
            return str(ParquetCell())
        if table.kind == "txt" or (table.skips_blanks and self.blanks == "auto"):
            advice = "set source.format: csv or tsv, and source.blanks: skip or keep"
            raise UnreadableTableError(f"it holds images: {advice}")
        return str(TextCell(table.kind, table.codec, table.positions.get(column, -1), table.is_gzip))

    def _reader(self, table: Table, class_names: Mapping[str, Sequence[str]]) -> Reader:
        if self.preset:
            return PRESETS[self.preset].read
        return CellReader(
            self.columns,
            self.features_from,
            self.separator,
            fractions=self.boxes_unit == "fraction",
            class_names=class_names,
            base64_column="" if table.kind == "parquet" else self.columns.bytes,
            keeps_unlabelled=self.unlabelled == "keep",
        ).read

    def _class_names(self, table: Table) -> Mapping[str, Sequence[str]]:
        """The names of each column's numbered classes, from settings or from Parquet."""
        if self.class_names or table.schema is None:
            return dict.fromkeys(self.columns.of_classes, self.class_names)
        return {column: class_names(table.schema, column) for column in self.columns.of_classes}


def _announce(file: ImageRef, columns: Iterable[Sequence[str]]) -> Iterator[ClassNames]:
    """Announces the classes that Parquet columns number."""
    for names in filter(None, columns):
        yield ClassNames.of(file, {name: number for number, name in enumerate(names)})


def _collect_columns(rows: Iterator[Row], seen: set[str]) -> Iterator[Row]:
    """Yields the rows, adding their columns to `seen`: JSON lines do not declare them in advance."""
    for row in rows:
        seen.update(row.cells or ())
        yield row


SOURCE = Manifest
