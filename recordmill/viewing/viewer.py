"""Answers what the page asks: about the dataset, its images, and one image."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.annotations.annotation import AnnotationKind
from recordmill.annotations.kinds import KINDS
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.pixels import CHANGES
from recordmill.reading.example import ParsedExample, find_image, values_of
from recordmill.schemas.errors import LoadError
from recordmill.schemas.rejection import Rejected
from recordmill.viewing.answers import (
    DatasetFacts,
    GridPage,
    ImageCell,
    ShownFeature,
    ShownImage,
    ShownShape,
)
from recordmill.viewing.image_table import UNCHANGED, ImageFacts, ImageTable
from recordmill.viewing.pictures import (
    SIDE,
    Picture,
    PictureCache,
    StoredImage,
    make_canvas,
    make_large,
    make_small,
)
from recordmill.viewing.selection import (
    NAMED,
    Matches,
    Selection,
    SelectionError,
    parse_selection,
    select,
)
from recordmill.viewing.viewed_dataset import ViewedDataset

MOST_ROWS = 400
"""The most images in an answer."""

MOST_COUNTED = 500
"""The most classes with a count: the most frequent ones."""

MOST_VALUES = 64
"""The most values of a feature in an answer."""

MOST_LETTERS = 2_000
"""The most letters of a text in an answer."""

NOT_MARKED = "nothing"
"""The value of `marked` of an image without a mark."""

EXCLUDED, CORRECTED = "excluded", "corrected"


_KINDS = {
    "recordmill": "a dataset of Recordmill",
    "unfinished": "the unfinished work of a run",
    "tfds": "a dataset described by dataset_info.json",
    "files": "TFRecord files without a description",
}


@dataclass(slots=True, eq=False)
class SelectableImages:
    """The images of a dataset with their marks, as a selection compares them.

    Attributes:
        table: the values of all images.
        splits: the place of each split's first image, and finally the number of all.
        marked: by image, 1 if it is to be excluded, 2 if it is to get another class, otherwise 0.
    """

    table: ImageTable
    splits: Mapping[str, tuple[int, int]]
    marked: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.table)

    def list_names(self, name: str) -> Sequence[str]:
        """Returns the values that a name of `NAMED` can have."""
        if name == "split":
            return list(self.splits)
        if name == "class":
            return self.table.classes.names
        if name == "changed":
            return [*CHANGES, UNCHANGED]
        return list(_MARKS)

    def match_name(self, name: str, value: str) -> Matches:
        """Returns the images that have this value."""
        if name == "split":
            matched = np.zeros(len(self), np.bool_)
            matched[slice(*self.splits[value])] = True
            return matched
        if name == "class":
            return self.table.match_class(value)
        if name == "changed":
            return self.table.match_change(value)
        marked: Matches = self.marked == _MARKS[value]
        return marked

    def match_text(self, text: str) -> Matches:
        """Returns the images whose key has this part."""
        return self.table.match_text(text)

    def numbers_of(self, name: str) -> NDArray[Any]:
        """Returns the numbers of a name of `NUMBERS`; -1 where a value is unknown."""
        return self.table.numbers[name]

    def count(self, name: str, selected: Matches) -> dict[str, int]:
        """Returns the number of selected images by the values of a name, without zeros."""
        if name == "class":
            counted = self.table.count_classes(selected)
            most = np.argsort(-counted, kind="stable")[:MOST_COUNTED]
            names = self.table.classes.names
            return {names[each]: int(counted[each]) for each in most if counted[each]}
        counts = {
            value: int(np.count_nonzero(self.match_name(name, value) & selected))
            for value in self.list_names(name)
        }
        return {value: count for value, count in counts.items() if count}


_MARKS = {NOT_MARKED: 0, EXCLUDED: 1, CORRECTED: 2}


@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """The selected images in their order, and counts by value."""

    order: NDArray[np.int64]
    counts: Mapping[str, Mapping[str, int]]


class Viewer:
    """Answers requests for a dataset, from any number of threads."""

    def __init__(self, viewed: ViewedDataset) -> None:
        self.viewed = viewed
        self._cache = PictureCache()
        self._selecting = threading.Lock()
        self._latest: dict[tuple[str, str], _Selected] = {}
        self._images: SelectableImages | None = None

    def start(self) -> None:
        """Starts to read the values of all images in the background."""
        threading.Thread(target=self.viewed.read_table, daemon=True).start()

    def about(self) -> DatasetFacts:
        """Returns what the page says about the dataset."""
        dataset = self.viewed.dataset
        shaped, drawn = [], []
        for name in self.viewed.annotation_keys:
            kind = type(KINDS[name])
            if kind.list_shapes is not AnnotationKind.list_shapes:
                shaped.append(name)
            elif kind.draw is not AnnotationKind.draw:
                drawn.append(name)
        return DatasetFacts(
            title=self.viewed.title,
            path=dataset.folder,
            kind=_KINDS[self.viewed.kind],
            splits=list(dataset.splits),
            labels=dict(dataset.labels),
            changes=CHANGES,
            kinds=shaped,
            drawn=drawn,
        )

    def list_images(self, query: str, sort: str, first: int, count: int) -> GridPage:
        """Returns a part of the selected images.

        While images are still being read, it returns all images in the dataset's order.

        Args:
            query: a selection.
            sort: see `ImageTable.order`.
            first: the place of the first image wanted among those selected.
            count: the most images wanted.

        Raises:
            UsageError: the selection cannot be understood.
        """
        selection, wanted = parse_selection(query), range(first, first + min(count, MOST_ROWS))
        progress = self.viewed.progress
        if not progress.is_complete:
            known = progress.images if progress.total is None else progress.total
            images = [self._cell(each) for each in wanted if each < known]
            return GridPage(progress, progress.total, first, images, {}, False)
        found = self._select(selection, sort)
        numbers = found.order[wanted.start : wanted.stop]
        images = [self._cell(int(number)) for number in numbers]
        return GridPage(progress, len(found.order), first, images, found.counts, True)

    def _cell(self, number: int) -> ImageCell:
        facts = self.viewed.table.facts(number)
        if facts is None:
            return ImageCell(number)
        return _as_cell(number, facts)

    def _select(self, selection: Selection, sort: str) -> _Selected:
        with self._selecting:
            key = (str(selection), sort)
            if key not in self._latest:
                if len(self._latest) > 3:
                    self._latest.clear()
                self._latest[key] = self._find(selection, sort)
            return self._latest[key]

    def _find(self, selection: Selection, sort: str) -> _Selected:
        images = self._selectable()
        matched = {term: select(Selection((term,)), images) for term in selection.terms}
        selected = _join(matched.values(), len(images))
        counts = {}
        for name in NAMED:
            others = [found for term, found in matched.items() if term.name != name]
            counts[name] = images.count(name, _join(others, len(images)))
        order = images.table.order(sort)
        return _Selected(order[selected[order]], counts)

    def _selectable(self) -> SelectableImages:
        if self._images is None:
            table = self.viewed.whole
            if table is None:
                raise SelectionError(
                    "images can be selected once all have been read: wait a little"
                )
            self._images = SelectableImages(
                table, self.viewed.split_places, np.zeros(len(table), np.uint8)
            )
        return self._images

    def show_image(self, number: int) -> ShownImage:
        """Returns one image with all that is known of it.

        Raises:
            LoadError: there is no such image, or its record is damaged.
            OSError: it cannot be read.
        """
        record = self._read(number)
        example = ParsedExample(record)
        _, image = find_image(example, self.viewed.expected)
        known = self.viewed.table.facts(number) or ImageFacts("")
        place = self.viewed.locate(number)
        return ShownImage(
            cell=self._cell(number),
            split=place.shard.split,
            shard=place.shard.name,
            place=place.number,
            offset=known.offset,
            bytes=len(record),
            image_bytes=len(image),
            format=sniff(image) or "",
            sha256=known.sha256,
            changes=known.changes,
            dropped=known.dropped,
            features=[
                ShownFeature(key, kind or "empty", len(values), show_first_values(values))
                for key, kind, values in example.items()
            ],
            shapes=list(self._shapes(example)),
            python=self.viewed.show_python(place),
        )

    def _shapes(self, example: ParsedExample) -> list[ShownShape]:
        shown = []
        for name, keys in self.viewed.annotation_keys.items():
            for each in KINDS[name].list_shapes(values_of(example, keys)):
                class_name = self.viewed.show_class(each.class_name)
                shown.append(ShownShape(name, class_name, each.lines, each.points))
        return shown

    def _read(self, number: int) -> bytes:
        total = self.viewed.total
        if number < 0 or (total is not None and number >= total):
            raise LoadError(f"there is no image {number:,}: reload the page")
        return self.viewed.records.read(number)

    def small_picture(self, number: int) -> Picture:
        """Returns the small picture of an image.

        Raises:
            LoadError: there is no such image, or its record is damaged.
            OSError: it cannot be read.
            Rejected: it cannot be decoded, or is too large.
        """
        return self._cache.find((number, SIDE), lambda: make_small(self._image(number)))

    def large_picture(self, number: int, drawn: Sequence[str] = ()) -> Picture:
        """Returns an image as it is stored, or with the annotations of some kinds drawn on it.

        Raises:
            LoadError: as for `small_picture`.
            OSError: as for `small_picture`.
            Rejected: as for `small_picture`.
        """
        if not drawn:
            return make_large(self._image(number))
        example = ParsedExample(self._read(number))
        canvas = make_canvas(self._image(number))
        for name in drawn:
            if keys := self.viewed.annotation_keys.get(name):
                canvas = KINDS[name].draw(canvas, values_of(example, keys))
        return Picture("image/jpeg", canvas)

    def _image(self, number: int) -> StoredImage:
        example = ParsedExample(self._read(number))
        expected = self.viewed.expected
        key, data = find_image(example, expected)
        if not key:
            keys = [each.key for each in self.viewed.features if each.field == "encoded"]
            values = next(filter(None, map(example.values, keys)), None)
            if values is None or not isinstance(values[0], bytes):
                raise Rejected("decode", "unknown_format", "the record has no image")
            data = values[0]
        facts = self.viewed.table.facts(number) or ImageFacts("")
        return StoredImage(data, facts.width, facts.height, expected.max_pixels)


def _as_cell(number: int, facts: ImageFacts) -> ImageCell:
    return ImageCell(number, facts.key, facts.classes, facts.width, facts.height, facts.objects)


def _join(matched: Iterable[Matches], count: int) -> Matches:
    """Returns the images that all of these have matched."""
    joined = np.ones(count, np.bool_)
    for found in matched:
        joined &= found
    return joined


def show_first_values(values: Sequence[Any]) -> str:
    """Returns a feature's first values in one line."""
    shown = ", ".join(map(_show_value, values[:MOST_VALUES]))
    if len(values) > MOST_VALUES:
        return f"{shown}, ..."
    return shown


def _show_value(value: bytes | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, bytes):
        return str(value)
    if (kind := sniff(value)) and len(value) > MOST_TEXT_OF_IMAGE:
        return f"{kind}, {len(value):,} bytes"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"{value[:16].hex(' ')} ..., {len(value):,} bytes"
    if len(text) > MOST_LETTERS:
        return f"{text[:MOST_LETTERS]}..."
    return text


MOST_TEXT_OF_IMAGE = 32
"""A value with fewer bytes is not an image."""
