import math

import numpy as np
import pytest

from recordmill.imaging.masks.outline import Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.shape_corners import (
    corners_of_ellipse,
    corners_of_line,
    corners_of_rectangle,
    enclose_corners,
)


def test_a_rectangle_keeps_its_corners():
    assert corners_of_rectangle((1, 2, 5, 4)) == (1, 2, 5, 2, 5, 4, 1, 4)


def test_a_rectangle_turns_clockwise_about_its_center():
    # Where y goes down, a quarter turn takes the upper left corner to the upper right one.
    assert corners_of_rectangle((0, 0, 4, 2), 90) == (3, -1, 3, 3, 1, 3, 1, -1)


def test_a_rectangle_turns_about_another_point():
    assert corners_of_rectangle((1, 1, 5, 3), 90, about=(1, 1)) == (1, 1, 1, 5, -1, 5, -1, 1)


@pytest.mark.parametrize("degrees", [0, 30, 90])
@pytest.mark.parametrize("radii", [(3, 3), (90, 20), (0.5, 7)])
def test_an_ellipse_covers_the_pixels_whose_centers_are_inside(degrees, radii):
    corners = corners_of_ellipse((100.3, 99.6), radii, degrees)
    mask = rasterize(Polygons((corners,)), (200, 200))
    y, x = np.mgrid[:200, :200] + 0.5
    angle = math.radians(degrees)
    along = (x - 100.3) * math.cos(angle) + (y - 99.6) * math.sin(angle)
    across = (y - 99.6) * math.cos(angle) - (x - 100.3) * math.sin(angle)
    wanted = (along / radii[0]) ** 2 + (across / radii[1]) ** 2 <= 1
    border = 2 * math.pi * max(radii)
    assert (mask != wanted).sum() <= 0.3 * border


def test_a_line_has_a_width():
    assert corners_of_line((2, 5), (8, 5), 4) == (2, 7, 8, 7, 8, 3, 2, 3)
    assert corners_of_line((2, 5), (2, 5), 4) == (0, 3, 4, 3, 4, 7, 0, 7)


def test_the_box_around_corners():
    assert enclose_corners((1, 5, 3, 2, 2, 9)) == (1, 2, 3, 9)
    for corners in ((), (1, math.nan), (math.inf, 2)):
        assert all(map(math.isnan, enclose_corners(corners)))
