"""`README.md`: the data card, for people: what the dataset is, how it was made and how to read it."""

import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from recordmill.imaging.prepared_image import CHANGES
from recordmill.schemas.dataset.annotation_counts import NOT_DROPPED, ImagesWithoutBoxes, most_frequent
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.features import Feature, describe_features
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.record_fields import BOX_FIELDS
from recordmill.schemas.rejection import explain_reason
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.tfds_files import why_not_tfds

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_CLASSES = 100
"""Classes that the card lists; `labels.txt` has all."""

_DTYPES = {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}


def describe_card(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`README.md`, of any dataset."""
    marker, layout = dataset.marker, dataset.layout
    sure = {feature.key for feature in dataset.sure_features}
    stored = {feature.key for feature in marker.example_features}
    page = (
        _templates()
        .get_template("README.md.jinja")
        .render(
            dataset=dataset,
            marker=marker,
            layout=layout,
            label_rows=list(_label_rows(marker)),
            further_classes=len(marker.labels) - MOST_CLASSES,
            features=describe_features(feature for feature in layout.features if feature.key in stored),
            snippet=reading_snippet(marker),
            why_not_tfds=why_not_tfds(dataset),
            unsure=[f"`{feature.key}`" for feature in marker.example_features if feature.key not in sure],
            versions=sorted(marker.plan.recipe.get("versions", {}).items()),
            changes=CHANGES,
            explain_reason=explain_reason,
            boxes=list(_box_rows(marker)),
            without_boxes=(marker.images_without_boxes or ImagesWithoutBoxes()).explain(marker.unit),
        )
    )
    yield "README.md", [page.encode()]


def _label_rows(marker: Marker) -> Iterator[list[str]]:
    """The table of classes, with its header."""
    splits = {name: split.class_counts for name, split in marker.splits.items()}
    yield ["id", "class", *(f"`{name}`" for name in splits)]
    yield ["---"] * (2 + len(splits))
    shown = sorted((label_id, name) for name, label_id in marker.labels.items())[:MOST_CLASSES]
    rows = [(f"{label_id:,}", name, _text(name)) for label_id, name in shown]
    if any("" in counts for counts in splits.values()):
        rows.append(("", "", "*no label*"))
    for label_id, name, text in rows:
        yield [label_id, text, *(f"{counts.get(name, 0):,}" for counts in splits.values())]


def _box_rows(marker: Marker) -> Iterator[tuple[str, str, int]]:
    """The ledger of boxes: outcome, the classes most often dropped, and how many."""
    boxes, dropped = marker.boxes or {}, marker.dropped_boxes or {}
    for name in sorted(boxes, key=lambda name: (name in NOT_DROPPED, boxes[name]), reverse=True):
        yield name, show_names(most_frequent(dropped.get(name, {}))), boxes[name]


def reading_snippet(marker: Marker) -> str:
    """A short script that reads a split of a dataset with tf.data, without Recordmill.

    Run in the dataset's folder it prints the first element. It finds the files in the marker, so that it goes on
    working whatever they are called; features, compression and decoding are this dataset's.

    Args:
        marker: the dataset's.
    """
    features = marker.example_features
    keys = {feature.field: feature for feature in features}
    label = keys.get("label") or keys.get("labels") or keys.get("label_text")
    filled = [name for name, split in marker.splits.items() if split.records]
    return (
        _templates()
        .get_template("read_dataset.py.jinja")
        .render(
            split="train" if "train" in filled or not filled else filled[0],
            features=features,
            image=keys.get("encoded"),
            label=label,
            boxes=not BOX_FIELDS.isdisjoint(keys),
            names=bool(label and label.field == "label" and not label.many and marker.labels),
            raw=marker.plan.settings.is_raw,
            sides=[keys["height"], keys["width"]] if {"height", "width"} <= keys.keys() else [],
            gzip=marker.plan.settings.compression == "gzip",
        )
    )


@cache
def _templates() -> "Environment":
    # Imported here: it takes 0.07 s, which a process that publishes nothing need not spend.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    templates = Environment(
        loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    templates.filters |= {
        "counted": format_count,
        "number": "{:,}".format,
        "parser": _parser,
        "python": _python,
        "text": _text,
        "value": lambda feature: f"example[{_python(feature.key)}]",
    }
    return templates


def _python(value: bytes | str | float | int) -> str:
    """A Python literal; JSON's strings are Python's too, in double quotes."""
    text = value.decode() if isinstance(value, bytes) else value
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else repr(text)


def _parser(feature: Feature) -> str:
    """What `tf.io.parse_single_example` is given for a feature."""
    kind = _DTYPES[feature.kind]
    if feature.many:
        return f"tf.io.VarLenFeature({kind})"
    default = "" if feature.default is None else f", {_python(feature.default)}"
    return f"tf.io.FixedLenFeature([], {kind}{default})"


def _text(text: str) -> str:
    """Text that shows as it is on one line, whatever Markdown or HTML would make of it."""
    escaped = re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", " ".join(text.split()))
    escaped = re.sub(r"^(\d*)([-+#=.)])", r"\1\\\2", escaped)  # of a list, or a heading
    return html.escape(escaped, quote=False)
