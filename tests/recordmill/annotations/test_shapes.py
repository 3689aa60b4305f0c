"""Annotations as the shapes that pages draw, and the colors of classes."""

import math
import re

import pytest

from recordmill.annotations.boxes import BOXES
from recordmill.annotations.shapes import Shape, color_of_class

SIDES = {"xmin": [0.1, 0.5], "ymin": [0.2, 0.0], "xmax": [0.3, 1.0], "ymax": [0.9, 0.25]}


def test_boxes_become_shapes_with_their_class():
    values = {**SIDES, "box_labels": [2, 1], "box_label_texts": [b"dog", "chat\u00e9".encode()]}
    assert BOXES.trace(values, {}) == [
        Shape(2, "dog", (0.1, 0.2, 0.3, 0.9)),
        Shape(1, "chat\u00e9", (0.5, 0.0, 1.0, 0.25)),
    ]


def test_names_of_classes_come_from_the_label_map_if_examples_have_ids_only():
    shapes = BOXES.trace({**SIDES, "box_labels": [2, 9]}, {2: "dog"})
    assert [(each.class_id, each.class_name) for each in shapes] == [(2, "dog"), (9, None)]


@pytest.mark.parametrize("labels", [{}, {"box_labels": [1]}, {"box_label_texts": [b"dog"]}])
def test_boxes_without_a_class_each_have_none(labels):
    shapes = BOXES.trace({**SIDES, **labels}, {1: "dog"})
    assert [(each.class_id, each.class_name) for each in shapes] == [(None, None)] * 2


def test_an_example_without_boxes_has_no_shapes():
    assert BOXES.trace({}, {}) == []


def test_the_share_of_a_shape_is_that_of_its_box():
    assert Shape(sides=(0.25, 0.5, 0.75, 1.0)).share == 0.25
    assert Shape(sides=(math.nan, 0.0, 1.0, 1.0)).share is None
    assert Shape().share is None


def test_colors_of_classes_differ():
    colors = [color_of_class(number) for number in range(60)]
    assert len(set(colors)) == 60
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in [*colors, color_of_class(None)])
    assert color_of_class(10**12) == color_of_class(10**12)
