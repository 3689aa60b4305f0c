"""Images in arrays of bytes, from the configurations that Recordmill ships, pixel by pixel."""

import base64
import gzip
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def pictures(count, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def pixels_and_labels(examples):
    """The records as a sorted list of (label, bytes)."""
    return sorted((each["label"][0], each["image"][0]) for each in examples)


@pytest.fixture
def cifar10(tmp_path):
    """A folder like that of CIFAR-10, and the (label, planar pixels) of each split."""
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    expected = {"train": [], "test": []}
    for number, name in enumerate(["data_batch_1", "data_batch_2", "data_batch_3", "test_batch"]):
        images = pictures(20, (3, 32, 32), number)
        labels = [(number + index) % 10 for index in range(20)]
        records = [
            bytes([label]) + image.tobytes() for label, image in zip(labels, images, strict=True)
        ]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
        expected["test" if name == "test_batch" else "train"] += zip(labels, images, strict=True)
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    (folder / "readme.html").write_text("<html>")
    return folder, expected


def rows(images):
    """Planar pictures as (label, height x width x channels bytes), sorted."""
    return sorted((label, image.transpose(1, 2, 0).tobytes()) for label, image in images)


def test_seed_1_cifar_10_becomes_raw_pixels_with_the_splits_of_its_files(cifar10, convert):
    folder, expected = cifar10
    marker, examples = convert("cifar10.yaml", folder)
    assert {split: pixels_and_labels(found) for split, found in examples.items()} == {
        split: rows(images) for split, images in expected.items()
    }
    assert {len(each["image"][0]) for found in examples.values() for each in found} == {3072}
    assert marker["labels"] == {name: number for number, name in enumerate(NAMES)}
    assert marker["ledger"]["ignored"] == {"class_names": 1, "description": 1}
    assert marker["plan"]["settings"]["images"]["store"] == "raw"


@pytest.mark.parametrize("store", ["png", "jpeg"])
def test_seed_1_or_encoded_pngs_exactly(cifar10, convert, store):
    folder, expected = cifar10
    _, examples = convert("cifar10.yaml", folder, "--set", f"images.store={store}")
    for split, images in expected.items():
        found = [
            (each["label"][0], Image.open(io.BytesIO(each["image"][0]))) for each in examples[split]
        ]
        assert {(image.format, image.size, image.mode) for _, image in found} == {
            (store.upper(), (32, 32), "RGB")
        }
        if store == "png":
            assert sorted((label, image.tobytes()) for label, image in found) == rows(images)
        else:
            assert sorted(label for label, _ in found) == sorted(label for label, _ in images)


def test_seed_1_the_authors_reader_reads_it_back(cifar10, convert, tmp_path):
    tf = pytest.importorskip("tensorflow")
    folder, expected = cifar10
    convert("cifar10.yaml", folder)
    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    found = []
    for record in tf.data.TFRecordDataset(
        tf.io.gfile.glob(f"{tmp_path}/dataset-of-cifar10.yaml/train-*")
    ):
        example = tf.io.parse_single_example(record, features)
        image = tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), [32, 32, 3])
        found.append((int(example["label"]), image.numpy().tobytes()))
    assert sorted(found) == rows(expected["train"])


@pytest.mark.parametrize("label", ["fine_label", "coarse_label"])
def test_seed_1_cifar_100s_two_label_bytes_are_a_choice(tmp_path, convert, label):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "fine_label_names.txt").write_text(
        "".join(f"fine {number}\n" for number in range(100))
    )
    (folder / "coarse_label_names.txt").write_text(
        "".join(f"coarse {number}\n" for number in range(20))
    )
    images = pictures(30, (3, 32, 32))
    records = [
        bytes([index % 20, 99 - index]) + image.tobytes() for index, image in enumerate(images)
    ]
    (folder / "train.bin").write_bytes(b"".join(records[:20]))
    (folder / "test.bin").write_bytes(b"".join(records[20:]))
    settings = ("--set", "source.preset=cifar100", "--set", f"source.label={label}")
    marker, examples = convert("cifar10.yaml", folder, *settings)
    numbers = {"coarse_label": lambda index: index % 20, "fine_label": lambda index: 99 - index}
    other = next(name for name in numbers if name != label)
    everything = sorted(
        (each["image"][0], each["label"][0], each[other][0])
        for found in examples.values()
        for each in found
    )
    assert everything == sorted(
        (image.transpose(1, 2, 0).tobytes(), numbers[label](index), numbers[other](index))
        for index, image in enumerate(images)
    )
    assert {split: len(found) for split, found in examples.items()} == {"train": 20, "test": 10}
    assert next(iter(marker["labels"])).startswith(label.partition("_")[0])


def test_seed_1_a_file_of_another_length_is_rejected_with_its_name_and_the_remainder(
    cifar10, convert, tmp_path
):
    folder, _ = cifar10
    with open(folder / "data_batch_2.bin", "ab") as file:
        file.write(b"12345")
    marker, examples = convert("cifar10.yaml", folder, "--set=max_rejected.containers=1")
    assert marker["ledger"]["rejected"] == {"wrong_length": 1}
    (row,) = map(
        json.loads,
        (tmp_path / "dataset-of-cifar10.yaml" / "rejected.jsonl").read_text().splitlines(),
    )
    assert (row["key"], row["reason"]) == ("data_batch_2.bin", "wrong_length")
    assert (
        row["detail"]
        == "61,465 bytes are not a header of 0 bytes and whole records of 3,073 bytes: the last "
        "has 5"
    )
    assert len(examples["train"]) == 40


def test_an_unknown_label_rejects_only_its_record(cifar10, convert):
    folder, _ = cifar10
    content = bytearray((folder / "data_batch_1.bin").read_bytes())
    content[3073] = 200
    (folder / "data_batch_1.bin").write_bytes(content)
    marker, examples = convert("cifar10.yaml", folder)
    assert marker["ledger"]["rejected"] == {"unknown_label": 1}
    assert len(examples["train"]) == 59


def test_what_cifar10_yaml_offers_in_comments_works(tmp_path, convert):
    images = pictures(12, (64, 48, 3))
    (tmp_path / "own").mkdir()
    for split, chosen in (("train", range(8)), ("test", range(8, 12))):
        records = [bytes([index % 2, index]) + images[index].tobytes() for index in chosen]
        (tmp_path / "own" / f"{split}_1.dat").write_bytes(bytes(16) + b"".join(records))
    layout = (
        "{kind: fixed_records, preset: '', data: {train: 'train_*.dat', test: 'test_*.dat'}, "
        "header: 16, "
        "labels: [label, quality], "
        "label: label, height: 64, width: 48, channels: 3, order: interleaved, class_names: [cat, "
        "dog]}"
    )
    marker, examples = convert("cifar10.yaml", tmp_path / "own", "--set", f"source={layout}")
    assert marker["labels"] == {"cat": 0, "dog": 1}
    found = sorted(
        (each["quality"][0], each["label"][0], each["image"][0])
        for part in examples.values()
        for each in part
    )
    assert found == [(index, index % 2, image.tobytes()) for index, image in enumerate(images)]


def idx(array):
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def shown(example):
    """A record of the default convention as (label, text, pixels)."""
    image = Image.open(io.BytesIO(example["image/encoded"][0]))
    assert (image.format, example["image/format"]) == ("PNG", [b"png"])
    assert (image.height, image.width) == (example["image/height"][0], example["image/width"][0])
    return example["image/class/label"][0], example["image/class/text"][0].decode(), image.tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_mnists_files(tmp_path, convert, packed):
    folder = tmp_path / "mnist"
    folder.mkdir()
    expected = {}
    for split, word, count in (("train", "train", 30), ("test", "t10k", 12)):
        images, labels = (
            pictures(count, (28, 28), count),
            np.arange(count, dtype=np.uint8)[::-1] % 11,
        )
        expected[split] = sorted(
            (int(label), str(label), image.tobytes())
            for label, image in zip(labels, images, strict=True)
        )
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            name = f"{word}-{kind}-ubyte"
            (folder / (f"{name}.gz" if packed else name)).write_bytes(
                gzip.compress(idx(array)) if packed else idx(array)
            )
    marker, examples = convert("idx.yaml", folder)
    assert {split: sorted(map(shown, found)) for split, found in examples.items()} == expected
    assert marker["labels"] == {str(number): number for number in range(11)}
    assert marker["ledger"]["ignored"] == {"labels": 2}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, None])
def test_numpys_arrays(tmp_path, convert, save):
    folder = tmp_path / "arrays"
    folder.mkdir()
    arrays, expected = {}, {}
    for split, count in (("train", 20), ("test", 9)):
        images, labels = pictures(count, (6, 5, 3), count), np.arange(count)[:, None] % 3
        arrays |= {f"x_{split}": images, f"y_{split}": labels}
        expected[split] = sorted(
            (int(label), str(label), image.tobytes())
            for (label,), image in zip(labels, images, strict=True)
        )
    if save:
        save(folder / "data.npz", **arrays)
    else:
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
    marker, examples = convert("arrays.yaml", folder)
    assert {split: sorted(map(shown, found)) for split, found in examples.items()} == expected
    assert marker["labels"] == {"0": 0, "1": 1, "2": 2}


def test_tensorflow_recorders_features_of_an_array(tmp_path, read_examples):
    images, labels = pictures(8, (6, 5)), np.arange(8) % 2
    np.savez(tmp_path / "data.npz", x_train=images, y_train=labels)
    settings = [
        "convention=tfrecorder",
        "compression=gzip",
        "images.store=raw",
        "splits={from_source: {train: train}}",
        "source.class_names=[cat, dog]",
    ]
    arguments = [word for setting in settings for word in ("--set", setting)]
    output = tmp_path / "dataset"
    config = Path(__file__).parents[2] / "configs" / "arrays.yaml"
    run = [
        f"--config={config}",
        f"--input={tmp_path / 'data.npz'}",
        f"--output={output}",
        *arguments,
    ]
    assert launch(run, build) == 0
    found = list(
        read_examples(gzip.decompress((output / "train-00000-of-00001.tfrecord.gz").read_bytes()))
    )
    assert {tuple(each["split"] + each["image_channels"]) for each in found} == {(b"TRAIN", 1)}
    assert sorted(
        (each["image_name"][0].decode(), base64.urlsafe_b64decode(each["image"][0]), *each["label"])
        for each in found
    ) == [(f"x_train#{index}", image.tobytes(), index % 2) for index, image in enumerate(images)]


def test_pictures_in_files_become_raw_pixels_too(tmp_path, convert):
    """`images.store` is of no source in particular."""
    for label in ("cat", "dog"):
        for number in range(4):
            path = tmp_path / "photos" / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (7, 5), (40 * number, len(label), 9)).save(path)
    marker, examples = convert(
        "class_folders.yaml", tmp_path / "photos", "--set", "convention=raw_pixels"
    )
    found = sorted(
        (each["label"][0], each["image"][0]) for part in examples.values() for each in part
    )
    assert found == [
        (label, bytes((40 * number, 3, 9)) * 35) for label in (0, 1) for number in range(4)
    ]
    assert marker["changes"] == {"reencoded": 8}
