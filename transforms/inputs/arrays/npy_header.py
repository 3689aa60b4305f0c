"""The header of .npy files: what numpy says of an array in front of its bytes. Nothing is ever unpickled."""

import io
import re
from dataclasses import dataclass
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy

from recordmill.schemas.rejection import Rejected

LONGEST_HEADER = 12_000
"""Bytes that hold any header that numpy accepts without `max_header_size` or `allow_pickle`."""

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What a header says.

    Attributes:
        shape: the array's.
        dtype: of its values; never objects.
        bytes: of the header itself: where the values begin.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int


def parse_npy_header(data: bytes) -> NpyHeader:
    """Reads the header in the first `LONGEST_HEADER` bytes of a file.

    Raises:
        Rejected: `bad_array`: there is none, or the array's bytes are not its values, row after row.
    """
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        if version not in _READERS:
            raise ValueError(f"version {version[0]}.{version[1]} is not known")
        shape, fortran_order, dtype = _READERS[version](stream)
    except (
        ValueError,
        TypeError,
        SyntaxError,
        TokenError,
        RecursionError,
        MemoryError,
    ) as error:  # numpy parses Python
        raise Rejected("list", "bad_array", f"not a .npy header: {_why(error)}") from None
    if dtype.hasobject:
        raise Rejected("list", "bad_array", "it holds pickled Python objects, which are never loaded")
    if fortran_order and len(shape) > 1:
        raise Rejected("list", "bad_array", "it is stored column by column: save numpy.ascontiguousarray of it")
    return NpyHeader(shape, dtype, stream.tell())


def _why(error: Exception) -> str:
    """Numpy's message without memory addresses: rejections read the same on every machine."""
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(str(error).split()))[:200]
