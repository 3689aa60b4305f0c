"""Two real collections: every image one Example, of the right label and size; TensorFlow reads all
of it."""

import json
from collections import Counter

import pytest
from PIL import Image
from run_python import run_python

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

READ_ALL = """
import collections, json, sys
import tensorflow as tf
from recordmill import load_convention, tensorflow_features
description = tensorflow_features(load_convention("default").example_features)
answer = {}
for folder in sys.argv[1:]:
    files = sorted(tf.io.gfile.glob(folder + "/*.tfrecord"))
    rows = []
    batches = tf.data.TFRecordDataset(files).batch(64)
    for batch in batches.map(lambda examples: tf.io.parse_example(examples, description)):
        for i, encoded in enumerate(batch["image/encoded"]):
            height, width, channels = tf.io.decode_jpeg(encoded).shape
            rows.append([
                batch["image/class/text"][i].numpy().decode(),
                int(batch["image/class/label"][i]),
                batch["image/filename"][i].numpy().decode(),
                height,
                width,
            ])
            assert (height, width) == (int(batch["image/height"][i]), int(batch["image/width"][i]))
    answer[folder] = sorted(rows)
print(json.dumps(answer))
"""


@pytest.fixture
def imagenet(shared_data, convert):
    settings = {
        "source.pattern": r"(?P<synset>n[0-9]+)_(?P<label>.+)\.JPEG",
        "source.features_from": {"image/class/synset": "synset"},
        "labels.ids": "names",
        "shards.count": 2,
    }
    return convert(
        shared_data / "imagenet-flat", "--config=configs/filename_labels.yaml", settings=settings
    )


@pytest.fixture
def cifar(shared_data, convert, tmp_path):
    settings = {"splits.from_folders": {"train": "train", "test": "test"}}
    return convert(shared_data / "cifar-folders", settings=settings, output=tmp_path / "cifar")


def described(path):
    with Image.open(path) as image:
        turned = image.getexif().get(0x0112, 1) >= 5
        return image.size[::-1] if not turned else image.size


def check_bytes(done, folder, text_of):
    """Every file is one Example with its label and size, and its own bytes where nothing had to be
    changed."""
    changed = {row["key"] for row in done.rows() if row["changes"]}
    by_name = {
        (example["image/class/text"].decode(), example["image/filename"].decode()): example
        for example in done.examples()
    }
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(by_name) == len(files)
    ids = {name: index for index, name in enumerate(sorted({text_of(path) for path in files}))}
    assert done.marker["labels"] == ids
    for path in files:
        example = by_name[text_of(path), path.name]
        assert example["image/class/label"] == ids[text_of(path)]
        assert (example["image/height"], example["image/width"]) == described(path)
        if str(path.relative_to(folder)) not in changed:
            assert example["image/encoded"] == path.read_bytes()
    assert len(changed) < len(files) / 10


def test_imagenet(imagenet, shared_data):
    assert (imagenet.code, imagenet.rejected, imagenet.marker["ledger"]["written"]) == (0, [], 250)
    check_bytes(imagenet, shared_data / "imagenet-flat", lambda path: path.stem.split("_", 1)[1])
    synsets = {
        example["image/filename"].split(b"_")[0]: example["image/class/synset"]
        for example in imagenet.examples()
    }
    assert all(name == synset for name, synset in synsets.items())


def test_cifar(cifar, shared_data):
    assert (cifar.code, cifar.rejected, cifar.marker["ledger"]["written"]) == (0, [], 500)
    folder = shared_data / "cifar-folders"
    for split in ("train", "test"):
        assert cifar.keys(split) == sorted(
            str(path.relative_to(folder)) for path in (folder / split).rglob("*.jpg")
        )
    classes = Counter(path.parent.name for path in folder.rglob("*.jpg"))
    assert Counter(example["image/class/text"].decode() for example in cifar.examples()) == classes
    assert cifar.marker["labels"] == {name: index for index, name in enumerate(sorted(classes))}
    sources = Counter(path.read_bytes() for path in folder.rglob("*.jpg"))
    assert Counter(example["image/encoded"] for example in cifar.examples()) == sources
    assert {(example["image/height"], example["image/width"]) for example in cifar.examples()} == {
        (32, 32)
    }
    assert cifar.marker["output_bytes"] <= cifar.marker["input_bytes"] + 400 * 500


def test_passed_through_images_cost_at_most_400_bytes_each(imagenet):
    rows = [row for row in imagenet.rows() if not row["changes"]]
    assert len(rows) > 200
    assert sum(row["length"] + 16 for row in rows) <= sum(row["bytes"] for row in rows) + 400 * len(
        rows
    )


@pytest.mark.slow
def test_tensorflow_reads_all_of_both(imagenet, cifar, tmp_path):
    pytest.importorskip("tensorflow")
    folders = [str(imagenet.output), str(cifar.output)]
    (tmp_path / "read_all.py").write_text(READ_ALL)
    found = json.loads(run_python(["python", "read_all.py", *folders], tmp_path).stdout)
    for done in (imagenet, cifar):
        expected = [
            [row["class"], row["label"], row["key"].rpartition("/")[2], row["height"], row["width"]]
            for row in done.rows()
        ]
        assert found[str(done.output)] == sorted(expected)
    assert [len(found[folder]) for folder in folders] == [250, 500]


def test_images_truncated_before_an_end_marker_are_rejected(shared_data, convert, tmp_path):
    (tmp_path / "photos/cut").mkdir(parents=True)
    sources = sorted((shared_data / "imagenet-flat").iterdir())[::10]
    for source in sources:
        content = source.read_bytes()
        for share in (30, 50, 70, 90):
            (tmp_path / f"photos/cut/{source.stem}_{share}.jpg").write_bytes(
                content[: len(content) * share // 100] + b"\xff\xd9"
            )
        (tmp_path / "photos/cut" / source.name).write_bytes(content)
    settings = {"max_rejected.share": 1, "splits.fractions": {"train": 1.0}}
    done = convert(tmp_path / "photos", settings=settings)
    assert {row["reason"] for row in done.rejected} == {"truncated"}
    assert len(done.rejected) >= 0.95 * 4 * len(sources)
    assert {f"cut/{source.name}" for source in sources} <= set(done.keys())
