import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pycocotools import mask as coco_mask

from recordmill.imaging.masks.compressed_runs import unpack_runs
from recordmill.imaging.masks.find_runs import find_runs

parts = arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12)))


@given(parts, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
def test_the_runs_of_a_part_are_those_of_pycocotools(part, left, top, right, bottom):
    whole = np.asfortranarray(np.pad(part, ((top, bottom), (left, right))), np.uint8)
    runs = find_runs(part, left, top, whole.shape[::-1])
    assert runs.size == whole.shape[::-1]
    expected = unpack_runs(coco_mask.encode(whole)["counts"]).tolist()
    assert list(runs.counts) in (expected, [*expected, 0])
