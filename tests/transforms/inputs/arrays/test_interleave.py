"""Planes become pixels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.inputs.arrays.image_stack import interleave


def test_each_pixel_gets_its_channels():
    assert bytes(interleave(b"RSTGHIBCD", 3)) == b"RGBSHCTID"
    assert bytes(interleave(b"abc", 1)) == b"abc"


@given(st.sampled_from([1, 2, 3, 4]), st.binary(max_size=60))
def test_it_is_a_transposed_copy(channels, data):
    planes = data[: len(data) // channels * channels]
    expected = np.frombuffer(planes, np.uint8).reshape(channels, -1).T.tobytes()
    assert bytes(interleave(planes, channels)) == expected
