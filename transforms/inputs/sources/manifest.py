"""Manifests: tables (CSV, TSV, JSON lines, Parquet) whose rows name images or contain them."""

import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from recordmill import storage
from recordmill.annotations.annotation import Packable, pack_annotations
from recordmill.annotations.labels import Labels
from recordmill.annotations.pairs import PairedImages, features_of_pairs
from recordmill.annotations.segmentation import Segmentation
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import show_first
from recordmill.schemas.image_ref import (
    PARQUET_CELL,
    UNKNOWN_SIZE,
    ClassNames,
    Content,
    ImageRef,
    Listed,
    SourceFile,
    pack_fields,
)
from recordmill.schemas.rejection import WITHOUT_AN_IMAGE, Rejected
from recordmill.schemas.setting_fields import AtLeastOne
from recordmill.transforms.inputs.color_tables import read_color_table
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.named_files import (
    DataFile,
    key_of,
    locate,
    read_sibling,
    resolve_inside,
)
from recordmill.transforms.inputs.paired_images import check_pair_names
from recordmill.transforms.inputs.patterns import compile_pattern
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.cells import TableRow, UnreadableTableError, bad_row
from recordmill.transforms.inputs.tables.class_name_files import NAME_LISTS, NAME_TABLES
from recordmill.transforms.inputs.tables.column_patterns import has_patterns, replace_patterns
from recordmill.transforms.inputs.tables.keypoint_columns import KeyPointColumns, settle_key_points
from recordmill.transforms.inputs.tables.known_tables import PRESETS
from recordmill.transforms.inputs.tables.manifest_columns import (
    CellReader,
    Columns,
    FeatureColumn,
    ManifestEntry,
    Unlabeled,
    template_parts,
)
from recordmill.transforms.inputs.tables.names_of_ids import NamesOfIds, read_names_of_ids
from recordmill.transforms.inputs.tables.parquet import (
    check_cells,
    class_names,
    name_cell,
    read_parquet_cell,
)
from recordmill.transforms.inputs.tables.read_table import (
    LIST_FILES,
    TABLE_ENDINGS,
    TABLE_FILES,
    TableFile,
    TableFormat,
    read_table,
)
from recordmill.transforms.inputs.tables.recognize_tables import (
    NEXT_TO_BOXES,
    WITHOUT_LABELS,
    recognize_tables,
)
from recordmill.transforms.inputs.tables.row_objects import describe_objects, list_lost

_SHA256 = re.compile("[0-9a-fA-F]{64}")


@dataclass(slots=True)
class RowReader:
    """Makes references from a manifest's rows.

    Attributes:
        settings: the source's.
        file: the manifest.
        path: the manifest's path below the input, as `Source.list_references` receives it.
        word: the split word for rows that have none of their own.
        mask_colors: the colors of semantic masks, by id; empty if their values are ids.
    """

    settings: "Manifest"
    file: ImageRef
    path: str
    word: str = ""
    mask_colors: tuple[int, ...] = ()
    _root: str = field(init=False)  # the folder that contains the images
    _below: str = field(init=False)  # the folder in the images' keys that is not in their paths
    _announced: set[str] = field(default_factory=set, init=False)
    _largest: float = field(default=0.0, init=False)  # of the coordinates of boxes in pixels

    def __post_init__(self) -> None:
        """Resolves the root."""
        root, folder = self.settings.root_of(self.path), self.file.uri.rpartition("/")[0]
        self._below = "" if root else posixpath.dirname(self.path)
        if root and not isinstance(self.settings.root, str):
            self._below = _folder_in_keys(posixpath.dirname(self.path), root)
        root = (root if "://" in root else posixpath.join(folder, root)).rstrip("/") or "/"
        self._root = os.path.abspath(root) if storage.is_local(root) else root

    def list_references(
        self, rows: Iterable[TableRow], read: Callable[[Any], ManifestEntry]
    ) -> Iterator[ImageRef | ClassNames]:
        """Yields a reference for each row, or for rows that are joined.

        The classes that a reference announces come before it. The last item may be a note about the
        whole manifest.

        Args:
            rows: of the manifest.
            read: makes the entry of a row's cells; raises Rejected.
        """
        for row, entry in self._entries(rows, read):
            try:
                if entry.fault:
                    raise bad_row(entry.fault)
                yield from self._make_references(row, entry)
            except Rejected as error:
                detail = f"{posixpath.basename(self.path)}, {row.place}: {error.detail}"
                ref = self.file.replace(key=self._row_key(row), size=UNKNOWN_SIZE, spelling="")
                if error.reason in WITHOUT_AN_IMAGE:
                    lost = list_lost(entry, self.settings.keypoints.names)
                    ref = ref.replace(annotations=pack_annotations(lost))
                yield ref.notice("rejected", error.reason, detail)
                if entry.label:
                    yield self.file.notice("lost_label", entry.label)
        if 0 < self._largest <= 1:
            what = f"the largest coordinate of its boxes in pixels is {self._largest:g}"
            advice = (
                "add --set source.boxes_unit=fraction if they are parts of the image's width and "
                "height, or write them in pixels"
            )
            yield self.file.notice("fatal", "small_boxes", f"{what}: {advice}")

    def _entries(
        self, rows: Iterable[TableRow], read: Callable[[Any], ManifestEntry]
    ) -> Iterator[tuple[TableRow, ManifestEntry]]:
        """Yields each row and its entry.

        Rows of boxes of one image are joined, and held in memory. They come last, as the image's
        first row with all boxes.
        """
        images: dict[str, tuple[TableRow, ManifestEntry]] = {}
        has_row_boxes = self.settings.preset == "automl" or bool(self.settings.columns.row_boxes)
        for row in rows:
            try:
                entry = ManifestEntry(fault=row.fault) if row.cells is None else read(row.cells)
            except Rejected as error:
                entry = ManifestEntry(fault=error.detail)
            if has_row_boxes and entry.boxes is not None:
                _join(images, replace(row, cells=None), entry)
            else:
                yield row, entry
        yield from images.values()

    def _row_key(self, row: TableRow) -> str:
        return f"{self.file.key}/{row.number:06}"

    def _make_references(
        self, row: TableRow, entry: ManifestEntry
    ) -> Iterator[ImageRef | ClassNames]:
        ref = self._place(row, entry)
        given = list[Packable]()
        if entry.labels is not None:
            given.append(Labels(list(dict.fromkeys(entry.labels))))
        fractions = self.settings.preset != "" or self.settings.boxes_unit == "fraction"
        if entry.boxes and not fractions:
            self._largest = max(self._largest, *map(max, entry.boxes))
        given += describe_objects(entry, self.settings.keypoints.names, fractions)
        files = set[SourceFile]()
        if entry.mask:
            mask = self._find_mask(row, entry.mask)
            files.add(mask)
            threshold = self.settings.mask_threshold
            given.append(Segmentation(mask.key, threshold, self.mask_colors))
        if entry.pairs:
            pairs = {
                name: self._find_other(row, path, self.settings.pairs[name])
                for name, path in entry.pairs.items()
            }
            files.update(pairs.values())
            given.append(PairedImages({name: each.key for name, each in pairs.items()}))
        named = {*(entry.labels or ()), *entry.box_labels} - self._announced
        if named:
            self._announced |= named
            yield ClassNames.of(self.file, named)
        yield ref.replace(
            label=entry.label,
            group=entry.group,
            split=entry.split or self.word or self.file.split,
            sha256=entry.sha256.lower(),
            features=pack_fields(entry.features),
            annotations=pack_annotations(given),
            files=tuple(sorted(files)),
        )

    def _place(self, row: TableRow, entry: ManifestEntry) -> ImageRef:
        """Returns a reference with the image's key and place."""
        if entry.sha256 and not _SHA256.fullmatch(entry.sha256):
            raise bad_row(f"its digest {entry.sha256!r:.70} is not a SHA-256 in hex")
        prefix = self.file.key[: len(self.file.key) - len(self.path)]
        key = prefix + unicodedata.normalize("NFC", entry.key) if entry.key else ""
        if self.settings.columns.bytes:
            place = (self.file.uri, UNKNOWN_SIZE, self.file.version)
            return ImageRef(
                key or self._row_key(row), *place, offset=row.number - 1, packing=PARQUET_CELL
            )
        try:
            uri, size, version = self._locate(entry.uri)
        except Rejected as rejected:
            why = f": {rejected.detail}"
            if rejected.reason == "vanished" and "{" in self.settings.columns.uri:
                why += " (source.columns.uri gives all images the same extension)"
            if rejected.reason == "outside_root":
                why = " is not below source.root, by default the manifest's own folder"
            where = "" if self.settings.preset else f"column {self.settings.columns.uri!r}: "
            raise Rejected("list", rejected.reason, f"{where}{entry.uri!r:.200}{why}") from None
        return ImageRef(key or self._key_below(uri), uri, size, version)

    def _find_mask(self, row: TableRow, path: str) -> SourceFile:
        """Returns the semantic mask that a row names, which may be missing, or holds.

        Raises:
            Rejected: `outside_root`.
        """
        column = self.settings.columns.mask
        if not self.settings.columns.bytes:
            return self._find_other(row, path, column)
        return name_cell(f"{self._row_key(row)}/{column}", self.file, row.number, column)

    def _find_other(self, row: TableRow, path: str, column: str) -> SourceFile:
        """Returns a semantic mask or a second image that a row names; it may be missing.

        Args:
            row: the row.
            path: as the row has it.
            column: the column that names it, for messages.

        Raises:
            Rejected: `outside_root`.
        """
        try:
            uri, size, version = self._locate(path)
        except Rejected as rejected:
            if rejected.reason == "outside_root":
                why = f"column {column!r}: {path!r:.200} is not below source.root"
                raise Rejected("list", rejected.reason, why) from None
            uri, size, version = resolve_inside(self._root, path), UNKNOWN_SIZE, ""
        named_by = f"column {column!r} of {posixpath.basename(self.path)}, {row.place}"
        return SourceFile.named(self._key_below(uri), uri, size, version, named_by)

    def _key_below(self, uri: str) -> str:
        """Returns the key of a file below the root."""
        below = posixpath.join(self._below, uri[len(self._root.rstrip("/")) + 1 :])
        return key_of(self.file.key, self.path, below)

    def _locate(self, path: str) -> tuple[str, int, str]:
        r"""The image that a row names, with its size and version.

        Windows writes `images\1.jpg`. A file of exactly this name comes first, where that can be
        seen without a request.

        Raises:
            Rejected: as `locate`.
        """
        if "\\" not in path or "/" in path:
            return locate(self._root, path)
        try:
            if storage.is_local(self._root):
                return locate(self._root, path)
        except Rejected as rejected:
            if rejected.reason != "vanished":
                raise
        return locate(self._root, path.replace("\\", "/"))


def _folder_in_keys(own: str, root: str) -> str:
    """Returns the folder in the keys of images if each manifest has a root.

    Names in two may be equal.

    Args:
        own: the manifest's folder below the input.
        root: its root; only the last name counts if that may be outside the input.
    """
    below = posixpath.normpath(posixpath.join(own, root))
    is_inside = "://" not in root and not below.startswith(("/", ".."))
    return below if is_inside else posixpath.basename(root.rstrip("/"))


def _join(
    images: dict[str, tuple[TableRow, ManifestEntry]], row: TableRow, entry: ManifestEntry
) -> None:
    """Adds a row of boxes to those of its image; the first bad row makes the whole image bad."""
    first, joined = images.setdefault(entry.uri, (row, entry))
    if first is not row and not joined.fault and (fault := entry.fault or joined.join(entry)):
        images[entry.uri] = row, replace(entry, fault=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(TableFormat, Source):
    r"""The source `manifest`; `TableFormat` has further keys.

    Attributes:
        preset: `vertex` for Vertex AI's JSON lines, `automl` for AutoML's CSV. Empty: none.
        columns: the columns and their meanings; by default only `uri`, which names the image.
        features_from: additional features: `{image/age: {column: age, type: int64}}`; `{landmarks:
            {columns: "x_*", type: float}}` makes a list of several columns.
        attributes_from: attributes of boxes by name, with their columns: `{occluded: IsOccluded}`.
            With `columns.boxes` or `columns.objects`, a column holds a list, one value for each
            box.
        keypoints: the columns of the key points of the object in each row, by patterns: `{x:
            "{name}_x", y: "{name}_y"}`. Without `columns.xmin`, the object's box is the whole
            image, and its class that of the image, or else `object`.
        root: the folder that contains all images; paths are relative to it. By default the
            manifest's folder, from which a relative `root` starts. By manifest: `{train.csv: train,
            test.csv: test}`.
        separator: separates several labels or values in one cell of text.
        boxes_unit: the unit of boxes: `pixels`, or `fraction` of the image's width and height.
        class_names: class names for integers from 0; empty: those that Hugging Face stores in
            Parquet, or else the integers.
        class_names_file: a table of each class and its name, such as Open Images'
            `class-descriptions-boxable.csv`, relative to the manifest's folder.
        mask_colors: for semantic masks of colors: a table with a line `R G B name` per class, or a
            JSON object of a color per name, relative to the manifest's folder. The first class has
            the id 0.
        pairs: second images by name, each with the column of its path, or columns in braces:
            `{target: "B/{id}.png"}` stores `image/target/encoded` and `image/target/format`.
        mask_threshold: for semantic masks of two levels, such as 0 and 255: the smallest value of
            the class 1; others are 0. By default, values are ids.
        unlabeled: rows without a class: `reject`, or `keep` without a label. `auto` rejects empty
            classes, and keeps -1 where classes are numbered.
        split: for one manifest per split, a regular expression (RE2) for a manifest's whole name:
            `(?P<split>[a-z]+)\.(csv|txt)`. Its group `split` is the word for `splits.from_source`.
            Other files are ignored; `.txt` files may be manifests.
    """

    preset: Literal["", "vertex", "automl"] = ""
    columns: Columns = field(default_factory=lambda: Columns(uri="uri"))
    features_from: Mapping[str, FeatureColumn] = field(default_factory=dict)
    attributes_from: Mapping[str, str] = field(default_factory=dict)
    keypoints: KeyPointColumns = field(default_factory=KeyPointColumns)
    root: str | Mapping[str, str] = ""
    separator: str = "|"
    boxes_unit: Literal["pixels", "fraction"] = "pixels"
    class_names: tuple[str, ...] = ()
    class_names_file: str = ""
    mask_colors: str = ""
    pairs: Mapping[str, str] = field(default_factory=dict)
    mask_threshold: AtLeastOne | None = None
    unlabeled: Unlabeled = "auto"
    split: str = ""

    other_files: ClassVar[str] = "taken_only_by_name"
    split_settings: ClassVar[tuple[str, ...]] = ("columns.split",)
    group_setting: ClassVar[str] = "columns.group"
    reads_sets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError if the settings contradict each other."""
        if self.preset:
            if (
                self.columns != Columns(uri="uri")
                or self.features_from
                or self.attributes_from
                or self.keypoints
                or self.names
                or self.class_names
                or self.pairs
            ):
                own = (
                    "columns, features_from, attributes_from, keypoints, names, class_names and "
                    "pairs"
                )
                raise SettingError(
                    "source.preset", f"{self.preset} knows its columns: remove {own}"
                )
        else:
            self.columns.check()
        check_pair_names(self.pairs)
        for name, path in self.pairs.items():
            template_parts(path, f"source.pairs.{name}")
        for key, feature in self.features_from.items():
            feature.check(key)
        self._check_objects()
        self.check_format()
        if not self.separator:
            raise SettingError("source.separator", "is empty: write a character, such as |")
        if self.mask_colors and self.mask_threshold is not None:
            raise SettingError(
                "source.mask_threshold",
                "is for masks of two levels, and source.mask_colors for masks of colors: remove "
                "one of them",
            )
        if self.split:
            compile_pattern(self.split, "source.split", "split")
        self.classes()

    def _check_objects(self) -> None:
        """Raises SettingError if what describes the objects of images contradicts the columns."""
        self.keypoints.check()
        if self.keypoints and (self.columns.boxes or self.columns.objects):
            what = "needs one object in each row, and columns name lists of boxes: remove it"
            raise SettingError("source.keypoints", what)
        for name, column in self.attributes_from.items():
            if not column:
                key = f"source.attributes_from.{name}"
                raise SettingError(key, "is empty: name the column")

    def root_of(self, path: str) -> str:
        """Returns the setting `root` for a manifest.

        Raises:
            UnreadableTableError: there is none for this one.
        """
        if isinstance(self.root, str):
            return self.root
        for name in (path, posixpath.basename(path)):
            if name in self.root:
                return self.root[name]
        known = show_first(self.root)
        raise UnreadableTableError(f"source.root has no folder for it, only for {known}: add one")

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        """Files named like tables; also like lists if `split` says which of them are manifests."""
        return (*TABLE_FILES, *LIST_FILES) if self.split else TABLE_FILES

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes tables with a column that names images or contains them."""
        return recognize_tables(sketch)

    def annotations(self) -> Mapping[str, str]:
        """Returns the annotations that have a column; with a preset, there may be either."""
        if self.preset:
            return {"boxes": "", "labels": ""}
        boxes = next((name for name in ("boxes", "xmin") if getattr(self.columns, name)), "objects")
        keys = {"boxes": boxes, "labels": "labels", "segmentation": "mask"}
        found = {
            what: f"source.columns.{key}"
            for what, key in keys.items()
            if getattr(self.columns, key)
        }
        if self.keypoints:
            found.setdefault("boxes", "source.keypoints")
            found["keypoints"] = "source.keypoints"
        if "boxes" in found and self.attributes_from:
            found["attributes"] = "source.attributes_from"
        return found | ({"pairs": "source.pairs"} if self.pairs else {})

    def features(self) -> tuple[Feature, ...]:
        """Returns additional features, and those of second images."""
        return (*Source.features(self), *features_of_pairs(self.pairs))

    @property
    def gives_labels(self) -> bool:
        """Whether any column holds classes; a preset's table has one."""
        return bool(self.preset or self.columns.of_classes)

    def idle_settings(self) -> dict[str, str]:
        """Returns the settings that have no effect, with the reasons.

        Those are the settings for text if tables are not text, and for boxes, classes or lists if
        no column has any.
        """
        idle = TableFormat.idle_settings(self._table_format())
        if self.preset:
            return idle | dict.fromkeys(
                ("boxes_unit", "unlabeled"), f"source.preset {self.preset} knows it"
            )
        lists = (
            self.columns.labels,
            self.columns.box_labels,
            *(each.many for each in self.features_from.values()),
            self.attributes_from and not self.columns.row_boxes,
        )
        has_classes = self.columns.label or self.columns.labels
        reasons = (
            ("boxes_unit", "boxes" in self.annotations(), "no column of boxes is named"),
            ("attributes_from", "boxes" in self.annotations(), "no column of boxes is named"),
            ("unlabeled", has_classes, "no column of classes is named"),
            ("class_names_file", self.columns.of_classes, "no column of classes is named"),
            ("root", self.columns.uri or self.pairs, "no column names images"),
            ("separator", any(lists), "no column has several values"),
            ("mask_colors", self.columns.mask, "no column of masks is named"),
            ("mask_threshold", self.columns.mask, "no column of masks is named"),
        )
        return idle | {key: reason for key, can_act, reason in reasons if not can_act}

    @property
    def class_column(self) -> str | None:
        """The column of the classes; None if there is none, or if it has numbers of classes."""
        return None if self.class_names else self.columns.label or None

    @property
    def siblings(self) -> Mapping[str, str]:
        """Tables without labels, and lists of classes that `class_names` has."""
        named = posixpath.basename(self.class_names_file)
        colors = posixpath.basename(self.mask_colors)
        found = dict.fromkeys(filter(None, (named, colors)), "")
        if self.class_names:
            found = dict.fromkeys((*NAME_LISTS, *NAME_TABLES, *found), "")
        found |= {"test.csv": "tables of test images", **WITHOUT_LABELS}
        if self.columns.row_boxes:
            found |= NEXT_TO_BOXES
        return found

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per row, or per image if each row has one box."""
        word = self._split_word_in(path)
        if word is None:
            yield file.notice("ignored", "not_annotations")
            return
        wanted = {} if self.preset else self._wanted_columns()
        count = 0
        try:
            is_ragged = self.preset == "automl"
            with read_table(
                file.uri, self._table_format(), wanted, [*self.columns.of_files], is_ragged
            ) as table:
                image = self.columns.bytes
                check_cells(table.schema, self.columns.of_files)
                names = self._class_names(table)
                for numbered in () if self.class_names else filter(None, names.values()):
                    yield ClassNames.of(
                        file, {name: number for number, name in enumerate(numbered)}
                    )
                row_reader = RowReader(
                    self,
                    file,
                    path,
                    word=word,
                    mask_colors=self._read_mask_colors(path, file),
                )
                reader, named = self._reader(names), self._names_of_ids(path, file)
                if named:
                    reader = named.around(reader)
                for ref in row_reader.list_references(table.rows, reader):
                    count += isinstance(ref, ImageRef)
                    yield ref
                if named and (unnamed := named.explain_unknown(self.class_names_file)):
                    yield file.notice("warning", "class_names", unnamed)
                yield from table.report(file)
                if not self.preset:
                    yield from table.report_unread(file, wanted, image)
        except UnreadableTableError as error:
            yield file.notice("fatal", "bad_manifest", str(error))
            return
        if not count:
            yield file.notice("ignored", "no_rows")

    def _split_word_in(self, path: str) -> str | None:
        """Returns the word for a manifest's split; None if `split` excludes it."""
        if not self.split:
            return ""
        pattern = compile_pattern(self.split, "source.split")
        match = pattern.fullmatch(posixpath.basename(path))
        if match is None:
            return None
        return match["split"] or ""

    def _wanted_columns(self) -> dict[str, str]:
        """Returns the columns that a manifest must have, each with the YAML key that names it."""
        wanted = dict((column, key) for key, column in self.columns.named())
        for key, feature in self.features_from.items():
            for column in feature.names:
                wanted.setdefault(column, f"source.features_from.{key}.{feature.key_of_names}")
        for name, path in self.pairs.items():
            for _, column in template_parts(path):
                wanted.setdefault(column, f"source.pairs.{name}")
        for name, column in self.attributes_from.items():
            wanted.setdefault(column, f"source.attributes_from.{name}")
        for key, column in self.keypoints.list_columns():
            wanted.setdefault(column, key)
        wanted.pop("", None)
        return wanted

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> Self:
        """Replaces patterns in `keypoints` and `features_from` by what matches them in the tables.

        Columns with another meaning match none.
        """
        has_unnamed = bool(self.keypoints) and not self.keypoints.is_settled
        if not has_unnamed and not any(map(has_patterns, self.features_from.values())):
            return self
        tables = [(file.key, file.uri) for file in files if self._is_manifest(file.key)]
        others = {*(column for _, column in self.columns.named()), *self.attributes_from.values()}
        for path in self.pairs.values():
            others.update(column for _, column in template_parts(path))
        keypoints, form = self.keypoints, self._table_format()
        if has_unnamed:
            keypoints = settle_key_points(keypoints, tables, form, others)
        others.update(column for _, column in keypoints.list_columns())
        settled = replace_patterns(self.features_from, tables, form, others)
        return replace(self, features_from=settled, keypoints=keypoints)

    def _is_manifest(self, path: str) -> bool:
        """Returns whether a listed file is a manifest, by its name."""
        name = posixpath.basename(path)
        if self.split:
            return bool(compile_pattern(self.split, "source.split").fullmatch(name))
        return self.format != "auto" or name.lower().endswith(TABLE_ENDINGS)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads the image where its row says, or from the row."""
        if not ref.packing:
            return Source.read(self, ref, max_bytes)
        data = read_parquet_cell(ref, self.columns.bytes, max_bytes)
        return Content(data, data)

    def _table_format(self) -> TableFormat:
        if self.preset:
            return replace(self, format=PRESETS[self.preset][0])
        return self

    def _reader(self, class_names: Mapping[str, Sequence[str]]) -> Callable[[Any], ManifestEntry]:
        if self.preset:
            return PRESETS[self.preset][1]
        return CellReader(
            self.columns,
            self.features_from,
            self.separator,
            class_names,
            self.unlabeled,
            self.attributes_from,
            self.pairs,
            self.keypoints or None,
        ).read

    def _names_of_ids(self, path: str, file: ImageRef) -> NamesOfIds | None:
        if not self.class_names_file:
            return None
        return read_names_of_ids(DataFile(path, file), self.class_names_file)

    def _read_mask_colors(self, path: str, file: ImageRef) -> tuple[int, ...]:
        """Returns the colors of semantic masks, by id; empty if the settings name no table.

        Raises:
            UnreadableTableError: the table cannot be read, or has too many classes.
        """
        if not self.mask_colors:
            return ()
        manifest = DataFile(path, file)
        below = posixpath.normpath(posixpath.join(manifest.folder, self.mask_colors))
        try:
            table = read_color_table(read_sibling(resolve_inside(manifest.root, below)))
        except Rejected as rejected:
            why = f"{self.mask_colors} (source.mask_colors): {rejected.detail}"
            raise UnreadableTableError(why) from None
        return tuple(table.values())

    def _class_names(self, table: TableFile) -> Mapping[str, Sequence[str]]:
        """Returns the names of each column's numbered classes, from settings or from Parquet."""
        if self.class_names or table.schema is None:
            return dict.fromkeys(self.columns.of_classes, self.class_names)
        return {column: class_names(table.schema, column) for column in self.columns.of_classes}


SOURCE = Manifest
