"""Answers what the page asks: about the dataset, its images, and one image."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.annotations.shapes import color_of_class
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.previews import as_data_uri, draw_layer
from recordmill.reading.dataset import FORGED
from recordmill.reading.example import ParsedExample, find_image
from recordmill.schemas.dataset.side_files import RejectedFile
from recordmill.schemas.errors import LoadError
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import CHANGES
from recordmill.viewing.answers import (
    DatasetFacts,
    GridPage,
    ImageCell,
    ShownFeature,
    ShownImage,
    ShownShape,
)
from recordmill.viewing.dropped_objects import DroppedObject, find_dropped
from recordmill.viewing.findings import (
    MOST_DROPPED,
    MOST_READ,
    DroppedGroup,
    Findings,
    ObjectSizes,
    ShownDropped,
    find_extremes,
    gather_duplicates,
    gather_rejected,
)
from recordmill.viewing.image_table import UNCHANGED, ImageFacts, ImageTable
from recordmill.viewing.marks import (
    CORRECTED,
    EXCLUDED,
    NOT_MARKED,
    MarkFiles,
    MarkRequest,
    Marks,
    MarksState,
)
from recordmill.viewing.pictures import (
    SIDE,
    Picture,
    PictureCache,
    StoredImage,
    make_large,
    make_small,
    show_source,
)
from recordmill.viewing.selection import (
    NAMED,
    Matches,
    Selection,
    SelectionError,
    parse_selection,
    select,
)
from recordmill.viewing.source_folders import SourceFolders
from recordmill.viewing.viewed_dataset import ViewedDataset

MOST_ROWS = 400
"""The most images in an answer."""

MOST_COUNTED = 500
"""The most classes with a count: the most frequent ones."""

MOST_VALUES = 64
"""The most values of a feature in an answer."""

MOST_LETTERS = 2_000
"""The most letters of a text in an answer."""

MOST_SHAPES = 500
"""The most annotations of one kind that are drawn on an image."""

LAYER_SIDE = 1_024
"""The longer side of a layer over an image, in pixels."""


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
        marks: what is to happen to images.
    """

    table: ImageTable
    splits: Mapping[str, tuple[int, int]]
    marks: Marks

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
        marked: Matches = self.marks.states == _MARKS[value]
        return marked

    def match_text(self, text: str) -> Matches:
        """Returns the images whose key has this part."""
        return self.table.match_text(text)

    def numbers_of(self, name: str) -> NDArray[Any]:
        """Returns the numbers of a name of `NUMBERS`; -1 where a value is unknown."""
        return self.table.column(name)

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


_MARKS = {"nothing": NOT_MARKED, "excluded": EXCLUDED, "corrected": CORRECTED}
"""The values of `marked`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """The selected images in their order, and counts by value."""

    order: NDArray[np.int64]
    counts: Mapping[str, Mapping[str, int]]


class Viewer:
    """Answers requests for a dataset, from any number of threads."""

    def __init__(
        self,
        viewed: ViewedDataset,
        files: MarkFiles | None,
        problem: str | None,
        sources: SourceFolders,
    ) -> None:
        """Reads nothing yet.

        Args:
            viewed: the dataset.
            files: where marks are written; None if images cannot be marked.
            problem: why they cannot.
            sources: the folders whose files are shown as sources.
        """
        self.viewed, self._sources = viewed, sources
        self._rejected: dict[str, Sequence[RejectedFile]] = {}
        self._files, self._problem = files, problem
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
        return DatasetFacts(
            title=self.viewed.title,
            path=dataset.folder,
            kind=_KINDS[self.viewed.kind],
            splits=list(dataset.splits),
            labels=dict(dataset.labels),
            has_sources=bool(self._sources.folders),
            changes=CHANGES,
            kinds=[kind.name for kind in self.viewed.tracer.kinds],
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
        cell = ImageCell(number, facts.key, facts.classes, facts.width, facts.height, facts.objects)
        if self._images is None:
            return cell
        marks = self._images.marks
        mark = next(name for name, each in _MARKS.items() if each == marks.states[number])
        return replace(cell, mark=mark, new_class=marks.classes.get(number))

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
            table = self.viewed.table
            if not self.viewed.is_complete:
                raise SelectionError(
                    "images can be selected once all have been read: wait a little"
                )
            marks = Marks(self.viewed.dataset, self._files, self._problem, table)
            self._images = SelectableImages(table, self.viewed.split_places, marks)
        return self._images

    def marks(self) -> MarksState:
        """Returns what the page shows of marks.

        Raises:
            SelectionError: images are still being read.
        """
        with self._selecting:
            return self._selectable().marks.state()

    def mark(self, request: MarkRequest) -> MarksState:
        """Marks images, and returns what the page shows.

        Raises:
            UsageError: the images cannot be marked in this way.
            OSError: a file cannot be written.
        """
        if request.images is None:
            numbers = self._select(parse_selection(request.query), "").order.tolist()
        else:
            numbers = list(request.images)
        with self._selecting:
            marks = self._selectable().marks
            marks.mark(numbers, request.action, request.class_name)
            self._latest.clear()
            return marks.state()

    def findings(self) -> Findings:
        """Returns what went wrong.

        Raises:
            LoadError: a list of the dataset is damaged, or images are still being read.
            OSError: a list cannot be read.
        """
        with self._selecting:
            table = self._selectable().table
        dataset, objects = self.viewed.dataset, table.column("objects")
        try:
            rejected = gather_rejected(dataset)
            duplicates = gather_duplicates(dataset, self._find_key)
        except FORGED as error:
            raise LoadError(f"a list of {dataset.folder} is damaged: {error!r}") from None
        self._rejected = {each.reason: each.files for each in rejected}
        has_objects = bool((objects >= 0).any())
        dropped = np.flatnonzero(table.column("dropped") > 0)
        return Findings(
            rejected=rejected,
            duplicates=duplicates,
            bare=int((objects == 0).sum()) if has_objects else None,
            dropped=len(dropped),
            dropped_objects=self._gather_dropped(dropped[:MOST_DROPPED].tolist()),
        )

    def _gather_dropped(self, images: Iterable[int]) -> list[DroppedGroup]:
        """Returns the dropped objects of some images by what they are and why."""
        groups: dict[tuple[str, str], list[ShownDropped]] = {}
        for number in images:
            facts = self.viewed.table.facts(number) or ImageFacts("")
            for each in self._find_dropped(number, ParsedExample(self._read(number))):
                color = self._color_of(each.class_name)
                shown = ShownDropped(
                    number, facts.key, each.class_name, each.place, color, each.sides
                )
                groups.setdefault((each.what, each.reason), []).append(shown)
        return [
            DroppedGroup(what, reason, objects[:MOST_DROPPED])
            for (what, reason), objects in sorted(groups.items())
        ]

    def _find_dropped(self, number: int, example: ParsedExample) -> list[DroppedObject]:
        """Returns the dropped objects of an image.

        Raises:
            LoadError: what the run kept of them is damaged.
            OSError: it cannot be read.
        """
        facts = self.viewed.table.facts(number)
        if facts is None or facts.dropped <= 0:
            return []
        stored = [shape.sides for shape in self.viewed.tracer.list_objects(example)]
        dataset, shard = self.viewed.dataset, self.viewed.locate(number).shard
        try:
            return find_dropped(dataset, shard, facts.key, stored)
        except FORGED as error:
            raise LoadError(f"a list of {dataset.folder} is damaged: {error!r}") from None

    def _color_of(self, class_name: str) -> str:
        return color_of_class(self.viewed.dataset.labels.get(class_name))

    def _find_key(self, split: str, key: str) -> int | None:
        images = self._selectable()
        return images.table.find_key(key, *images.splits.get(split, (0, 0)))

    def object_sizes(self, class_name: str) -> ObjectSizes:
        """Returns the smallest and the largest objects of a class.

        Of a large dataset, only some images with the class are searched.

        Raises:
            UsageError: images are still being read.
            LoadError: a record is damaged.
            OSError: a record cannot be read.
        """
        with self._selecting:
            matched = self._selectable().table.match_class(class_name)
        numbers = np.flatnonzero(matched)
        some = numbers[np.linspace(0, max(len(numbers) - 1, 0), MOST_READ).astype(np.int64)]
        chosen = np.unique(some) if len(numbers) > MOST_READ else numbers
        return find_extremes(map(self._measure, chosen.tolist()), class_name, len(numbers))

    def _measure(self, number: int) -> tuple[int, dict[str, list[float]]]:
        """Returns an image's number, and the shares of it that its objects cover by class."""
        shares = dict[str, list[float]]()
        for shape in self.viewed.tracer.list_objects(ParsedExample(self._read(number))):
            class_name = self.viewed.class_of(shape)
            if shape.share is not None and class_name is not None:
                shares.setdefault(class_name, []).append(shape.share)
        return number, shares

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
            shapes=[*self._shapes(example), *self._dropped_shapes(number, example)],
            python=self.viewed.show_python(place),
        )

    def _shapes(self, example: ParsedExample) -> Iterator[ShownShape]:
        for kind in self.viewed.tracer.kinds:
            for shape in self.viewed.tracer.trace(example, kind)[:MOST_SHAPES]:
                color, layer = color_of_class(shape.class_id), None
                if shape.region is not None:
                    drawn = draw_layer(shape.region, color, most_side=LAYER_SIDE)
                    layer = as_data_uri(drawn, "png")
                yield ShownShape(
                    kind.name,
                    self.viewed.class_of(shape),
                    color,
                    None if shape.share is None else shape.sides,
                    layer,
                    [(point.x, point.y, point.is_visible) for point in shape.points],
                    shape.lines,
                )

    def _dropped_shapes(self, number: int, example: ParsedExample) -> Iterator[ShownShape]:
        for each in self._find_dropped(number, example)[:MOST_SHAPES]:
            yield ShownShape(
                f"dropped {each.what}",
                each.class_name,
                self._color_of(each.class_name),
                each.sides,
                None,
                (),
                (),
                each.reason,
            )

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

    def large_picture(self, number: int) -> Picture:
        """Returns an image as it is stored.

        Raises:
            LoadError: as for `small_picture`.
            OSError: as for `small_picture`.
            Rejected: as for `small_picture`.
        """
        return make_large(self._image(number))

    def source_picture(self, number: int) -> Picture:
        """Returns the source of an image.

        Raises:
            LoadError: no folder that the user named has it.
            OSError: it cannot be read.
            Rejected: it cannot be shown.
        """
        facts = self.viewed.table.facts(number)
        if facts is None:
            raise LoadError(f"image {number:,} has not been read yet: wait until it has been")
        data = self._sources.read(facts.key)
        return show_source(data, self.viewed.expected.max_pixels)

    def rejected_picture(self, reason: str, place: int) -> Picture:
        """Returns a file that was rejected, by its place among the findings.

        Raises:
            LoadError: no folder that the user named has it, or there is no such finding.
            OSError: it cannot be read.
            Rejected: it cannot be shown.
        """
        files = self._rejected.get(reason, ())
        if place >= len(files):
            raise LoadError("there is no such rejected file: reload the page")
        data = self._sources.read(files[place].key)
        return show_source(data, self.viewed.expected.max_pixels)

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
