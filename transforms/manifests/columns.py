"""Which column says what: the YAML keys below `source.columns` and `source.features_from`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from recordmill.transforms.listing.class_names import LONGEST_NAME
from recordmill.transforms.manifests.cell_values import feature_value, list_of, refuse, text_of, texts_of
from recordmill.transforms.manifests.cells_of_boxes import boxes_from, objects_from
from recordmill.transforms.manifests.entry import BadCellError, Entry
from recordmill.transforms.manifests.feature_from import FeatureFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of a manifest's columns.

    Attributes:
        uri: the image's path below `source.root`, or its URL there.
        bytes: the image itself: in base64; in Parquet binary, or a struct with binary `bytes`, as Hugging Face has it.
        label: the class.
        labels: several classes: a list, or a text cut at `source.separator`.
        split: the word that `splits.from_source` turns into a split.
        group: rows of one group stay in one split.
        key: the image's name in the dataset; by default its path, or the number of its row.
        sha256: the digest that the image's bytes must have, in hex.
        boxes: a list of boxes, each a list of xmin, ymin, xmax, ymax; in CSV as JSON.
        box_labels: the classes of the boxes, as `labels`.
        objects: boxes with their classes, as Hugging Face has them: `{bbox: [[x, y, width, height], ...], categories:
            [...]}`, or a list of `{bbox: [...], category: ...}`; in CSV as JSON.
    """

    uri: str = ""
    bytes: str = ""
    label: str = ""
    labels: str = ""
    split: str = ""
    group: str = ""
    key: str = ""
    sha256: str = ""
    boxes: str = ""
    box_labels: str = ""
    objects: str = ""

    def named(self) -> Iterator[tuple[str, str]]:
        """(YAML key, column) of each that is named."""
        for each in fields(self):
            if column := getattr(self, each.name):
                yield f"source.columns.{each.name}", column

    def check(self) -> None:
        """Raises ValueError where there is no image, or two, or boxes without labels."""
        if bool(self.uri) == bool(self.bytes):
            raise ValueError("source.columns names one of two: `uri`, where the image is, or `bytes`, the image itself")
        if bool(self.boxes) != bool(self.box_labels):
            raise ValueError("source.columns.boxes and source.columns.box_labels go together: name both")
        if self.boxes and self.objects:
            raise ValueError("source.columns.boxes and source.columns.objects both name boxes: remove one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureColumn(FeatureFrom):
    """A further feature from a column: the YAML keys below its name, with those of `FeatureFrom`.

    Attributes:
        column: the column.
    """

    column: str

    where: ClassVar[str] = "column"
    hint: ClassVar[str] = "name the column"
    described: ClassVar[str] = "column `{}`"

    def value_of(self, cell: Any, separator: str) -> Any:
        """The feature's value, or values; an empty cell is none.

        Raises:
            BadCellError: there is none, or it is of another type.
        """
        if self.many:
            return [feature_value(each, self.type, self.column) for each in list_of(cell, self.column, separator)]
        if cell is None or cell == "":
            if self.default is None:
                raise refuse(self.column, cell, "")
            return self.default_value()
        return feature_value(cell, self.type, self.column)


@dataclass(frozen=True)
class RowReader:
    """Makes entries of rows with named cells.

    Attributes:
        columns: which column says what.
        features: further features.
        separator: between several labels in one text.
        fractions: whether boxes are in parts of the image.
        class_names: names of the classes that numbers in a column stand for, from 0.
        base64_column: the column of images, where cells are texts.
        keeps_unlabelled: whether an image whose class is empty has none, instead of being refused.
    """

    columns: Columns
    features: Mapping[str, FeatureColumn]
    separator: str
    fractions: bool
    class_names: Mapping[str, Sequence[str]]
    base64_column: str = ""
    keeps_unlabelled: bool = False

    @cached_property
    def _texts(self) -> list[tuple[str, str, Sequence[str]]]:
        named = {key.rpartition(".")[2]: column for key, column in self.columns.named()}
        plain = ("uri", "key", "label", "split", "group", "sha256")
        return [(name, named[name], self.class_names.get(named[name], ())) for name in plain if name in named]

    @cached_property
    def _required(self) -> tuple[str, ...]:
        names = ("uri", "key") if self.keeps_unlabelled else ("uri", "key", "label")
        return tuple(name for name in names if getattr(self.columns, name))

    def read(self, cells: Mapping[str, Any]) -> Entry:
        """What the cells say.

        Raises:
            BadCellError: a value is missing or not what its column is for.
        """
        entry = Entry(fractions=self.fractions)
        for name, column, names in self._texts:
            text = _name_in(cells.get(column), column, names)
            if not text and name in self._required:
                raise refuse(column, text, "")
            setattr(entry, name, text)
        if self.base64_column:
            image = cells.get(self.base64_column)
            if not isinstance(image, str) or not image.strip():
                raise refuse(self.base64_column, "" if isinstance(image, str) else image, "no base64")
        columns = self.columns
        if columns.labels:
            entry.labels = self._texts_in(columns.labels, cells)
        if columns.boxes:
            entry.boxes = boxes_from(cells.get(columns.boxes), columns.boxes)
            entry.box_labels = self._texts_in(columns.box_labels, cells)
            if len(entry.boxes) != len(entry.box_labels):
                counts = f"{len(entry.boxes)} boxes and {len(entry.box_labels)} labels"
                raise BadCellError(f"column {columns.box_labels!r}: there are {counts}")
        if columns.objects:
            names = self.class_names.get(columns.objects, ())
            entry.boxes, entry.box_labels = objects_from(cells.get(columns.objects), columns.objects, names)
        entry.features = {
            key: feature.value_of(cells.get(feature.column), self.separator) for key, feature in self.features.items()
        }
        return entry

    def _texts_in(self, column: str, cells: Mapping[str, Any]) -> list[str]:
        return texts_of(cells.get(column), column, self.separator, self.class_names.get(column, ()))


def _name_in(cell: Any, column: str, names: Sequence[str]) -> str:
    text = text_of(cell, column, names)
    if len(text) > LONGEST_NAME:
        count = f"{len(text):,} letters, and a name at most {LONGEST_NAME:,}"
        raise BadCellError(f"column {column!r}: {text!r:.60} has {count}")
    return text if text.strip() else ""


Reader = Callable[[Any], Entry]
"""Makes an entry of a row's cells; raises `BadCellError`."""
