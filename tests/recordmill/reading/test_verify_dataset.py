import hashlib
import json
import shutil

import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.conventions import convention_names, load_convention

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LEVELS = ("frames", "files", "pixels")


@pytest.fixture
def ours(published, tmp_path):
    """A dataset of ours that may be changed."""
    return shutil.copytree(published["none"], tmp_path / "dataset")


def lines(path, level="files"):
    return [str(finding) for finding in verify_dataset(open_dataset(str(path)), level).findings]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("level", LEVELS)
def test_in_a_sound_dataset_nothing_is_wrong(published, compression, level):
    verification = verify_dataset(open_dataset(str(published[compression])), level)
    assert verification.findings == ()
    assert (verification.records, len(verification.checks), verification.failed) == (24, 4, 0)
    said = verification.as_dict()
    assert (said["records"], said["files"], said["damages"], said["level"]) == (24, 4, 0, level)
    assert json.loads(json.dumps(said)) == said


def test_missing_unlisted_and_changed_files_are_found(ours):
    (ours / "train-00000-of-00002.tfrecord").rename(ours / "train-00000-of-00009.tfrecord")
    (ours / "labels.txt").unlink()
    sidecar = ours / "sidecars" / "test-00000-of-00002.tfrecord.jsonl"
    sidecar.write_bytes(sidecar.read_bytes().replace(b'"channels":3', b'"channels":1'))
    found = lines(ours)
    assert found == [
        "train-00000-of-00002.tfrecord: the file is missing",
        "test-00000-of-00002.tfrecord: the sidecar has another sha256 than recordmill.json says "
        f"({sidecar})",
        "train-00000-of-00009.tfrecord: the dataset does not list this file: readers that use a "
        "glob read it too",
        "labels.txt: the file is missing",
    ]
    assert lines(ours, "frames") == found[:1]


def test_a_label_that_is_none(ours):
    marker = json.loads((ours / "recordmill.json").read_bytes())
    marker["labels"] = {"cat": 0, "dog": 1}
    (ours / "recordmill.json").write_text(json.dumps(marker))
    found = [line for line in lines(ours) if ".tfrecord, " in line]
    assert len(found) == 8
    assert all("(owl/" in line for line in found)
    assert all(
        line.endswith("the label is 2, not one of the 2 ids from 0 to 1 (image/class/label)")
        for line in found
    )


def test_a_shard_is_walked_at_level_files_only_if_its_digest_differs(ours):
    shard = ours / "train-00001-of-00002.tfrecord"
    content = bytearray(shard.read_bytes())
    content[40] ^= 0x10
    shard.write_bytes(content)
    key = json.loads((ours / "sidecars" / f"{shard.name}.jsonl").read_bytes().splitlines()[0])[
        "key"
    ]
    walked = [f"{shard.name}, record 0 at byte 0 ({key}): the data do not match their checksum"]
    assert lines(ours) == walked
    marker = json.loads((ours / "recordmill.json").read_bytes())
    marker["splits"]["train"]["shards"][1]["sha256"] = hashlib.sha256(content).hexdigest()
    (ours / "recordmill.json").write_text(json.dumps(marker))
    assert lines(ours) == []
    assert lines(ours, "frames") == lines(ours, "pixels") == walked


def test_a_record_other_than_its_row_and_its_fingerprint_is_found(ours):
    """The digests of files were all computed again, as by somebody who forges a dataset."""
    sidecar = ours / "sidecars" / "train-00001-of-00002.tfrecord.jsonl"
    marker = json.loads((ours / "recordmill.json").read_bytes())
    row = json.loads(sidecar.read_bytes().splitlines()[1])
    sidecar.write_bytes(sidecar.read_bytes().replace(row["record"].encode(), b"0" * 64))
    shard = marker["splits"]["train"]["shards"][1]
    shard["sidecar_sha256"] = hashlib.sha256(sidecar.read_bytes()).hexdigest()
    (ours / "recordmill.json").write_text(json.dumps(marker))
    found = [line.partition("fingerprint.")[2].partition(":")[0] for line in lines(ours)]
    assert found == [f"classes.{row['class']}", "dataset", "splits.train"]
    place = f"{shard['name']}, record 1 at byte {row['offset']:,} ({row['key']})"
    assert (
        lines(ours, "pixels")[0]
        == f"{place}: the record is not the one that its row in the sidecar describes"
    )


def test_the_record_count_of_a_shard_with_the_right_digest_is_checked(ours):
    marker = json.loads((ours / "recordmill.json").read_bytes())
    stated = marker["splits"]["train"]["shards"][0]
    stated["records"] += 1
    (ours / "recordmill.json").write_text(json.dumps(marker))
    count = stated["records"]
    place = f"{stated['name']}, record {count - 1} at byte {stated['bytes']:,}"
    assert lines(ours) == [f"{place}: expected {count:,} records, found {count - 1:,}"]


def test_feature_kinds_over_the_files_of_a_stranger(tmp_path, frame, example):
    (tmp_path / "train-1.tfrecord").write_bytes(frame(example(a=1)))
    (tmp_path / "train-2.tfrecord").write_bytes(frame(example(a=b"x")))
    here = "feature a is bytes here and int64 in record 0 of train-1.tfrecord"
    assert lines(tmp_path) == [f"train-2.tfrecord, record 0 at byte 0: {here}"]
    (tmp_path / "train-2.tfrecord").write_bytes(b"")
    (tmp_path / "train-1.tfrecord").write_bytes(frame(example(a=1)) + 2 * frame(example(a=b"x")))
    second = len(frame(example(a=1)))
    assert lines(tmp_path)[1:] == [f"train-1.tfrecord, record 1 at byte {second}: {here}"]


def test_missing_and_stale_shards_of_a_stranger(tmp_path, frame, example):
    for name in ("a-00000-of-00003", "a-00002-of-00003", "a-00000-of-00002", "b_01of02.tfrecord"):
        (tmp_path / name).write_bytes(frame(example(a=1)))
    assert lines(tmp_path) == [
        "a-*: shard 1 of 3 is missing",
        "a-*: 1 files of a set of 2 are next to the set of 3: readers that use a glob read both",
        "b_*.tfrecord: shard 2 of 2 is missing",
    ]
    assert lines(tmp_path, "frames") == []
    (tmp_path / "c-00000-of-99999999999999").write_bytes(frame(example(a=1)))
    assert "c-*: shard 100 of 99999999999999 is missing" in lines(tmp_path)


# tests/pipeline/test_segmentation.py verifies semantic masks.
@pytest.mark.parametrize("convention", sorted({*convention_names()} - {"deeplab"}))
def test_every_convention_verifies(tmp_path, convert, convert_boxed, convention):
    layout = load_convention(convention)
    computed = "feature" in layout.fields or not layout.features
    vectors = ["--set", "features.feature=mean_std"] if computed else []
    make = convert_boxed if convention == "tf_object_detection" else convert
    output = make(tmp_path, "--set", f"convention={convention}", *vectors)
    assert lines(output, "pixels") == []


def test_images_in_several_splits_are_noted(tmp_path, convert, draw):
    for split in ("train", "test"):
        (tmp_path / "photos" / split / "cat").mkdir(parents=True)
        (tmp_path / "photos" / split / "cat" / f"{split}.jpg").write_bytes(draw(1))
        (tmp_path / "photos" / split / "cat" / f"{split}2.jpg").write_bytes(draw(split))
    output = convert(
        tmp_path,
        "--set",
        "splits.from_folders={train: train, test: test}",
        "--set",
        "shards.count=1",
    )
    verification = verify_dataset(open_dataset(str(output)))
    (finding,) = verification.findings
    detail = (
        "duplicates.jsonl: one image in several splits: test/cat/test.jpg in test and "
        "train/cat/train.jpg in train"
    )
    assert (str(finding), verification.failed) == (detail, 0)


def test_pixels_are_decoded_and_named(tmp_path, frame, example, draw):
    content = frame(example(image=draw(1), label=1)) + frame(
        example(image=draw(2)[:-60] + b"\xff\xd9", label=1)
    )
    (tmp_path / "a.tfrecord").write_bytes(content)
    assert lines(tmp_path / "a.tfrecord") == []
    (line,) = lines(tmp_path / "a.tfrecord", "pixels")
    assert line.startswith("a.tfrecord, record 1 at byte ")
    assert "the image cannot be decoded: truncated" in line


def test_files_that_tensorflow_wrote(tmp_path, draw):
    tf = pytest.importorskip("tensorflow")

    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    conventions = {
        "tutorial.tfrecord": {
            "height": 16,
            "width": 24,
            "depth": 3,
            "label": 1,
            "image_raw": draw(1),
        },
        "flowers_train_00000-of-00001.tfrecord": {
            "image/encoded": draw(2),
            "image/format": b"jpg",
            "image/class/label": 0,
            "image/height": 16,
            "image/width": 24,
        },
        "mnist-train.tfrecord-00000-of-00001": {"image": draw(3, (28, 28), "PNG"), "label": 7},
        "raw.tfrecord.gz": {"image": bytes(3072), "label": 7},
    }
    for name, values in conventions.items():
        options = tf.io.TFRecordOptions(compression_type="GZIP" if name.endswith("gz") else "")
        with tf.io.TFRecordWriter(str(tmp_path / name), options) as writer:
            for _ in range(5):
                features = tf.train.Features(
                    feature={key: feature(value) for key, value in values.items()}
                )
                writer.write(tf.train.Example(features=features).SerializeToString())
    for name in conventions:
        verification = verify_dataset(open_dataset(str(tmp_path / name)), "pixels")
        assert (verification.records, verification.findings) == (5, ())
