import io
from collections import Counter

import numpy as np
import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.annotation import AnnotatedImage, ListedLabels
from recordmill.annotations.boxes import BOXES, boxes_of
from recordmill.annotations.corners import CORNERS, OrientedBoxes
from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.outlines import rotate_box
from recordmill.transforms.inputs.shape_corners import corners_of_rectangle

BOX = (20.0, 30.0, 60.0, 40.0)


def image_with(*boxes, orientation=1, frame="displayed", resize=None):
    """An image with boxes whose side is 120 x 80 pixels in the frame in which they were drawn."""
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    size = (80, 120) if orientation > 4 and frame == "displayed" else (120, 80)
    Image.new("RGB", size).save(file, "JPEG", exif=exif)
    settings = make_settings(convention="tf_object_detection", images=ImageSettings(resize=resize))
    data, labels = file.getvalue(), LabelMap({"cat": 1})
    on = AnnotatedImage(data, prepare_image(data, settings.images), settings, labels)
    given = boxes_of(boxes, ["cat"] * len(boxes), drawn_on_size=(120, 80))
    on.objects = BOXES.place(given.pack(), on).objects
    return on


def rotate(degrees):
    return corners_of_rectangle(BOX, degrees), rotate_box(BOX, degrees)[0]


def place(on, *corners):
    placed = CORNERS.place(OrientedBoxes(corners).pack(), on)
    fields = placed.fields
    return placed.outcome.counts, np.reshape(fields["corners"], (-1, 4, 2)), fields["angle"]


def is_clockwise(corners):
    xs, ys = corners.T
    return np.sum(xs * np.roll(ys, -1) - np.roll(xs, -1) * ys) > 0


@pytest.mark.parametrize("degrees", [30, 90, 120, -45, 179])
def test_corners_are_those_of_the_rotated_box_and_have_its_angle(degrees):
    corners, around = rotate(degrees)
    counts, placed, (angle,) = place(image_with(around), corners)
    assert placed[0] * (120, 80) == pytest.approx(np.reshape(corners, (4, 2)))
    assert angle == pytest.approx(degrees, abs=0.1)
    assert counts == AnnotationCounts(1, 1)


@pytest.mark.parametrize("resize", [None, Resize(exact=(64, 64), fit="pad"), Resize(longest=60)])
@pytest.mark.parametrize("frame", ["displayed", "stored"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_corners_turn_and_shrink_with_their_image(orientation, frame, resize):
    corners, around = rotate(30)
    on = image_with(around, orientation=orientation, frame=frame, resize=resize)
    if orientation > 4:
        assert on.objects.drawn_on == frame
    _, (placed,), (angle,) = place(on, corners)
    left, top, right, bottom = on.objects.sides[0]
    assert placed.min(0) == pytest.approx((left, top), abs=1e-3)
    assert placed.max(0) == pytest.approx((right, bottom), abs=1e-3)
    assert is_clockwise(placed)
    sides = np.linalg.norm((np.roll(placed, -1, 0) - placed) * on.geometry.stored_size, axis=1)
    assert sides[0] == pytest.approx(4 * sides[1], rel=0.05)
    assert sides[0] == pytest.approx(sides[2])
    assert sides[1] == pytest.approx(sides[3])
    if frame == "displayed":
        assert angle == pytest.approx(30, abs=1)


def test_the_order_of_corners_is_clockwise_and_the_first_side_stays_first():
    corners, around = rotate(30)
    clockwise = np.reshape(corners, (4, 2))
    _, placed, (angle,) = place(image_with(around), clockwise[[1, 0, 3, 2]].ravel().tolist())
    assert placed[0] * (120, 80) == pytest.approx(clockwise)
    assert angle == pytest.approx(30, abs=0.1)


def test_an_upright_box_has_the_corners_of_its_clipped_sides_and_no_angle():
    corners, around = rotate(30)
    on = image_with(around, (-10, 0, 60, 40))
    counts, placed, angles = place(on, corners, None)
    assert placed[1].tolist() == [[0, 0], [0.5, 0], [0.5, 0.5], [0, 0.5]]
    assert (angles[1], counts) == (0.0, AnnotationCounts(1, 1))
    filled = CORNERS.fill(image_with((0, 0, 60, 40)))
    assert filled == {"corners": [0, 0, 0.5, 0, 0.5, 0.5, 0, 0.5], "angle": [0.0]}


def test_corners_may_be_outside_the_image():
    corners = corners_of_rectangle((-20.0, 0.0, 40.0, 40.0), 45)
    on = image_with(rotate_box((-20.0, 0.0, 40.0, 40.0), 45)[0])
    assert place(on, corners)[1].min() < 0


def test_corners_of_boxes_that_are_dropped_are_dropped_with_them():
    corners, around = rotate(30)
    on = image_with(around, (300, 0, 310, 10))
    counts, placed, _ = place(on, corners, corners)
    assert counts == AnnotationCounts(2, 1, Counter(without_box=1))
    assert len(placed) == 1
    packed = OrientedBoxes([corners, None]).pack()
    assert CORNERS.list_labels(packed) == ListedLabels((), 1)
    lost = CORNERS.lose(packed, Rejected("read", "vanished", ""), LabelMap({}))
    assert lost.counts == AnnotationCounts(1, dropped=Counter(with_rejected_images=1))
    on.objects = None
    assert CORNERS.place(packed, on).outcome.counts.dropped == Counter(not_decoded=1)
    assert CORNERS.fill(on) == {}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"corners": [0.5] * 8, "angle": [3.0], "xmin": [0.0]}, None),
        ({"corners": [0.5] * 8, "box_labels": [1, 2]}, "it has 8 values of corners for 2 boxes"),
        ({"angle": [1.0], "xmin": []}, "it has 1 values of angle for 0 boxes"),
        ({"angle": [float("nan")]}, "a corner or an angle of its boxes is not finite"),
        ({"corners": [-0.5] * 16, "xmin": [0.0, 0.0]}, None),
    ],
)
def test_each_box_in_an_example_has_four_corners_and_an_angle(values, problem):
    assert CORNERS.check(values) == problem


def test_oriented_boxes_are_drawn_as_their_outlines():
    (shape,) = CORNERS.trace({"corners": [0.1 * n for n in range(8)], "box_labels": [7]}, {7: "x"})
    assert (shape.class_id, shape.class_name) == (7, "x")
    assert [(point.x, point.y) for point in shape.points][1] == (0.2, pytest.approx(0.3))
    assert shape.lines == ((0, 1), (1, 2), (2, 3), (3, 0))
