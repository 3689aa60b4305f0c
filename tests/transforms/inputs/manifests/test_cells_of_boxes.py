import json
import math

import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.manifests.cells_of_boxes import boxes_from, objects_from


def test_boxes():
    assert boxes_from("[[1, 2, 3.5, 4]]", "x") == [[1.0, 2.0, 3.5, 4.0]]
    assert boxes_from([], "x") == boxes_from("", "x") == boxes_from(None, "x") == []


@pytest.mark.parametrize(
    "value",
    [
        *([[box]] for box in ([1, 2, 3], [1, 2, 3, "4"], [1, 2, 3, True], [1, 2, 3, math.nan], [1, 2, 3, -math.inf])),
        *([1, 2, 3, 4], [[1, 2, 3, 10**400]], [["1, 2, 3, 4"]], "{}", "1,2,3,4", 5),
    ],
)
def test_cells_that_are_not_boxes(value):
    with pytest.raises(Rejected, match=r"^\w+: column 'x': "):
        boxes_from(value, "x")


OBJECTS = {"bbox": [[302.0, 109.0, 73.0, 52.0], [0, 0, 1, 2]], "categories": [1, 0]}
BOXES = [[302.0, 109.0, 375.0, 161.0], [0.0, 0.0, 1.0, 2.0]]


@pytest.mark.parametrize(
    "value",
    [
        OBJECTS,
        json.dumps(OBJECTS),
        {"bbox": OBJECTS["bbox"], "category": [1, 0], "area": [1, 2]},
        [{"bbox": box, "category": number} for box, number in zip(OBJECTS["bbox"], (1, 0), strict=True)],
        [{"bbox": box, "categories": name} for box, name in zip(OBJECTS["bbox"], ("dog", "cat"), strict=True)],
    ],
)
def test_objects(value):
    assert objects_from(value, "objects", ["cat", "dog"]) == (BOXES, ["dog", "cat"])


def test_without_names_numbers_are_names():
    assert objects_from(OBJECTS, "objects") == (BOXES, ["1", "0"])


@pytest.mark.parametrize("value", [None, "", {}, [], {"bbox": [], "categories": []}, {"bbox": None}])
def test_no_objects(value):
    assert objects_from(value, "objects") == ([], [])


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{", "column 'o': '{' (str) is not JSON"),
        ("7", "column 'o': 7 (int) is not an object with bbox and categories"),
        ([3], "column 'o': 3 (int) is not an object with bbox and category"),
        ({"bbox": [[1, 2, 3]], "category": [0]}, "column 'o.bbox': [1, 2, 3] (list) is not a list of four numbers"),
        ({"bbox": [[1, 2, 3, 4]]}, "column 'o': there are 1 boxes and 0 labels"),
        ([{"bbox": [1, 2, 3, 4]}], "column 'o': there are 1 boxes and 0 labels"),
        ({"bbox": [[1, 2, 3, 4]], "category": [2]}, "column 'o.categories': 2 (int) is not one of the 2 classes"),
        ({"bbox": [[1, 2, 3, 4]], "category": [0.5]}, "column 'o.categories': 0.5 (float) is not text"),
    ],
)
def test_cells_that_are_not_objects(value, sentence):
    with pytest.raises(Rejected) as raised:
        objects_from(value, "o", ["cat", "dog"])
    assert raised.value.detail == sentence
