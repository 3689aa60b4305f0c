"""The packed runs of pycocotools and of faster-coco-eval are read as they unpack them."""

import numpy as np
import pytest
from faster_coco_eval.core import mask as other_mask
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco_mask

from recordmill.imaging.masks.compressed_runs import unpack_runs
from recordmill.imaging.masks.outline import OutlineError


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=40))
def test_runs_come_back(runs):
    for library in (coco_mask, other_mask):
        packed = library.frPyObjects({"size": [1, sum(runs)], "counts": runs}, 1, sum(runs))
        assert unpack_runs(packed["counts"]).tolist() == runs


def test_runs_of_a_large_mask_come_back():
    runs = [2**31, 7, 2**30, 1, 5]
    packed = other_mask.frPyObjects({"size": [2, 2**31], "counts": runs}, 2, 2**31)
    assert unpack_runs(packed["counts"]).tolist() == runs


def test_nothing_has_no_runs():
    assert unpack_runs(b"").tolist() == []


@pytest.mark.parametrize("text", [b"a b", b"05/", b"0\xe9", b"05p", b"05P", b"o" * 10 + b"0"])
def test_other_texts_are_refused(text):
    with pytest.raises(OutlineError, match="bad_rle"):
        unpack_runs(text)


def test_a_negative_run_is_read_as_such():
    assert np.array_equal(unpack_runs(b"5N"), [5, -2])
