"""`report.html`: one page for people, complete in itself, that shows what a dataset holds and how it was made.

It is made from the published dataset, and can be made again at any time. It needs no script, font or other file: it
opens offline, and its own policy forbids it to run or load anything. Every name is escaped. Long lists show some
entries, and count the rest. Charts are plain numbers that the template draws as SVG: 100 units wide on every screen,
stretched to fit, with labels in HTML around them, which keep their size.
"""

import math
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import median
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill import storage
from recordmill.imaging.pixels import CHANGES
from recordmill.reading.dataset import Dataset, open_dataset
from recordmill.reading.report.image_statistics import (
    AREA_BINS,
    ASPECT_BINS,
    BINS_PER_DOUBLING,
    MOST_TEXTS,
    MOST_WITH_BOXES,
    SIDE_OF_MANY_WITH_BOXES,
    SIDE_WITH_BOXES,
    Column,
    ImageStatistics,
    StoredValues,
    Wanted,
    choose_samples,
    gather_statistics,
    gather_values,
    make_thumbnails,
)
from recordmill.schemas.dataset.file_names import CONFIGURATION, DUPLICATES, REJECTED, REPORT, REPORT_DATA
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import Duplicate, DuplicateGroup, RejectedFile, Remark, ReportData
from recordmill.schemas.dataset.totals import NOT_DROPPED
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import BOX_FIELDS
from recordmill.schemas.formatting import format_size, load_template, most_frequent
from recordmill.schemas.rejection import REASONS, explain_reason
from recordmill.storage.dataset_files import holds_report

FLOW_HEIGHT = 150.0
"""Height of a flow's whole stream, in pixels."""

ROW_HEIGHT = 46.0
"""Minimum height of a flow's row, in pixels: two lines of text."""

THINNEST = 2.0
"""Minimum thickness of a branch, in pixels: one image in a million stays visible."""

MOST_TICKS = 5

LONGEST_SCALE = 40
"""The most characters on the scale of single numbers."""

Counts = NDArray[np.int64]

Label = Callable[[int], str]
"""Gives the text for the lower end of a bin."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a flow, in pixels.

    Attributes:
        start: where it leaves the stream.
        end: where it arrives, in the middle of its row.
        thickness: its share of the stream.
        row: the height of its row.
    """

    start: float
    end: float
    thickness: float
    row: float


def draw_flow(counts: Sequence[int]) -> list[Branch]:
    """Divides a stream into branches for these counts, from top to bottom, each as thick as its share."""
    total = max(sum(counts), 1)
    thick = [max(THINNEST, FLOW_HEIGHT * count / total) for count in counts]
    rows = [max(ROW_HEIGHT, each + 8) for each in thick]
    starts = accumulate(thick, initial=(sum(rows) - sum(thick)) / 2)
    tops = accumulate(rows, initial=0.0)
    return [
        Branch(start, top + (row - each) / 2, each, row)
        for start, top, each, row in zip(starts, tops, thick, rows, strict=False)
    ]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on a scale: its place, from 0 at the left or the top to 100, and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of columns of equal width, and the vertical and horizontal scales."""

    counts: list[int]
    up: list[Tick]
    along: list[Tick]


def draw_histogram(counts: Counts, label: Label, least: int = 6, centred: bool = False) -> Histogram:
    """The columns of a histogram, from the first bin that is not empty to the last, at least `least` of them.

    Args:
        counts: by bin.
        label: the labels of the scale below.
        least: minimum number of columns.
        centred: whether a bin is a single number, shown below the middle of its column, instead of a range.
    """
    first, last = _widen(np.flatnonzero(counts), len(counts), least)
    along = mark_numbers(first, last, label) if centred else mark_edges(first, last, label)
    return Histogram(counts[first : last + 1].tolist(), mark_counts(int(counts.max())), along)


def mark_counts(highest: int) -> list[Tick]:
    """A scale from 0 to the highest column, at round numbers."""
    step = 10 ** math.floor(math.log10(max(highest, 1)))
    step = max(next(step * part // 10 for part in (2, 5, 10, 20) if highest * 10 <= 5 * step * part), 1)
    return [Tick(round(100 - 100 * number / highest, 3), f"{number:,}") for number in range(0, highest + 1, step)]


def mark_edges(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are ranges, from the lower end of the first to the upper end of the last."""
    bins = last - first + 1
    step = math.ceil(bins / (MOST_TICKS - 1))
    edges = [*range(0, bins, step), bins]
    if bins - edges[-2] < 0.75 * step and len(edges) > 2:
        del edges[-2]
    return [Tick(round(100 * at / bins, 3), label(first + at)) for at in edges]


def mark_numbers(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are single numbers."""
    bins = last - first + 1
    longest = max(len(label(first + at)) for at in range(bins))
    step = math.ceil(bins / max(LONGEST_SCALE // (longest + 1), 1))
    return [Tick(round(100 * (at + 0.5) / bins, 3), label(first + at)) for at in range(0, bins, step)]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Counts by row (from the top) and column, the highest count, and the vertical and horizontal scales."""

    rows: list[list[int]]
    highest: int
    up: list[Tick]
    along: list[Tick]

    def shade(self, count: int) -> float:
        """How dark a cell is, from 0.2 to 1, on a logarithmic scale."""
        return round(0.2 + 0.8 * math.log1p(count) / math.log1p(self.highest), 2)


def draw_heat_map(counts: Counts, label: Label, least: int = 6) -> HeatMap:
    """The part of counts by (column, row) that is not empty; rows count from the bottom."""
    across, upwards = np.nonzero(counts)
    left, right = _widen(across, counts.shape[0], least)
    bottom, top = _widen(upwards, counts.shape[1], least)
    shown = counts[left : right + 1, bottom : top + 1].T[::-1]
    up = [Tick(round(100 - tick.at, 3), tick.text) for tick in mark_edges(bottom, top, label)]
    return HeatMap(shown.tolist(), int(counts.max()), up, mark_edges(left, right, label))


def _widen(filled: NDArray[np.int64], bins: int, least: int) -> tuple[int, int]:
    """The first and last of at least `least` bins, with the filled ones in the middle."""
    first, last = int(filled.min()), int(filled.max())
    missing = max(least - (last - first + 1), 0)
    first = max(first - missing // 2, 0)
    return first, min(max(last, first + min(least, bins) - 1), bins - 1)


MOST_GROUPS = 6
"""The most groups of duplicates, and pairs that look alike, shown."""

MOST_OF_GROUP = 6
"""The most images shown of one group of duplicates."""

MOST_OF_REASON = 5
"""The most rejected files shown for each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the report shows.

    Attributes:
        dataset: the dataset.
        marker: its marker.
        configuration: the content of `config.yaml`.
        data: what the run kept for the report.
        statistics: totals of the sidecars.
        stored: values from the records.
        groups: some groups of duplicates, then some pairs that look alike, each with the images that are shown.
        rejected: the first rejected files by reason.
    """

    dataset: Dataset
    marker: Marker
    configuration: str = ""
    data: ReportData = field(default_factory=ReportData)
    statistics: ImageStatistics = field(default_factory=ImageStatistics)
    stored: StoredValues = field(default_factory=StoredValues)
    groups: Sequence[tuple[DuplicateGroup, Sequence[Duplicate]]] = ()
    rejected: Mapping[str, Sequence[RejectedFile]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The dataset's name; if it has none, the name of its folder."""
        folder = self.dataset.folder
        path = os.path.abspath(folder) if storage.is_local(folder) else folder
        return self.marker.name or posixpath.basename(path) or "Dataset"


def read_contents(dataset: Dataset, marker: Marker) -> Contents:
    """Reads the contents of a dataset's report.

    Raises:
        LoadError: a record is damaged.
        OSError: a file cannot be read.
    """
    groups = [(group, _first_images(group)) for group in _worst_groups(dataset.folder)]
    named = {(image.split, image.key) for _, images in groups for image in images}
    wanted = choose_samples(+marker.class_counts, stores_boxes(dataset))
    return Contents(
        dataset=dataset,
        marker=marker,
        configuration=storage.read_range(storage.join(dataset.folder, CONFIGURATION)).decode(),
        data=_read_data(dataset.folder, marker),
        statistics=gather_statistics(dataset.shards, wanted, named),
        stored=gather_values(dataset),
        groups=groups,
        rejected=_first_rejected(dataset.folder),
    )


def stores_boxes(dataset: Dataset) -> bool:
    """Whether Examples have features for boxes."""
    return any(feature.field in BOX_FIELDS for feature in dataset.features)


def _read_data(folder: str, marker: Marker) -> ReportData:
    if REPORT_DATA in marker.files:
        return from_json(ReportData, orjson.loads(storage.read_range(storage.join(folder, REPORT_DATA))))
    return ReportData(tuple(map(Remark, marker.remarks or ())))


def _lines(folder: str, name: str) -> Iterator[dict[str, Any]]:
    with storage.open_to_read(storage.join(folder, name)) as lines:
        yield from map(orjson.loads, lines)


def _worst_groups(folder: str) -> list[DuplicateGroup]:
    """Some groups of the same bytes, then some pairs that look alike: those with several classes or splits first."""
    worst: list[dict[str, Any]] = []
    for _, group in groupby(_lines(folder, DUPLICATES), itemgetter("kind")):
        worst += nlargest(MOST_GROUPS, group, key=lambda line: (len(line["classes"]) > 1, len(line["splits"]) > 1))
    return [from_json(DuplicateGroup, line) for line in worst]


def _first_images(group: DuplicateGroup) -> list[Duplicate]:
    """The first images of a group, one of each split and class before any others."""
    first = {(image.split, image.class_name): image for image in reversed(group.images)}
    chosen = list(first.values())[::-1]
    return [*chosen, *(image for image in group.images if image not in chosen)][:MOST_OF_GROUP]


def _first_rejected(folder: str) -> dict[str, list[RejectedFile]]:
    """The first rejected files by reason."""
    found: dict[str, list[RejectedFile]] = {}
    for line in _lines(folder, REJECTED):
        if len(kept := found.setdefault(line["reason"], [])) < MOST_OF_REASON:
            kept.append(from_json(RejectedFile, line))
    return found


LONGEST_NAME = 160
"""The most characters shown of a name."""

LONGEST_CONFIGURATION = 20_000

MOST_BARS = 40
"""The most classes with a bar: if there are more, the largest and the smallest."""

SMALLEST_BARS = 10

MOST_BRANCHES = 8
"""The most splits with a branch of their own in the ledger's picture."""

MOST_SIZES_SHOWN = 6

MOST_SINGLE_NUMBERS = 32
"""Numbers of boxes that have a column each; beyond, each column spans twice as many as the one before."""


def write_report(folder: str) -> str:
    """Writes `report.html` into the folder of a dataset.

    Returns:
        The path of the page.

    Raises:
        LoadError: the dataset cannot be read, or a page of the user's has that name; the message is one sentence.
        OSError: a file cannot be read or written.
    """
    dataset = open_dataset(folder)
    if dataset.marker is None or not dataset.whole:
        raise LoadError(f"{folder} is not the folder of a dataset that Recordmill made: only these have a report")
    path = storage.join(dataset.folder, REPORT)
    if storage.exists(path) and not holds_report(dataset.folder) and REPORT not in dataset.marker.files:
        raise LoadError(f"{path} is not a page that Recordmill made: rename it")
    content = render_report(read_contents(dataset, dataset.marker))
    # Two writers write the same bytes, and what an interruption leaves is replaced by the next report.
    storage.write_file(path, content, storage.join(dataset.folder, f".{REPORT}.tmp"))
    return path


def render_report(contents: Contents) -> bytes:
    """Renders the page.

    Raises:
        OSError: a shard cannot be read.
    """
    filters = {"name": show_name, "percent": show_percent, "value": show_value}
    return load_template(__package__, "report.html.jinja", **filters).render(build_view(contents)).encode()


def show_name(name: str | None) -> str:
    """A name cut to fit, with control characters made visible: they cannot disturb the text around it."""
    text = "".join(chr(0x2400 + ord(c)) if c < " " else c if c.isprintable() else "\ufffd" for c in name or "")
    if len(text) > LONGEST_NAME:
        half = LONGEST_NAME // 2
        text = f"{text[:half]}…{text[-half + 1 :]}"
    return text or "(no class)"


def show_percent(count: float, total: float) -> str:
    """A share in percent; only an exact 0 or 100 % is shown as such."""
    share = 100 * count / max(total, 1)
    if 0 < share < 0.1:
        return "<0.1 %"
    return ">99.9 %" if 99.9 < share < 100 else f"{share:.1f} %".replace(".0 ", " ")


def show_value(value: float, digits: int = 6) -> str:
    """A number for people: in full unless it is very large or very small."""
    if isinstance(value, int):
        return f"{value:,}"
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    if not -4 <= magnitude < max(digits, 6):
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def build_view(contents: Contents) -> dict[str, Any]:
    """All values that the template shows."""
    marker, statistics, stored = contents.marker, contents.statistics, contents.stored
    return {
        "MOST_TEXTS": MOST_TEXTS,
        "NOT_DROPPED": NOT_DROPPED,
        "REASONS": REASONS,
        "CHANGES": CHANGES,
        "LONGEST_CONFIGURATION": LONGEST_CONFIGURATION,
        "contents": contents,
        "branches": describe_branches(marker),
        "classes": describe_classes(marker),
        **_show_pictures(contents),
        "sizes": describe_sizes(statistics) if statistics.images else None,
        "boxes": describe_boxes(statistics, stored),
        "columns": [(column, _draw_column(column)) for column in stored.columns],
    }


def _show_pictures(contents: Contents) -> dict[str, Any]:
    """The contact sheet, by class, and the groups of duplicates, with a picture for each image that can be shown."""
    statistics, with_boxes = contents.statistics, stores_boxes(contents.dataset)
    samples = [(name, place) for name, places in statistics.samples.items() for place in places]
    are_many = len(samples) > MOST_WITH_BOXES
    side = SIDE_OF_MANY_WITH_BOXES if are_many else SIDE_WITH_BOXES
    wanted = [Wanted(place, name, side) if with_boxes else Wanted(place) for name, place in samples]
    wanted += map(Wanted, statistics.named.values())
    pictures = make_thumbnails(contents.dataset, wanted)
    left = iter(pictures)
    sheet = {
        name: [{"picture": next(left), "key": row.key} for _, row in places]
        for name, places in statistics.samples.items()
        if places
    }
    by_name = dict(zip(statistics.named, left, strict=True))
    return {
        "sheet": sheet if any(pictures[: len(samples)]) else {},  # nothing to show: raw observations, or any files
        "sheet_is_whole": len(statistics.samples) == len(+contents.marker.class_counts),
        "boxes_are_drawn": with_boxes,
        "boxes_are_many": are_many,
        "groups": [
            (group, [(image, by_name.get((image.split, image.key), "")) for image in images])
            for group, images in contents.groups
        ],
    }


def describe_branches(marker: Marker) -> list[dict[str, Any]]:
    """The ledger as a flow: a branch for each split, and one for each reason why images are in none."""
    splits: list[dict[str, Any]] = [
        {"kind": "written", "name": name, "count": split.records, "place": place}
        for place, (name, split) in enumerate(marker.splits.items())
    ]
    splits.sort(key=itemgetter("count"), reverse=True)
    branches, rest = splits[:MOST_BRANCHES], splits[MOST_BRANCHES:]
    if rest:
        count = sum(split["count"] for split in rest)
        branches.append({"kind": "written", "name": f"{len(rest)} more splits", "count": count, "place": MOST_BRANCHES})
    for fate, counts in marker.ledger.by_fate().items():
        for reason in most_frequent(counts):
            name, note = reason.replace("_", " "), explain_reason(fate, reason)
            branches.append({"kind": fate, "name": name, "count": counts[reason], "note": note})
    for branch, drawn in zip(branches, draw_flow([branch["count"] for branch in branches]), strict=True):
        branch["drawn"] = drawn
    return branches


def describe_classes(marker: Marker) -> dict[str, Any]:
    """The balance of the classes: a bar for each, divided by split; if there are many, for the largest and smallest.

    If Examples have boxes or several labels, these are counted; `of` names the unit. Empty classes are included.
    """
    splits = {name: split.class_counts for name, split in marker.splits.items()}
    rows = sorted(marker.class_counts.items(), key=lambda row: (-row[1], row[0]))
    bars = [{"name": name, "counts": [each.get(name, 0) for each in splits.values()]} for name, _ in rows]
    counts = [count for _, count in rows if count] or [0]
    is_cut = len(rows) > MOST_BARS
    largest, smallest = (MOST_BARS - SMALLEST_BARS, len(rows) - SMALLEST_BARS) if is_cut else (len(rows), len(rows))
    doublings = np.bincount([max(count.bit_length() - 1, 0) for count in counts])
    return {
        "count": len(marker.labels),
        "of": marker.counted_unit,
        "largest": bars[:largest],
        "smallest": bars[smallest:],
        "between": smallest - largest,
        "between_instances": sum(count for _, count in rows[largest:smallest]),
        "empty": sum(not count for _, count in rows),
        "median": median(counts),
        "least": counts[-1],
        "most": counts[0],
        "lacking": {
            split: [name for name, count in rows if name and count and not own.get(name)]
            for split, own in splits.items()
        },
        "histogram": draw_histogram(doublings, lambda number: f"{2**number:,}", 1)
        if is_cut and counts[0] > counts[-1]
        else None,
    }


def describe_sizes(statistics: ImageStatistics) -> dict[str, Any]:
    """Sizes, shapes and bytes of images."""
    images, pixels = statistics.images, statistics.pixels / statistics.images
    landscape = int(statistics.aspects[ASPECT_BINS // 2 + 1 :].sum())
    portrait = int(statistics.aspects[: ASPECT_BINS // 2].sum())
    return {
        "common": sorted(statistics.sizes.items(), key=lambda item: (-item[1], item[0]))[:MOST_SIZES_SHOWN],
        "sides": draw_heat_map(statistics.sides, lambda number: f"{round(2 ** (number / BINS_PER_DOUBLING)):,}"),
        "aspects": draw_histogram(statistics.aspects, _ratio, centred=True),
        "shapes": {"landscape": landscape, "square": images - landscape - portrait, "portrait": portrait},
        "file_bytes": draw_histogram(statistics.file_bytes, lambda number: format_size(2 ** (number / 2))),
        "average": f"{pixels / 1e6:,.1f} megapixels" if pixels >= 1e6 else f"{pixels:,.0f} pixels",
    }


def _ratio(number: int) -> str:
    ratio = 2 ** ((number - ASPECT_BINS // 2) / BINS_PER_DOUBLING)
    return f"{ratio:.3g}:1" if ratio >= 1 else f"1:{1 / ratio:.3g}"


def describe_boxes(statistics: ImageStatistics, stored: StoredValues) -> dict[str, Any]:
    """The number of boxes per image, and their sizes."""
    return {
        "images": statistics.boxes.total(),
        "most": max(statistics.boxes, default=0),
        "numbers": _draw_numbers(statistics.boxes) if statistics.boxes else None,
        "areas": draw_histogram(stored.areas, _area) if stored.areas.any() else None,
        "small": int(stored.areas[: AREA_BINS - 10].sum()),
        "measured": int(stored.areas.sum()),
    }


def _draw_numbers(boxes: Mapping[int, int]) -> Histogram:
    """Images by number of boxes; if there are large numbers, in columns for 0, 1, 2 to 3, 4 to 7 and so on."""
    doubling = max(boxes) >= MOST_SINGLE_NUMBERS
    places = [number.bit_length() if doubling else number for number in boxes]
    counts = np.bincount(places, list(boxes.values())).astype(np.int64)
    return draw_histogram(counts, _doubling if doubling else str, centred=True)


def _doubling(place: int) -> str:
    """The numbers with this many binary digits: 0, 1, 2-3, 4-7."""
    return f"{place}" if place < 2 else f"{1 << (place - 1):,}-{(1 << place) - 1:,}"


def _area(number: int) -> str:
    return f"{show_value(100 * 2.0 ** (number - AREA_BINS), 2)} %"


def _draw_column(column: Column) -> Histogram | None:
    counts, edges = column.histogram()
    if not len(counts):
        return None
    return draw_histogram(counts, lambda at: show_value(edges[at], 3), 1, centred=len(counts) == len(edges))
