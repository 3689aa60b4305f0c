"""The header of IDX files, in which MNIST comes (http://yann.lecun.com/exdb/mnist/).

Two zero bytes, the type of the values (8: unsigned bytes), the number of dimensions, and each dimension as a big-endian
32-bit number; then the values, the last dimension's next to each other.
"""

import struct

from recordmill.schemas.rejection import Rejected

UNSIGNED_BYTES = 8

LONGEST_HEADER = 4 + 4 * 4
"""Bytes that hold any header of one to four dimensions."""


def parse_idx_header(data: bytes, dimensions: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The dimensions of an IDX file, and how many bytes its header has.

    Args:
        data: the file's first bytes, `LONGEST_HEADER` of them or fewer if it is shorter.
        dimensions: how many there may be.

    Raises:
        Rejected: `bad_array`: it is not such a file.
    """
    if len(data) < 4 or data[:2] != b"\0\0":
        raise Rejected("list", "bad_array", f"no IDX file begins with {data[:4].hex(' ') or 'nothing'}")
    if data[2] != UNSIGNED_BYTES:
        raise Rejected("list", "bad_array", f"its values are of type {data[2]:#04x}, not unsigned bytes (0x08)")
    if data[3] not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise Rejected("list", "bad_array", f"it has {data[3]} dimensions, not {wanted}")
    header = 4 + 4 * data[3]
    if len(data) < header:
        raise Rejected("list", "bad_array", "it ends inside its header")
    return struct.unpack_from(f">{data[3]}I", data, 4), header
