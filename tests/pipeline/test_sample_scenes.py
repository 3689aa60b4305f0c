import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from recordmill.pipeline import sample_scenes as scenes
from recordmill.pipeline.sample_scenes import BLACK, OVERSAMPLING, WHITE, Pen, hsl, mix


def test_hsl():
    assert hsl(0, 1.0, 0.5) == (255, 0, 0)
    assert hsl(480, 1.0, 0.5) == (0, 255, 0)
    assert hsl(200, 0.3, 1.0) == WHITE


def test_mix():
    assert mix(BLACK, WHITE, 0.0) == BLACK
    assert mix(BLACK, (200, 100, 0), 0.5) == (100, 50, 0)


def drawn_with(**settings) -> np.ndarray:
    image = Image.new("RGB", (100, 100))
    pen = Pen(ImageDraw.Draw(image), (50, 50), 40, **settings)
    pen.box(0.5, -0.25, 1.0, 0.25, WHITE)
    rows, columns = np.nonzero(np.asarray(image)[:, :, 0])
    return np.array([rows.min(), rows.max(), columns.min(), columns.max()])


def test_a_pen_draws_in_its_own_frame():
    assert drawn_with().tolist() == [40, 60, 70, 90]


def test_a_mirrored_pen_draws_to_the_left():
    assert drawn_with(mirrored=True).tolist() == [40, 60, 10, 30]


def test_a_pen_turned_by_a_quarter_draws_below():
    assert np.abs(drawn_with(turn=np.pi / 2) - [70, 90, 40, 60]).max() <= 1


def test_an_oval_fills_its_axes():
    image = Image.new("L", (200, 200))
    Pen(ImageDraw.Draw(image), (100, 100), 50).oval(0, 0, 1.0, 0.5, 255)
    assert image.getbbox() == (50, 75, 151, 126)


@pytest.mark.parametrize(
    "background", ["day", "evening", "garden", "meadow", "night", "road", "sea", "sunny", "under_water"]
)
def test_a_background_covers_everything(background):
    pictures = []
    for _ in range(2):
        image = Image.new("RGB", (160, 120), (255, 0, 255))
        getattr(scenes, background)(image, random.Random("seed"))
        pictures.append(np.asarray(image))
    assert not (pictures[0] == (255, 0, 255)).all(axis=2).any()
    assert (pictures[0] == pictures[1]).all()


def test_a_photograph_is_smaller_and_grainy():
    gray = Image.new("RGB", (200 * OVERSAMPLING, 100 * OVERSAMPLING), (128, 128, 128))
    taken = scenes.as_photographed(gray, random.Random("seed"))
    assert taken.size == (200, 100)
    assert 3 < np.asarray(taken).std() < 5
    assert abs(np.asarray(taken).mean() - 128) < 14
