"""Files that describe a dataset to people and other tools: data card, schema, Croissant, indexes.

The files for TensorFlow Datasets are in `tfds_files.py`.
"""

import glob
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import chain
from typing import Any

import orjson

from recordmill import storage
from recordmill.annotations.kinds import list_stored, name_owners
from recordmill.annotations.stored_fields import mark_unfilled
from recordmill.schemas.dataset.file_names import (
    INDEX,
    PICTURES,
    REPORT_DATA,
    SAMPLES,
    VERSIONS,
    index_name,
)
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import About, Marker, ShardEntry
from recordmill.schemas.dataset.record_index import pack_head, pack_table, parse_places
from recordmill.schemas.dataset.side_files import ReportData
from recordmill.schemas.features import PIXEL_FIELDS, describe_features
from recordmill.schemas.formatting import escape_controls, format_count, load_template, show_text
from recordmill.schemas.label_map import LabelMap, quoted
from recordmill.schemas.rejection import explain_reason
from recordmill.schemas.settings.images import CHANGES
from recordmill.storage.tfrecord_file import describe_frames
from recordmill.transforms.publishing.companions.tfds_files import describe_tfds, why_not_tfds
from recordmill.transforms.publishing.staged_dataset import (
    Description,
    StagedDataset,
    name_sidecars_without_records,
)
from recordmill.transforms.shards.shard_files import read_column, read_rejected_pictures

MOST_CLASSES = 100
"""The most classes that the card lists; `labels.txt` has all."""


def describe_card(dataset: StagedDataset, samples: bytes | None = None) -> Iterator[Description]:
    """Makes `README.md`, for any dataset, and `samples.svg` if there are pictures for it."""
    stored = {feature.key for feature in dataset.marker.example_features}
    sure = {feature.key for feature in dataset.sure_features}
    card = load_template(__package__, "README.md.jinja", text=show_text).render(
        dataset=dataset,
        shows_samples=samples is not None,
        most_classes=MOST_CLASSES,
        owners=name_owners(dataset.marker),
        features=describe_features(
            mark_unfilled(
                (each for each in dataset.layout.features if each.key in stored),
                dataset.marker.annotations,
            )
        ),
        snippet=reading_snippet(dataset.marker),
        not_tfds=why_not_tfds(dataset),
        unsure=[
            f"`{feature.key}`"
            for feature in dataset.marker.example_features
            if feature.key not in sure
        ],
        meanings_of_changes=CHANGES,
        explain_reason=explain_reason,
    )
    yield "README.md", [escape_controls(card).encode()]
    if samples is not None:
        yield SAMPLES, [samples]


def reading_snippet(marker: Marker) -> str:
    """Writes a short script that reads a split of a dataset with tf.data, without Recordmill.

    Run in the dataset's folder, it prints the first element. It takes file names from the marker,
    so it works whatever they are; features, compression and decoding are this dataset's.

    Args:
        marker: the dataset's.
    """
    keys = {feature.field: feature for feature in marker.example_features}
    label = keys.get("label") or keys.get("labels") or keys.get("label_text")
    filled = [name for name, split in marker.splits.items() if split.records]
    return load_template(__package__, "reading.py.jinja", literal=_literal).render(
        settings=marker.plan.for_readers,
        split="train" if "train" in filled or not filled else filled[0],
        features=mark_unfilled(marker.example_features, marker.annotations),
        keys=keys,
        image=keys.get("encoded"),
        label=label,
        sized={"height", "width"} <= keys.keys(),
        annotated=bool(list_stored(keys)),
        names=label and label.field == "label" and not label.many and marker.labels,
    )


def _literal(value: bytes | str | float) -> str:
    """Returns a Python literal; JSON strings are valid Python, with double quotes."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def describe_label_map(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `label_map.pbtxt`, the label map of TensorFlow's Object Detection API.

    It makes none if the convention has no file for it.

    Its readers reserve the id 0 for the background and refuse a file in which a class has it
    (object_detection/utils/ label_map_util.py, `_validate_label_map`). COCO files from other tools
    often list a class 0 that nothing has.
    """
    if name := dataset.layout.convention.label_map_file:
        counted = {
            label for split in dataset.marker.splits.values() for label in split.class_counts
        }
        labels = {
            label: number
            for label, number in dataset.marker.labels.items()
            if number or label in counted
        }
        yield name, [LabelMap(labels).as_pbtxt().encode()]


def note_background(
    labels: Mapping[str, int], counts: Mapping[str, int], file: str
) -> Iterator[str]:
    """Yields a note if a label map is written and a class that is not empty has the id 0.

    Args:
        labels: class ids.
        counts: the size of each class.
        file: the label map's name; empty if there is none.
    """
    names = [label for label, number in labels.items() if not number and counts.get(label)]
    if names and file:
        what = (
            f"{file} gives {names[0]!r} the id 0, which the Object Detection API keeps for the "
            "background"
        )
        yield f"{what}, and refuses: set labels.ids=names to count classes from 1"


def describe_schema(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `schema.pbtxt`, a `tensorflow_metadata.proto.v0.Schema` for TFX and TFT.

    Any dataset has one. `tensorflow_transform.tf_metadata.schema_utils.schema_as_feature_spec`
    turns it into features for `tf.io.parse_example`: an empty shape gives `FixedLenFeature([])`, no
    shape `VarLenFeature`. Written as text, it needs no import.
    """
    text = load_template(__package__, "schema.pbtxt.jinja", quoted=quoted).render(
        features=dataset.layout.features, sure=dataset.sure_features, labels=dataset.marker.labels
    )
    yield "schema.pbtxt", [text.encode()]


MOST_SHARDS_SHOWN = 32
"""The most shards whose rejected files are shown in the report."""


def describe_report_data(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `report.json`, if the settings ask for a report and there is something in it."""
    if not dataset.settings.report:
        return
    rejecting = [each for each in dataset.reports if each.references > each.records][
        :MOST_SHARDS_SHOWN
    ]
    pictures = read_rejected_pictures(dataset.path_of(report, PICTURES) for report in rejecting)
    data = ReportData(tuple(dataset.remarks), pictures)
    if data != ReportData():
        yield REPORT_DATA, [as_json(to_json(data))]


def describe_record_index(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `records.index`, the place of each record, as docs/format.md describes it."""
    places = (read_column(dataset.folder, shard.report, "places") for shard in dataset.shards)
    yield INDEX, chain([pack_head([shard.entry for shard in dataset.shards])], places)


def describe_index(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `sidecars/<shard>.idx` for each shard, if the settings ask for it.

    Indexes are for readers that seek: DALI (`tfrecord2idx`) and PyTorch's `tfrecord` package. One
    line per record, `<offset> <length>`, in bytes; the length includes the 16 bytes of framing.
    They are in `sidecars/`, because a reader that globs for shards (`train-*`) must not find them.
    """
    if not dataset.settings.index_files:
        return
    for shard in dataset.shards:
        places = parse_places(read_column(dataset.folder, shard.report, "places"))[:, :2].tolist()
        yield index_name(shard.entry.name), [describe_frames(places)]


_COLUMNS = {
    "key": ("sc:Text", "path below its input; of a row, its table and number"),
    "class": ("sc:Text", "class name"),
    "label": ("sc:Integer", "class id"),
    "height": ("sc:Integer", "rows of pixels"),
    "width": ("sc:Integer", "columns of pixels"),
    "bytes": ("sc:Integer", "bytes of the source"),
    "sha256": ("sc:Text", "SHA-256 of the source, in hex"),
    "offset": ("sc:Integer", "where its record begins in its shard, in bytes"),
    "length": ("sc:Integer", "bytes of its record's data, without framing"),
}


def describe_croissant(dataset: StagedDataset) -> Iterator[Description]:
    """Makes `croissant.json`, for any dataset: the Croissant format of MLCommons, for catalogs.

    Readers of Croissant (mlcommons.org/croissant/1.0) cannot open TFRecords, but they can read
    sidecars. These give one record set per split: each image, and its place in which file.
    """
    marker, about = dataset.marker, dataset.settings.about
    splits = {name: split.shards for name, split in marker.splits.items() if split.shards}
    columns = [
        each for each in _COLUMNS if dataset.settings.holds_images or each not in PIXEL_FIELDS
    ]
    # From the format's specification.
    context = resources.files(__package__) / "croissant_context.json"
    description = {
        "@context": orjson.loads(context.read_bytes()),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": marker.name or "dataset",
        "description": f"{format_count(marker.ledger.written, marker.unit)} as tf.train.Example in "
        "TFRecord files.",
        "version": about.version or "1.0.0",
        **_describe_about(about),
        "distribution": [
            _file_set(kind, split, splits[split])
            for split in splits
            for kind in ("shards", "sidecars")
        ],
        "recordSet": [_records(split, marker.unit, columns) for split in splits],
    }
    yield "croissant.json", [as_json(description)]


def _describe_about(about: About) -> dict[str, Any]:
    """Returns the facts that only the user knows, if they are given."""
    described: dict[str, Any] = {}
    if about.license:
        described["license"] = about.license
    if about.creator:
        described["creator"] = {"@type": "sc:Organization", "name": about.creator}
    if about.citation:
        described["citeAs"] = about.citation
    return described


def _node(kind: str, identifier: str, name: str, **content: Any) -> dict[str, Any]:
    return {"@type": f"cr:{kind}", "@id": identifier, "name": name, **content}


def _file_set(kind: str, split: str, shards: Iterable[ShardEntry]) -> dict[str, Any]:
    form = {"shards": "application/x-tfrecord", "sidecars": "application/jsonlines"}[kind]
    names = [shard.name if kind == "shards" else shard.sidecar for shard in shards]
    identifier, included = f"{kind}-{split}", list(map(glob.escape, names))
    description = f"{kind} of the split {split}"
    return _node(
        "FileSet",
        identifier,
        identifier,
        description=description,
        encodingFormat=form,
        includes=included,
    )


def _records(split: str, unit: str, columns: Iterable[str]) -> dict[str, Any]:
    name = f"{unit}s-{split}"
    fields = []
    for column in columns:
        kind, meaning = _COLUMNS[column]
        source = {"fileSet": {"@id": f"sidecars-{split}"}, "extract": {"column": column}}
        fields.append(
            _node(
                "Field",
                f"{name}/{column}",
                column,
                description=meaning,
                dataType=kind,
                source=source,
            )
        )
    description = f"{unit}s of the split {split}, as the sidecars list them"
    return _node(
        "RecordSet", name, name, description=description, key={"@id": f"{name}/key"}, field=fields
    )


def describe_dataset(dataset: StagedDataset, samples: bytes | None = None) -> Iterator[Description]:
    """Yields every file that describes a dataset.

    Their order is that of the marker. Consume each content before asking for the next file.

    Args:
        dataset: the dataset.
        samples: the content of `samples.svg`; None without pictures.
    """
    yield from describe_card(dataset, samples)
    yield from describe_label_map(dataset)
    yield from describe_tfds(dataset)
    yield from describe_schema(dataset)
    yield from describe_croissant(dataset)
    yield from describe_record_index(dataset)
    # With these, a later run copies unchanged records without reading their sources, and the rows
    # of rejected files.
    reports = [shard.report for shard in dataset.shards]
    reports += name_sidecars_without_records(dataset.reports).values()
    paths = [dataset.path_of(report, "versions") for report in reports]
    yield (
        VERSIONS,
        chain(
            [pack_table(map(storage.read_range, paths), len(paths))], map(storage.read_range, paths)
        ),
    )
    yield from describe_report_data(dataset)
    yield from describe_index(dataset)
