"""What the report shows, read from the files of a published dataset."""

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.report.image_statistics import ImageStatistics, gather_statistics
from recordmill.reading.report.stored_values import StoredValues, gather_values
from recordmill.reading.report.thumbnails import choose_samples
from recordmill.schemas.dataset.file_names import CONFIGURATION, DUPLICATES, REJECTED, REPORT_DATA
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import Duplicate, DuplicateGroup, RejectedFile, Remark, ReportData
from recordmill.schemas.record_fields import BOX_FIELDS

MOST_GROUPS = 6
"""Groups of duplicates, and pairs that look alike, that are shown."""

MOST_OF_GROUP = 6
"""Images of one group of duplicates that are shown."""

MOST_OF_REASON = 5
"""Rejected files that are shown for each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the report shows.

    Attributes:
        dataset: the dataset.
        marker: its marker.
        configuration: the content of `config.yaml`.
        data: what was kept for the report.
        statistics: what the sidecars add up to.
        stored: what the records say.
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
    """Reads what the report of a dataset shows.

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
    """Whether Examples have a place for boxes."""
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
