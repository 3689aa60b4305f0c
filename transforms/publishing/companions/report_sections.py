"""What the sections of the report say: plain values, computed from the marker and the statistics.

Names and labels are passed on as they are: the template escapes every one.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordmill.imaging.prepared_image import CHANGES
from recordmill.schemas.dataset.annotation_counts import NOT_DROPPED, ImagesWithoutBoxes, most_frequent, show_names
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.formatting import format_size
from recordmill.schemas.rejection import REASONS, Fate, explain_reason
from recordmill.transforms.publishing.companions.charts import (
    Histogram,
    draw_flow,
    draw_heat_map,
    draw_histogram,
    draw_stack,
)
from recordmill.transforms.publishing.companions.stored_values import (
    AREA_BINS,
    MOST_TEXTS,
    Column,
    StoredValues,
    most_frequent_texts,
)
from recordmill.transforms.publishing.statistics import ASPECT_BINS, BINS_PER_DOUBLING, Statistics

MOST_BARS = 40
"""Classes that have a bar; of more, the largest and the smallest."""

SMALLEST_BARS = 10

MOST_BRANCHES = 8
"""Splits that have a branch of their own in the ledger's picture."""

MOST_SIZES_TOLD = 6

MOST_SINGLE_NUMBERS = 32
"""Numbers of boxes that have a column each; of more, each column reaches twice as far as the one before."""

MOST_TEXTS_SHOWN = 6
"""Texts of a column that are shown."""


_UNWRITTEN: tuple[Fate, ...] = ("rejected", "left_out", "ignored")


def describe_ledger(marker: Marker) -> dict[str, Any]:
    """The ledger as a flow: a branch for each split, and one for each reason why something is in none."""
    ledger = marker.ledger
    splits = sorted(marker.splits.items(), key=lambda item: -item[1].records)
    branches: list[dict[str, Any]] = [
        {"kind": "written", "name": name, "count": split.records, "place": list(marker.splits).index(name)}
        for name, split in splits[:MOST_BRANCHES]
    ]
    if rest := splits[MOST_BRANCHES:]:
        count = sum(split.records for _, split in rest)
        branches.append({"kind": "written", "name": f"{len(rest)} more splits", "count": count, "place": MOST_BRANCHES})
    for fate in _UNWRITTEN:
        for reason, count in sorted(getattr(ledger, fate).items(), key=lambda item: (-item[1], item[0])):
            note = explain_reason(fate, reason)
            branches.append({"kind": fate, "name": reason.replace("_", " "), "count": count, "note": note})
    flow = draw_flow([branch["count"] for branch in branches])
    totals = {"written": ledger.written} | {fate: sum(getattr(ledger, fate).values()) for fate in _UNWRITTEN}
    return {"listed": ledger.listed, "totals": totals, "flow": flow, "branches": branches}


def describe_classes(marker: Marker) -> dict[str, Any]:
    """The balance of the classes: a bar for each, divided by split; of many classes the largest and smallest.

    Of Examples with boxes or several labels these are counted; `of` says what is. A class without any is a row too.
    """
    splits = {name: split.class_counts for name, split in marker.splits.items()}
    rows: list[dict[str, Any]] = [
        {"name": name, "count": count, "counts": [classes.get(name, 0) for classes in splits.values()]}
        for name, count in marker.class_counts.items()
    ]
    rows.sort(key=lambda row: (-row["count"], row["name"]))
    counts = np.array([row["count"] for row in rows if row["count"]] or [0], np.int64)
    between = 0 if len(rows) <= MOST_BARS else len(rows) - MOST_BARS
    largest = rows[: MOST_BARS - SMALLEST_BARS] if between else rows
    smallest = rows[-SMALLEST_BARS:] if between else []
    for row in (*largest, *smallest):
        row["stack"] = draw_stack(row["counts"], rows[0]["count"])
    hidden = rows[len(largest) : len(largest) + between]
    lacking = [
        {"split": split, "count": len(absent), "names": absent[:5]}
        for split, classes in splits.items()
        if (absent := [row["name"] for row in rows if row["name"] and row["count"] and not classes.get(row["name"])])
    ]
    sizes = np.bincount(np.log2(np.maximum(counts, 1)).astype(np.int64))
    return {
        "count": len(marker.labels),
        "of": marker.counted_unit,
        "in_split": {name: sum(1 for each, count in own.items() if each and count) for name, own in splits.items()},
        "splits": list(splits),
        "largest": largest,
        "smallest": smallest,
        "between": between,
        "between_instances": sum(row["count"] for row in hidden),
        "empty": sum(not row["count"] for row in rows),
        "median": float(np.median(counts)),
        "least": int(counts[-1]),
        "most": int(counts[0]),
        "lacking": lacking,
        "histogram": draw_histogram(sizes, lambda number: f"{2**number:,}", 1)
        if between and counts[0] > counts[-1]
        else None,
    }


def describe_sizes(statistics: Statistics) -> dict[str, Any] | None:
    """Sizes, shapes and bytes of the images; None where the dataset has none."""
    images = statistics.images
    if not images:
        return None
    common = sorted(statistics.sizes.items(), key=lambda item: (-item[1], item[0]))[:MOST_SIZES_TOLD]
    landscape = int(statistics.aspects[ASPECT_BINS // 2 + 1 :].sum())
    portrait = int(statistics.aspects[: ASPECT_BINS // 2].sum())
    shapes = {"landscape": landscape, "square": images - landscape - portrait, "portrait": portrait}
    return {
        "common": [{"width": width, "height": height, "count": count} for (width, height), count in common],
        "others": images - sum(count for _, count in common),
        "different": len(statistics.sizes),
        "images": images,
        "sides": draw_heat_map(statistics.sides, lambda number: f"{round(2 ** (number / BINS_PER_DOUBLING)):,}"),
        "aspects": draw_histogram(statistics.aspects, _ratio, centred=True),
        "shapes": shapes,
        "file_bytes": draw_histogram(statistics.file_bytes, lambda number: format_size(2 ** (number / 2))),
        "average": _pixels(statistics.pixels / images),
        "smallest": statistics.smallest,
        "largest": statistics.largest,
        "channels": sorted(statistics.channels.items()),
    }


def _pixels(count: float) -> str:
    return f"{count / 1e6:,.1f} megapixels" if count >= 1e6 else f"{count:,.0f} pixels"


def _ratio(number: int) -> str:
    ratio = 2 ** ((number - ASPECT_BINS // 2) / BINS_PER_DOUBLING)
    return f"{ratio:.3g}:1" if ratio >= 1 else f"1:{1 / ratio:.3g}"


def describe_boxes(marker: Marker, statistics: Statistics, stored: StoredValues) -> dict[str, Any] | None:
    """What happened to the boxes, their number per image, and their sizes; None if the dataset has no boxes."""
    ledger = marker.boxes or {}
    if not ledger:
        return None
    classes = marker.dropped_boxes or {}
    dropped = sorted(ledger.keys() - NOT_DROPPED, key=lambda name: (-ledger[name], name))
    return {
        "listed": ledger["listed"],
        "written": ledger.get("written", 0),
        "clipped": ledger.get("clipped", 0),
        "dropped": [
            {"name": name, "count": ledger[name], "classes": show_names(most_frequent(classes.get(name, {})))}
            for name in dropped
        ],
        "without": marker.images_without_boxes or ImagesWithoutBoxes(),
        "average": ledger.get("written", 0) / max(statistics.boxes.total(), 1),
        "most": max(statistics.boxes, default=0),
        "numbers": _draw_numbers(statistics.boxes) if statistics.boxes else None,
        "areas": draw_histogram(stored.areas, _area) if stored.areas.any() else None,
        "small": int(stored.areas[: AREA_BINS - 10].sum()),
        "measured": int(stored.areas.sum()),
        "sample": None if stored.whole else {"records": stored.records, "shards": stored.shards},
    }


def _draw_numbers(boxes: Mapping[int, int]) -> Histogram:
    """Images by number of boxes; where these reach far, in columns for 0, 1, 2 to 3, 4 to 7 and so on."""
    doubling = max(boxes) >= MOST_SINGLE_NUMBERS
    columns: Counter[int] = Counter()
    for number, images in boxes.items():
        columns[number.bit_length() if doubling else number] += images
    counts = np.array([columns[place] for place in range(max(columns) + 1)], np.int64)
    return draw_histogram(counts, _doubling if doubling else str, centred=True)


def _doubling(place: int) -> str:
    """The numbers of as many binary digits: 0, 1, 2-3, 4-7."""
    return f"{place}" if place < 2 else f"{1 << (place - 1):,}-{(1 << place) - 1:,}"


def _area(number: int) -> str:
    return f"{show_value(100 * 2.0 ** (number - AREA_BINS), 2)} %"


def describe_columns(stored: StoredValues) -> dict[str, Any] | None:
    """What each column holds; None where there are none."""
    if not stored.columns:
        return None
    return {
        "columns": [_describe_column(column) for column in stored.columns],
        "further": stored.further,
        "records": stored.records,
        "sample": None if stored.whole else {"records": stored.records, "shards": stored.shards},
    }


def _describe_column(column: Column) -> dict[str, Any]:
    counts, edges = column.histogram()
    facts = []
    if column.values:
        finite = [value for value in column.values if math.isfinite(value)]
        facts = [("smallest", show_value(min(finite))), ("largest", show_value(max(finite)))] if finite else []
        if others := len(column.values) - len(finite):
            facts.append(("not finite", f"{others:,}"))
    if column.texts:
        more = "at least " if len(column.texts) == MOST_TEXTS else ""
        facts = [("different", f"{more}{len(column.texts):,}")]
    if column.feature.many and column.lengths[1]:
        fewest, most = column.lengths
        facts.append(("values a list", f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"))
    single = len(counts) == len(edges)
    frequent = [
        {"name": text, "count": count, "stack": draw_stack([count], max(column.texts.values()))}
        for text, count in most_frequent_texts(column, MOST_TEXTS_SHOWN)
    ]
    return {
        "name": column.feature.key,
        "kind": f"{column.feature.kind}{' list' if column.feature.many else ''}",
        "missing": column.missing,
        "facts": facts,
        "frequent": frequent if len(column.texts) < sum(column.texts.values()) else [],
        "histogram": draw_histogram(counts, lambda bin_: show_value(edges[bin_], 3), 1, centred=single)
        if len(counts)
        else None,
    }


def show_value(value: float, digits: int = 6) -> str:
    """A number for people: in full where it is not very large or very small."""
    if isinstance(value, int):
        return f"{value:,}"
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    if not -4 <= magnitude < max(digits, 6):
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def describe_changes(marker: Marker) -> list[dict[str, Any]]:
    """What was changed on the way, the most frequent first."""
    changes = sorted(marker.changes.items(), key=lambda item: (-item[1], item[0]))
    return [{"name": name, "count": count, "meaning": CHANGES.get(name, "")} for name, count in changes]


def describe_rejected(marker: Marker, statistics: Statistics) -> list[dict[str, Any]]:
    """The reasons for which images were rejected, each with its meaning and some examples."""
    told = []
    for reason, count in sorted(marker.ledger.rejected.items(), key=lambda item: (-item[1], item[0])):
        examples = statistics.rejected.get(reason, [])
        meaning = REASONS[examples[0].stage].get(reason, "") if examples else ""
        told.append({"reason": reason, "count": count, "meaning": meaning, "examples": examples})
    return told


def describe_run(run: Mapping[str, Any], images: int, input_bytes: int) -> dict[str, Any]:
    """Where and how fast the dataset was made; times only where one process saw all of it."""
    seconds: Mapping[str, float] = run.get("seconds", {})
    total = sum(seconds.values())
    stages: Sequence[dict[str, Any]] = [
        {"name": name, "seconds": spent, "stack": draw_stack([round(1e6 * spent)], round(1e6 * max(seconds.values())))}
        for name, spent in seconds.items()
    ]
    busy = seconds.get("converting", 0.0)
    facts = {key: str(run[key]) for key in ("recordmill", "beam", "runner", "started") if key in run}
    inputs = [f"{name} = {path}" if name else path for name, path in run.get("inputs", {}).items()]
    return {
        "facts": facts,
        "inputs": inputs,
        "stages": stages,
        "total": total,
        "speed": images / busy if busy else 0.0,
        "byte_speed": input_bytes / busy if busy else 0.0,
    }
