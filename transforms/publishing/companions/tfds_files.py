"""Files for TensorFlow Datasets: `dataset_info.json`, `features.json` and lists of class names.

There is one list of class names per label feature. With these files,
`tfds.builder_from_directory(folder)` loads the dataset. They are the JSON form of TFDS's protocol
buffers (tensorflow_datasets/core/proto/{dataset_info,feature}.proto), in which 64-bit integers are
strings.

TFDS finds a split's files by a template of literal text, `{SPLIT}`, `{SHARD_INDEX}`, `{NUM_SHARDS}`
and `{SHARD_X_OF_Y}`; shards are counted from 0, with at least five digits
(tensorflow_datasets/core/naming.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from string import Formatter
from typing import Any

from recordmill.annotations.kinds import KINDS_BY_FIELD
from recordmill.schemas.dataset.json_values import as_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.tfds_shards import FILE_FORMAT, abbreviate
from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import format_count
from recordmill.schemas.label_map import tfds_names
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.storage.tfrecord_file import data_bytes
from recordmill.transforms.publishing.staged_dataset import Description, StagedDataset


class NotForTFDSError(ValueError):
    """TFDS cannot read a dataset.

    The text says why, as the rest of a sentence after `because`.
    """


def find_template(settings: DatasetSettings) -> str:
    """Returns the template by which TFDS finds the files of any split.

    Raises:
        NotForTFDSError: there is none, or TFDS could not read the files.
    """
    if settings.compression != "none":
        raise NotForTFDSError(f"its files are compressed ({settings.compression})")
    layout = ExampleLayout(settings)
    for split in settings.splits.names:
        if not re.fullmatch(r"[\w-]+", split) or split == "all":  # core/splits.py: _SUB_SPEC_RE
            raise NotForTFDSError(f"TFDS cannot ask for a split called `{split}`")
        if not settings.shards.name and split in layout.convention.split_words:
            word = layout.convention.split_words[split]
            raise NotForTFDSError(f"its files say `{word}` for the split `{split}`")
    written: dict[tuple[str | None, ...], str] = {
        ("split", "", None): "{SPLIT}",
        ("name", "", None): _literal(settings.name),
        ("index", "05d", None): "{SHARD_INDEX}",
        ("count", "05d", None): "{NUM_SHARDS}",
        (None, None, None): "",  # the text after the last field
    }
    template = ""
    for text, field, form, conversion in Formatter().parse(layout.shard_name):
        if (field, form, conversion) not in written:
            raise NotForTFDSError(f"TFDS has no such names of files as `{layout.shard_name}`")
        template += _literal(text) + written[field, form, conversion]
    return abbreviate(template)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def why_not_tfds(dataset: StagedDataset) -> str | None:
    """Returns why TFDS cannot read the dataset, as `NotForTFDSError` does; None if it can."""
    try:
        find_template(dataset.settings)
    except NotForTFDSError as error:
        return str(error)
    if not dataset.sure_features:
        return "each feature is missing somewhere, and it has no optional ones"
    return None


def describe_tfds(dataset: StagedDataset) -> Iterator[Description]:
    """Makes the files for TFDS; none if it cannot read the dataset."""
    if why_not_tfds(dataset):
        return
    names = tfds_names(dataset.marker.labels)
    features = dataset.sure_features
    named = {each.field for each in features if names and _has_names(each, dataset.marker)}
    yield "dataset_info.json", [as_json(_dataset_info(dataset, features))]
    described = {
        feature.key: _feature(feature, len(names) * (feature.field in named), dataset)
        for feature in features
    }
    yield (
        "features.json",
        [as_json(_type("features_dict.FeaturesDict", featuresDict={"features": described}))],
    )
    for feature in features:
        if feature.field in named:
            yield (
                f"{feature.key.replace('/', '.')}.labels.txt",
                ["".join(f"{name}\n" for name in names).encode()],
            )


def _dataset_info(dataset: StagedDataset, features: Iterable[Feature]) -> dict[str, Any]:
    marker, about = dataset.marker, dataset.settings.about
    written = format_count(marker.ledger.written, marker.unit) + (
        f" by {about.creator}" if about.creator else ""
    )
    template = find_template(dataset.settings)
    info: dict[str, Any] = {
        "name": _dataset_name(marker.name),
        "version": about.version or "1.0.0",
        "description": f"{written}, plan {marker.plan.id}. README.md says more.",
        "fileFormat": FILE_FORMAT,
        "splits": [
            {
                "name": name,
                "shardLengths": [str(shard.records) for shard in split.shards],
                "numBytes": str(data_bytes(split.bytes, split.records)),
                "filepathTemplate": template,
            }
            for name, split in marker.splits.items()
            if split.shards
        ],
    }
    if about.citation:
        info["citation"] = about.citation
    if about.license:
        info["redistributionInfo"] = {"license": about.license}
    keys = {feature.field: feature.key for feature in features if not feature.many}
    if "encoded" in keys and "label" in keys:
        pair = [{"featureKey": keys["encoded"]}, {"featureKey": keys["label"]}]
        info["supervisedKeys"] = {"tuple": {"items": pair}}
    return info


def _dataset_name(name: str) -> str:
    """Returns the name in characters that TFDS allows: `[a-zA-Z][a-zA-Z0-9_]*`."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if word[:1].isalpha() else f"dataset_{word}".rstrip("_")


def _is_label(feature: Feature) -> bool:
    return feature.kind == "int64" and re.fullmatch(r"(.*_)?labels?", feature.field) is not None


def _has_names(feature: Feature, marker: Marker) -> bool:
    """Returns whether the dataset's class names are those of a feature's ids."""
    kind = KINDS_BY_FIELD.get(feature.field)
    if kind is None or feature.field not in kind.id_images:
        return _is_label(feature)
    return bool(marker.names_pixel_ids)


def _type(name: str, **content: Any) -> dict[str, Any]:
    """Returns a feature's type, named by its class in TFDS."""
    return {"pythonClassName": f"tensorflow_datasets.core.features.{name}", **content}


def _feature(feature: Feature, classes: int, dataset: StagedDataset) -> Mapping[str, Any]:
    if feature.many:
        return _type(
            "sequence_feature.Sequence",
            sequence={"feature": _value(feature, classes, dataset), "length": "-1"},
        )
    if feature.field == "encoded":
        return _image(dataset)
    return _value(feature, classes, dataset)


def _value(feature: Feature, classes: int, dataset: StagedDataset) -> Mapping[str, Any]:
    """Returns the type of a single value of a feature."""
    if kind := KINDS_BY_FIELD.get(feature.field):
        parts = dataset.parts.get(kind.name, ())
        recipe = dataset.marker.plan.recipe
        if own := kind.find_tfds_type(feature.field, classes, parts, recipe):
            return own
    if classes:
        return _type("class_label_feature.ClassLabel", classLabel={"numClasses": str(classes)})
    if feature.kind == "bytes":
        return _type("text_feature.Text", text={})
    tensor = {
        "shape": {},
        "dtype": {"int64": "int64", "float": "float32"}[feature.kind],
        "encoding": "none",
    }
    return _type("tensor_feature.Tensor" if feature.many else "scalar.Scalar", tensor=tensor)


def _image(dataset: StagedDataset) -> dict[str, Any]:
    """Returns the type of the image.

    Encoded, raw if all have the same shape, or else just bytes.
    """
    if dataset.settings.images.store != "raw":
        shape = {"dimensions": ["-1", "-1", "3"]}  # gray images are decoded to three channels
        return _type("image_feature.Image", image={"shape": shape, "dtype": "uint8"})
    found = dataset.images
    if len(found.sizes) != 1 or len(found.channels) != 1:
        return _type("text_feature.Text", text={})
    ((width, height),) = found.sizes
    shape = {"dimensions": [f"{side}" for side in (height, width, *found.channels)]}
    return _type(
        "tensor_feature.Tensor", tensor={"shape": shape, "dtype": "uint8", "encoding": "bytes"}
    )
