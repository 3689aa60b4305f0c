"""The SavedModel by itself, with TensorFlow alone."""

import io
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image

from recordmill.reading.analyze_dataset import Sides, Statistics, save_image_model

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

MEAN, VARIANCE = (120.0, 110.5, 99.25), (3600.0, 2500.0, 1.5)
LABELS = {"cat": 1, "dog": 0, "Öl": 7}


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def statistics(variance=VARIANCE):
    return Statistics(1, 1, MEAN, variance, Sides(1, 1, ()), Sides(1, 1, ()))


@pytest.fixture(scope="module")
def load(tf, tmp_path_factory):
    def save_and_load(size=(30, 40), labels=LABELS, catch_all=None, variance=VARIANCE):
        folder = tmp_path_factory.mktemp("models") / "model"
        save_image_model(folder, statistics(variance), size, labels, catch_all)
        return tf.saved_model.load(str(folder)).signatures["serving_default"]

    return save_and_load


def encode(kind="JPEG", mode="RGB", size=(40, 30), **options):
    noise = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
    image = Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).convert(mode)
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def rotated():
    exif = Image.Exif()
    exif[0x0112] = 6
    return {"exif": exif}


IMAGES = {
    "4:2:0": encode(quality=90, subsampling=2),
    "4:2:2": encode(quality=90, subsampling=1),
    "4:4:4": encode(quality=90, subsampling=0),
    "progressive": encode(progressive=True),
    "gray": encode(mode="L"),
    "rotated": encode(**rotated()),
    "PNG": encode("PNG"),
    "gray PNG": encode("PNG", "L"),
}


def normalized(encoded):
    """What numpy makes of the pixels that Pillow decodes."""
    pixels = np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")).astype(np.float64)
    return (pixels - MEAN) / np.sqrt(VARIANCE)


def test_images_of_the_models_size_are_normalized_and_otherwise_untouched(tf, load):
    batch = list(IMAGES.values())
    given = load()(encoded=tf.constant(batch), label_text=tf.constant(["cat"] * len(batch)))[
        "image"
    ].numpy()
    assert given.dtype == np.float32
    assert given.shape == (len(batch), 30, 40, 3)
    for name, image, encoded in zip(IMAGES, given, batch, strict=True):
        np.testing.assert_allclose(image, normalized(encoded), atol=2e-5, err_msg=name)


def test_other_images_are_resized_with_antialiasing(tf, load):
    batch = [encode(size=(100, 60)), encode(size=(7, 9))]
    given = load()(encoded=tf.constant(batch), label_text=tf.constant(["cat", "cat"]))[
        "image"
    ].numpy()
    for image, encoded in zip(given, batch, strict=True):
        # Resizing after normalizing is the same, but for rounding.
        np.testing.assert_allclose(
            image, tf.image.resize(normalized(encoded), (30, 40), antialias=True).numpy(), atol=1e-3
        )
    even = Image.new("RGB", (90, 50), (200, 100, 50))
    stream = io.BytesIO()
    even.save(stream, "PNG")
    shown = load()(encoded=tf.constant([stream.getvalue()]), label_text=tf.constant([""]))[
        "image"
    ].numpy()
    np.testing.assert_allclose(
        shown[0], np.broadcast_to(normalized(stream.getvalue())[0, 0], (30, 40, 3)), atol=1e-3
    )


@pytest.mark.parametrize(("catch_all", "unknown"), [(None, -1), ("dog", 0), ("Öl", 7)])
def test_labels_are_the_datasets(tf, load, catch_all, unknown):
    texts = ["dog", "Öl", "cat", "cow", ""]
    given = load(catch_all=catch_all)(
        encoded=tf.constant([IMAGES["gray"]] * 5), label_text=tf.constant(texts)
    )["label"]
    assert given.dtype == tf.int64
    assert given.numpy().tolist() == [0, 7, 1, unknown, -1]


def test_a_dataset_without_labels_has_a_model_too(tf, load):
    given = load(labels={})(encoded=tf.constant([IMAGES["4:2:0"]]), label_text=tf.constant(["cat"]))
    assert given["label"].numpy().tolist() == [-1]


def test_a_channel_without_variance_is_not_divided(tf, load):
    given = load(variance=(0.0, 0.0, 0.0))(
        encoded=tf.constant([IMAGES["4:4:4"]]), label_text=tf.constant(["cat"])
    )
    pixels = np.asarray(Image.open(io.BytesIO(IMAGES["4:4:4"]))).astype(np.float64)
    np.testing.assert_allclose(given["image"].numpy()[0], pixels - MEAN, atol=1e-4)


def test_a_batch_of_nothing_gives_nothing(tf, load):
    given = load()(encoded=tf.constant([], tf.string), label_text=tf.constant([], tf.string))
    assert given["image"].shape == (0, 30, 40, 3)
    assert given["label"].shape == (0,)


def test_damaged_images_are_errors(tf, load):
    with pytest.raises(tf.errors.InvalidArgumentError):
        load()(encoded=tf.constant([b"no image"]), label_text=tf.constant([""]))


# TensorFlow Transform's own reader, in a process of its own.
READ_WITH_TFT = """
import sys
import tensorflow as tf, tensorflow_transform as tft
layer = tft.TFTransformOutput(sys.argv[1]).transform_features_layer()
encoded = tf.constant([open(sys.argv[2], "rb").read()])
both = layer({"encoded": encoded, "label_text": tf.constant(["cat"])})
alone = layer({"encoded": encoded})
assert set(alone) == {"image"}, alone.keys()
assert (alone["image"].numpy() == both["image"].numpy()).all()
label, image = both["label"], both["image"]
print(label.numpy().tolist(), image.shape.as_list(), float(tf.reduce_sum(image)))
"""


@pytest.mark.slow
def test_tensorflow_transforms_reader_takes_it(tf, tmp_path, run_python):
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")
    save_image_model(tmp_path / "transform_fn", statistics(), (30, 40), LABELS, None)
    (tmp_path / "image.jpg").write_bytes(IMAGES["4:2:0"])
    ended = run_python(READ_WITH_TFT, tmp_path, tmp_path / "image.jpg")
    assert ended.returncode == 0, ended.stderr[-2000:]
    label, shape, total = ended.stdout.replace("] ", "]|").strip().split("|")
    assert (label, shape) == ("[1]", "[1, 30, 40, 3]")
    assert float(total) == pytest.approx(normalized(IMAGES["4:2:0"]).sum(), abs=0.1)
