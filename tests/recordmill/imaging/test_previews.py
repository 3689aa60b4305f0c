"""Previews of rejected files, and masks as layers over an image."""

import io

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import previews
from recordmill.imaging.previews import SIDE, draw_layer, draw_preview

RED, GRAY = (200, 30, 30), (120, 120, 120)


def encoded(image, kind="JPEG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def drawn(data):
    return Image.open(io.BytesIO(draw_preview(data)))


def near(pixel, color):
    return all(abs(a - b) <= 12 for a, b in zip(pixel, color, strict=True))


def test_the_rows_before_the_cut_of_a_jpeg_are_shown():
    noise = np.random.default_rng(0).integers(0, 256, (200, 400, 3), np.uint8)
    noise[:40] = RED
    whole = encoded(Image.fromarray(noise))
    picture = drawn(whole[: len(whole) // 2])
    assert picture.size == (SIDE, SIDE // 2)
    assert near(picture.getpixel((80, 5)), RED)
    assert near(picture.getpixel((80, 78)), (128, 128, 128))


@pytest.mark.parametrize(
    ("mode", "kind"), [("RGB", "PNG"), ("P", "GIF"), ("L", "PNG"), ("1", "PNG"), ("CMYK", "JPEG")]
)
def test_whole_files_are_shown_whatever_the_reason_is(mode, kind):
    picture = drawn(encoded(Image.new("RGB", (300, 200), GRAY).convert(mode), kind))
    assert (picture.format, max(picture.size)) == ("JPEG", SIDE)
    if mode != "1":
        assert near(picture.convert("RGB").getpixel((9, 9)), GRAY)


def test_transparency_is_gray():
    picture = drawn(encoded(Image.new("RGBA", (320, 320), (0, 0, 0, 0)), "PNG"))
    assert near(picture.getpixel((5, 5)), (190, 190, 190))


@pytest.mark.parametrize("data", [b"", b"no image", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"])
def test_where_nothing_can_be_decoded_there_is_no_preview(data):
    assert draw_preview(data) is None


def test_deep_and_large_files_have_no_preview(monkeypatch):
    deep = encoded(Image.fromarray(np.full((20, 20), 40_000, np.uint16)), "PNG")
    assert draw_preview(deep) is None
    monkeypatch.setattr(previews, "MOST_PIXELS", 99)
    for kind in ("PNG", "JPEG"):
        assert draw_preview(encoded(Image.new("RGB", (10, 10)), kind)) is None


def test_a_mask_becomes_a_transparent_layer_in_its_color():
    mask = np.zeros((40, 60), np.uint8)
    mask[10:20, 30:60] = 1
    layer = draw_layer(encoded(Image.fromarray(mask), "PNG"), "#ff8000", (30, 20))
    shown = np.asarray(Image.open(io.BytesIO(layer)).convert("RGBA"))
    assert shown.shape == (20, 30, 4)
    assert (shown[5:10, 15:30] == (255, 128, 0, 115)).all()
    assert shown[..., 3].astype(bool).sum() == 5 * 15
