import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from recordmill.schemas.settings.feature_function import BUILT_IN
from recordmill.transforms.records.image_functions import (
    FUNCTIONS,
    color_histogram,
    difference_hash,
    file_sha256,
    mean_std,
    pixels_sha256,
)

IMAGES = st.tuples(st.integers(1, 30), st.integers(1, 30), st.sampled_from([1, 3])).flatmap(
    lambda shape: arrays.arrays(np.uint8, shape)
)


@given(IMAGES)
def test_mean_and_deviation_are_numpys(image):
    colors = np.broadcast_to(image, (*image.shape[:2], 3)).reshape(-1, 3).astype(np.float64)
    found = mean_std(image)
    assert found == pytest.approx([*colors.mean(0), *colors.std(0)], abs=1e-4)
    assert [type(value) for value in found] == [float] * 6


@given(IMAGES)
def test_the_histogram_has_the_shares_of_each_channel(image):
    expected = []
    for channel in range(3):
        values = image[:, :, channel % image.shape[2]]
        expected += (np.bincount(values.ravel() // 32, minlength=8) / values.size).tolist()
    assert color_histogram(image) == pytest.approx(expected)


@given(IMAGES)
def test_digests_are_of_the_bytes(image):
    assert pixels_sha256(image) == hashlib.sha256(image.tobytes()).hexdigest().encode()
    assert pixels_sha256(image[::1, :, :]) == pixels_sha256(np.asfortranarray(image))
    assert file_sha256(b"x", "anywhere") == hashlib.sha256(b"x").hexdigest().encode()


@given(IMAGES)
def test_a_fourth_byte_says_nothing(image):
    image = np.broadcast_to(image, (*image.shape[:2], 3))
    raster = np.concatenate([image, image[:, :, :1] ^ 0x55], axis=2)
    for function in (mean_std, color_histogram, difference_hash, pixels_sha256):
        assert function(raster) == function(image)


def test_the_difference_hash_says_where_it_gets_brighter():
    ramp = np.repeat(np.arange(0, 90, 10, dtype=np.uint8)[None, :, None], 8, axis=0)
    assert difference_hash(ramp) == b"f" * 16
    assert difference_hash(ramp[:, ::-1]) == b"0" * 16


def test_images_that_look_alike_have_hashes_that_differ_in_few_bits():
    photo = Image.effect_mandelbrot((90, 80), (-2, -1.5, 1, 1.5), 50).convert("RGB")
    one = int(difference_hash(np.asarray(photo)), 16)
    other = int(difference_hash(np.asarray(photo.resize((45, 40)))), 16)
    assert (one ^ other).bit_count() <= 6
    assert (one ^ int(difference_hash(np.asarray(photo)[::-1, ::-1]), 16)).bit_count() > 10


def test_each_gives_what_it_says():
    image = np.zeros((4, 4, 3), np.uint8)
    assert FUNCTIONS.keys() == BUILT_IN.keys()
    for name, known in BUILT_IN.items():
        given = FUNCTIONS[name](image) if known.of == "image" else FUNCTIONS[name](b"x", "uri")
        assert isinstance(given, list) is known.many
        values = given if known.many else [given]
        assert {type(value) for value in values} == {{"float": float, "bytes": bytes}[known.kind]}
