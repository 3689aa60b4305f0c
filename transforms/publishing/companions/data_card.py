"""`README.md`: the data card, for people: what the dataset is, how it was made and how to read it."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recordmill.imaging.prepared_image import CHANGES
from recordmill.schemas.dataset.annotation_counts import NOT_DROPPED, ImagesWithoutBoxes, most_frequent
from recordmill.schemas.dataset.marker import Marker, ShardEntry
from recordmill.schemas.features import describe_features
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.rejection import explain_reason
from recordmill.transforms.publishing.companions.reading_snippet import reading_snippet
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.tfds_files import why_not_tfds

MOST_CLASSES = 100
"""Classes that the card lists; `labels.txt` has all."""


def describe_card(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`README.md`, of any dataset."""
    marker = dataset.marker
    sections = {
        "": [_introduction(dataset)],
        **({"Worth a look": _bullets(remark.text for remark in dataset.remarks)} if dataset.remarks else {}),
        "Splits": [_splits(marker)],
        "Labels": _labels(marker),
        "Features": [
            f"Each {marker.unit} is one `tf.train.Example`: {dataset.layout.convention.title}.",
            _features(dataset),
        ],
        "Reading": [f"```python\n{reading_snippet(marker).rstrip()}\n```", _other_readers(dataset)],
        "How it was made": _making(marker),
        "Outcome of everything listed": [_ledger(marker), *_boxes(marker), *_bullets(marker.notes)],
        "Files": [_files(dataset)],
    }
    paragraphs = [f"# {_text(marker.name or 'Dataset')}"]
    for title, texts in sections.items():
        paragraphs += [*([f"## {title}"] if title else []), *texts]
    yield "README.md", ["\n\n".join(paragraphs).encode(), b"\n"]


def _introduction(dataset: StagedDataset) -> str:
    marker = dataset.marker
    classes = f" in {format_count(len(marker.labels), 'class')}" if marker.labels else ""
    shards = format_count(len(list(marker.shards)), "TFRecord file")
    written = format_count(marker.ledger.written, marker.unit)
    return f"{written}{classes}, in {shards} of {marker.output_bytes:,} bytes, made by Recordmill."


def _splits(marker: Marker) -> str:
    rows = [
        (f"`{name}`", split.records, len(split.shards), split.bytes, _first_name(split.shards))
        for name, split in marker.splits.items()
        if split.shards
    ]
    return _table(("split", f"{marker.unit}s", "files", "bytes", "names"), rows)


def _first_name(shards: Sequence[ShardEntry]) -> str:
    return f"`{shards[0].name}`{', ...' if len(shards) > 1 else ''}"


def _labels(marker: Marker) -> list[str]:
    ids = sorted((label_id, name) for name, label_id in marker.labels.items())
    if not ids:
        return ["There are none."]
    splits = {name: split.class_counts for name, split in marker.splits.items()}
    rows = [
        (label_id, _text(name), *(classes.get(name, 0) for classes in splits.values()))
        for label_id, name in ids[:MOST_CLASSES]
    ]
    if any("" in classes for classes in splits.values()):
        rows.append(("", "*no label*", *(classes.get("", 0) for classes in splits.values())))
    left = len(ids) - MOST_CLASSES
    listed = "which `labels.txt` and `recordmill.json` list."
    more = [f"and {format_count(left, 'class')} more, {listed}"] if left > 0 else []
    unit = marker.counted_unit
    counted = f"How many {format_count(2, unit).removeprefix('2 ')} of each class each split has:"
    return [
        *([counted] if unit != marker.unit else []),
        _table(("id", "class", *(f"`{name}`" for name in splits)), rows),
        *more,
    ]


def _other_readers(dataset: StagedDataset) -> str:
    reason = why_not_tfds(dataset)
    sure = {feature.key for feature in dataset.sure_features}
    unsure = [f"`{feature.key}`" for feature in dataset.marker.example_features if feature.key not in sure]
    without = f", without {', '.join(unsure)}, which not every example has" if unsure else ""
    index = "is in `sidecars/*.idx`" if dataset.settings.index_files else "was not asked for (`index_files: true`)"
    return "\n".join(
        [
            f"- TensorFlow Datasets cannot read it, because {reason}. There is no `dataset_info.json`."
            if reason
            else f"- TensorFlow Datasets: `tfds.builder_from_directory(folder).as_dataset(split=...)`{without}.",
            f"- An index for NVIDIA DALI and PyTorch's `tfrecord` package {index}.",
            "- TFX and TensorFlow Transform: `schema.pbtxt` (tensorflow_metadata).",
            "- Catalogues: `croissant.json` (MLCommons Croissant).",
        ]
    )


def _features(dataset: StagedDataset) -> str:
    """A table of the features that some Example has, in the convention's order."""
    stored = {feature.key for feature in dataset.marker.example_features}
    return describe_features(feature for feature in dataset.layout.features if feature.key in stored)


def _making(marker: Marker) -> list[str]:
    recipe = marker.plan.recipe
    versions = ", ".join(f"{name} {version}" for name, version in sorted(recipe.get("versions", {}).items()))
    changes = [(f"`{name}`", CHANGES.get(name, ""), count) for name, count in marker.changes.items()]
    return [
        f"Plan `{marker.plan.id}`, as `config.yaml` says: the same input and that configuration give the same "
        f"bytes again{f' with {versions}' if versions else ''}.",
        _table(("change", "what was done", "images"), changes) if changes else f"No {marker.unit} was changed.",
    ]


def _ledger(marker: Marker) -> str:
    ledger = marker.ledger
    rows: list[tuple[Any, ...]] = [("listed", "", ledger.listed), ("written", "", ledger.written)]
    for fate, counts in ledger.by_fate():
        for reason, count in counts.items():
            rows.append((fate.replace("_", " "), f"`{reason}`: {explain_reason(fate, reason)}", count))
    return _table(("", "reason", f"{marker.unit}s"), rows)


def _boxes(marker: Marker) -> Iterator[str]:
    """The ledger of boxes, and the images that have none."""
    if boxes := marker.boxes:
        names = sorted(boxes, key=lambda name: (name in NOT_DROPPED, boxes[name]), reverse=True)
        dropped = marker.dropped_boxes or {}
        rows = [(f"`{name}`", _text(show_names(most_frequent(dropped.get(name, {})))), boxes[name]) for name in names]
        yield _table(("boxes", "classes", ""), rows)
    if said := (marker.images_without_boxes or ImagesWithoutBoxes()).explain(marker.unit):
        yield f"{_text(said)}."


def _bullets(texts: Iterable[str]) -> list[str]:
    lines = [f"- {_text(text)}" for text in texts if text]
    return ["\n".join(lines)] if lines else []


def _files(dataset: StagedDataset) -> str:
    lines = dataset.layout.convention.label_lines
    rows = [
        ("`recordmill.json`", "what is in the dataset: files with their sizes and digests, labels, features, plan"),
        ("`labels.txt`", f"one class a line, in the order of the ids: `{lines}`"),
        ("`config.yaml`", "the configuration; run again with `--config config.yaml`"),
        ("`rejected.jsonl`", "what was rejected, and why"),
        ("`sidecars/*.jsonl`", "one row a record: source, digest, label, size, place in its file"),
    ]
    return _table(("file", "what it is"), rows)


def _table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    shown = [" | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in (" | ".join(titles), " | ".join(["---"] * len(titles)), *shown))


def _text(text: str) -> str:
    """Text that shows as it is on one line, whatever Markdown or HTML would make of it."""
    escaped = re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", " ".join(text.split()))
    escaped = re.sub(r"^(\d*)([-+#=.)])", r"\1\\\2", escaped)  # of a list, or a heading
    return html.escape(escaped, quote=False)
