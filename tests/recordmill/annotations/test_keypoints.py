import io
from collections import Counter

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.annotation import (
    AnnotatedImage,
    DroppedAnnotation,
    ListedLabels,
    LostAnnotations,
    PlacedObjects,
)
from recordmill.annotations.keypoints import KEY_POINTS, KeyPoints
from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import Contract

LABELS = LabelMap({"cat": 0})
NAMES = ["nose", "tail"]


def place(*points, stored=None, unwanted=(), frame="displayed", orientation=1, lost=(), **more):
    """Places points on an image of 10 x 8 pixels, or 8 x 10 if it is turned."""
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (10, 8)).save(file, "JPEG", exif=exif)
    settings = make_settings(convention="tf_object_detection", **more)
    on = AnnotatedImage(
        file.getvalue(), prepare_image(file.getvalue(), settings.images), settings, LABELS
    )
    stored = range(len(points)) if stored is None else stored
    on.objects = PlacedObjects(len(points), list(stored), ["cat"] * len(points), frame)
    on.unwanted = dict(unwanted)
    return KEY_POINTS.place(KeyPoints(NAMES, points, lost=lost).pack(), on)


def test_points_become_fractions_in_the_order_of_the_boxes():
    placed = place([5, 2, 2, 0, 0, -1], None, [10, 8, 1, 2.5, 4, 2], stored=[2, 1, 0])
    assert placed.fields == {
        "keypoints_x": [1.0, 0.25, 0.0, 0.0, 0.5, 0.0],
        "keypoints_y": [1.0, 0.5, 0.0, 0.0, 0.25, 0.0],
        "keypoints_visibility": [1, 2, 0, 0, 2, 0],
        "keypoints_text": [b"nose", b"tail"] * 3,
        "keypoints_num": [2, 0, 1],
        "keypoints": [1, 1, 1, 0.25, 0.5, 2, 0, 0, 0, 0, 0, 0, 0.5, 0.25, 2, 0, 0, 0],
    }
    assert placed.outcome.counts == AnnotationCounts(3, 3)


@pytest.mark.parametrize(
    ("frame", "x", "y"), [("displayed", 5 / 8, 2 / 10), ("stored", 1 - 2 / 8, 5 / 10)]
)
def test_points_turn_with_their_image(frame, x, y):
    placed = place([5, 2, 2, 0, 0, 0], frame=frame, orientation=6)
    assert placed.fields["keypoints_x"] == [pytest.approx(x), 0.0]
    assert placed.fields["keypoints_y"] == [pytest.approx(y), 0.0]


@pytest.mark.parametrize(
    ("points", "reasons"),
    [
        ([5, 2, 2, 11, 4, 2], {"outside": 1}),
        ([5, 2, 2, 5, -1, 2], {"outside": 1}),
        ([5, 2, 2, None, 4, 2], {"not_finite": 1}),
        ([5, 2, 2, 5, 4, None], {"not_finite": 1}),
        ([5, 2, 2], {"bad_points": 2}),
        ([], {"bad_points": 2}),
    ],
)
def test_points_that_cannot_be_placed_are_not_labeled(points, reasons):
    placed = place(points)
    (reason,) = reasons
    assert placed.outcome.counts.dropped == Counter(reasons)
    assert {each.is_faulty for each in placed.outcome.dropped} == {True}
    assert placed.outcome.dropped[0] == DroppedAnnotation(reason, "cat", 1, True)
    assert placed.fields["keypoints_visibility"] == ([0, 0] if "bad_points" in reasons else [2, 0])
    assert placed.outcome.counts.adds_up


def test_what_a_crop_cuts_away_is_not_faulty():
    resize = Resize(exact=(8, 4))
    placed = place([5, 4, 2, 1, 4, 2], images=ImageSettings(resize=resize))
    assert placed.fields["keypoints_x"] == [0.5, 0.0]
    assert placed.fields["keypoints_num"] == [1]
    assert placed.outcome.dropped == [DroppedAnnotation("cropped_away", "cat", 1, False)]


def test_points_of_objects_that_are_not_stored_are_dropped():
    placed = place([5, 4, 2, 1, 4, 2], [5, 4, 2, 0, 0, 0], stored=[], unwanted={1: "empty_mask"})
    assert placed.outcome.counts == AnnotationCounts(3, 0, Counter(without_box=2, empty_mask=1))
    assert not any(each.is_faulty for each in placed.outcome.dropped)


def test_points_of_unclear_objects_are_faulty():
    given = KeyPoints(NAMES, [[5, 4, 2, 1, 4, 2]], lost=[("repeated", 0), ("several_regions", 0)])
    assert KEY_POINTS.list_labels(given.pack()).total == 4
    outcome = place(*given.points, lost=given.lost).outcome
    assert outcome.counts == AnnotationCounts(4, 2, Counter(repeated=1, several_regions=1))
    assert outcome.dropped[0] == DroppedAnnotation("repeated", "cat", 1, True)
    totals = AnnotationTotals()
    totals.dropped = totals.faulty = {"repeated": Counter(cat=40)}
    lost = LostAnnotations(AnnotationCounts(80, 40), totals, {})
    remedy = "add --set source.points=objects"
    assert remedy in KEY_POINTS.check_limits(lost, make_settings())


def test_points_of_images_that_are_not_stored_or_not_written_are_counted():
    packed = KeyPoints(NAMES, [[5, 2, 2, 0, 0, 0], None, [1]]).pack()
    assert KEY_POINTS.list_labels(packed) == ListedLabels((), 3, tuple(NAMES))
    on = AnnotatedImage(b"", None, make_settings(), LABELS)
    counts = KEY_POINTS.place(packed, on).outcome.counts
    assert counts == AnnotationCounts(3, 0, Counter(not_decoded=3))
    lost = KEY_POINTS.lose(packed, Rejected("read", "unreadable", ""), LABELS)
    assert lost.counts == AnnotationCounts(3, 0, Counter(with_rejected_images=3))
    nothing = KeyPoints(NAMES, [None]).pack()
    assert KEY_POINTS.lose(nothing, Rejected("read", "unreadable", ""), LABELS) is None


def test_too_many_faulty_points_exceed_the_limits():
    totals = AnnotationTotals()
    totals.dropped = totals.faulty = {"outside": Counter(cat=11)}
    lost = LostAnnotations(AnnotationCounts(100, 89), totals, {})
    assert KEY_POINTS.check_limits(lost, make_settings()) == (
        "11 of 100 key points (11.00%) were dropped (11 outside: cat), which is over "
        "max_rejected.keypoints.count (10) and max_rejected.keypoints.share (1.00%); correct "
        "these points, or add --set max_rejected.keypoints.count=11 to do without them"
    )
    assert KEY_POINTS.most_lost(Contract(lost_keypoints=0.5)) == 0.5


def test_no_limit_allows_a_run_to_lose_all_points():
    totals = AnnotationTotals()
    totals.dropped = totals.faulty = {"outside": Counter(cat=4)}
    lost = LostAnnotations(AnnotationCounts(4, 0), totals, {})
    assert KEY_POINTS.check_limits(lost, make_settings()) == (
        "all key points (4) were dropped (4 outside: cat), which no limit allows: correct these "
        "points"
    )
    lost = LostAnnotations(AnnotationCounts(5, 0), totals, {})  # another is lost on purpose
    assert KEY_POINTS.check_limits(lost, make_settings()) is None


def test_points_that_do_not_fit_their_names_have_a_remedy_of_their_own():
    totals = AnnotationTotals()
    totals.dropped = totals.faulty = {"bad_points": Counter(cat=4)}
    lost = LostAnnotations(AnnotationCounts(4, 0), totals, {})
    assert KEY_POINTS.check_limits(lost, make_settings()).endswith(
        "allows: give each object three numbers for every point that its category names"
    )


def test_notes_say_what_is_not_stored_or_dropped():
    assert KEY_POINTS.note_unstored(3, "TF-Slim") == (
        "3 key points are in no Example: the convention (TF-Slim) stores no key points, "
        "tf_object_detection and tfds do"
    )
    entry = AnnotationEntry(
        unit="key point",
        listed=9,
        written=6,
        dropped={"outside": 2, "without_box": 1},
        dropped_classes={"outside": {"cat": 2}, "without_box": {"dog": 1}},
    )
    assert list(KEY_POINTS.find_remarks(entry, "image", make_settings())) == [
        "Dropped: 2 of 9 key points (outside: cat). In Examples, these points are not labeled."
    ]


WHOLE = {
    "keypoints_x": [0.0, 1.0],
    "keypoints_y": [0.0, 0.5],
    "keypoints_visibility": [0, 2],
    "keypoints_text": [b"nose", b"nose"],
    "keypoints_num": [0, 1],
    "xmin": [0.0, 0.0],
}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        (dict.fromkeys(WHOLE, ()), None),
        ({"keypoints_x": [0.0]}, "its lists of key points differ in length: 1 in keypoints_x, 2 "),
        ({"xmin": [0.0] * 3}, "it has 2 key points for 3 boxes"),
        ({"xmin": []}, "it has 2 key points for 0 boxes"),
        ({"keypoints_y": [0.0, 1.5]}, "one of its key points is not on the image"),
        ({"keypoints_visibility": [0, 3]}, "the visibility of a key point is 3, and should be "),
        ({"keypoints_text": [b"a", b"b"]}, "the key points of box 2 have other names than those"),
        ({"keypoints_num": [1, 1]}, "box 1 has 0 labeled key points, and its number says 1"),
    ],
)
def test_points_in_an_example_fit_its_boxes(changed, problem):
    found = KEY_POINTS.check({**WHOLE, **changed})
    if problem is None:
        assert found is None
    else:
        assert found.startswith(problem)


TOGETHER = {"keypoints": [0.0, 0.0, 0, 1.0, 0.5, 2], "box_labels": [2, 3]}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        (dict.fromkeys(TOGETHER, ()), None),
        ({"keypoints": [0.0, 1.0]}, "its 2 numbers of key points are not three for each point"),
        ({"box_labels": [1] * 3}, "it has 2 key points for 3 boxes"),
        ({"keypoints": [0.0, 1.5, 2, 0, 0, 0]}, "one of its key points is not on the image"),
        (
            {"keypoints": [0.0, 1.0, 3, 0, 0, 0]},
            "the visibility of a key point is 3, and should be 0, 1 or 2",
        ),
    ],
)
def test_points_in_one_list_fit_the_boxes(changed, problem):
    assert KEY_POINTS.check({**TOGETHER, **changed}) == problem


def test_points_in_one_list_are_read_as_those_in_several():
    array = KEY_POINTS.as_array(TOGETHER, (8, 10))
    assert array.tolist() == [[[0, 0, 0]], [[1, 0.5, 2]]]
    (shape,) = KEY_POINTS.trace(TOGETHER, {3: "cat"})
    assert (shape.class_id, shape.class_name, shape.points) == (3, "cat", ((1.0, 0.5, True),))


def test_labeled_points_become_shapes():
    ids = {"box_labels": [2, 3]}
    (shape,) = KEY_POINTS.trace({**WHOLE, **ids}, {3: "cat"})
    assert (shape.class_id, shape.class_name, shape.sides) == (3, "cat", None)
    codes = WHOLE["keypoints_visibility"]
    places = zip(WHOLE["keypoints_x"], WHOLE["keypoints_y"], codes, strict=True)
    assert shape.points == tuple((x, y, code == 2) for x, y, code in places if code)
    assert KEY_POINTS.trace({}, {}) == []


@pytest.mark.parametrize("text", [{}, {"keypoints_text": [b"tail", b"ear", b"nose"] * 2}])
def test_lines_join_labeled_points_by_their_names(text):
    points = [0.1, 0.1, 2, 0, 0, 0, 0.3, 0.3, 1, 0.4, 0.4, 2, 0.5, 0.5, 2, 0.6, 0.6, 2]
    skeleton = {"nose": ("ear", "tail"), "ear": (), "tail": ("ear", "paw")}
    values = {"keypoints": points, "box_labels": [1, 1], **text}
    shapes = KEY_POINTS.join_parts(skeleton).trace(values, {})
    # Without names in Examples, points are in the order of the skeleton.
    named = [((0, 1),), ((0, 1), (0, 2), (2, 1))]
    expected = [((1, 0),), ((2, 1), (2, 0), (0, 1))] if text else named
    assert [shape.lines for shape in shapes] == expected
    assert not any(shape.lines for shape in KEY_POINTS.trace(values, {}))
