import base64

import numpy as np
import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tfrecord_input.example_image import read_image_of

PIXELS = np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7
SIZE = {"height": 3, "width": 4, "channels": 3}


def test_an_encoded_image_is_its_bytes():
    assert read_image_of({"encoded": b"image", **SIZE}, False, (9, 9, 3)) == (b"image", b"image")


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"encoded": PIXELS.tobytes()}, (3, 4, 3)),
        ({"encoded": PIXELS.tobytes(), **SIZE}, ()),
        ({"encoded": PIXELS.tobytes(), **SIZE}, (9, 9, 3)),
        ({"pixels_base64": base64.urlsafe_b64encode(PIXELS.tobytes()), **SIZE}, ()),
    ],
)
def test_raw_pixels_have_the_shape_of_the_example_or_the_declared_one(fields, shape):
    data, image = read_image_of(fields, True, shape)
    assert data == PIXELS.tobytes()
    np.testing.assert_array_equal(image, PIXELS)


def test_gray_pixels_have_one_channel():
    _, image = read_image_of({"encoded": bytes(range(12))}, True, (3, 4, 1))
    assert image.shape == (3, 4, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoded": b"x" * 36}, r"raw pixels of unknown height, width and channels: set source\.shape"),
        ({"encoded": b"x" * 35, **SIZE}, "its image has 35 bytes, where 3 x 4 x 3 are declared"),
        ({"encoded": b"x" * 36, **SIZE, "height": -3}, "36 bytes, where -3 x 4 x 3"),
        ({"encoded": b"x" * 48, **SIZE, "channels": 4}, "its image has 4 channels, where 1 or 3 can be stored"),
        ({"pixels_base64": b"a", **SIZE}, "not url-safe base64"),
        ({"pixels_base64": b"!!!!", **SIZE}, "not url-safe base64"),
    ],
)
def test_pixels_that_do_not_fit_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        read_image_of(fields, True, ())
