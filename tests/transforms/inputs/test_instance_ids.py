import numpy as np
import pytest

from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.outline import FileIds, MaskFile
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.instance_ids import find_objects, read_instance_ids


def test_objects_are_the_values_from_1000_on():
    values = np.full((600, 8), 26, np.int32)  # a group of cars
    values[250:259, 1:4], values[599, 7], values[0, :2] = 26_001, 24_000, 999
    values[3, 0] = 1_000
    found = find_objects(values)
    assert found.numbers == [1_000, 24_000, 26_001]
    sides = [(0, 3, 1, 4), (7, 599, 8, 600), (1, 250, 4, 259)]
    assert found.boxes == boxes_of(sides, [1, 24, 26], drawn_on_size=(8, 600))
    file = MaskFile("m.png", "")
    assert found.as_masks("m.png") == Masks([FileIds(file, (n,)) for n in found.numbers])


def test_a_mask_may_have_no_objects():
    found = find_objects(np.zeros((2, 3), np.int32))
    assert found.boxes == boxes_of([], [], drawn_on_size=(3, 2))


def test_a_file_that_cannot_be_decoded_is_named():
    with pytest.raises(Rejected) as caught:
        read_instance_ids(b"text", "masks/1.png")
    assert caught.value.reason == "bad_annotations"
    assert caught.value.detail.startswith("masks/1.png: the mask is not in one of PNG, ")
