"""`report.html`: a self-contained page that shows what a dataset contains and how it was made.

It is made from the published dataset, and can be made again at any time. It needs no script, font
or other file: it opens offline, and its own policy forbids it to run or load anything. Every name
is escaped. Long lists show some entries, and count the rest. Charts are plain numbers that the
template draws as SVG: 100 units wide on every screen, stretched to fit, with labels in HTML around
them, which keep their size.
"""

import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Self

import orjson

from recordmill import storage
from recordmill.annotations.kinds import list_stored, name_owners
from recordmill.annotations.shapes import color_of_class
from recordmill.reading.dataset import Dataset, describe_by_marker, open_dataset
from recordmill.reading.report import charts, image_statistics, thumbnails
from recordmill.reading.report.thumbnails import DrawnPicture
from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    DUPLICATES,
    REJECTED,
    REPORT,
    REPORT_DATA,
)
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import DuplicateGroup, RejectedFile, Remark, ReportData
from recordmill.schemas.errors import LoadError
from recordmill.schemas.formatting import load_template, most_frequent, plural_of
from recordmill.schemas.rejection import REASONS, explain_reason
from recordmill.schemas.settings.images import CHANGES
from recordmill.storage.dataset_files import MOST_OBJECT_BYTES, holds_report, seal_report

MOST_OF_GROUP = 6
"""The most groups of duplicates shown, pairs that look alike, and images of one group."""

MOST_OF_REASON = 5
"""The most rejected files shown for each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContents:
    """What the report shows.

    Attributes:
        dataset: the dataset.
        marker: its marker.
        configuration: the content of `config.yaml`.
        data: what the run kept for the report.
        statistics: totals of the sidecars.
        stored: values from the records.
        groups: some groups of duplicates, then some pairs that look alike.
        rejected: the first rejected files by reason.
    """

    dataset: Dataset
    marker: Marker
    configuration: str = ""
    data: ReportData = field(default_factory=ReportData)
    statistics: image_statistics.ImageStatistics = field(
        default_factory=image_statistics.ImageStatistics
    )
    stored: image_statistics.StoredValues = field(default_factory=image_statistics.StoredValues)
    groups: Sequence[DuplicateGroup] = ()
    rejected: Mapping[str, Sequence[RejectedFile]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The dataset's name; if it has none, the name of its folder."""
        folder = self.dataset.folder
        if storage.is_local(folder):
            path = os.path.abspath(folder)
        else:
            path = folder
        return self.marker.name or posixpath.basename(path) or "Dataset"

    @property
    def drawn(self) -> list[str]:
        """What is drawn on images; see `name_drawn`."""
        return name_drawn(self.dataset)


def name_drawn(dataset: Dataset) -> list[str]:
    """Names what is drawn on images, in the plural: the annotations that records may have."""
    stored = list_stored({feature.field for feature in dataset.features})
    return [
        plural_of(kind.unit)
        for kind in stored
        if kind.follows_pixels and kind.name in dataset.marker.annotations
    ]


def read_contents(dataset: Dataset, marker: Marker) -> ReportContents:
    """Reads the contents of a dataset's report.

    Raises:
        LoadError: a record is damaged.
        OSError: a file cannot be read.
    """
    found = ReportContents(
        dataset=dataset,
        marker=marker,
        configuration=storage.read_whole(
            storage.join(dataset.folder, CONFIGURATION), MOST_OBJECT_BYTES
        ).decode(),
        data=_read_data(dataset.folder, marker),
        stored=image_statistics.gather_values(dataset),
        groups=_worst_groups(dataset),
        rejected=_first_rejected(dataset),
    )
    images = chain.from_iterable(group.images[:MOST_OF_GROUP] for group in found.groups)
    named = {(image.split, image.key) for image in images}
    wanted = thumbnails.choose_samples(+marker.class_counts, bool(found.drawn))
    return replace(
        found, statistics=image_statistics.gather_statistics(dataset.shards, wanted, named)
    )


def _read_data(folder: str, marker: Marker) -> ReportData:
    if REPORT_DATA in marker.files:
        content = storage.read_whole(storage.join(folder, REPORT_DATA), MOST_OBJECT_BYTES)
        return from_json(ReportData, orjson.loads(content))
    return ReportData(tuple(map(Remark, marker.remarks)))


def _worst_groups(dataset: Dataset) -> list[DuplicateGroup]:
    """Returns some groups of the same bytes, then some pairs that look alike.

    Those with several classes or splits come first.
    """
    worst: list[dict[str, Any]] = []
    for _, group in groupby(dataset.lines(DUPLICATES), itemgetter("kind")):
        worst += nlargest(
            MOST_OF_GROUP,
            group,
            key=lambda line: (len({*line["classes"]} - {""}) > 1, len(line["splits"]) > 1),
        )
    return [from_json(DuplicateGroup, line) for line in worst]


def _first_rejected(dataset: Dataset) -> dict[str, list[RejectedFile]]:
    """Returns the first rejected files by reason."""
    found: dict[str, list[RejectedFile]] = {}
    for line in dataset.lines(REJECTED):
        if len(kept := found.setdefault(line["reason"], [])) < MOST_OF_REASON:
            kept.append(from_json(RejectedFile, line))
    return found


LONGEST_NAME = 160
"""The most characters shown of a name."""

LONGEST_CONFIGURATION = 20_000

MOST_BARS = 40
"""The most classes with a bar: if there are more, the largest and the smallest."""

SMALLEST_BARS = 10

MOST_BETWEEN = 1_000
"""The most classes with a bar between the largest and the smallest, which a click shows."""

MOST_SIZES_SHOWN = 6


def write_report(folder: str, marker: Marker | None = None) -> str:
    """Writes `report.html` into the folder of a dataset.

    Args:
        folder: the folder.
        marker: its marker, if it has been read already.

    Returns:
        The path of the page.

    Raises:
        LoadError: the dataset cannot be read, or a page of the user's has that name; the message is
            one sentence.
        OSError: a file cannot be read or written.
    """
    dataset = open_dataset(folder) if marker is None else describe_by_marker(folder, marker)
    marker = dataset.require_marker()
    path = storage.join(dataset.folder, REPORT)
    if storage.exists(path) and not holds_report(dataset.folder) and REPORT not in marker.files:
        raise LoadError(f"{path} is not a page that Recordmill made: rename it")
    content = render_report(read_contents(dataset, marker))
    # Two writers write the same bytes, and what an interruption leaves is replaced by the next
    # report.
    storage.write_file(path, content, storage.join(dataset.folder, f".{REPORT}.tmp"))
    return path


def render_report(contents: ReportContents) -> bytes:
    """Renders the page.

    Raises:
        OSError: a shard cannot be read.
    """
    filters = {
        "name": show_name,
        "percent": show_percent,
        "value": show_value,
        "color": color_of_class,
        "share": charts.show_share,
        "on_scale": charts.place_on_areas,
        "sentence": begin_sentence,
    }
    template = load_template(__package__, "report.html.jinja", **filters)
    return seal_report(f"{template.render(build_view(contents)).rstrip()}\n".encode())


def _show_character(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if character.isprintable():
        return character
    return "\ufffd"


def show_name(name: str | None) -> str:
    """Returns a name cut to fit, with control characters made visible.

    They therefore cannot disturb the text around the name.
    """
    text = "".join(map(_show_character, name or ""))
    if len(text) > LONGEST_NAME:
        half = LONGEST_NAME // 2
        text = f"{text[:half]}…{text[-half + 1 :]}"
    return text or "(no class)"


def begin_sentence(text: str) -> str:
    """Returns a text with a capital letter, unless it begins with the name of a file or setting."""
    if not text.partition(" ")[0].isalpha():
        return text
    return text[:1].upper() + text[1:]


def show_percent(count: float, total: float) -> str:
    """Returns a share in percent, with three digits."""
    return f"{100 * count / max(total, 1):.3g}%"


def show_value(value: float) -> str:
    """Returns a number for people: integers in full, others with six digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}"


def build_view(contents: ReportContents) -> dict[str, Any]:
    """Returns all values that the template shows."""
    marker = contents.marker
    view = _gather_view(contents)
    return view | {"sections": list_sections(marker, view)}


def list_sections(marker: Marker, view: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the anchors and titles of the sections of a page, for its list of contents."""
    annotations = [(kind, each) for kind, each in marker.annotations.items() if each.listed]
    sections = (
        ("ledger", "Inputs and outputs", True),
        ("splits", "Splits", True),
        ("classes", "Classes", marker.labels),
        ("sheet", "Contact sheet", view["sheet"]),
        *((kind, each.name_all(kind).capitalize(), True) for kind, each in annotations),
        ("columns", "Columns", view["columns"]),
        ("sizes", "Sizes", view["sizes"]),
        ("changes", "Changes", marker.changes),
        ("rejected", "Rejected", marker.ledger.rejected),
        ("duplicates", "Duplicates", True),
        ("run", "The run", True),
        ("configuration", "Configuration", True),
    )
    return [(anchor, title) for anchor, title, is_shown in sections if is_shown]


def _gather_view(contents: ReportContents) -> dict[str, Any]:
    marker, statistics, stored = contents.marker, contents.statistics, contents.stored
    return {
        "REASONS": REASONS,
        "CHANGES": CHANGES,
        "LONGEST_CONFIGURATION": LONGEST_CONFIGURATION,
        "HEAT_CELLS": image_statistics.HEAT_CELLS,
        "explain_reason": explain_reason,
        "contents": contents,
        "classes": describe_classes(marker),
        **_show_pictures(contents),
        "sizes": describe_sizes(statistics) if statistics.images else None,
        "of_images": {
            kind: charts.draw_numbers([*numbers], [*numbers.values()])
            for kind, numbers in statistics.annotated.items()
        },
        "objects": {
            kind: ObjectCharts.of(places)
            for kind, places in stored.objects.items()
            if places.shares
        },
        "columns": [(column, charts.draw_numbers(column.numbers)) for column in stored.columns],
        "rejected_pictures": {
            each.key: DrawnPicture(f"data:image/jpeg;base64,{each.picture}")
            for each in contents.data.rejected
        },
    }


@dataclass(frozen=True, slots=True)
class ObjectCharts:
    """The charts of the objects of one kind.

    Attributes:
        areas: objects by the share of the image that they cover.
        heat: where they are.
        by_class: their sizes by class.
    """

    areas: charts.Histogram
    heat: list[charts.HeatCell]
    by_class: list[charts.ClassSizes]

    @classmethod
    def of(cls, places: image_statistics.ObjectPlaces) -> Self:
        """Draws the charts."""
        return cls(
            charts.draw_areas(places.areas),
            charts.draw_heat_map(places),
            charts.compare_sizes(places),
        )


def _show_pictures(contents: ReportContents) -> dict[str, Any]:
    """Returns the contact sheet, by class, and the groups of duplicates.

    Each image that can be shown has a picture.
    """
    dataset, statistics = contents.dataset, contents.statistics
    if contents.drawn:
        side = thumbnails.SIDE_DRAWN_ON
    else:
        side = thumbnails.SIDE
    samples = [*chain.from_iterable(statistics.samples.values())]
    pictures = thumbnails.make_thumbnails(dataset, samples, side)
    shown = (
        {"picture": picture and DrawnPicture.of(picture), "key": row.key}
        for picture, (_, row) in zip(pictures, samples, strict=True)
    )
    sheet = {
        name: [*islice(shown, len(places))] for name, places in statistics.samples.items() if places
    }
    of_groups = thumbnails.make_thumbnails(dataset, [*statistics.named.values()], side)
    named = {
        place: picture and DrawnPicture.of(picture)
        for place, picture in zip(statistics.named, of_groups, strict=True)
    }
    groups = []
    for group in contents.groups:
        images = group.images[:MOST_OF_GROUP]
        groups.append((group, [(image, named.get((image.split, image.key))) for image in images]))
    return {
        "sheet": sheet if any(pictures) else {},  # nothing to show: raw observations, or any files
        "sheet_is_whole": len(statistics.samples) == len(+contents.marker.class_counts),
        "groups": groups,
    }


def describe_classes(marker: Marker) -> dict[str, Any]:
    """Returns the balance of the classes: a bar for each, divided by split.

    If there are many classes, a click shows those between the largest and smallest. If Examples
    have several annotations, these are counted. Empty classes are included. `owners` is not empty
    if nothing is counted, see `name_owners`.
    """
    total = marker.class_counts
    names = most_frequent(total)
    are_many = len(names) > MOST_BARS
    if are_many:
        largest, smallest = names[: MOST_BARS - SMALLEST_BARS], names[-SMALLEST_BARS:]
    else:
        largest, smallest = names, []
    between = names[len(largest) : len(names) - len(smallest)]

    counts = [split.class_counts for split in marker.splits.values()]

    def bar(name: str) -> tuple[str, list[int]]:
        return name, [by_class.get(name, 0) for by_class in counts]

    return {
        "owners": name_owners(marker),
        "most_named": MOST_BETWEEN,
        "most": max(total.values(), default=0),
        "largest": [*map(bar, largest)],
        "smallest": [*map(bar, smallest)],
        "between": [*map(bar, between[:MOST_BETWEEN])],
        "further": max(len(between) - MOST_BETWEEN, 0),
    }


def describe_sizes(statistics: image_statistics.ImageStatistics) -> dict[str, Any]:
    """Returns sizes, shapes and bytes of images."""
    return {
        "common": sorted(statistics.sizes.items(), key=lambda item: (-item[1], item[0]))[
            :MOST_SIZES_SHOWN
        ],
        "widths": charts.draw_sides(statistics.widths),
        "heights": charts.draw_sides(statistics.heights),
        "aspects": charts.draw_aspects(statistics.aspects),
        "file_bytes": charts.draw_bytes(statistics.file_bytes),
    }
