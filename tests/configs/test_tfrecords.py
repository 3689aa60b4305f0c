"""Existing datasets, ours and other people's, become datasets again."""

import base64
import gzip
import io
import struct

import numpy as np
import pytest
from crc32c import crc32c
from PIL import Image

from pipeline.launch import launch
from pipeline.run import build
from schemas.conventions import convention_names, load_convention
from schemas.example_proto import Example
from transforms.files.record_reader import masked

WHOLE = ("--set", "splits={fractions: {train: 1.0}}")
OURS = [
    name
    for name in convention_names()
    if load_convention(name).stores == "jpeg"
    and any(feature.field == "encoded" for feature in load_convention(name).features)
]


def frame(record):
    length = struct.pack("<Q", len(record))
    checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
    return length + checksums[0] + record + checksums[1]


def write_examples(path, *examples):
    """A file of Examples of bytes, ints and texts, as any writer makes it."""
    content = b""
    for values in examples:
        example = Example()
        for key, value in values.items():
            entry = example.features.feature[key]
            kind = entry.bytes_list if isinstance(value, bytes) else entry.int64_list
            kind.value.append(value)
        content += frame(example.SerializeToString())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def pets(tmp_path, picture):
    for label, count in (("cat", 5), ("dog", 8), ("emu", 3)):
        for number in range(count):
            path = tmp_path / "pets" / label / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture((label, number)))
    return tmp_path / "pets"


@pytest.mark.parametrize(
    ("convention", "compression"), [*((name, "none") for name in OURS), ("default", "gzip"), ("inception", "gzip")]
)
def test_our_dataset_comes_out_as_it_went_in(convention, compression, pets, tmp_path, convert):
    arguments = ("--set", f"convention={convention}", "--set", f"compression={compression}")
    first = tmp_path / "first"
    assert launch([f"--input={pets}", f"--output={first}", *arguments], build) == 0
    _, found = convert("tfrecords.yaml", first, "--set", f"convention={convention}")
    expected = {split: examples_below(first, split) for split in ("train", "test")}
    assert {split: sorted(examples, key=repr) for split, examples in found.items()} == expected


@pytest.mark.parametrize(
    ("convention", "more"),
    [
        ("tfrecorder", ()),
        ("raw_pixels", ("--set", "source={kind: tfrecords, convention: raw_pixels, shape: [10, 20, 3]}")),
    ],
)
def test_our_raw_pixels_come_out_as_they_went_in(convention, more, pets, tmp_path, convert):
    arguments = ("--set", f"convention={convention}")
    first = tmp_path / "first"
    assert launch([f"--input={pets}", f"--output={first}", *arguments], build) == 0
    _, found = convert("tfrecords.yaml", first, *arguments, "--set", "images={}", *more)
    expected = {split: examples_below(first, split) for split in ("train", "test")}
    assert {split: sorted(examples, key=repr) for split, examples in found.items()} == expected


def examples_below(folder, split):
    word = "training" if list(folder.glob("*_training_*")) and split == "train" else split
    found = []
    for path in folder.glob("*"):
        if word in path.name and path.is_file() and not path.name.startswith("label"):
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            offset = 0
            while offset < len(content):
                (length,) = struct.unpack_from("<Q", content, offset)
                features = Example.FromString(content[offset + 12 : offset + 12 + length]).features.feature
                found.append(
                    {key: list(getattr(each, each.WhichOneof("kind")).value) for key, each in features.items()}
                )
                offset += length + 16
    return sorted(found, key=repr)


def test_image_tfrecord_builders_files_are_read(tmp_path, picture, convert):
    base = tmp_path / "flowers"
    for shard in (1, 2):
        train = [{"train/label": b"rose", "train/image": picture((shard, n))} for n in range(3)]
        write_examples(base / f"flowers_training_{shard:02}of02.tfrecord", *train)
    write_examples(base / "flowers_test_01of01.tfrecord", {"train/label": b"tulip", "train/image": picture("t")})
    marker, found = convert("tfrecords.yaml", base)
    assert marker["labels"] == {"rose": 0, "tulip": 1}
    assert {(each["image/class/text"][0], each["image/encoded"][0]) for each in found["train"]} == {
        (b"rose", picture((shard, n))) for shard in (1, 2) for n in range(3)
    }
    assert [each["image/encoded"] for each in found["test"]] == [[picture("t")]]


def test_tensorflow_recorders_files_are_read(tmp_path, convert):
    pixels = {}
    for split, count in (("train", 3), ("test", 1)):
        examples = []
        for number in range(count):
            name = f"{split}{number}.png"
            pixels[name] = np.random.default_rng(number).integers(0, 256, (5, 7, 3), np.uint8)
            encoded = base64.urlsafe_b64encode(pixels[name].tobytes())
            shape = {"image_height": 5, "image_width": 7, "image_channels": 3}
            values = {"image": encoded, "image_name": name.encode(), **shape, "label": number}
            examples.append({**values, "split": split.upper().encode()})
        write_examples(tmp_path / "recorder" / f"{split}-00000-of-00001.tfrecord.gz", *examples)
    settings = (
        *("--set", "source.split_feature=split"),
        *("--set", "splits.from_source={TRAIN: train, TEST: test}"),
        *("--set", "images={quality: 100}"),
    )
    _, found = convert("tfrecords.yaml", tmp_path / "recorder", *settings)
    assert [len(found["train"]), len(found["test"])] == [3, 1]
    for example in (*found["train"], *found["test"]):
        name = example["image/filename"][0].decode()
        decoded = np.asarray(Image.open(io.BytesIO(example["image/encoded"][0])))
        assert abs(decoded.astype(int) - pixels[name]).mean() < 2
        assert example["image/class/label"] == [int(name.partition(".")[0][-1])]


def test_two_datasets_become_one(tmp_path, picture, convert, capsys):
    write_examples(tmp_path / "one" / "a.tfrecord", *({"image": picture(n), "label": n} for n in range(11)))
    write_examples(
        tmp_path / "two" / "b-00000-of-00001",
        {"image/encoded": picture("b"), "image/class/label": 1, "image/class/text": b"10", "image/format": b"jpeg"},
    )
    more = (f"--input=two={tmp_path / 'two'}", *WHOLE)
    marker, found = convert("tfrecords.yaml", f"one={tmp_path / 'one'}", *more)
    assert marker["labels"] == {str(number): number for number in range(11)}
    assert {each["image/encoded"][0]: each["image/class/label"][0] for each in found["train"]} == {
        **{picture(number): number for number in range(11)},
        picture("b"): 10,
    }


def test_what_is_damaged_is_rejected_with_its_place(tmp_path, picture, convert):
    path = tmp_path / "bad" / "train.tfrecord"
    write_examples(path, *({"image": picture(number), "label": 0} for number in range(5)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[:-3] + b"")
    marker, found = convert("tfrecords.yaml", path, *WHOLE)
    assert marker["ledger"]["rejected"] == {"bad_record": 2}
    assert {each["image/encoded"][0] for each in found["train"]} == {picture(number) for number in (0, 1, 3)}
