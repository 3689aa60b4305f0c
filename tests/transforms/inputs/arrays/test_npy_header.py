import io
import os
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.npy_header import LONGEST_HEADER, parse_npy_header


def saved(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


class Trap:
    def __reduce__(self):
        return os.abort, ()


@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    dtype=st.sampled_from(["u1", "<i8", ">i4", "<U7"]),
    version=st.sampled_from([(1, 0), (2, 0)]),
)
def test_what_numpy_wrote(shape, dtype, version):
    array = np.zeros(shape, dtype)
    data = saved(array, version=version)
    header = parse_npy_header(data[:LONGEST_HEADER])
    assert (header.shape, header.dtype) == (tuple(shape), np.dtype(dtype))
    assert data[header.bytes :] == array.tobytes()


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "not a .npy header: EOF: reading magic string, expected 8 bytes got 0"),
        (saved(np.zeros(3))[:60], "not a .npy header: EOF: reading array header"),
        (b"\x93NUMPY\3\0" + bytes(100), "not a .npy header: version 3.0 is not known"),
        (b"\x93NUMPY\1\0\x10\0" + b"(" * 16, "not a .npy header: "),
        (saved(np.asfortranarray(np.zeros((2, 3)))), "it is stored column by column: save numpy.ascontiguousarray"),
    ],
)
def test_another_header_is_rejected(data, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}"):
        parse_npy_header(data)


def test_nothing_is_unpickled():
    with pytest.raises(Rejected, match=r"^bad_array: it holds pickled Python objects, which are never loaded$"):
        parse_npy_header(saved(np.array([Trap()], dtype=object)))


@given(st.data())
def test_no_bytes_raise_anything_else(data):
    content = bytearray(saved(np.zeros((2, 3, 4), np.uint8)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    with suppress(Rejected):
        parse_npy_header(bytes(content))


@example(b"{" * 9000)
@example(b"(" * 9000)
@given(st.text("(){}[]:,'0123456789eTruefals-", max_size=60).map(str.encode))
def test_no_header_text_raises_anything_else(text):
    data = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    with pytest.raises(Rejected):
        parse_npy_header(data)
