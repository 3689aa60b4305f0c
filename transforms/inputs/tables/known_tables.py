"""Known tables: those of Google's services, and the meanings of columns in any others.

Columns are recognized by their names and the first rows.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recordmill.schemas.formatting import show_first
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import USUAL_WORDS, FolderSketch, splits_for_words
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.split_words import plain_column
from recordmill.transforms.inputs.tables.cells import bad_row
from recordmill.transforms.inputs.tables.class_columns import (
    find_candidates,
    find_class_column,
    holds_values,
)
from recordmill.transforms.inputs.tables.column_contents import (
    find_other_split,
    find_separator,
    find_split,
    holds_decimal_commas,
    holds_truth,
    names_images,
)
from recordmill.transforms.inputs.tables.manifest_columns import (
    ManifestEntry,
    check_text,
    list_of,
    number_of,
    refuse,
    require_name,
    template_parts,
    text_of,
)
from recordmill.transforms.inputs.tables.outside_images import find_outside
from recordmill.transforms.inputs.tables.table_boxes import (
    SIDES,
    SIZES,
    are_fractions,
    find_corners,
    find_other_boxes,
    hold_corners,
)
from recordmill.transforms.inputs.tables.table_heads import (
    HELD_LIST,
    OBJECTS,
    OTHER_BYTES,
    SEVERAL,
    TableHead,
    fields_in,
    head_of,
    is_held,
)
from recordmill.transforms.inputs.tables.unnamed_columns import (
    RETINANET,
    find_unnamed_sides,
    name_unnamed,
)

ML_USE = "aiplatform.googleapis.com/ml_use"

_SETS = frozenset({"TRAIN", "VALIDATION", "TEST", "UNASSIGNED", "TRAINING"})
_NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_CORNERS = 8


def read_vertex(cells: Mapping[str, Any]) -> ManifestEntry:
    """Makes the entry of a line of Vertex AI's import files for images.

    `imageGcsUri` is the image, `classificationAnnotation` its class, `classificationAnnotations`
    several classes, `boundingBoxAnnotations` its boxes as fractions of the image; `ml_use` in
    `dataItemResourceLabels` is the split.

    Raises:
        Rejected: a value is missing or of another type.
    """
    entry = ManifestEntry(uri=require_name(cells.get("imageGcsUri"), "imageGcsUri"))
    use = _object(cells.get("dataItemResourceLabels") or {}, "dataItemResourceLabels")
    entry.split = text_of(use.get(ML_USE), ML_USE) or ""
    if (column := "classificationAnnotation") in cells:
        entry.label = _name(cells[column], column)
    if (column := "classificationAnnotations") in cells:
        entry.labels = [_name(each, column) for each in list_of(cells[column], column, ",")]
    if (column := "boundingBoxAnnotations") in cells:
        given = list_of(cells[column], column, ",")
        entry.box_labels = [_name(each, column) for each in given]
        sides = ("xMin", "yMin", "xMax", "yMax")
        entry.boxes = [
            [number_of(each.get(side), f"{column}.{side}") for side in sides] for each in given
        ]
    return entry


def _object(value: Any, column: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse(column, value, "not a JSON object")
    return value


def _name(annotation: Any, column: str) -> str:
    name = _object(annotation, column).get("displayName")
    return require_name(name, f"{column}.displayName")


def read_automl(cells: Sequence[str]) -> ManifestEntry:
    """Makes the entry of a row `[set,]path[,label...]` of AutoML's CSV, or of its form for boxes.

    In that form, the corners of one box follow the label in eight cells, as fractions of the image.
    Only two opposite corners are needed; all nine cells are empty for an image without boxes. Each
    further box has its own row: see `ManifestEntry.join`.

    Raises:
        Rejected: there is no path, or a box has no two opposite corners.
    """
    cells = [check_text(cell.strip(), f"{number}") for number, cell in enumerate(cells, start=1)]
    known_set = cells[0].upper() in _SETS or (len(cells) > 1 and not cells[0])
    split = cells[0].upper() if known_set else ""
    path, *rest = cells[1 if known_set else 0 :] or [""]
    if not path:
        raise bad_row("it does not contain a path")
    entry = ManifestEntry(uri=path, split=split)
    corners = rest[1:]
    numbers = len(corners) == _CORNERS and all(
        not cell or _NUMBER.fullmatch(cell) for cell in corners
    )
    if numbers and (any(corners) or not rest[0]):
        entry.boxes, entry.box_labels = _box(rest[0], corners)
        return entry
    entry.labels = list(dict.fromkeys(label for label in rest if label))
    if len(entry.labels) == 1:
        entry.label = entry.labels[0]
    if not entry.labels:
        raise bad_row("there is no label in it")
    return entry


def _box(label: str, corners: Sequence[str]) -> tuple[list[list[float]], list[str]]:
    if not any(corners):
        return [], []
    xs = [float(cell) for cell in corners[0::2] if cell]
    ys = [float(cell) for cell in corners[1::2] if cell]
    if not label or len(xs) < 2 or len(ys) < 2:
        raise bad_row("its box needs a label and two opposite corners")
    return [[min(xs), min(ys), max(xs), max(ys)]], [label]


PRESETS: Mapping[str, tuple[Literal["jsonl", "csv"], Callable[[Any], ManifestEntry]]] = {
    "vertex": ("jsonl", read_vertex),
    "automl": ("csv", read_automl),
}
"""By name: the format, and what makes an entry from a row's cells."""


_IMAGE = (
    *("filename", "imagepath", "imagefile", "imagefilename", "imagename", "imageuri", "image"),
    *("imgpath", "img", "imgname", "filepath", "file", "path", "uri", "images", "name"),
    *("imageid", "imgid", "idcode", "id"),
)
"""Names of columns that name images, likely ones first, as `_plain` writes them."""

_FEWEST_PIXELS = 64
"""Numbers in a row that may be an image."""

_VIA = "region_shape_attributes"


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """The columns of a table of images.

    Attributes:
        columns: the setting `columns`.
        names: the names of all columns, if the table has no header.
        root: the folder of the images, if no cell names it.
        delimiter: the character between cells, if it is not the usual one.
        blanks: what to do with blanks after it, if that is not the usual.
        splits: split words as the table spells them, and their splits; empty if it has no such
            column.
        others: the remaining columns.
        index: those of them that only count the rows.
        numbers: those of the others that hold numbers, as far as seen.
        flags: those of the others that hold 0 or 1, or true or false, as far as seen.
        commas: those of the others that hold numbers with a decimal comma, as far as seen.
        boxes_unit: the unit of boxes, if it is not the usual one.
        images: the columns that hold images, if there are several.
        roots: the folders that may be `root`, if there are several.
        is_spread: whether no folder of `roots` holds the images of all rows.
        packed: columns of bytes.
        inner: by column, the fields of its structs that are not read.
        boxes: columns that may hold boxes in a form that is not read.
        corners: those of `boxes` that may be the four sides, if they have no names.
        separator: the character between several classes in a cell, if it is not the usual one.
        is_text_list: whether cells of text hold several classes.
        other_split: a column that may say which split an image is in, and is not used.
        guessed_splits: the splits of its values.
        seconds: other columns that name images.
        lists: columns of lists of text, as Parquet and JSON have them.
        several: an image with two rows of different classes, and these, if there is one.
        is_numbered: whether classes are numbers, as far as seen; None without classes.
        candidates: the others that may be the class, each with its first cell; likely ones first.
        class_id: a class that is an id of Open Images, if there is one.
        fault: why the table cannot be read, if its columns say so.
    """

    columns: Mapping[str, str]
    names: tuple[str, ...] = ()
    root: str = ""
    delimiter: str = ""
    blanks: str = ""
    splits: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    numbers: tuple[str, ...] = field(default=(), compare=False)
    flags: tuple[str, ...] = field(default=(), compare=False)
    commas: tuple[str, ...] = field(default=(), compare=False)
    boxes_unit: str = ""
    images: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    is_spread: bool = False
    packed: tuple[str, ...] = field(default=(), compare=False)
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    boxes: tuple[str, ...] = field(default=(), compare=False)
    corners: tuple[str, ...] = field(default=(), compare=False)
    separator: str = ""
    is_text_list: bool = field(default=False, compare=False)
    other_split: str = field(default="", compare=False)
    guessed_splits: Mapping[str, str] = field(default_factory=dict, compare=False)
    seconds: tuple[str, ...] = field(default=(), compare=False)
    lists: tuple[str, ...] = field(default=(), compare=False)
    several: tuple[str, ...] = field(default=(), compare=False)
    is_numbered: bool | None = field(default=None, compare=False)
    candidates: Mapping[str, str] = field(default_factory=dict, compare=False)
    class_id: str = field(default="", compare=False)
    fault: str | None = None

    @property
    def source(self) -> dict[str, Any]:
        """The settings of the source that reads them."""
        optional = {
            "names": list(self.names),
            "root": self.root,
            "delimiter": self.delimiter,
            "blanks": self.blanks,
            "boxes_unit": self.boxes_unit,
            "separator": self.separator,
        }
        return {"kind": "manifest", "columns": self.columns} | {
            key: value for key, value in optional.items() if value
        }

    @property
    def has_boxes(self) -> bool:
        """Whether rows have boxes."""
        return not {"xmin", "objects"}.isdisjoint(self.columns)

    @property
    def has_classes(self) -> bool:
        """Whether the class of an image, or of its boxes, has a known column."""
        return self.has_boxes or not {"label", "labels"}.isdisjoint(self.columns)

    @property
    def is_list(self) -> bool:
        """Whether the table only names images."""
        return not self.has_classes and not {*self.others} - {*self.index}

    def without_label(self) -> "FoundColumns":
        """Returns the same without a class; its column is one of the others."""
        label = self.columns.get("label", "")
        if not label:
            return self
        kept = {key: name for key, name in self.columns.items() if key != "label"}
        return replace(self, columns=kept, others=(*self.others, label))

    def with_root(self) -> "FoundColumns":
        """Returns the same with the folder of a template, such as `train/{id}.jpg`, in `root`."""
        folder, _, name = self.columns.get("uri", "").rpartition("/")
        if "{" not in name or "{" in folder:
            return self
        root = self.root
        if folder:
            root = posixpath.normpath(posixpath.join(root, folder))
        return replace(self, columns={**self.columns, "uri": name}, root=root)


@dataclass(frozen=True, slots=True)
class _ImageColumn:
    """The column that names images or contains them.

    Attributes:
        name: the column.
        columns: the setting `columns` for it.
        root: the folder of the images.
        roots: all folders that may be it, if there are several.
    """

    name: str
    columns: dict[str, str]
    root: str = ""
    roots: tuple[str, ...] = ()


def find_columns(path: str, sketch: FolderSketch) -> FoundColumns | None:
    """Recognizes a table's columns.

    Returns None if no column names images that were seen, or contains images.

    Args:
        path: the table's path below the input.
        sketch: the input, with the table's first bytes.
    """
    head = head_of(path, sketch)
    found = None
    if head.rows and _place_of(head.rows[0][0].strip(), path, sketch) == ("", ""):
        found = _without_header(head, path, sketch)
    elif len(head.rows) > 1 and head.is_header and not path.endswith(".txt"):
        if image := _find_image(head, path, sketch):
            seconds = _find_second_images(image, head, path, sketch)
            found = replace(_find_meanings(head, image), seconds=seconds)
            if image.roots and not _find_common_places(image.name, head, path, sketch):
                found = replace(found, is_spread=True)
        else:
            found = _choose_image(head)
    blanks = "skip" if head.has_blanks else ""
    return found and replace(found, delimiter=head.delimiter, blanks=blanks)


def _without_header(head: TableHead, path: str, sketch: FolderSketch) -> FoundColumns | None:
    """Returns the columns of a table without a header, by their cells.

    Returns None if there is only a path.
    """
    if len(head.rows[0]) < 2:
        return None
    names = name_unnamed(_with_rows_alike(head, path, sketch))
    if names == RETINANET:
        columns = {"uri": "path", **{name: name for name in names[1:]}}
        return FoundColumns(columns, names)
    named = replace(head, rows=(names, *head.rows))
    image = _ImageColumn("path", {"uri": "path"})
    found = replace(_find_meanings(named, image), names=names)
    if "label" not in names:
        found = found.without_label()
    sides = find_unnamed_sides(named)
    corners = tuple[str, ...]()
    if sides and hold_corners(sides, named):
        corners = sides
    return replace(
        found,
        boxes=sides,
        corners=corners,
        seconds=_find_second_images(image, named, path, sketch),
    )


def _with_rows_alike(head: TableHead, path: str, sketch: FolderSketch) -> TableHead:
    """Adds the rows of other tables without a header and as many columns, such as other splits'."""
    rows = list(head.rows)
    for other in sketch.heads:
        first, *more = head_of(other, sketch).rows or [()]
        is_alike = len(first) == len(head.rows[0]) and first[0].lower().endswith(IMAGE_ENDINGS)
        if other != path and is_alike:
            rows += [first, *more]
    return replace(head, rows=tuple(rows))


def sampled_classes(path: str, columns: FoundColumns, sketch: FolderSketch) -> list[str]:
    """Returns the classes in the first rows of a table that has one for each row."""
    name = columns.columns.get("box_label", columns.columns.get("label", ""))
    head = head_of(path, sketch)
    if not name:
        return []
    if columns.names:  # the table has no header
        at = columns.names.index(name)
        return [row[at].strip() for row in head.rows if at < len(row)]
    return head.cells(name)


def named_images(path: str, columns: FoundColumns, sketch: FolderSketch) -> list[str]:
    """Returns the paths below the input of the images that the first rows of a table name."""
    head = head_of(path, sketch)
    names = columns.names or head.header
    rows = head.rows if columns.names else head.rows[1:]
    parts = template_parts(columns.columns.get("uri", ""))
    found = []
    for row in rows:
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        named = "".join(text + cells.get(column, "") for text, column in parts)
        below = posixpath.join(posixpath.dirname(path), columns.root, named)
        found.append(posixpath.normpath(below))
    return found


def holds_pixels(path: str, sketch: FolderSketch) -> bool:
    """Returns whether the rows of a table hold images as numbers.

    A column, or a word, for each pixel.
    """
    rows = head_of(path, sketch).rows
    cells = [cell.strip() for cell in rows[-1]] if rows else []
    in_columns = [cell for cell in cells if cell.isdecimal()]
    in_a_cell = max((cell.split() for cell in cells), key=len, default=[])
    return any(
        len(words) >= _FEWEST_PIXELS and all(word.isdecimal() and int(word) < 256 for word in words)
        for words in (in_columns, in_a_cell)
    )


def column_names(path: str, sketch: FolderSketch) -> tuple[str, ...]:
    """Returns the names in the first row of a table that has a header."""
    return head_of(path, sketch).header


def has_header(path: str, sketch: FolderSketch) -> bool:
    """Returns whether a table begins with a header and a row, as far as can be seen."""
    head = head_of(path, sketch)
    return len(head.rows) > 1 and head.is_header and b"\0" not in sketch.heads[path]


def why_no_columns(path: str, sketch: FolderSketch) -> str:
    """Returns why `find_columns` finds nothing in a table."""
    if not has_header(path, sketch):
        return "it does not begin with a header of different names and a row, in UTF-8"
    row = head_of(path, sketch).rows[1]
    if up := next((cell for cell in row if cell.strip().startswith("../")), None):
        return f"paths that leave its folder are not read: write the names alone, not {up:.100}"
    return f"its first row names no image that is there: {show_first(row):.100}"


def _find_image(head: TableHead, path: str, sketch: FolderSketch) -> _ImageColumn | None:
    """Finds the column that names the image or contains it."""
    row, by_name = head.first(), {plain_column(name): name for name in head.header}
    usual = [by_name[name] for name in _IMAGE if name in by_name]
    named = [name for name, value in row.items() if value.strip().lower().endswith(IMAGE_ENDINGS)]
    # Next to names of images, numbers are ids, which may be names of other images.
    ids = [name for name in usual if named and head.holds_numbers(name)]
    likely = [name for name in usual if name not in ids]
    names = (*likely, *named, *ids) or [name for name in row if name in head.unnamed]
    for name in dict.fromkeys(names):
        if places := _likely_places(name, head, path, sketch):
            root, ending = next(iter(places.items()))
            if root and (folder := _find_folder_column(name, head, path, sketch)):
                template = posixpath.join(f"{{{folder[0]}}}", f"{{{name}}}{ending}")
                return _in_folder(name, folder[1], template)
            if ending and len(places) == 1:
                return _in_folder(name, root, f"{{{name}}}{ending}")
            columns = {"uri": f"{{{name}}}{ending}" if ending else name}
            return _ImageColumn(name, columns, root, tuple(places) if len(places) > 1 else ())
    held = [name for name, value in row.items() if is_held(value)]
    if len(held) != 1:
        return None
    return _ImageColumn(held[0], {"bytes": held[0]})


def _in_folder(name: str, folder: str, template: str) -> _ImageColumn:
    """Returns a column whose images are in a folder relative to the table's own.

    Images outside the table's folder need another root.
    """
    if folder.startswith(".."):
        return _ImageColumn(name, {"uri": template}, folder)
    return _ImageColumn(name, {"uri": posixpath.join(folder, template)})


_OF_IMAGES = re.compile("image|img|path|file|photo|picture|mask|left|right|before|after")
"""Words in the names of columns that name images, without an extension, too."""


def _find_second_images(
    image: _ImageColumn, head: TableHead, path: str, sketch: FolderSketch
) -> tuple[str, ...]:
    """Returns the columns that name other images of the input than the one that was found.

    The image's own name may be in two columns, with and without its folders. Numbers are ids where
    the image's column has whole names.
    """
    has_names = names_images(image.name, head)
    own = [_files_of(cell, path, sketch) for cell in head.cells(image.name)]
    seconds = []
    for name in head.header:
        is_likely = names_images(name, head) or _OF_IMAGES.search(plain_column(name))
        is_id = has_names and head.holds_numbers(name)
        if name == image.name or is_id or not is_likely:
            continue
        others = (_files_of(cell, path, sketch) for cell in head.cells(name))
        pairs = [(one, other) for one, other in zip(own, others, strict=False) if one and other]
        if pairs and all(one.isdisjoint(other) for one, other in pairs):
            seconds.append(name)
    return tuple(seconds)


def _files_of(cell: str, path: str, sketch: FolderSketch) -> set[str]:
    """Returns the images that a cell may name."""
    places = _places_of(cell, path, sketch)
    return {posixpath.normpath(posixpath.join(root, cell) + end) for root, end in places.items()}


def _choose_image(head: TableHead) -> FoundColumns | None:
    """Returns the columns of a table with several columns of images.

    Returns None if there are not several.
    """
    held = tuple(name for name, value in head.first().items() if is_held(value))
    if not held:
        return _explain_unread_images(head)
    found = _find_meanings(head, _ImageColumn(held[0], {"bytes": held[0]}))
    return replace(found, images=held)


def _explain_unread_images(head: TableHead) -> FoundColumns | None:
    """Returns what is wrong with a table whose images are in lists or in text.

    Returns None if it has none.
    """
    for name, cell in head.first().items():
        if cell == HELD_LIST:
            fault = f"its column {name} holds several images in a row: write a row for each image"
        elif _BASE64.match(cell):
            fault = (
                f"its column {name} holds images as text in base64, which is not read: decode it "
                "to files, or to a column of bytes in Parquet"
            )
        else:
            continue
        return FoundColumns({}, others=head.header, fault=fault)
    return None


_BASE64 = re.compile(r"data:image/|/9j/[0-9A-Za-z+/]|iVBORw0KGgo|R0lGOD|UklGR[0-9A-Za-z+/]{4}")
"""How an image in base64 begins: a JPEG, PNG, GIF or WebP."""


def _find_meanings(head: TableHead, image: _ImageColumn) -> FoundColumns:
    """Finds the columns of class, split and boxes among those that are not the image's."""
    row, columns = head.first(), image.columns
    index = tuple(name for name in head.header if name != image.name and head.is_index(name))
    left = _name_plainly((name for name in head.header if name not in (image.name, *index)), head)
    splits = {}
    if split := find_split(left, head):
        words = [cell for cell in head.cells(left[split]) if cell]
        splits = {_match_case(word, words[0]): name for word, name in USUAL_WORDS.items()}
        splits |= {word: SPLIT_NAMES[word.lower()] for word in words}
        columns["split"] = left.pop(split)
    if objects := next((key for key, name in left.items() if row.get(name) == OBJECTS), ""):
        columns["objects"] = left.pop(objects)
    corners = find_corners(left, head)
    label = find_class_column(left, head, has_objects=bool(objects), corners=corners)
    unit, separator = "", None
    if label and "uri" in columns and corners:
        unit = "fraction" if are_fractions([left[side] for side in corners], head) else ""
        columns |= {side: left.pop(name) for side, name in zip(SIDES, corners, strict=True)}
        columns["box_label"] = left.pop(label)
        if all(side in left for side in SIZES):
            columns |= {side: left.pop(side) for side in SIZES}
    elif label:
        separator = find_separator(label, left[label], head)
        is_list = separator or row.get(left[label]) == SEVERAL
        columns["labels" if is_list else "label"] = left.pop(label)
    other_split, guessed = ("", {}) if splits else find_other_split(left, head)
    class_column = columns.get("box_label", columns.get("label", ""))
    class_id = row.get(class_column, "")
    return FoundColumns(
        columns,
        root=image.root,
        roots=image.roots,
        splits=splits,
        others=tuple(name for name in head.header if name in {*index, *left.values()}),
        index=index,
        numbers=tuple(name for name in left.values() if holds_values(name, head)),
        flags=tuple(
            name for name in left.values() if head.holds_flags(name) or holds_truth(name, head)
        ),
        commas=tuple(name for name in left.values() if holds_decimal_commas(name, head)),
        boxes_unit=unit,
        packed=tuple(name for name, cell in row.items() if is_held(cell) or cell == OTHER_BYTES),
        inner={name: inner for name, cell in row.items() if (inner := fields_in(cell))},
        class_id=class_id if _FREEBASE.fullmatch(class_id) else "",
        boxes=find_other_boxes(left, head),
        separator=separator if separator and separator != "|" else "",
        is_text_list=bool(separator),
        lists=tuple(name for name in row if row[name] == SEVERAL),
        several=_find_several(columns, image.name, head),
        is_numbered=_holds_numbered_classes(class_column, head),
        candidates=find_candidates(left, head),
        other_split=other_split,
        guessed_splits=guessed,
        fault=_VIA_FAULT if _VIA in row else None,
    )


def _find_several(columns: Mapping[str, str], image: str, head: TableHead) -> tuple[str, ...]:
    """Returns an image with two rows of different classes, and these classes.

    Returns empty if there is none.
    """
    if "label" not in columns or "uri" not in columns:
        return ()
    of_name = re.findall(r"\{([^{}]+)\}", columns["uri"]) or [image]
    classes: dict[tuple[str, ...], str] = {}
    labels = head.cells(columns["label"])
    for name, *parts, label in zip(
        head.cells(image), *map(head.cells, of_name), labels, strict=False
    ):
        if classes.setdefault(tuple(parts), label) != label:
            return name, classes[tuple(parts)], label
    return ()


def _name_plainly(names: Iterable[str], head: TableHead) -> dict[str, str]:
    """Returns columns by their plain names; of equal ones, the later by their own.

    What follows a last delimiter in each line is left out.
    """
    plain: dict[str, str] = {}
    for name in names:
        if name not in head.unnamed or any(head.cells(name)):
            plain[name if plain_column(name) in plain else plain_column(name)] = name
    return plain


_FREEBASE = re.compile(r"/[mgt]/[0-9a-z_]+")
"""An id of a class of Open Images."""

_VIA_FAULT = (
    "the regions of VGG Image Annotator (VIA) are not read from CSV: let VIA export them as COCO"
)


def _holds_numbered_classes(column: str, head: TableHead) -> bool | None:
    """Returns whether classes are numbers; None if that cannot be seen. -1 stands for no class."""
    if not column or {*head.cells(column)} <= {"-1", ""}:
        return None
    return head.holds_numbers(column)


def _place_of(value: str, path: str, sketch: FolderSketch) -> tuple[str, str] | None:
    """Finds the image that a cell names.

    Returns its root, relative to the table's folder, and the extension that the cell lacks. Returns
    None if the image was not seen.
    """
    return next(iter(_places_of(value, path, sketch).items()), None)


def _places_of(value: str, path: str, sketch: FolderSketch) -> dict[str, str]:
    """Finds all images that a cell may name: their roots, and the extension that the cell lacks.

    If one is found from the table's own folder, there are no others.
    """
    if "\\" in value and "/" not in value:
        value = value.replace("\\", "/")  # as programs on Windows write it
    own, name = posixpath.dirname(path), posixpath.basename(value)
    roots: Sequence[str] = (own, *sketch.names)
    if sketch.root and value.startswith(f"{sketch.root}/"):
        value, roots = value.removeprefix(f"{sketch.root}/"), ("",)
    if not name or "{" in value or value.startswith("/") or "://" in value:
        return {}
    found: dict[str, str] = {}
    for root in dict.fromkeys(roots):
        if image := sketch.at(posixpath.dirname(posixpath.join(root, value))).find_image(name):
            found.setdefault(_below(root, own), image[len(name) :])
        if root == own and found:
            return found
    if found:
        return found
    is_whole = name.lower().endswith(IMAGE_ENDINGS)
    deeper = posixpath.join(roots[0], value.split("/")[0])  # its contents were not listed
    is_below = is_whole and "/" in value and sketch.has_folder(deeper)
    if not is_below:
        return {}
    return {_below(roots[0], own): ""}


def _likely_places(name: str, head: TableHead, path: str, sketch: FolderSketch) -> dict[str, str]:
    """Finds the folders that hold the images of a column; several if nothing tells them apart.

    Several folders may hold the first image: then those that hold the images of all sampled rows
    count, and of these the one that has the split word of the table in its name. If other rows name
    images of other folders, all these folders are returned. The images may be outside the input.
    """
    of_rows = [_places_of(cell, path, sketch) for cell in head.cells(name)]
    if not of_rows or not of_rows[0]:
        return find_outside(name, head, sketch)
    of_all = _find_common_places(name, head, path, sketch)
    if not of_all:
        return of_rows[0] | {root: end for each in of_rows for root, end in each.items()}
    words = split_words(posixpath.basename(path))
    alike = {root: end for root, end in of_all.items() if words & split_words(root)}
    return alike if len(alike) == 1 else of_all


def _find_common_places(
    name: str, head: TableHead, path: str, sketch: FolderSketch
) -> dict[str, str]:
    """The folders that hold the images of all sampled rows, except those that no folder holds."""
    of_rows = [each for cell in head.cells(name) if (each := _places_of(cell, path, sketch))]
    places = next(iter(of_rows), {})
    return {root: end for root, end in places.items() if all(root in each for each in of_rows)}


def _find_folder_column(
    name: str, head: TableHead, path: str, sketch: FolderSketch
) -> tuple[str, str] | None:
    """Finds a column that names the folder of each row's image, such as its class or split.

    Returns the column and the folder around those folders; None if there is no such column.
    """
    for other in head.header:
        around: set[str] | None = None
        for cell, folder in zip(head.cells(name), head.cells(other), strict=False):
            found = {
                posixpath.dirname(root)
                for root in _places_of(cell, path, sketch)
                if folder and posixpath.basename(root) == folder
            }
            around = found if around is None else around & found
        if around and other != name:
            return other, min(around)
    return None


def split_words(path: str) -> set[str]:
    """Returns the splits whose words are in a path."""
    return {*splits_for_words(re.findall("[A-Za-z]+", path)).values()}


def _below(root: str, own: str) -> str:
    """Returns the path of a folder relative to another; empty if they are the same."""
    path = posixpath.relpath(root or ".", own or ".")
    return "" if path == "." else path


def _match_case(word: str, like: str) -> str:
    """Returns a word in the upper or lower case of another."""
    if like.isupper():
        return word.upper()
    if like[:1].isupper():
        return word.capitalize()
    return word
