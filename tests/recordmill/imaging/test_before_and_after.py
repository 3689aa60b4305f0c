import io

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, Resize, before_and_after, prepare_image
from recordmill.imaging.before_and_after import CROP, SIDE, draw_before_and_after

GRAY = (120, 120, 120)


def encoded(image, kind="JPEG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def drawn(data, **settings):
    pictures = draw_before_and_after(data, prepare_image(data, ImageSettings(**settings)))
    return [Image.open(io.BytesIO(picture)) for picture in pictures]


def near(pixel, color):
    return all(abs(a - b) <= 12 for a, b in zip(pixel, color, strict=True))


def test_a_rotated_image_is_shown_whole_before_and_after():
    image = Image.new("RGB", (400, 200), GRAY)
    image.paste((250, 0, 0), (0, 0, 200, 200))
    exif = Image.Exif()
    exif[0x0112] = 6
    before, after = drawn(encoded(image, exif=exif))
    assert (before.size, after.size) == ((SIDE, SIDE // 2), (SIDE // 2, SIDE))
    assert near(before.getpixel((20, 50)), (250, 0, 0))
    assert near(after.getpixel((50, 20)), (250, 0, 0))
    assert near(after.getpixel((50, 170)), GRAY)


def test_transparency_is_gray_before_and_the_background_after():
    before, after = drawn(encoded(Image.new("RGBA", (320, 320), (0, 0, 0, 0)), "PNG"), store="png")
    assert near(before.getpixel((5, 5)), (190, 190, 190))
    assert near(after.getpixel((5, 5)), (255, 255, 255))


def test_where_only_the_encoding_differs_the_middle_is_enlarged():
    image = Image.new("RGB", (640, 320), GRAY)
    noise = np.random.default_rng(0).integers(0, 256, (CROP, CROP, 3), np.uint8)
    image.paste(Image.fromarray(noise), ((640 - CROP) // 2, (320 - CROP) // 2))
    before, after = drawn(encoded(image, "PNG"), quality=10)
    assert before.size == after.size == (3 * CROP, 3 * CROP)
    shown = np.asarray(before, np.int16)[1::3, 1::3]
    assert np.abs(shown - noise).mean() < 12
    assert np.abs(shown - np.asarray(after, np.int16)[1::3, 1::3]).mean() > 20


def test_small_images_are_enlarged_whole():
    before, after = drawn(encoded(Image.new("RGB", (20, 10), GRAY), "PNG"))
    assert before.size == after.size == (60, 30)


@pytest.mark.parametrize(
    ("mode", "kind"), [("CMYK", "JPEG"), ("P", "GIF"), ("L", "PNG"), ("1", "PNG"), ("LA", "PNG")]
)
def test_every_common_kind_can_be_shown(mode, kind):
    before, after = drawn(encoded(Image.new("RGB", (300, 200), GRAY).convert(mode), kind))
    assert before.size == after.size
    if mode not in ("1", "LA"):
        assert near(before.getpixel((9, 9)), GRAY)


def test_raw_pixels_are_shown_as_they_are_stored():
    before, after = drawn(
        encoded(Image.new("RGB", (300, 200), GRAY), "PNG"), store="raw", resize=Resize(longest=100)
    )
    assert (before.size, after.size) == ((SIDE, 128), (100, 67))
    assert near(after.getpixel((9, 9)), GRAY)


def test_what_cannot_be_shown_is_not(monkeypatch):
    deep = encoded(Image.fromarray(np.full((20, 20), 40_000, np.uint16)), "PNG", transparency=7)
    stored = prepare_image(deep, ImageSettings())
    assert draw_before_and_after(deep, stored) is None
    assert draw_before_and_after(encoded(Image.new("RGB", (9, 9)))[:90], stored) is None
    monkeypatch.setattr(before_and_after, "MOST_PIXELS", 99)
    plain = encoded(Image.new("RGB", (10, 10)), "PNG")
    assert draw_before_and_after(plain, prepare_image(plain, ImageSettings())) is None
