"""Manifests: tables (CSV, TSV, JSON lines, Parquet) whose rows name images or contain them."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ClassNames, Content, ImageRef, Listed
from recordmill.schemas.packing import ParquetCell, TextCell
from recordmill.schemas.setting_fields import added_setting
from recordmill.transforms.inputs.listing.folder_sketch import (
    FolderSketch,
    Recognised,
    begins_with_split,
    given_splits,
    split_of,
    split_pattern,
)
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.manifests.columns import CellReader, Columns, FeatureColumn, Reader, did_you_mean
from recordmill.transforms.inputs.manifests.presets import PRESETS
from recordmill.transforms.inputs.manifests.recognise_columns import FoundColumns, find_columns, preset_of
from recordmill.transforms.inputs.manifests.row_reader import RowReader, read_row_bytes
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.cells import Row, UnreadableTableError
from recordmill.transforms.inputs.tables.parquet import bytes_type_fault, class_names
from recordmill.transforms.inputs.tables.read_table import (
    LIST_FILES,
    TABLE_ENDINGS,
    TABLE_FILES,
    Table,
    TableFormat,
    read_table,
)


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
        tables = [path for path in sketch.heads if path.lower().endswith((*TABLE_ENDINGS, ".txt"))]
        tables = [path for path in tables if not posixpath.basename(path).startswith("metadata.")]
        for path in tables:
            if preset := preset_of(sketch.heads[path]):
                words = PRESETS[preset].splits
                settings = {"source": {"kind": "manifest", "preset": preset}, "splits": {"from_source": words}}
                yield Recognised(settings, f"a table for {preset}, {path}")
                return
        found = {path: columns for path in tables if (columns := find_columns(path, sketch))}
        if with_classes := {path: columns for path, columns in found.items() if columns.has_classes}:
            found = {path: columns for path, columns in with_classes.items() if "submission" not in path}
        if found:
            yield _as_recognised(found, sketch)

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

    def idle_settings(self) -> Mapping[str, str]:
        """Settings for text if tables are not text, and for boxes, classes or lists if no column has any."""
        idle = self._table_format().idle_keys()
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

    def features(self) -> tuple[Feature, ...]:
        """The features in `features_from`."""
        return tuple(feature.as_feature(key) for key, feature in self.features_from.items())

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


def _as_recognised(found: Mapping[str, FoundColumns], sketch: FolderSketch) -> Recognised:
    """The settings for tables whose columns were found."""
    path, first = next(iter(found.items()))
    source: dict[str, Any] = {"kind": "manifest", **first.source}
    settings: dict[str, Any] = {"source": source}
    folders = {posixpath.dirname(each) for each in found}
    unread = _find_unread_tables(found, sketch)
    pattern, words, doubled = _split_names([posixpath.basename(each) for each in (*found, *unread)])
    if first.splits:
        settings["splits"] = {"from_source": dict(first.splits)}
    elif folders <= set(sketch.split_folders):
        settings |= given_splits("from_folders", sketch.split_folders)
    elif pattern and (len(found) + len(unread) > 1 or path.endswith(".txt")):
        source["split"] = pattern
        settings |= given_splits("from_source", words)
    if not source.get("split"):
        settings |= _leave_out(sorted(set(sketch.all_ending(*TABLE_ENDINGS)) - {*found, *unread}), found, unread)
    if first.has_boxes:
        settings["convention"] = "tf_object_detection"
    shown = ", ".join(first.others)
    needs = key = ""
    if shown and not first.has_classes:
        key = "source.columns.label"
        needs = f"it is not clear which column is the class: add --set {key}=COLUMN ({shown}; or '' for none)"
    elif any(each != first for each in found.values()):
        needs = f"{' and '.join(found)} have different columns: let --input name one of them"
    elif path.endswith(".txt") and not pattern:
        needs = "a list is read where its name has the word for a split: call it train.txt"
    left_out = [*([shown] if shown and first.has_classes else []), *doubled]
    why = f"a table of images, {path}" + (f" (left out: {', '.join(left_out)})" if left_out else "")
    return Recognised(settings, why, needs=needs, needed_key=key)


def _split_names(names: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """`split_pattern` of the names; and names like `trainval`, if others have its two splits one by one."""
    alone = [name for name in names if not re.search("train[_-]?val", name, re.IGNORECASE)]
    pattern, words = split_pattern(alone)
    if {"train", "validation"} <= set(map(split_of, words)):
        return pattern, words, [name for name in names if name not in alone]
    return (*split_pattern(names), [])


def _leave_out(others: Sequence[str], found: Iterable[str], unread: Sequence[str]) -> dict[str, list[str]]:
    """The settings that leave out tables without images."""
    if unread and others:  # tables that were not looked into must be read, and are rejected if they differ
        return {"ignore": [f"/{each}" for each in others]}
    return {"include": [f"/{each}" for each in found]} if others else {}


def _find_unread_tables(found: Iterable[str], sketch: FolderSketch) -> list[str]:
    """Tables that were not looked into, next to those that were found; lists only if named after a split."""
    places = {(posixpath.dirname(path), posixpath.splitext(path)[1].lower()) for path in found}
    tables = (path for path in sketch.all_ending(*TABLE_ENDINGS, ".txt") if path not in sketch.heads)
    alike = (path for path in tables if (posixpath.dirname(path), posixpath.splitext(path)[1].lower()) in places)
    return [path for path in alike if not path.endswith(".txt") or begins_with_split(posixpath.basename(path))]


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
