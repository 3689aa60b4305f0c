import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordmill.imaging.exif import find_orientation, is_turned_sideways, turn

UPRIGHT = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)

# How a camera stores the upright picture for each value (Exif 2.3, 4.6.4: where row 0 and column 0
# lie).
STORED = {
    1: UPRIGHT,
    2: UPRIGHT[:, ::-1],
    3: UPRIGHT[::-1, ::-1],
    4: UPRIGHT[::-1, :],
    5: UPRIGHT.T,
    6: UPRIGHT.T[::-1, :],
    7: UPRIGHT.T[::-1, ::-1],
    8: UPRIGHT.T[:, ::-1],
}


def exif(value, order="<", kind=3):
    start = {"<": b"II*\0", ">": b"MM\0*"}[order]
    field = struct.pack(order + "HHI", 0x0112, kind, 1) + struct.pack(
        order + {3: "HH", 4: "I"}[kind], *[value, 0][: 5 - kind]
    )
    return start + struct.pack(order + "IH", 8, 1) + field


@pytest.mark.parametrize("value", range(1, 9))
def test_every_value_turns_upright(value):
    turned = turn(Image.fromarray(np.ascontiguousarray(STORED[value])), value)
    assert np.asarray(turned).tolist() == UPRIGHT.tolist()
    assert is_turned_sideways(value) == (STORED[value].shape != UPRIGHT.shape)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [3, 4])
def test_exif_of_either_byte_order_is_read(order, kind):
    assert find_orientation(exif(6, order, kind), b"") == 6
    assert find_orientation(b"Exif\0\0" + exif(6, order, kind), b"") == 6


@pytest.mark.parametrize("value", [0, 1, 9, 65_535])
def test_meaningless_values_mean_as_stored(value):
    assert find_orientation(exif(value), b"") == 1


def test_xmp_counts_where_exif_is_silent():
    xmp = b'<rdf:Description tiff:Orientation="8"/>'
    assert find_orientation(b"", xmp) == 8
    assert find_orientation(b"II*\0\x08\0\0\0\0\0", xmp) == 8
    assert find_orientation(exif(3), xmp) == 3


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_give_a_valid_orientation(data, whole):
    assert 1 <= find_orientation((b"II*\0" if whole else b"") + data, data) <= 8
