import numpy as np

from recordmill.schemas.image_ref import Content


def test_a_plain_image_is_its_own_bytes_and_adds_nothing():
    content = Content(b"jpeg", b"jpeg")
    assert (content.label, content.fields) == (None, {})


def test_pixels_stand_in_an_encoded_images_place():
    pixels = np.zeros((2, 3, 1), np.uint8)
    content = Content(pixels.tobytes(), pixels, label=7, fields={"fine": 3})
    assert content.image is pixels
    assert (content.label, content.fields) == (7, {"fine": 3})
