from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.yolo_lines import read_yolo_lines

BOX = "0 0.5 0.25 0.5 0.5"
CORNERS = (0.25, 0.0, 0.75, 0.5)

POSE = BOX + " 0.3 0.4 2 0.6 0.1 1 0 0 0"  # three key points with flags
EVEN_POSE = POSE + " 0.5 0.5 2"  # four, so that the numbers are even
PEOPLE = "0 0.5 0.25 0.5 0.5 90 175 1 50 1"  # coco8-human: weight, height, gender, age, ethnicity


@pytest.mark.parametrize(
    "line",
    [BOX, "0.0 0.5 0.25 0.5 0.5", BOX + " 0.93", POSE, EVEN_POSE, PEOPLE, BOX + " 0 1 0", BOX + " 17.5 0 3"],
)
def test_a_line_that_begins_with_a_box(line):
    found = read_yolo_lines(f"\n{line}\n")
    assert (found.boxes, found.labels, found.enclosed, found.dropped) == ([CORNERS], [0], 0, 0)


@pytest.mark.parametrize(
    ("line", "box"),
    [
        ("3 0.1 0.2 0.4 0.1 0.3 0.6", (0.1, 0.1, 0.4, 0.6)),
        # DOTA's oriented boxes are four corners, which may stick out.
        (
            "3 0.779296 0.690429 0.625976 0.451171 0.88965 0.266601 1.04199 0.51465",
            (0.625976, 0.266601, 1.04199, 0.690429),
        ),
    ],
)
def test_pairs_are_a_polygon(line, box):
    found = read_yolo_lines(f"{BOX}\n{line}\n")
    assert (found.boxes, found.labels, found.enclosed, found.dropped) == ([CORNERS, box], [0, 3], 1, 0)
    found = read_yolo_lines(f"{BOX}\n{line}\n", "drop")
    assert (found.boxes, found.labels, found.enclosed, found.dropped) == ([CORNERS], [0], 0, 1)
    with pytest.raises(Rejected, match=r"^refused_shape: line 2 is a polygon, and source.other_shapes is reject$"):
        read_yolo_lines(f"{BOX}\n{line}\n", "reject")


def test_key_points_are_counted_by_kpt_shape():
    line = BOX + " 0.3 0.4 0.6 0.1"
    assert read_yolo_lines(line, key_points=(2, 2)).boxes == [CORNERS]
    assert read_yolo_lines(line).enclosed == 1
    assert read_yolo_lines(BOX, key_points=(2, 2)).boxes == [CORNERS]
    sentence = r"^bad_annotations: line 1 has 8 numbers after its class, not 13 by kpt_shape: \[3, 3\]$"
    with pytest.raises(Rejected, match=sentence):
        read_yolo_lines(line, key_points=(3, 3))


@pytest.mark.parametrize("line", [BOX + " 0.9 17", BOX + " 0.3 0.4 0.9", BOX + " nan 0.1"])
def test_a_line_that_may_be_anything_names_the_setting(line):
    count = len(line.split()) - 1
    with pytest.raises(Rejected) as raised:
        read_yolo_lines(line)
    assert raised.value.detail == (
        f"line 1 has {count} numbers after its class, which are neither a box nor the points of a polygon: "
        "if the first four are a box, set source.lines=boxes"
    )
    assert read_yolo_lines(line, boxes_only=True).boxes == [CORNERS]


@pytest.mark.parametrize(
    "line", ["1 0.5 0.5 0.5", "cat 0.5 0.5 0.5 0.5", "-1 0 0 1 1", "0.5 0 0 1 1", "1 a b c d", "9999999999 0 0 1 1"]
)
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(Rejected, match=r"^\w+: line 2 is not a class number and four numbers or more$"):
        read_yolo_lines(f"{BOX}\n{line}")


ODD_WORDS = ["0", "1", "2", "nan", "inf", "1e999", "-", "9" * 5000, "7"]
WORDS = st.one_of(st.floats(-3, 3).map(str), st.sampled_from(ODD_WORDS))


@given(st.lists(st.lists(WORDS, max_size=20).map(" ".join), max_size=3).map("\n".join))
def test_any_text_is_boxes_or_a_bad_line(text):
    with suppress(Rejected):
        found = read_yolo_lines(text)
        assert len(found.boxes) == len(found.labels) == len([line for line in text.splitlines() if line.strip()])
        orjson.dumps(found.labels)
