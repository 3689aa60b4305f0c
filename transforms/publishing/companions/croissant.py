"""`croissant.json`: the dataset in the Croissant format of MLCommons (mlcommons.org/croissant/1.0), for catalogues.

Readers of Croissant cannot open TFRecords, but they can read sidecars. These give one record set per split: each image,
and its place in which file.
"""

import glob
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

import orjson

from recordmill.schemas.dataset.file_names import LABELS
from recordmill.schemas.dataset.json_values import as_json
from recordmill.schemas.formatting import format_count
from recordmill.schemas.record_fields import PIXEL_FIELDS
from recordmill.transforms.publishing.marker import StagedDataset

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


def describe_croissant(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `croissant.json`, for any dataset."""
    marker, about = dataset.marker, dataset.settings.about
    splits = {name: split.shards for name, split in marker.splits.items() if split.shards}
    columns = [each for each in _COLUMNS if dataset.settings.holds_images or each not in PIXEL_FIELDS]
    context = resources.files(__package__) / "croissant_context.json"  # from the format's specification
    description = {
        "@context": orjson.loads(context.read_bytes()),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": marker.name or "dataset",
        "description": f"{format_count(marker.ledger.written, marker.unit)} as tf.train.Example in TFRecord files.",
        "version": about.version or "1.0.0",
        **({"license": about.licence} if about.licence else {}),
        **({"creator": {"@type": "sc:Organization", "name": about.creator}} if about.creator else {}),
        **({"citeAs": about.citation} if about.citation else {}),
        "distribution": [
            each
            for split, shards in splits.items()
            for each in (
                _file_set("shards", split, "application/x-tfrecord", (shard.name for shard in shards)),
                _file_set("sidecars", split, "application/jsonlines", (shard.sidecar for shard in shards)),
            )
        ],
        "recordSet": [
            *([_labels(marker.labels)] if marker.labels else []),
            *(_records(split, marker.unit, columns) for split in splits),
        ],
    }
    yield "croissant.json", [as_json(description)]


def _node(kind: str, identifier: str, name: str, **content: Any) -> dict[str, Any]:
    return {"@type": f"cr:{kind}", "@id": identifier, "name": name, **content}


def _file_set(kind: str, split: str, form: str, names: Iterable[str]) -> dict[str, Any]:
    identifier, included = f"{kind}-{split}", list(map(glob.escape, names))
    description = f"{kind} of the split {split}"
    return _node("FileSet", identifier, identifier, description=description, encodingFormat=form, includes=included)


def _labels(labels: Mapping[str, int]) -> dict[str, Any]:
    rows = sorted((label_id, name) for name, label_id in labels.items())
    return _node(
        "RecordSet",
        "labels",
        "labels",
        description=f"class ids and names, as in {LABELS}",
        dataType="sc:Enumeration",
        key={"@id": "labels/id"},
        field=[
            _node("Field", "labels/id", "id", dataType="sc:Integer"),
            _node("Field", "labels/name", "name", dataType=["sc:Text", "sc:name"]),
        ],
        data=[{"labels/id": label_id, "labels/name": name} for label_id, name in rows],
    )


def _records(split: str, unit: str, columns: Iterable[str]) -> dict[str, Any]:
    name = f"{unit}s-{split}"
    fields = []
    for column in columns:
        kind, meaning = _COLUMNS[column]
        source = {"fileSet": {"@id": f"sidecars-{split}"}, "extract": {"column": column}}
        fields.append(_node("Field", f"{name}/{column}", column, description=meaning, dataType=kind, source=source))
    description = f"{unit}s of the split {split}, as the sidecars list them"
    return _node("RecordSet", name, name, description=description, key={"@id": f"{name}/key"}, field=fields)
