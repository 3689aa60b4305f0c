"""`croissant.json`: the dataset in the Croissant format of MLCommons (mlcommons.org/croissant/1.0), for catalogues.

Readers of Croissant cannot open TFRecords; the sidecars, which they can, give a record set a split: what each image is,
and its place in which file.
"""

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from recordmill.schemas.dataset.file_names import LABELS
from recordmill.schemas.dataset.marker import ShardEntry
from recordmill.schemas.formatting import format_count
from recordmill.schemas.record_fields import PIXEL_FIELDS
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset

_TERMS = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes "
    "isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
_OTHER_TERMS: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}

_CONTEXT = dict(sorted([*_OTHER_TERMS.items(), *((term, f"cr:{term}") for term in _TERMS.split())]))
"""The context that the format's specification asks for."""

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
    """`croissant.json`, of any dataset."""
    marker, unit = dataset.marker, dataset.settings.unit
    splits = {name: split.shards for name, split in marker.splits.items() if split.shards}
    columns = [each for each in _COLUMNS if dataset.settings.holds_images or each not in PIXEL_FIELDS]
    description = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": marker.name or "dataset",
        "description": f"{format_count(marker.ledger.written, unit)} as tf.train.Example in TFRecord files.",
        "version": "1.0.0",
        "distribution": [each for name, shards in splits.items() for each in _file_sets(name, shards)],
        "recordSet": [
            *([_labels(marker.labels)] if marker.labels else []),
            *(_records(name, unit, columns) for name in splits),
        ],
    }
    yield "croissant.json", [orjson.dumps(description, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)]


def _file_sets(split: str, shards: Sequence[ShardEntry]) -> Iterator[dict[str, Any]]:
    for kind, key, form in (
        ("shards", "name", "application/x-tfrecord"),
        ("sidecars", "sidecar", "application/jsonlines"),
    ):
        yield {
            "@type": "cr:FileSet",
            "@id": f"{kind}-{split}",
            "name": f"{kind}-{split}",
            "description": f"{kind} of the split {split}",
            "encodingFormat": form,
            "includes": [glob.escape(getattr(shard, key)) for shard in shards],
        }


def _labels(labels: Mapping[str, int]) -> dict[str, Any]:
    rows = sorted((label_id, name) for name, label_id in labels.items())
    return {
        "@type": "cr:RecordSet",
        "@id": "labels",
        "name": "labels",
        "description": f"class ids and names, as in {LABELS}",
        "dataType": "sc:Enumeration",
        "key": {"@id": "labels/id"},
        "field": [
            {"@type": "cr:Field", "@id": "labels/id", "name": "id", "dataType": "sc:Integer"},
            {"@type": "cr:Field", "@id": "labels/name", "name": "name", "dataType": ["sc:Text", "sc:name"]},
        ],
        "data": [{"labels/id": label_id, "labels/name": name} for label_id, name in rows],
    }


def _records(split: str, unit: str, columns: list[str]) -> dict[str, Any]:
    name = f"{unit}s-{split}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{unit}s of the split {split}, as the sidecars list them",
        "key": {"@id": f"{name}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": _COLUMNS[column][1],
                "dataType": _COLUMNS[column][0],
                "source": {"fileSet": {"@id": f"sidecars-{split}"}, "extract": {"column": column}},
            }
            for column in columns
        ],
    }
