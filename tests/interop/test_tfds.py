"""TensorFlow Datasets loads what has a dataset_info.json, and nothing lacks one without a
reason."""

import re
from dataclasses import replace

import numpy as np
import pytest

REASON = "needs an environment of its own: make test-interop"
tfds = pytest.importorskip("tensorflow_datasets", reason=REASON)
tf = pytest.importorskip("tensorflow", reason=REASON)


@pytest.fixture
def builder(dataset):
    if not (dataset.folder / "dataset_info.json").exists():
        card = (dataset.folder / "README.md").read_text(encoding="utf-8")
        reason = re.search(r"TensorFlow Datasets cannot read it, because (.+)\. There is no", card)[
            1
        ]
        assert not (dataset.folder / "features.json").exists()
        pytest.skip(f"the card says: {reason}")
    return tfds.builder_from_directory(str(dataset.folder))


def values_of(record):
    example = tf.train.Example.FromString(record).features.feature
    return {
        key: list(getattr(feature, feature.WhichOneof("kind")).value)
        for key, feature in example.items()
    }


def as_bytes(pixels):
    """Raw pixels of one size come as an array, others as they are stored."""
    return pixels.tobytes() if isinstance(pixels, np.ndarray) else pixels


def test_splits_features_and_class_names(dataset, builder):
    for name, split in dataset.marker["splits"].items():
        assert builder.info.splits[name].num_examples == split["records"]
        assert builder.info.splits[name].shard_lengths == [
            shard["records"] for shard in split["shards"]
        ]
        paths = [str(path) for path in builder.info.splits[name].filepaths]
        assert paths == dataset.files(name)
    assert set(builder.info.features) == set(dataset.marker["features"])
    if "label" in dataset.keys:
        label = builder.info.features[dataset.keys["label"]]
        assert {name: label.str2int(name) for name in dataset.labels} == dataset.labels


def test_every_value_of_every_example_comes_back(dataset, builder):
    for split in dataset.marker["splits"]:
        written = [values_of(raw.numpy()) for raw in tf.data.TFRecordDataset(dataset.files(split))]
        options = tfds.ReadConfig(interleave_cycle_length=1)
        image = dataset.keys.get("encoded")
        decoders = {image: tfds.decode.SkipDecoding()} if image and not dataset.is_raw else {}
        read = list(
            builder.as_dataset(
                split=split, read_config=options, decoders=decoders
            ).as_numpy_iterator()
        )
        assert len(read) == len(written) == dataset.marker["splits"][split]["records"]
        for example, record in zip(read, written, strict=True):
            assert set(example) >= set(record)
            for key in example:
                values = record.get(key, [])  # a list that an Example lacks is an empty one
                if dataset.is_raw and key == image:
                    assert as_bytes(example[key]) == values[0]
                else:
                    assert np.asarray(example[key], object).reshape(-1).tolist() == values


def test_slices_and_sums_of_splits(dataset, builder):
    counts = {name: split["records"] for name, split in dataset.marker["splits"].items()}
    half = builder.as_dataset(split="train[50%:]")
    assert len(half) == counts["train"] - round(counts["train"] / 2) == sum(1 for _ in half)
    both = builder.as_dataset(split="train[:3]+test")
    assert len(both) == 3 + counts["test"] == sum(1 for _ in both)


def test_pixels_and_labels_in_pairs(dataset, builder):
    if not {"encoded", "label"} <= set(dataset.keys):
        assert builder.info.supervised_keys is None
        return
    options = tfds.ReadConfig(interleave_cycle_length=1)
    pairs = builder.as_dataset(split="test", as_supervised=True, read_config=options)
    rows = dataset.rows("test")
    assert len(pairs) == len(rows)
    encoded = [
        values_of(raw.numpy())[dataset.keys["encoded"]][0]
        for raw in tf.data.TFRecordDataset(dataset.files("test"))
    ]
    every = [row for split in dataset.marker["splits"] for row in dataset.rows(split)]
    shapes = {(row["height"], row["width"], row["channels"]) for row in every}
    for (image, label), row, data in zip(pairs, rows, encoded, strict=True):
        assert int(label) == row["label"]
        if not dataset.is_raw:
            assert image.shape == (row["height"], row["width"], 3)
            assert np.array_equal(
                image, tf.io.decode_image(data, channels=3, expand_animations=False)
            )
        elif len(shapes) == 1:
            assert (image.shape, image.dtype) == (next(iter(shapes)), tf.uint8)
            assert image.numpy().tobytes() == data
        else:
            assert image.numpy() == data


PATTERNS = {
    "{split}-{index:05d}-of-{count:05d}": {},
    "{name}_{split}_{index:05d}-of-{count:05d}.tfrecord": {},
    "{name}-{split}.tfrecord-{index:05d}-of-{count:05d}": {},
    "{split}.{index:05d}.{count:05d}.x": {},
    "{{odd}} {split} {index:05d}": {},
    "{split}.record": {"shards.count": 1},
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_other_names(convert, pattern):
    settings = {**PATTERNS[pattern], "shards.name": f"'{pattern}'"}
    dataset = convert(
        "sample", "default", *(f"--set={key}={value}" for key, value in settings.items())
    )
    builder = tfds.builder_from_directory(str(dataset.folder))
    for split, described in dataset.marker["splits"].items():
        assert [str(path) for path in builder.info.splits[split].filepaths] == dataset.files(split)
        assert sum(1 for _ in builder.as_dataset(split=split)) == described["records"]


def test_labels_counted_from_one(convert):
    dataset = convert("sample", "default", "--set=labels.offset=1")
    builder = tfds.builder_from_directory(str(dataset.folder))
    label = builder.info.features["image/class/label"]
    assert label.names == ["background", *sorted(dataset.labels)]
    by_name = {
        (each["image/class/text"], each["image/class/label"])
        for each in tfds.as_numpy(builder.as_dataset(split="train"))
    }
    assert {(name.decode(), int(number)) for name, number in by_name} == set(dataset.labels.items())


def test_class_names_that_files_of_lines_cannot_hold(convert, tmp_path):
    from PIL import Image

    names = [" cat", "cat", "a\nb", "c\\nd", "\u3000", "Größe"]
    for number, name in enumerate(names):
        (tmp_path / name).mkdir()
        for copy in range(4):
            Image.new("RGB", (8, 8), (number * 9, copy * 9, 7)).save(
                tmp_path / name / f"{copy}.png"
            )
    dataset = convert(tmp_path, "default", "--set=splits.fractions={train: 1.0}")
    assert set(dataset.labels) == set(names)
    builder = tfds.builder_from_directory(str(dataset.folder))
    shown = builder.info.features["image/class/label"].names
    assert len(shown) == len(dataset.labels) == len(set(shown)) == 6
    assert shown[dataset.labels["Größe"]] == "Größe"


def test_the_folder_of_a_version(convert):
    versions = convert("sample", "default", "--versions")
    assert set(versions.marker) == {"recordmill", "current"}
    dataset = replace(versions, folder=versions.folder / versions.marker["current"])
    builder = tfds.builder_from_directory(str(dataset.folder))
    for split, described in dataset.marker["splits"].items():
        assert [str(path) for path in builder.info.splits[split].filepaths] == dataset.files(split)
        assert sum(1 for _ in builder.as_dataset(split=split)) == described["records"]
