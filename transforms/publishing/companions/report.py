"""`report.html`: one page for people, complete in itself, that shows what a dataset holds and how it came about.

No script, no font, no other file: it opens offline and forbids itself to run or load anything. Every name is
escaped, and whatever there may be very many of is shown by some and the number of the rest.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from recordmill.schemas.dataset.file_names import EXAMPLES, REPORT
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.formatting import format_count, format_size
from recordmill.transforms.publishing.companions import report_sections as sections
from recordmill.transforms.publishing.companions.remarks import found_unit
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.stored_values import gather_values
from recordmill.transforms.publishing.companions.thumbnails import (
    MOST_CLASSES,
    MOST_CLASSES_WITH_BOXES,
    MOST_WITH_BOXES,
    SIDE_OF_MANY_WITH_BOXES,
    SIDE_WITH_BOXES,
    Wanted,
    make_thumbnails,
)
from recordmill.transforms.publishing.duplicates import Group
from recordmill.transforms.records.change_examples import read_examples

if TYPE_CHECKING:
    from jinja2 import Template

LONGEST_NAME = 160
"""Characters of a name that are shown."""

LONGEST_CONFIGURATION = 20_000

MOST_OF_GROUP = 6
"""Images of one group of duplicates that are named."""

_TEMPLATE = "report.html.jinja"


def describe_report(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`report.html`, where the settings ask for it."""
    if dataset.settings.report:
        yield REPORT, (piece.encode() for piece in _template().generate(build_view(dataset)))


@cache
def _template() -> "Template":
    # Imported here: it takes 0.07 s, which a worker that only converts need not spend.
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"bytes": format_size, "number": "{:,}".format, "name": show_name, "percent": show_percent}
    environment.filters |= {"plain": lambda text: text.replace("`", "")}
    environment.filters |= {"count": format_count}
    environment.filters |= {"plural": lambda number, thing: format_count(number, thing).split()[1]}
    folder = resources.files("recordmill.transforms.publishing.companions")
    template = environment.from_string((folder / _TEMPLATE).read_text(encoding="utf-8"))
    template.globals["css"] = (folder / "report.css").read_text(encoding="utf-8")
    return template


def show_name(name: str | None) -> str:
    """A name that fits and that cannot disturb what stands around it: control characters become visible signs."""
    text = "".join(chr(0x2400 + ord(c)) if c < " " else c if c.isprintable() else "\ufffd" for c in name or "")
    if len(text) > LONGEST_NAME:
        half = LONGEST_NAME // 2
        text = f"{text[:half]}…{text[-half + 1 :]}"
    return text or "(no class)"


def show_percent(count: float, total: float) -> str:
    """A share; only nothing is shown as 0 %, and only all as 100 %."""
    share = 100 * count / max(total, 1)
    if 0 < share < 0.1:
        return "<0.1 %"
    return ">99.9 %" if 99.9 < share < 100 else f"{share:.1f} %".replace(".0 ", " ")


def build_view(dataset: StagedDataset) -> dict[str, Any]:
    """All that the template shows."""
    marker, found, stored = dataset.marker, dataset.duplicates, gather_values(dataset)
    classes = sections.describe_classes(marker)
    with_boxes = dataset.layout.stores_boxes
    samples = [(name, place) for name, places in dataset.statistics.samples.items() for place in places]
    groups = [(group, _shown(group)) for group in (*found.same_bytes, *found.look_alike)]
    large = SIDE_WITH_BOXES if len(samples) <= MOST_WITH_BOXES else SIDE_OF_MANY_WITH_BOXES
    wanted = [Wanted(place, name, large) if with_boxes else Wanted(place) for name, place in samples]
    wanted += [Wanted((image.sidecar, image.row)) for _, images in groups for image in images]
    pictures = iter(make_thumbnails(wanted, dataset.settings, marker.labels))
    sheet: dict[str, list[dict[str, Any]]] = {name: [] for name in dataset.statistics.samples}
    for name, (sidecar, row) in samples:
        sheet[name].append({"picture": next(pictures), "key": row.key, "split": sidecar.split})
    sheet = {name: shown for name, shown in sheet.items() if shown}
    if not any(each["picture"] for shown in sheet.values() for each in shown):
        sheet = {}  # raw observations, or any files: nothing to look at
    images = sum(split.records for split in marker.splits.values())
    return {
        "marker": marker,
        "title": dataset.title,
        "summary": _summary(images, marker.unit, len(marker.labels)),
        "unit": marker.unit,
        "found": found_unit(marker),
        "images": images,
        "remarks": dataset.remarks,
        "ledger": sections.describe_ledger(marker),
        "classes": classes,
        "class_counts": marker.class_counts,
        "sheet": sheet,
        "boxes_are_drawn": with_boxes,
        "boxes_are_many": len(samples) > MOST_WITH_BOXES,
        "sheet_is_whole": len(sheet) < (MOST_CLASSES_WITH_BOXES if with_boxes else MOST_CLASSES)
        or len(sheet) == classes["count"],
        "sheet_is_single": max(map(len, sheet.values()), default=0) == 1,
        "sizes": sections.describe_sizes(dataset.statistics),
        "boxes": sections.describe_boxes(marker, dataset.statistics, stored),
        "columns": sections.describe_columns(stored),
        "examples": read_examples(dataset.path_of(report, EXAMPLES) for report in _first_shards(dataset)),
        "changes": sections.describe_changes(marker),
        "rejected": sections.describe_rejected(marker, dataset.statistics),
        "groups": [
            {"group": group, "images": [{"picture": next(pictures), "found": image} for image in shown]}
            for group, shown in groups
        ],
        "run": sections.describe_run(dataset.run, images, marker.input_bytes),
        "configuration": dataset.config_text[:LONGEST_CONFIGURATION],
        "configuration_is_cut": len(dataset.config_text) > LONGEST_CONFIGURATION,
    }


def _first_shards(dataset: StagedDataset) -> list[ShardReport]:
    """The first shard of each split, in an order that no runner decides."""
    return sorted((report for report in dataset.reports if not report.index), key=attrgetter("split"))


def _summary(count: int, unit: str, classes: int) -> str:
    return format_count(count, unit) + (f" in {format_count(classes, 'class')}" if classes else "")


def _shown(group: Group) -> list[Any]:
    """Of a group the first images, one of each split and class before any others."""
    first = {(image.sidecar.split, image.row.class_name): image for image in reversed(group.images)}
    chosen = list(first.values())[::-1]
    return [*chosen, *(image for image in group.images if image not in chosen)][:MOST_OF_GROUP]
