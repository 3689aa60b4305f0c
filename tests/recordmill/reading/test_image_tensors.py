import numpy as np
import pytest

from recordmill.reading.dataset import SplitInfo
from recordmill.reading.load import image_from
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature

ENCODED = Feature("image", "bytes", "encoded", "")
SIDES = (Feature("h", "int64", "height", ""), Feature("w", "int64", "width", ""))


def split(features=(ENCODED,), raw=False):
    return SplitInfo("folder", "train", tuple(features), {}, {}, (), "none", raw)


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)


@pytest.fixture(scope="module")
def png(tf, pixels):
    return {"image": tf.io.encode_png(pixels)}


def test_pixels_are_those_of_the_file(tf, png, pixels):
    image = image_from(png, split(), "image")
    assert image.dtype == tf.uint8
    assert np.array_equal(image, pixels)


def test_jpegs_are_decoded_as_decode_jpeg_does(tf, pixels):
    encoded = tf.io.encode_jpeg(pixels)
    assert np.array_equal(
        image_from({"image": encoded}, split(), "image"), tf.io.decode_jpeg(encoded)
    )


def test_grayscale_has_three_channels(tf, pixels):
    image = image_from({"image": tf.io.encode_png(pixels[:, :, :1])}, split(), "image")
    assert np.array_equal(image, np.repeat(pixels[:, :, :1], 3, axis=2))


def test_stretched_images_are_resized_as_keras_resizes_them(tf, png, pixels):
    image = image_from(png, split(), "image", (4, 4))
    assert image.dtype == tf.float32
    assert np.array_equal(image, tf.image.resize(pixels, (4, 4)))


def test_another_size_than_all_others_is_an_error(tf, png):
    assert image_from(png, split(), "image", stored=(8, 12)).shape == (8, 12, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected shape \[9,12,3\]"):
        image_from(png, split(), "image", stored=(9, 12))


def test_raw_pixels_take_their_shape_from_their_record(tf, pixels):
    values = {
        "image": tf.constant(pixels.tobytes()),
        "h": tf.constant(8, tf.int64),
        "w": tf.constant(12, tf.int64),
    }
    info = split((ENCODED, *SIDES), raw=True)
    assert np.array_equal(image_from(values, info, "image"), pixels)
    assert image_from(values, info, "image", (4, 6)).shape == (4, 6, 3)


def test_raw_grayscale_becomes_three_channels(tf, pixels):
    gray = pixels[:, :, :1]
    values = {
        "image": tf.constant(gray.tobytes()),
        "h": tf.constant(8, tf.int64),
        "w": tf.constant(12, tf.int64),
    }
    info = split((ENCODED, *SIDES), raw=True)
    assert np.array_equal(image_from(values, info, "image"), np.repeat(gray, 3, axis=2))


def test_raw_pixels_of_no_known_shape_are_refused(tf):
    with pytest.raises(LoadError, match="use decode=False"):
        image_from({"image": tf.constant(b"")}, split(raw=True), "image")
