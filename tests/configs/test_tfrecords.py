"""Existing datasets, ours and other people's, become datasets again."""

import base64
import gzip
import io
import json
import struct

import numpy as np
import pytest
from crc32c import crc32c
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.features import Example
from recordmill.storage.tfrecord_file import masked

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WHOLE = ("--set", "splits={fractions: {train: 1.0}}")
OURS = [
    name
    for name in convention_names()
    if load_convention(name).stores == "jpeg"
    and any(feature.field == "encoded" for feature in load_convention(name).example_features)
    and name != "deeplab"  # no Example gives semantic masks
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
    ("convention", "compression"),
    [*((name, "none") for name in OURS[::2]), ("default", "gzip")],
)
def test_our_dataset_comes_out_as_it_went_in(convention, compression, pets, tmp_path, convert):
    arguments = ["--set", f"convention={convention}", "--set", f"compression={compression}"]
    if convention == "tf_object_detection":  # which has no place for the class of an image
        arguments += ["--set", "source.class_from=none"]
    first = tmp_path / "first"
    assert launch([f"--input={pets}", f"--output={first}", *arguments], build) == 0
    _, found = convert("tfrecords.yaml", first, "--set", f"convention={convention}")
    expected = {split: examples_below(first, split) for split in ("train", "test")}
    assert {split: sorted(examples, key=repr) for split, examples in found.items()} == expected


@pytest.mark.parametrize(
    ("convention", "more"),
    [
        ("tfrecorder", ()),
        (
            "raw_pixels",
            ("--set", "source={kind: tfrecords, convention: raw_pixels, shape: [10, 20, 3]}"),
        ),
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
    """The Examples of a split of a dataset, which may be gzipped."""
    found = []
    for shard in json.loads((folder / "recordmill.json").read_bytes())["splits"][split]["shards"]:
        content = (folder / shard["name"]).read_bytes()
        content = gzip.decompress(content) if shard["name"].endswith(".gz") else content
        offset = 0
        while offset < len(content):
            (length,) = struct.unpack_from("<Q", content, offset)
            features = Example.FromString(
                content[offset + 12 : offset + 12 + length]
            ).features.feature
            found.append(
                {
                    key: list(getattr(each, each.WhichOneof("kind")).value)
                    for key, each in features.items()
                }
            )
            offset += length + 16
    return sorted(found, key=repr)


def test_image_tfrecord_builders_files_are_read(tmp_path, picture, convert):
    base = tmp_path / "flowers"
    for shard in (1, 2):
        train = [{"train/label": b"rose", "train/image": picture((shard, n))} for n in range(3)]
        write_examples(base / f"flowers_training_{shard:02}of02.tfrecord", *train)
    write_examples(
        base / "flowers_test_01of01.tfrecord",
        {"train/label": b"tulip", "train/image": picture("t")},
    )
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
    write_examples(
        tmp_path / "one" / "a.tfrecord", *({"image": picture(n), "label": n} for n in range(11))
    )
    write_examples(
        tmp_path / "two" / "b-00000-of-00001",
        {
            "image/encoded": picture("b"),
            "image/class/label": 1,
            "image/class/text": b"10",
            "image/format": b"jpeg",
        },
    )
    more = (f"--input=two={tmp_path / 'two'}", *WHOLE)
    marker, found = convert("tfrecords.yaml", f"one={tmp_path / 'one'}", *more)
    assert marker["labels"] == {str(number): number for number in range(11)}
    assert {each["image/encoded"][0]: each["image/class/label"][0] for each in found["train"]} == {
        **{picture(number): number for number in range(11)},
        picture("b"): 10,
    }


def test_damaged_records_are_rejected_with_their_position(tmp_path, picture, convert):
    path = tmp_path / "bad" / "train.tfrecord"
    write_examples(path, *({"image": picture(number), "label": 0} for number in range(5)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[:-3] + b"")
    marker, found = convert("tfrecords.yaml", path, *WHOLE, "--set=max_rejected.containers=1")
    assert marker["ledger"]["rejected"] == {"bad_record": 1, "bad_tfrecord": 1}
    assert {each["image/encoded"][0] for each in found["train"]} == {
        picture(number) for number in (0, 1, 3)
    }


@pytest.mark.parametrize(
    "form", ["labels.txt", "plain labels.txt", "label.labels.txt", "class_names_file"]
)
def test_classes_that_are_only_numbered_have_the_names_of_a_file(form, tmp_path, picture, convert):
    """The writer's own ids are kept: an emu is 0, though a cat would come before it."""
    old, names = tmp_path / "old", ["emu", "cat", "dog"]
    write_examples(
        old / "train.tfrecord", *({"image": picture(n), "label": n % 2} for n in range(4))
    )
    lines = "".join(f"{name}\n" for name in names)
    more = ()
    if form == "labels.txt":
        (old / form).write_text("".join(f"{number}:{name}\n" for number, name in enumerate(names)))
    elif form == "class_names_file":
        (tmp_path / "names").write_text(lines)
        more = ("--set", f"source.class_names_file={tmp_path / 'names'}")
    else:
        (old / form.rpartition(" ")[2]).write_text(lines)
    marker, found = convert("tfrecords.yaml", old, *WHOLE, *more)
    assert marker["labels"] == {"emu": 0, "cat": 1, "dog": 2}
    assert {
        (each["image/encoded"][0], each["image/class/label"][0], each["image/class/text"][0])
        for each in found["train"]
    } == {(picture(n), n % 2, names[n % 2].encode()) for n in range(4)}


def test_datasets_that_number_classes_differently_are_merged_by_their_names(
    tmp_path, picture, convert
):
    for folder, names in (("one", "cat\ndog\n"), ("two", "dog\nemu\n")):
        write_examples(
            tmp_path / folder / "a.tfrecord",
            *({"image": picture((folder, n)), "label": n} for n in (0, 1)),
        )
        (tmp_path / folder / "labels.txt").write_text(names)
    more = (f"--input=two={tmp_path / 'two'}", "--set", "source.keep_ids=false", *WHOLE)
    marker, found = convert("tfrecords.yaml", f"one={tmp_path / 'one'}", *more)
    assert marker["labels"] == {"cat": 0, "dog": 1, "emu": 2}
    assert {
        (each["image/encoded"][0], each["image/class/label"][0]) for each in found["train"]
    } == {
        (picture(("one", 0)), 0),
        (picture(("one", 1)), 1),
        (picture(("two", 0)), 1),
        (picture(("two", 1)), 2),
    }


def write_vectors(path, vectors):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b""
    for name, vector, label in vectors:
        example = Example()
        example.features.feature["sha256"].bytes_list.value.append(name)
        example.features.feature["feature"].float_list.value.extend(vector)
        example.features.feature["label"].int64_list.value.append(label)
        content += frame(example.SerializeToString())
    path.write_bytes(content)


VECTORS = [
    (f"{number:064x}".encode(), [number / 2, -1.5, float(number)], number % 3)
    for number in range(40)
]


@pytest.mark.parametrize("convention", ["feature_vector", "feature_vector_by_name"])
def test_files_of_feature_vectors_come_out_as_they_went_in(convention, tmp_path, convert):
    """The original deals items to `shard_0`, `shard_1`, ... and splits nothing."""
    for shard in range(3):
        write_vectors(tmp_path / "old" / f"shard_{shard}", VECTORS[shard::3])
    arguments = (
        "--set",
        f"source={{kind: tfrecords, convention: {convention}, key_feature: sha256}}",
    )
    fractions = (
        "--set",
        "splits={fractions: {train: 0.9, validation: 0.1}}",
        "--set",
        "include=[shard_*]",
    )
    marker, found = convert(
        "tfrecords.yaml",
        tmp_path / "old",
        *arguments,
        *fractions,
        "--set",
        f"convention={convention}",
    )
    assert (
        sorted(
            (each["sha256"][0], each["feature"], each["label"][0])
            for part in found.values()
            for each in part
        )
        == VECTORS
    )
    assert (marker["ledger"]["written"], marker["labels"]) == (40, {"0": 0, "1": 1, "2": 2})
    assert 0 < marker["splits"]["validation"]["records"] < marker["splits"]["train"]["records"]


def test_vectors_are_relabeled_and_go_to_a_mapping_of_ones_own(tmp_path, convert):
    write_vectors(tmp_path / "old" / "a.tfrecord", VECTORS)
    source = "source={kind: tfrecords, convention: feature_vector, class_names: [x, y, z]}"
    own = (
        "convention={features: {v: {type: float, shape: [null], field: feature}, c: {type: "
        "bytes, field: label_text}}}"
    )
    _, found = convert("tfrecords.yaml", tmp_path / "old", "--set", source, "--set", own, *WHOLE)
    expected = sorted((vector, [b"xyz"[label : label + 1]]) for _, vector, label in VECTORS)
    assert sorted((each["v"], each["c"]) for each in found["train"]) == expected
    assert {key for each in found["train"] for key in each} == {"v", "c"}


def test_vectors_without_a_convention_get_an_error_that_names_the_setting(tmp_path, capsys):
    write_vectors(tmp_path / "old" / "a.tfrecord", VECTORS[:3])
    arguments = (
        "--config=configs/tfrecords.yaml",
        f"--input={tmp_path / 'old'}",
        f"--output={tmp_path / 'new'}",
    )
    assert launch([*arguments, *WHOLE], build) == 3
    errors = [line for line in capsys.readouterr().err.splitlines() if "bad_example: " in line]
    assert len(errors) == 3
    for error in errors:
        assert error.endswith("(feature, label, sha256): set source.convention)")
