"""`README.md`: the data card, for people: what the dataset is, how it was made and how to read it."""

import html
import json
import re
from collections.abc import Iterable, Iterator

from recordmill.imaging.prepared_image import CHANGES
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.templates import load_template
from recordmill.schemas.dataset.totals import NOT_DROPPED
from recordmill.schemas.features import describe_features
from recordmill.schemas.record_fields import BOX_FIELDS
from recordmill.schemas.rejection import explain_reason
from recordmill.transforms.publishing.companions.tfds_files import why_not_tfds
from recordmill.transforms.publishing.marker import StagedDataset

MOST_CLASSES = 100
"""The most classes that the card lists; `labels.txt` has all."""


def describe_card(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `README.md`, for any dataset."""
    stored = {feature.key for feature in dataset.marker.example_features}
    sure = {feature.key for feature in dataset.sure_features}
    card = load_template(__package__, "README.md.jinja", text=show_text).render(
        dataset=dataset,
        most_classes=MOST_CLASSES,
        features=describe_features(feature for feature in dataset.layout.features if feature.key in stored),
        snippet=reading_snippet(dataset.marker),
        not_tfds=why_not_tfds(dataset),
        unsure=[f"`{feature.key}`" for feature in dataset.marker.example_features if feature.key not in sure],
        meanings_of_changes=CHANGES,
        explain_reason=explain_reason,
        not_dropped=NOT_DROPPED,
    )
    yield "README.md", [card.encode()]


def show_text(text: str) -> str:
    """Escapes text so that Markdown and HTML show it unchanged, on one line."""
    escaped = re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", " ".join(text.split()))
    escaped = re.sub(r"^(\d*)([-+#=.)])", r"\1\\\2", escaped)  # the start of a list or heading
    return html.escape(escaped, quote=False)


def reading_snippet(marker: Marker) -> str:
    """Writes a short script that reads a split of a dataset with tf.data, without Recordmill.

    Run in the dataset's folder, it prints the first element. It takes file names from the marker, so it works whatever
    they are; features, compression and decoding are this dataset's.

    Args:
        marker: the dataset's.
    """
    keys = {feature.field: feature for feature in marker.example_features}
    label = keys.get("label") or keys.get("labels") or keys.get("label_text")
    filled = [name for name, split in marker.splits.items() if split.records]
    return load_template(__package__, "reading.py.jinja", literal=_literal).render(
        settings=marker.plan.settings,
        split="train" if "train" in filled or not filled else filled[0],
        features=marker.example_features,
        keys=keys,
        image=keys.get("encoded"),
        label=label,
        sized={"height", "width"} <= keys.keys(),
        boxes=not BOX_FIELDS.isdisjoint(keys),
        names=label and label.field == "label" and not label.many and marker.labels,
    )


def _literal(value: bytes | str | float) -> str:
    """A Python literal; JSON strings are valid Python, with double quotes."""
    text = value.decode() if isinstance(value, bytes) else value
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else repr(text)
