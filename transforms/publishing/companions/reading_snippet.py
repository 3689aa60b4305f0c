"""The Python that reads a dataset with TensorFlow alone, for the card next to it."""

import json
from collections.abc import Iterator, Mapping

from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.features import Feature
from recordmill.schemas.record_fields import BOX_FIELDS

_DTYPES = {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}


def reading_snippet(marker: Marker) -> str:
    """A short script that reads a split of a dataset with tf.data, without Recordmill.

    Run in the dataset's folder it prints the first element. It finds the files in the marker, so that it goes on
    working whatever they are called; features, compression and decoding are this dataset's.

    Args:
        marker: the dataset's.
    """
    features = marker.example_features
    keys = {feature.field: feature for feature in features}
    image, label = keys.get("encoded"), keys.get("label") or keys.get("labels") or keys.get("label_text")
    boxes = not BOX_FIELDS.isdisjoint(keys)
    names = bool(label and label.field == "label" and not label.many and marker.labels)
    raw = marker.plan.settings.is_raw
    sizes = raw and not {"height", "width"} <= set(keys)
    blocks = [
        ["import json", "", "import tensorflow as tf"],
        [*_files(_first_split(marker), names), *(_sizes() if image and sizes else ())],
        ["features = {", *(f"    {line}" for line in map(_describe, features)), "}"],
        ["", *_read(keys, image, label, raw), ""],
        [*_dataset(marker.plan.settings.compression), *_first(image, label, names, boxes)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _first_split(marker: Marker) -> str:
    filled = [name for name, split in marker.splits.items() if split.records]
    return "train" if "train" in filled or not filled else filled[0]


def _value(feature: Feature) -> str:
    return f"example[{_quote(feature.key)}]"


def _quote(value: bytes | str | float | int) -> str:
    """A Python literal; JSON's strings are Python's too, in double quotes."""
    text = value.decode() if isinstance(value, bytes) else value
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else repr(text)


def _files(split: str, names: bool) -> Iterator[str]:
    yield f'folder, split = ".", {_quote(split)}  # the folder that holds recordmill.json'
    yield 'with tf.io.gfile.GFile(f"{folder}/recordmill.json") as file:'
    yield "    marker = json.load(file)"
    yield 'shards = marker["splits"][split]["shards"]'
    yield """files = [f"{folder}/{shard['name']}" for shard in shards]"""
    if names:
        yield 'names = {number: name for name, number in marker["labels"].items()}'


def _sizes() -> Iterator[str]:
    yield """with tf.io.gfile.GFile(f"{folder}/{shards[0]['sidecar']}") as file:"""
    yield '    size = next(row for row in map(json.loads, file) if "height" in row)  # all images have this one'


def _describe(feature: Feature) -> str:
    meaning = " ".join(feature.meaning.split())
    kind = _DTYPES[feature.kind]
    if feature.many:
        parser = f"tf.io.VarLenFeature({kind})"
    elif feature.default is None:
        parser = f"tf.io.FixedLenFeature([], {kind})"
    else:
        parser = f"tf.io.FixedLenFeature([], {kind}, {_quote(feature.default)})"
    return f"{_quote(feature.key)}: {parser},  # {meaning}"


def _read(keys: Mapping[str, Feature], image: Feature | None, label: Feature | None, raw: bool) -> Iterator[str]:
    yield "def read(record):"
    yield "    example = tf.io.parse_single_example(record, features)"
    if image is None:
        yield "    return example"
        return
    if raw:
        sized = {"height", "width"} <= set(keys)
        height, width = (_value(keys[side]) if sized else f'size["{side}"]' for side in ("height", "width"))
        yield f"    pixels = tf.io.decode_raw({_value(image)}, tf.uint8)"
        yield f"    image = tf.reshape(pixels, [{height}, {width}, -1])"
    else:
        yield f"    image = tf.io.decode_image({_value(image)}, channels=3, expand_animations=False)"
    if label is None and BOX_FIELDS & keys.keys():
        yield f"    return {{**example, {_quote(image.key)}: image}}"
    elif label is None:
        yield "    return image"
    elif label.many:
        yield f"    return image, tf.sparse.to_dense({_value(label)})"
    else:
        yield f"    return image, {_value(label)}"


def _dataset(compression: str) -> Iterator[str]:
    packed = ', compression_type="GZIP"' if compression == "gzip" else ""
    yield f"records = tf.data.TFRecordDataset(files{packed}, num_parallel_reads=tf.data.AUTOTUNE)"
    yield "dataset = records.map(read, num_parallel_calls=tf.data.AUTOTUNE)"


def _first(image: Feature | None, label: Feature | None, names: bool, boxes: bool) -> Iterator[str]:
    if image is None:
        yield from ("for example in dataset.take(1):", "    print(example)")
    elif label is None and boxes:
        yield from (
            "for example in dataset.take(1):",
            "    print({key: value.shape for key, value in example.items()})",
        )
    elif label is None:
        yield from ("for image in dataset.take(1):", "    print(image.shape)")
    else:
        shown = "names.get(int(label))" if names else "label.numpy()"
        yield from ("for image, label in dataset.take(1):", f"    print(image.shape, {shown})")
