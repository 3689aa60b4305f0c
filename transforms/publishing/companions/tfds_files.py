"""What TensorFlow Datasets reads: `dataset_info.json`, `features.json` and a list of class names a label feature.

With them `tfds.builder_from_directory(folder)` loads the dataset. They are the JSON form of TFDS's protocol buffers
(tensorflow_datasets/core/proto/{dataset_info,feature}.proto), in which 64-bit integers are strings.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import format_count
from recordmill.schemas.label_map import tfds_names
from recordmill.storage.record_reader import FRAMING_BYTES
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.tfds_template import NoTemplateError, file_template

_FEATURES = "tensorflow_datasets.core.features"
_TEXT = {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}
_PLAIN = {"int64": "int64", "float": "float32"}


def describe_tfds(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The files for TFDS; none for a dataset that it cannot read."""
    if why_not_tfds(dataset):
        return
    names = tfds_names(dataset.marker.labels)
    features = dataset.sure_features
    yield "dataset_info.json", [_json(_dataset_info(dataset, features))]
    yield "features.json", [_json(_features_dict(features, len(names), _pixels(dataset)))]
    for feature in features:
        if names and _is_label(feature):
            yield f"{feature.key.replace('/', '.')}.labels.txt", ["".join(f"{name}\n" for name in names).encode()]


def why_not_tfds(dataset: StagedDataset) -> str:
    """Why TFDS cannot read the dataset, as the rest of a sentence that begins with `because`; empty where it can."""
    try:
        file_template(dataset.settings)
    except NoTemplateError as error:
        return str(error)
    return "" if dataset.sure_features else "each feature is missing somewhere, and it has no optional ones"


def _is_label(feature: Feature) -> bool:
    return feature.kind == "int64" and re.fullmatch(r"(.*_)?labels?", feature.field) is not None


def _dataset_info(dataset: StagedDataset, features: Iterable[Feature]) -> dict[str, Any]:
    marker = dataset.marker
    written = format_count(marker.ledger.written, marker.unit)
    info: dict[str, Any] = {
        "name": _dataset_name(marker.name),
        "version": "1.0.0",
        "description": f"{written}, plan {marker.plan.id}. README.md says more.",
        "fileFormat": "tfrecord",
        "splits": [_split_info(dataset, name) for name, split in marker.splits.items() if split.shards],
    }
    keys = {feature.field: feature.key for feature in features if not feature.many}
    if "encoded" in keys and "label" in keys:
        pair = [{"featureKey": keys["encoded"]}, {"featureKey": keys["label"]}]
        info["supervisedKeys"] = {"tuple": {"items": pair}}
    return info


def _dataset_name(name: str) -> str:
    """The name in the letters that TFDS allows: `[a-zA-Z][a-zA-Z0-9_]*`."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if word[:1].isalpha() else f"dataset_{word}".rstrip("_")


def _split_info(dataset: StagedDataset, name: str) -> dict[str, Any]:
    split = dataset.marker.splits[name]
    return {
        "name": name,
        "shardLengths": [str(shard.records) for shard in split.shards],
        "numBytes": str(split.bytes - FRAMING_BYTES * split.records),
        "filepathTemplate": file_template(dataset.settings),
    }


def _pixels(dataset: StagedDataset) -> dict[str, Any]:
    """What the image's feature is: decoded by its format, raw of one shape, or the bytes of raw ones of several."""
    if dataset.settings.images.store != "raw":
        image = {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"}  # gray ones are decoded to three
        return {"pythonClassName": f"{_FEATURES}.image_feature.Image", "image": image}
    found = dataset.statistics
    if len(found.sizes) != 1 or len(found.channels) != 1:
        return _TEXT
    ((width, height),) = found.sizes
    shape = {"dimensions": [f"{side}" for side in (height, width, *found.channels)]}
    tensor = {"shape": shape, "dtype": "uint8", "encoding": "bytes"}
    return {"pythonClassName": f"{_FEATURES}.tensor_feature.Tensor", "tensor": tensor}


def _features_dict(features: Iterable[Feature], classes: int, pixels: dict[str, Any]) -> dict[str, Any]:
    return {
        "pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": {feature.key: _feature(feature, classes, pixels) for feature in features}},
    }


def _feature(feature: Feature, classes: int, pixels: dict[str, Any]) -> dict[str, Any]:
    if not feature.many:
        return pixels if feature.field == "encoded" else _value(feature, classes)
    box = {"shape": {"dimensions": ["4"]}, "dtype": "float32", "bboxFormat": "REL_YXYX"}
    inner = (
        {"pythonClassName": f"{_FEATURES}.bounding_boxes.BBoxFeature", "boundingBox": box}
        if feature.field == "bbox"
        else _value(feature, classes)
    )
    return {
        "pythonClassName": f"{_FEATURES}.sequence_feature.Sequence",
        "sequence": {"feature": inner, "length": "-1"},
    }


def _value(feature: Feature, classes: int) -> dict[str, Any]:
    if classes and _is_label(feature):
        return {
            "pythonClassName": f"{_FEATURES}.class_label_feature.ClassLabel",
            "classLabel": {"numClasses": str(classes)},
        }
    if feature.kind == "bytes":
        return _TEXT
    tensor = {"shape": {}, "dtype": _PLAIN[feature.kind], "encoding": "none"}
    kind = "tensor_feature.Tensor" if feature.many else "scalar.Scalar"
    return {"pythonClassName": f"{_FEATURES}.{kind}", "tensor": tensor}


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
