import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    DroppedAnnotation,
    ListedLabels,
    PlacedObjects,
)
from recordmill.annotations.boxes import BOXES, Boxes, boxes_of, place_boxes
from recordmill.imaging.geometry import Geometry
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.settings.dataset import BoxSettings
from recordmill.schemas.settings.images import Resize

WHOLE = Geometry((200, 100), 1, False, None, (200, 100))
LABELS = LabelMap({"cat": 1, "dog": 2}, numbers={"cat": 18, "dog": 17})


def flatten(counts):
    """All counts in one counter, without what is 0."""
    whole = Counter(listed=counts.listed, written=counts.written)
    return +(whole + counts.dropped + counts.noted)


def place(boxes, labels=None, geometry=WHOLE, invalid="clip", drawn_on="auto", **more):
    labels = labels or ["cat"] * len(boxes)
    settings = BoxSettings(invalid=invalid, drawn_on=drawn_on)
    placed = place_boxes(boxes_of(boxes, labels, **more), geometry, settings, LABELS)
    outcome = placed.outcome
    return SimpleNamespace(
        fields=placed.fields, counts=flatten(outcome.counts), dropped=outcome.dropped
    )


def test_pixels_become_fractions_and_names_ids():
    placed = place(
        [(20, 10, 120, 60), (0, 0, 200, 100)],
        ["dog", 18],
        values={"is_crowd": [0, 1], "area": [5000.0, 20000.0], "pose": ["Left", ""]},
    )
    assert placed.fields == {
        "xmin": [0.1, 0.0],
        "xmax": [0.6, 1.0],
        "ymin": [0.1, 0.0],
        "ymax": [0.6, 1.0],
        "bbox": [0.1, 0.1, 0.6, 0.6, 0.0, 0.0, 1.0, 1.0],
        "box_labels": [2, 1],
        "box_label_texts": [b"dog", b"cat"],
        "is_crowd": [0, 1],
        "area": [5000.0, 20000.0],
        "pose": [b"Left", b""],
    }
    assert placed.counts == {"listed": 2, "written": 2}


def test_shapes_that_a_source_enclosed_or_dropped_are_counted():
    placed = place([(20, 10, 120, 60)], shapes={"enclosed": 1, "other_shape": 2})
    assert placed.counts == {"listed": 3, "written": 1, "enclosed": 1, "other_shape": 2}
    assert boxes_of([], [], shapes={"enclosed": 0}).shapes == {}


INVALID = {
    "sticking_out": (-10, 10, 100, 60),
    "outside": (200, 10, 300, 60),
    "empty": (50, 10, 50, 60),
    "not_finite": (math.nan, 10, 100, 60),
}


@pytest.mark.parametrize(
    "box",
    [(200, 10, 300, 60), (-10, 10, 0, 60), (20, 100, 120, 110), (20, -10, 120, 0)],
    ids=["right", "left", "below", "above"],
)
def test_a_box_that_only_touches_an_edge_of_the_image_is_outside(box):
    assert place([box, (20, 10, 120, 60)]).counts == {"listed": 2, "written": 1, "outside": 1}


@pytest.mark.parametrize("side", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_packed_as_null(side):
    given = boxes_of([(0, 0, 9, 9), (side, 0, 9, 9)], ["cat", "cat"], values={"area": [side, 1.0]})
    packed = given.pack()
    assert packed == (
        b'[[[0.0,0.0,9.0,9.0],[null,0.0,9.0,9.0]],["cat","cat"],{"area":[null,1.0]},null,false,{}]'
    )
    placed = place_boxes(Boxes.unpack(packed), WHOLE, BoxSettings(), LABELS)
    assert flatten(placed.outcome.counts) == {"listed": 2, "written": 1, "not_finite": 1}
    assert math.isnan(placed.fields["area"][0])


@pytest.mark.parametrize("fault", INVALID)
def test_invalid_boxes_are_clipped_dropped_or_reject_the_image(fault):
    good = (20, 10, 120, 60)
    clipped = place([INVALID[fault], good], values={"is_crowd": [1, 0]})
    if fault == "sticking_out":
        assert clipped.counts == {"listed": 2, "written": 2, "clipped": 1}
        assert clipped.fields["xmin"] == [0.0, 0.1]
    else:
        assert clipped.counts == {"listed": 2, "written": 1, fault: 1}
        assert (clipped.fields["xmin"], clipped.fields["is_crowd"]) == ([0.1], [0])
    dropped = place([INVALID[fault], good], invalid="drop")
    assert dropped.counts == {"listed": 2, "written": 1, fault: 1}
    with pytest.raises(Rejected, match=f"bad_boxes: box 1 of 2 is {fault}"):
        place([INVALID[fault], good], invalid="reject")


@pytest.mark.parametrize("label", ["stray", 3])
def test_a_box_of_no_known_class_is_invalid(label):
    assert place([(0, 0, 9, 9)], [label]).counts == {"listed": 1, "unknown_class": 1}
    with pytest.raises(Rejected, match="bad_boxes: box 1 of 1 is unknown_class"):
        place([(0, 0, 9, 9)], [label], invalid="reject")


def test_rounding_is_not_a_fault():
    placed = place([(-1e-9, 0, 1 + 1e-9, 1)], fractions=True, invalid="reject")
    assert (placed.fields["bbox"], placed.counts) == (
        [0.0, 0.0, 1.0, 1.0],
        {"listed": 1, "written": 1},
    )


def test_what_a_crop_cuts_away_is_dropped_and_counted():
    square = Geometry((200, 100), 1, False, Resize(exact=(50, 50)), (50, 50))
    placed = place(
        [(0, 0, 40, 100), (40, 0, 100, 100), (60, 20, 100, 70)],
        geometry=square,
        values={"area": [1, 2, 4]},
    )
    assert placed.counts == {"listed": 3, "written": 2, "clipped": 1, "cropped_away": 1}
    assert placed.fields["bbox"] == [0.0, 0.0, 1.0, 0.5, 0.2, 0.1, 0.7, 0.5]
    assert placed.fields["area"] == [0.5, 1.0]


def test_the_area_of_a_box_that_was_cut_is_at_most_that_of_its_rest():
    values = {"area": [5000.0, 300.0, 9000.0, math.nan]}
    stuck_out = place(
        [(-100, 0, 100, 50), (-10, 0, 10, 50), (0, 0, 100, 50), (-1, 0, 9, 9)], values=values
    )
    assert stuck_out.fields["area"][:3] == [5000.0, 300.0, 9000.0]
    assert math.isnan(stuck_out.fields["area"][3])
    stuck_out = place([(-100, 0, 100, 50), (-10, 0, 10, 50)], values={"area": [9000.0, 1000.0]})
    assert stuck_out.fields["area"] == [5000.0, 500.0]
    square = Geometry((80, 40), 1, False, Resize(exact=(40, 40), fit="crop"), (40, 40))
    cropped = place(
        [(8, 4, 32, 20), (32, 4, 56, 20)], geometry=square, values={"area": [384.0, 384.0]}
    )
    assert cropped.fields["bbox"] == [0.1, 0.0, 0.5, 0.3, 0.1, 0.3, 0.5, 0.9]
    assert cropped.fields["area"] == pytest.approx([192.0, 384.0])


def test_the_size_that_annotators_state_says_which_way_up_the_image_was():
    turned = Geometry((200, 100), 6, True, None, (100, 200))
    upright = place([(0, 0, 50, 20)], geometry=turned, drawn_on_size=(100, 200))
    assert upright.fields["bbox"] == [0.0, 0.0, 0.1, 0.5]
    assert upright.counts == {"listed": 1, "written": 1}
    lying = place([(0, 0, 50, 20)], geometry=turned, drawn_on_size=(200, 100))
    assert lying.fields["bbox"] == [0.0, 0.8, 0.25, 1.0]
    assert lying.counts == {"listed": 1, "written": 1, "size_disagrees": 1}
    silent = place([(0, 0, 50, 20)], geometry=turned, drawn_on_size=(0, 0))
    assert silent.fields == upright.fields
    with pytest.raises(
        Rejected, match=r"size_mismatch: boxes were drawn on 30 x 40 pixels, and .* 100 x 200"
    ):
        place([(0, 0, 50, 20)], geometry=turned, drawn_on_size=(30, 40))


TURNED = Geometry((200, 100), 6, True, None, (100, 200))
OF_PORTRAIT, OF_LANDSCAPE, OF_BOTH = (10, 150, 40, 190), (150, 10, 190, 40), (5, 5, 20, 9)


@pytest.mark.parametrize("size", [(200, 100), (100, 200), (0, 0), None])
@pytest.mark.parametrize("box", [OF_PORTRAIT, OF_LANDSCAPE])
def test_boxes_that_fit_only_one_orientation_decide(size, box):
    fitting, whole = ("stored", (200, 100)) if box is OF_LANDSCAPE else ("displayed", (100, 200))
    boxes = [box, OF_BOTH, (math.nan, 0, 9, 9)]
    placed = place(boxes, geometry=TURNED, drawn_on_size=size)
    wanted = place(boxes, geometry=TURNED, drawn_on=fitting)
    assert placed.fields == wanted.fields
    usual = (100, 200) if size in (None, (0, 0)) else size
    counts = {} if usual == whole else {f"fits_only_{fitting}": 3}
    if size == (200, 100) and fitting == "stored":
        counts = {"size_disagrees": 3}  # with the orientation in the metadata
    assert placed.counts == {"listed": 3, "written": 2, "not_finite": 1, **counts}


@pytest.mark.parametrize(
    ("boxes", "more"),
    [
        ([OF_BOTH], {}),
        ([OF_PORTRAIT, OF_LANDSCAPE], {}),
        ([(150, 150, 190, 190)], {}),  # fits neither
        ([(1.2, 0.1, 1.3, 0.2)], {"fractions": True}),
        ([OF_LANDSCAPE], {"drawn_on": "displayed"}),
        ([(-9, 10, 20, 30)], {}),
    ],
)
def test_boxes_that_fit_both_or_neither_do_not_decide(boxes, more):
    placed = place(boxes, geometry=TURNED, **more)
    wanted = place(boxes, geometry=TURNED, **{**more, "drawn_on": "displayed"})
    assert (placed.fields, placed.counts) == (wanted.fields, wanted.counts)


@pytest.mark.parametrize("orientation", range(1, 5))
def test_boxes_do_not_decide_where_both_orientations_have_one_size(orientation):
    geometry = Geometry((200, 100), orientation, orientation > 1, None, (200, 100))
    assert place([OF_PORTRAIT], geometry=geometry).counts == {"listed": 1, "outside": 1}


@pytest.mark.parametrize("size", [(200, 100), (100, 200), (0, 0), None])
@pytest.mark.parametrize("drawn_on", ["displayed", "stored"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_explicit_orientation_wins_over_the_size_that_annotations_state(
    size, drawn_on, orientation
):
    is_turned = orientation > 4
    turned = Geometry(
        (200, 100), orientation, orientation > 1, None, (100, 200) if is_turned else (200, 100)
    )
    if size == (100, 200) and not is_turned:
        with pytest.raises(Rejected, match="size_mismatch"):
            place([(2, 3, 12, 11)], geometry=turned, drawn_on_size=size, drawn_on=drawn_on)
        return
    placed = place([(2, 3, 12, 11)], geometry=turned, drawn_on_size=size, drawn_on=drawn_on)
    width, height = (100, 200) if is_turned and drawn_on == "displayed" else (200, 100)
    wanted = place(
        [(2 / width, 3 / height, 12 / width, 11 / height)],
        geometry=turned,
        fractions=True,
        drawn_on=drawn_on,
    )
    assert placed.fields == wanted.fields
    disagrees = is_turned and size in ((200, 100), (100, 200)) and size != (width, height)
    assert placed.counts == {
        "listed": 1,
        "written": 1,
        **({"size_disagrees": 1} if disagrees else {}),
    }


@given(
    st.lists(st.tuples(*[st.floats(-50, 250)] * 4), max_size=8),
    st.sampled_from(["clip", "drop"]),
    st.sampled_from([None, Resize(exact=(64, 64)), Resize(exact=(64, 64), fit="pad")]),
)
def test_every_box_is_accounted_for_and_is_inside(boxes, invalid, resize):
    stored = (64, 64) if resize else (200, 100)
    placed = place(boxes, geometry=Geometry((200, 100), 1, False, resize, stored), invalid=invalid)
    counts = placed.counts
    dropped = sum(
        count for what, count in counts.items() if what not in ("listed", "written", "clipped")
    )
    assert counts["listed"] == len(boxes) == counts["written"] + dropped
    assert len(placed.fields["bbox"]) == 4 * counts["written"]
    for ymin, ymax, xmin, xmax in zip(
        *(placed.fields[key] for key in ("ymin", "ymax", "xmin", "xmax")), strict=True
    ):
        assert 0 <= ymin < ymax <= 1
        assert 0 <= xmin < xmax <= 1


@pytest.mark.parametrize(
    ("invalid", "reason", "is_faulty"),
    [
        ("clip", "outside", True),
        ("clip", "empty", True),
        ("clip", "not_finite", True),
        ("drop", "outside", True),
        ("drop", "sticking_out", False),
    ],
)
def test_a_box_dropped_without_being_asked_is_faulty(invalid, reason, is_faulty):
    placed = place([(0, 0, 9, 9), INVALID[reason]], ["dog", 18], invalid=invalid)
    assert placed.dropped == [DroppedAnnotation(reason, "cat", 2, is_faulty)]
    assert placed.counts == {"listed": 2, "written": 1, reason: 1}


def test_a_box_of_an_unknown_class_is_faulty_unless_the_user_chose_the_classes():
    said = boxes_of([(0, 0, 9, 9)] * 3, ["emu", 7, 17])
    unknown = place_boxes(said, WHOLE, BoxSettings(), LABELS).outcome.dropped
    assert unknown == [
        DroppedAnnotation("unknown_class", "emu", 1, True),
        DroppedAnnotation("unknown_class", "7", 2, True),
    ]
    chosen = LabelMap({"cat": 1}, numbers=LABELS.numbers, is_chosen=True)
    dropped = [("emu", 1), ("7", 2), ("dog", 3)]
    assert place_boxes(said, WHOLE, BoxSettings(), chosen).outcome.dropped == [
        DroppedAnnotation("unknown_class", name, number, False) for name, number in dropped
    ]


def test_a_box_that_is_cropped_away_is_not_faulty():
    resize = Resize(exact=(100, 100), fit="crop")
    placed = place(
        [(0, 0, 20, 20), (90, 0, 110, 20)],
        geometry=Geometry((200, 100), 1, False, resize, (100, 100)),
    )
    assert placed.dropped == [DroppedAnnotation("cropped_away", "cat", 1, False)]


ONE_BOX = boxes_of([(0, 0, 1, 1)], [7], shapes={"enclosed": 0, "other_shape": 2})


def test_dropped_shapes_are_counted_with_the_boxes():
    packed = ONE_BOX.pack()
    assert BOXES.list_labels(packed) == ListedLabels([7], 2)
    assert BOXES.list_labels(packed).total == ONE_BOX.count == 3
    assert BOXES.list_labels(boxes_of([], []).pack()).total == 0


def test_equal_boxes_are_packed_to_equal_bytes():
    one = boxes_of([(0, 0, 1, 1)], ["ü"], values={"area": [1.0], "is_crowd": [0]})
    other = boxes_of([[0.0, 0.0, 1.0, 1.0]], ("ü",), values={"is_crowd": [0], "area": [1.0]})
    assert one.pack() == other.pack()
    assert Boxes.unpack(one.pack()) == one


def test_the_objects_that_are_stored_are_those_of_the_boxes_in_their_order():
    given = boxes_of([(0, 0, 9, 9), (5, 5, 5, 9), (0, 0, 9, 9)], ["dog", "cat", "cat"])
    turned = Geometry((200, 100), 6, True, None, (100, 200))
    placed = place_boxes(given, turned, BoxSettings(), LABELS)
    names, sides = ["dog", "cat", "cat"], [(0.0, 0.0, 0.09, 0.045)] * 2
    assert placed.objects == PlacedObjects(3, [0, 2], names, "displayed", sides)
    stored = replace(given, drawn_on_size=[200, 100])
    placed = place_boxes(stored, turned, BoxSettings(), LABELS)
    sides = list(
        zip(*(placed.fields[side] for side in ("xmin", "ymin", "xmax", "ymax")), strict=True)
    )
    assert placed.objects == PlacedObjects(3, [0, 2], names, "stored", sides)


def test_objects_that_another_kind_drops_lose_their_boxes():
    given = boxes_of([(0, 0, 9, 9), (5, 5, 5, 9), (0, 0, 9, 9)], ["dog", "cat", "cat"])
    unwanted = {1: "empty_mask", 2: "empty_mask"}
    placed = place_boxes(given, WHOLE, BoxSettings(), LABELS, unwanted)
    names, sides = ["dog", "cat", "cat"], [(0.0, 0.0, 0.045, 0.09)]
    assert placed.objects == PlacedObjects(3, [0], names, "displayed", sides)
    assert placed.outcome.dropped == [
        DroppedAnnotation("empty", "cat", 2, is_faulty=True),
        DroppedAnnotation("empty_mask", "cat", 3, is_faulty=False),
    ]
    assert flatten(placed.outcome.counts) == {
        "listed": 3,
        "written": 1,
        "empty": 1,
        "empty_mask": 1,
    }


def test_boxes_of_an_image_that_is_not_stored_are_dropped():
    settings = make_settings()
    given = boxes_of([(0, 0, 1, 1)] * 2, ["cat", "emu"], shapes={"other_shape": 1})
    placed = BOXES.place(given.pack(), AnnotatedImage(b"", None, settings, LABELS))
    assert (placed.fields, placed.classes) == ({}, [])
    assert flatten(placed.outcome.counts) == {"listed": 3, "not_decoded": 2, "other_shape": 1}
    assert placed.outcome.dropped == [
        DroppedAnnotation("not_decoded", "cat", 1, False),
        DroppedAnnotation("not_decoded", "emu", 2, False),
    ]


def test_boxes_of_images_that_are_not_written_are_counted():
    packed = ONE_BOX.pack()
    rejected = BOXES.lose(packed, Rejected("decode", "truncated", ""), LABELS)
    assert rejected == AnnotationOutcome(
        AnnotationCounts(3, dropped=Counter(with_rejected_images=3))
    )
    left_out = BOXES.lose(packed, LeftOut("too_small", ""), LABELS)
    assert left_out.counts.dropped == {"with_left_out_images": 3}
    missing = BOXES.lose(packed, Rejected("list", "vanished", ""), LABELS)
    assert missing == AnnotationOutcome(
        AnnotationCounts(3, dropped=Counter(without_image=3)),
        [
            DroppedAnnotation("without_image", "7", 1, True),
            DroppedAnnotation("without_image", "", 2, False),
            DroppedAnnotation("without_image", "", 3, False),
        ],
    )
    assert BOXES.lose(boxes_of([], []).pack(), Rejected("list", "vanished", ""), LABELS) is None


WHOLE_IMAGE = {"xmin": [0.0], "ymin": [0.0], "xmax": [1.0], "ymax": [1.0], "box_labels": [1]}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        ({"bbox": [0.0, 0.0, 0.5, 0.5]}, None),
        ({"xmax": [0.0]}, None),
        ({"xmax": []}, "its lists of boxes differ in length: 1 in xmin, 1 in ymin, 0 in xmax"),
        ({"box_labels": [1, 2]}, "its lists of boxes differ in length: 1 in xmin, 1 in ymin"),
        ({"bbox": [0.0] * 6}, "its lists of boxes differ in length: 1 in xmin, 1 in ymin"),
        ({"xmax": [1.5]}, "box 1 is not on the image: its sides are 0, 0, 1.5, 1"),
        ({"xmin": [math.nan]}, "box 1 is not on the image: its sides are nan, 0, 1, 1"),
        ({"ymin": [0.5], "ymax": [0.25]}, "box 1 is not on the image: its sides are 0, 0.5, 1, "),
    ],
)
def test_boxes_in_an_example_are_on_the_image_and_have_one_class_each(changed, problem):
    found = BOXES.check({**WHOLE_IMAGE, **changed})
    if problem is None:
        assert found is None
    else:
        assert found.startswith(problem)
