"""Tables of a dataset's content, and of one record, for people."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.sniff import sniff
from recordmill.pipeline.terminal.terminal import plain_table
from recordmill.reading.dataset import Dataset
from recordmill.reading.inspect.find_record import FoundRecord
from recordmill.reading.inspect.summarize_dataset import Summary
from recordmill.schemas.formatting import format_size, printable
from recordmill.schemas.rejection import Rejected

_BAR = 24  # cells of the longest bar
_KINDS = {
    "recordmill": "a dataset of Recordmill",
    "tfds": "a dataset described by dataset_info.json",
    "files": "TFRecord files without a description",
}


def summary_view(summary: Summary, most_labels: int) -> Iterator[RenderableType]:
    """The content of a dataset: splits, features, labels."""
    dataset = summary.dataset
    convention = dataset.marker.convention if dataset.marker else ""
    known = f", convention {convention}" if convention else ""
    yield Text.assemble((printable(dataset.folder), "bold"), f"  {_KINDS[dataset.kind]}{printable(known)}")
    if dataset.marker and dataset.marker.fingerprint:
        yield Text.assemble("fingerprint ", (printable(dataset.marker.fingerprint.dataset), "dim"))
    yield _splits(summary)
    yield _features(summary)
    if any(split.labels for split in summary.splits.values()):
        yield _labels(summary, most_labels)


def _splits(summary: Summary) -> Table:
    sized = any(split.largest for split in summary.splits.values())
    numbers, of_records = ("files", "records", "bytes"), ("a record", "damaged") if sized else ()
    table = plain_table("split", *numbers, *of_records, right=(*numbers, "damaged"))
    for name, split in summary.splits.items():
        sizes = f"{format_size(split.smallest or 0)} to {format_size(split.largest or 0)}"
        damages = Text(f"{split.damages:,}", style="bold red" if split.damages else "green")
        row = (printable(name), f"{split.files:,}", f"{split.records:,}", format_size(split.bytes))
        table.add_row(*row, *((sizes, damages) if sized else ()))
    return table


def _features(summary: Summary) -> Table:
    records = sum(split.records for split in summary.splits.values())
    counted = any(feature.records not in (None, records) for feature in summary.features.values())
    explained = any(feature.meaning for feature in summary.features.values())
    titles = ["feature", "kind", "shape", *(["records"] if counted else []), *(["meaning"] if explained else [])]
    table = plain_table(*titles, right=("records",))
    for key, feature in summary.features.items():
        row: list[RenderableType] = [Text(printable(key), style="cyan"), feature.kind, Text(feature.shape)]
        row += [f"{feature.records or 0:,}"] if counted else []
        row += [Text(printable(feature.meaning), style="dim")] if explained else []
        table.add_row(*row)
    return table


def _labels(summary: Summary, most: int) -> RenderableType:
    """Records by label and split, with a bar for the total, in the order of the ids."""
    names, counts = [printable(name) for name in summary.splits], [split.labels for split in summary.splits.values()]
    totals: Counter[str] = Counter()
    for labels in counts:
        totals.update(labels)
    ids = summary.dataset.labels
    order = sorted(totals, key=lambda label: (ids.get(label, 2**63), _number(label), label))
    longest = max(totals.values())
    table = plain_table(*(["id"] if ids else []), "label", *names, "", right=("id", *names))
    for label in order[:most]:
        bar = "\u2501" * max(1, round(totals[label] / longest * _BAR))
        number = [str(ids.get(label, "?"))] if ids else []
        by_split = (f"{labels.get(label, 0):,}" for labels in counts)
        table.add_row(*number, Text(printable(label)), *by_split, Text(bar, style="blue"))
    if len(order) > most:
        rest = f"and {len(order) - most:,} further labels (--labels {len(order)} shows them, --json has them)"
        return Group(table, Text(rest, style="dim"))
    return table


def _number(label: str) -> int:
    return int(label) if label.lstrip("-").isdigit() and len(label) < 20 else 2**63


def record_view(found: FoundRecord, dataset: Dataset) -> RenderableType:
    """One record: its position, its source, and its values."""
    where = f"record {found.place:,} of {found.shard.name}, {len(found.data):,} bytes, frame at byte {found.offset:,}"
    head = Text.assemble((f"{printable(found.shard.split)}:{found.number}", "bold"), f"  {printable(where)}")
    lines: list[RenderableType] = [head]
    if found.row:
        changes = ", ".join(found.row.changes).replace("_", " ") or "untouched"
        lines.append(Text(f"from {printable(found.row.key)}, {found.row.bytes:,} bytes, {changes}"))
    table = plain_table("feature", "kind", "value")
    names = {label_id: name for name, label_id in dataset.labels.items()}
    for key, (kind, values) in found.values().items():
        text = show_values(values)
        if len(values) == 1 and isinstance(values[0], int) and "label" in key and values[0] in names:
            text += f" ({printable(names[values[0]])})"
        table.add_row(Text(printable(key), style="cyan"), kind, Text(text))
    return Group(*lines, table)


def show_values(values: list[Any], most: int = 8) -> str:
    """A feature's values in one line: text as text, images as format and size, other bytes as the first few."""
    shown = [_show(value) for value in values[:most]]
    more = [f"... {len(values):,} values"] if len(values) > most else []
    return ", ".join([*shown, *more]) if values else "no value"


def _show(value: bytes | int | float) -> str:
    if not isinstance(value, bytes):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    image_format = sniff(value) if len(value) > 32 else None
    if image_format == "JPEG":
        try:
            header = read_jpeg_header(value)
            return f"JPEG, {header.width} x {header.height} pixels, {len(value):,} bytes"
        except Rejected as bad:
            return f"JPEG, {len(value):,} bytes, {bad}"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        what = image_format or value[:8].hex(" ") + " ..."
        return f"{what}, {len(value):,} bytes"
    return printable(text) if len(text) <= 100 else f"{printable(text[:100])}... {len(text):,} characters"
