"""Shapes in CVAT's XML, and their masks as datumaro reads them."""

import math
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from recordmill.imaging.masks.outline import FaultyOutline, Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.cvat_shapes import read_shape_of_cvat

SIZE = 40, 30


def read(text):
    return read_shape_of_cvat(fromstring(text), SIZE)


@pytest.mark.parametrize(
    ("text", "box", "is_enclosed", "has_outline"),
    [
        ('<box xtl="1.5" ytl="2" xbr="10" ybr="8"/>', (1.5, 2, 10, 8), False, False),
        ('<box xtl="1" ytl="2" xbr="5" ybr="4" rotation="180"/>', (1, 2, 5, 4), False, False),
        ('<box xtl="0" ytl="2" xbr="4" ybr="4" rotation="90"/>', (1, 1, 3, 5), True, True),
        ('<polygon points="1,2;3.25,4;6,1"/>', (1, 1, 6, 4), True, True),
        ('<polyline points="1,2;3,4"/>', (1, 2, 3, 4), True, False),
        ('<points points="7,8"/>', (7, 8, 7, 8), True, False),
        ('<ellipse cx="10" cy="9" rx="4" ry="2"/>', (6, 7, 14, 11), True, True),
        ('<ellipse cx="10" cy="9" rx="4" ry="2" rotation="90"/>', (8, 5, 12, 13), True, True),
        ('<mask rle="0, 6" left="3" top="4" width="2" height="3"/>', (3, 4, 5, 7), True, True),
        (
            '<skeleton><points label="a" outside="0" points="1,9"/>'
            '<points label="b" outside="1" points="0,0"/>'
            '<points label="c" occluded="1" points="5,4"/></skeleton>',
            (1, 4, 5, 9),
            True,
            False,
        ),
        (
            '<cuboid xtl1="1" ytl1="2" xbl1="1" ybl1="8" xtr1="5" ytr1="2" xbr1="5" ybr1="8" '
            'xtl2="3" ytl2="1" xbl2="3" ybl2="7" xtr2="9" ytr2="1" xbr2="9" ybr2="7"/>',
            (1, 1, 9, 8),
            True,
            False,
        ),
    ],
)
def test_a_shape_has_a_box_and_perhaps_an_outline(text, box, is_enclosed, has_outline):
    shape = read(text)
    assert shape.box == pytest.approx(box, abs=0.1)
    assert shape.is_enclosed == is_enclosed
    assert (shape.outline is not None) == has_outline
    assert not isinstance(shape.outline, FaultyOutline)


def test_a_polygon_keeps_its_coordinates():
    shape = read('<polygon points="1,2;3.25,4;6,1"/>')
    assert shape.outline == Polygons(((1.0, 2.0, 3.25, 4.0, 6.0, 1.0),))


def test_the_runs_of_a_mask_go_along_its_rows():
    shape = read('<mask rle="1, 2, 3, 3, 1, 2" left="30" top="20" width="4" height="3"/>')
    rows = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 1, 1]])
    mask = np.zeros((30, 40), np.uint8)
    mask[20:23, 30:34] = rows
    assert np.array_equal(rasterize(shape.outline, SIZE), mask)


def test_the_mask_in_cvats_documentation_is_a_disc():
    rle = (
        "3, 5, 7, 7, 5, 9, 3, 11, 2, 11, 2, 12, 1, 12, 1, 26, 1, 12, 1, 12, 2, 11, 3, 9, 5, 7, 7, "
        "5, 3"
    )
    text = f'<mask rle="{rle}" left="10" top="5" width="13" height="15"/>'
    mask = rasterize(read(text).outline, SIZE)[5:20, 10:23]
    assert mask.sum() == 149
    for line in (*mask, *mask.T):
        assert np.count_nonzero(np.diff(line, prepend=0, append=0)) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<mask rle="1, 2" left="3" top="4" width="2" height="3"/>', "bad_rle"),
        ('<mask rle="1, -1, 6" left="3" top="4" width="2" height="3"/>', "bad_rle"),
        ('<mask rle="x" left="3" top="4" width="2" height="3"/>', "bad_rle"),
        ('<mask left="3" top="4" width="2" height="3"/>', "bad_rle"),
        ('<mask rle="6" left="3.5" top="4" width="2" height="3"/>', "bad_rle"),
        ('<mask rle="6" left="3" top="4" width="nan" height="3"/>', "bad_rle"),
        ('<mask rle="6" left="39" top="4" width="2" height="3"/>', "mask_size"),
        ('<mask rle="6" left="-1" top="4" width="2" height="3"/>', "mask_size"),
        ('<mask rle="900000000" left="0" top="0" width="30000" height="30000"/>', "mask_size"),
        ('<polygon points="1,2;3,4"/>', "bad_polygon"),
        ('<polygon points="1,2;3,4;5"/>', "bad_polygon"),
        ('<polygon points="1,2;3,x;5,6"/>', "bad_polygon"),
        ('<polygon points="1,2;3,nan;5,6"/>', "bad_polygon"),
        ("<polygon/>", "bad_polygon"),
        ('<ellipse cx="1" cy="2" rx="inf" ry="1"/>', "bad_polygon"),
        ('<ellipse cx="1" cy="2" rx="4"/>', "bad_polygon"),
        ('<box xtl="0" ytl="2" xbr="4" ybr="inf" rotation="30"/>', "bad_polygon"),
    ],
)
def test_a_malformed_shape_has_a_reason(text, reason):
    outline = read(text).outline
    assert isinstance(outline, FaultyOutline)
    assert outline.reason == reason


@pytest.mark.parametrize(
    "text",
    [
        "<box/>",
        '<box xtl="a" ytl="2" xbr="4" ybr="4"/>',
        '<box xtl="0" ytl="2" xbr="4" ybr="4" rotation="x"/>',
        '<points points=""/>',
        "<skeleton/>",
        '<cuboid xtl1="1"/>',
        '<polygon points="1,2;3,x;5,6"/>',
    ],
)
def test_a_shape_without_coordinates_has_no_finite_box(text):
    assert not all(map(math.isfinite, read(text).box))
