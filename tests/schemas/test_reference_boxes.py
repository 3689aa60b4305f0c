import math

import orjson

from recordmill.schemas.image_ref import ImageRef, boxes_of, count_boxes, list_boxes


def test_a_reference_carries_boxes_as_json():
    features = boxes_of([(0, 1, math.inf, 3)], ["cat"], values={"area": [math.nan]}, drawn_on_size=(4, 3))
    assert orjson.loads(orjson.dumps(features)) == {
        "boxes": [[0.0, 1.0, None, 3.0]],
        "boxes_labels": ["cat"],
        "boxes_values": {"area": [None]},
        "boxes_size": [4, 3],
        "boxes_fractions": False,
    }


def test_dropped_shapes_are_counted_with_the_boxes():
    features = orjson.dumps(boxes_of([(0, 0, 1, 1)], [7], shapes={"enclosed": 0, "other_shape": 2})).decode()
    ref = ImageRef("a", "/a", features=features)
    assert (list_boxes(ref), count_boxes(ref)) == (([7], 2), 3)
    assert (list_boxes(ImageRef("a", "/a")), count_boxes(ImageRef("a", "/a"))) == (([], 0), 0)
