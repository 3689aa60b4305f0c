import numpy as np
import pytest
from PIL import Image

from recordmill.imaging.depth import is_deep, reduce_depth, reduce_to_8_bits


@pytest.mark.parametrize(
    ("values", "dtype", "gray"),
    [
        ([0, 255, 256, 32_768, 65_535], np.uint16, [0, 0, 1, 128, 255]),  # the high byte
        ([0, 7, 255], np.int32, [0, 7, 255]),  # small integers as they are
        ([0, 256, 65_535], np.int32, [0, 1, 255]),  # as 16 bits
        ([-100, 0, 155], np.int32, [0, 100, 255]),  # stretched
        ([0, 1_000_000], np.int32, [0, 255]),
        ([-5, -5], np.int32, [0, 0]),
        ([0, 0.5, 1], np.float32, [0, 128, 255]),
        ([0, 2.4, 254.6], np.float32, [0, 2, 255]),
        ([0, 257, 65_535], np.float32, [0, 1, 255]),
        ([-1, 0, 1], np.float32, [0, 128, 255]),
        ([np.nan, 0, np.inf, 200, -np.inf], np.float32, [0, 0, 200, 200, 0]),
        ([np.nan, np.inf], np.float32, [0, 0]),
        ([-3.4e38, 3.4e38], np.float32, [0, 255]),
    ],
)
def test_values(values, dtype, gray):
    image = Image.fromarray(np.array([values], dtype))
    assert is_deep(image.mode)
    reduced = reduce_depth(image)
    assert (reduced.mode, np.asarray(reduced).tolist()) == ("L", [gray])


def test_a_transparent_gray_becomes_alpha():
    image = Image.fromarray(np.array([[0x1200, 0x1234]], np.uint16))
    image.info["transparency"] = 0x1234
    reduced = reduce_depth(image)
    assert (reduced.mode, np.asarray(reduced).tolist()) == ("LA", [[[0x12, 255], [0x12, 0]]])
    measured, losses = reduce_to_8_bits(image, None, None, has_high_bytes=False)
    assert (measured.mode, losses) == ("LA", {"brightest": 0x12})


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "LAB"])
def test_eight_bits_are_not_deep(mode):
    assert not is_deep(mode)


def test_a_signaling_nan_is_one_like_any_other():
    # NaN, 0, 200.
    signaling = np.array([0x7FA00000, 0, 0x43480000], dtype=np.uint32).view(np.float32)
    assert np.asarray(reduce_depth(Image.frombytes("F", (3, 1), signaling.tobytes()))).tolist() == [
        [0, 0, 200]
    ]
