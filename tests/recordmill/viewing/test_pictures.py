import io

import numpy as np
import pytest
from PIL import Image

from recordmill.schemas.rejection import Rejected
from recordmill.viewing.pictures import (
    Picture,
    PictureCache,
    StoredImage,
    make_large,
    make_small,
)

LIMIT = 10**6


def encode(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def open_picture(picture):
    return Image.open(io.BytesIO(picture.data))


PLAIN = Image.new("RGB", (600, 300), (200, 30, 30))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_small_pictures_have_a_bounded_side(kind):
    stored = StoredImage(encode(PLAIN, kind), 600, 300, LIMIT)
    small = open_picture(make_small(stored, 100))
    assert (small.format, small.size) == ("JPEG", (100, 50))
    assert np.abs(np.asarray(small)[25, 50].astype(int) - (200, 30, 30)).max() < 8


def test_a_rotation_in_metadata_is_not_applied():
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = StoredImage(encode(PLAIN, "JPEG", exif=exif.tobytes()), 600, 300, LIMIT)
    assert open_picture(make_small(stored)).size == (256, 128)


@pytest.mark.parametrize("channels", [1, 3])
def test_raw_pixels_are_shown_by_their_size(channels):
    pixels = np.full((20, 30, channels), 77, np.uint8)
    large = make_large(StoredImage(pixels.tobytes(), 30, 20, LIMIT))
    assert large.media_type == "image/png"
    assert np.array_equal(open_picture(large), np.full((20, 30, 3), 77))


def test_formats_that_browsers_lack_become_png():
    large = make_large(StoredImage(encode(PLAIN, "TIFF"), 600, 300, LIMIT))
    assert large.media_type == "image/png"
    assert open_picture(large).size == (600, 300)


def test_deep_grays_are_stretched():
    values = np.linspace(0, 4095, 16 * 16).reshape(16, 16).astype(np.uint16)
    stored = StoredImage(encode(Image.fromarray(values), "PNG"), 16, 16, LIMIT)
    shown = np.asarray(open_picture(make_small(stored)).convert("L"))
    assert shown.min() < 10
    assert shown.max() > 245


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"no image", "unknown_format"), (encode(PLAIN, "PNG"), "too_many_pixels")],
)
def test_what_cannot_be_shown_is_rejected(data, reason):
    for make in (make_small, make_large):
        with pytest.raises(Rejected) as rejected:
            make(StoredImage(data, -1, -1, 100))
        assert rejected.value.reason == reason


def test_pictures_are_kept_up_to_a_number_of_bytes():
    cache, made = PictureCache(most_bytes=10), []

    def make(name):
        made.append(name)
        return Picture("image/png", name * 4)

    for name in (b"a", b"b", b"a", b"c", b"a", b"b"):
        assert cache.find(name, lambda name=name: make(name)).data == name * 4
    assert made == [b"a", b"b", b"c", b"b"]
