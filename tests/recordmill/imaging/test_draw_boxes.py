import io

import pytest
from PIL import Image

from recordmill.imaging.before_and_after import draw_boxes

YELLOW, GRAY = (255, 214, 10), (128, 128, 128)


def drawn(boxes, mode="RGB", size=(101, 51)):
    stream = io.BytesIO()
    Image.new(mode, size, GRAY[: len(mode)] if mode == "RGB" else GRAY[0]).save(
        stream, "JPEG", quality=95
    )
    return Image.open(io.BytesIO(draw_boxes(stream.getvalue(), boxes)))


def near(pixel, color):
    return all(abs(a - b) < 75 for a, b in zip(pixel, color, strict=True))


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_the_sides_are_drawn_and_nothing_else(mode):
    picture = drawn([(0.2, 0.2, 0.6, 0.8)], mode)
    assert (picture.size, picture.mode) == ((101, 51), "RGB")
    assert all(
        near(picture.getpixel(at), YELLOW) for at in ((20, 25), (60, 25), (40, 10), (40, 40))
    )
    assert all(
        near(picture.getpixel(at), GRAY) for at in ((40, 25), (10, 25), (80, 25), (40, 3), (40, 48))
    )


def test_boxes_are_clipped_to_the_image():
    picture = drawn([(-3, -3, 9, 9)])
    assert all(near(picture.getpixel(at), YELLOW) for at in ((0, 25), (100, 25), (50, 0), (50, 50)))


@pytest.mark.parametrize(("size", "width"), [((100, 50), 1), ((300, 150), 2)])
def test_lines_on_larger_pictures_are_thicker(size, width):
    picture = drawn([(0.5, 0.2, 0.9, 0.8)], size=size)
    middle = size[1] // 2
    assert (
        sum(picture.getpixel((x, middle))[2] < 60 for x in range(size[0] // 2, size[0] // 2 + 8))
        == width
    )


def test_without_boxes_a_picture_stays_as_it_is():
    assert all(
        near(drawn([]).getpixel((x, y)), GRAY) for x in range(0, 101, 5) for y in range(0, 51, 5)
    )
