"""The third system that Recordmill replaces, its second half: images as TensorFlow's tutorial
stores them."""

import hashlib
import io

import pytest
from PIL import Image

from recordmill.reading.example import examples_as_numpy

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

# The two lists of settings that the configuration offers in comments.
ONE_FILE = (
    "--set",
    "splits={fractions: {images: 1}}",
    "--set",
    'shards={count: 1, name: "{split}.tfrecords"}',
)
LISTED = (
    "--set",
    "source={kind: manifest, columns: {uri: image, label: label}}",
    "--set",
    "labels.ids=integers",
)

LABELS = {"bridge": 0, "cat_in_snow": 1}


@pytest.fixture
def images(tmp_path, picture):
    """Files by path: JPEGs of several sizes, one of them gray."""
    files = {
        f"{label}/{number}.jpg": picture((label, number), size=(20 + number, 10))
        for label in LABELS
        for number in range(5)
    }
    gray = io.BytesIO()
    Image.new("L", (9, 7), 90).save(gray, "JPEG")
    files["bridge/gray.jpg"] = gray.getvalue()
    for path, content in files.items():
        (tmp_path / "images" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / path).write_bytes(content)
    return files


def expected(path, content):
    """What the tutorial's `image_example` makes of a file."""
    width, height = Image.open(io.BytesIO(content)).size
    return {
        "height": [height],
        "width": [width],
        "depth": [1 if path.endswith("gray.jpg") else 3],
        "label": [LABELS[path.partition("/")[0]]],
        "image_raw": [content],
    }


def by_image(examples):
    return sorted(examples, key=lambda each: each["image_raw"][0])


def test_seed_3_images_have_the_tutorials_keys_and_values(tmp_path, images, convert):
    marker, found = convert("tutorial.yaml", tmp_path / "images")
    assert by_image(found["train"] + found["test"]) == by_image(
        expected(*each) for each in images.items()
    )
    assert (marker["convention"], marker["labels"]) == ("tutorial", LABELS)
    assert marker["ledger"]["written"] == len(images) == 11


def test_seed_3_in_one_file_from_a_list_of_numbered_labels_as_there(tmp_path, images, convert):
    rows = [f"{path},{LABELS[path.partition('/')[0]]}" for path in images]
    (tmp_path / "images" / "images.csv").write_text("\n".join(["image,label", *rows]))
    marker, found = convert("tutorial.yaml", tmp_path / "images" / "images.csv", *ONE_FILE, *LISTED)
    assert [shard["name"] for shard in marker["splits"]["images"]["shards"]] == ["images.tfrecords"]
    assert by_image(found["images"]) == by_image(expected(*each) for each in images.items())


def test_seed_3_the_tutorials_reader_gets_every_image(tmp_path, images, convert):
    """As the tutorial has it: `image_feature_description`, and `image_raw` decoded."""
    tf = pytest.importorskip("tensorflow")
    convert("tutorial.yaml", tmp_path / "images", *ONE_FILE)
    description = {
        "height": tf.io.FixedLenFeature([], tf.int64),
        "width": tf.io.FixedLenFeature([], tf.int64),
        "depth": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image_raw": tf.io.FixedLenFeature([], tf.string),
    }
    records = tf.data.TFRecordDataset(
        str(tmp_path / "dataset-of-tutorial.yaml" / "images.tfrecords")
    )
    parsed = [tf.io.parse_single_example(record, description) for record in records]
    assert by_image(
        {key: [value.numpy()] for key, value in each.items()} for each in parsed
    ) == by_image(expected(*each) for each in images.items())
    for each in parsed:
        shape = [int(each[key]) for key in ("height", "width", "depth")]
        assert tf.io.decode_jpeg(each["image_raw"]).shape == shape


def test_seed_3_examples_as_numpy_gives_the_same_without_tensorflow(tmp_path, images, convert):
    convert("tutorial.yaml", tmp_path / "images", *ONE_FILE)
    found = list(examples_as_numpy(str(tmp_path / "dataset-of-tutorial.yaml" / "images.tfrecords")))
    assert by_image(
        {key: value.tolist() for key, value in each.items()} for each in found
    ) == by_image(expected(*each) for each in images.items())


def test_a_real_image_is_stored_unchanged(tmp_path, shared_data, convert):
    photographs = sorted((shared_data / "imagenet-flat").glob("*.JPEG"))[:20]
    for path in photographs:
        (tmp_path / "real" / path.stem.partition("_")[0]).mkdir(parents=True)
        (tmp_path / "real" / path.stem.partition("_")[0] / path.name).symlink_to(path)
    _, found = convert("tutorial.yaml", tmp_path / "real", "--set", "images.reencode=never")
    stored = [each["image_raw"][0] for part in found.values() for each in part]
    assert sorted(hashlib.sha256(each).digest() for each in stored) == sorted(
        hashlib.sha256(path.read_bytes()).digest() for path in photographs
    )
