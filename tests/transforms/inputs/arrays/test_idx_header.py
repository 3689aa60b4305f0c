import re
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.idx_header import LONGEST_HEADER, parse_idx_header


@given(shape=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4))
def test_what_a_header_says(shape):
    data = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + b"values of the array"
    assert parse_idx_header(data[:LONGEST_HEADER], (1, 2, 3, 4)) == (tuple(shape), 4 + 4 * len(shape))


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "no IDX file begins with nothing"),
        (b"\0\0\x08", "no IDX file begins with 00 00 08"),
        (b"\x89PNG\r\n", "no IDX file begins with 89 50 4e 47"),
        (b"\0\0\x0d\3" + bytes(12), "its values are of type 0x0d, not unsigned bytes (0x08)"),
        (b"\0\0\x08\1" + bytes(12), "it has 1 dimensions, not 3 or 4"),
        (b"\0\0\x08\3" + bytes(11), "it ends inside its header"),
    ],
)
def test_another_header_is_rejected(data, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}$"):
        parse_idx_header(data, (3, 4))


@given(st.binary(max_size=LONGEST_HEADER))
def test_no_bytes_raise_anything_else(data):
    with suppress(Rejected):
        parse_idx_header(data, (1, 3))
