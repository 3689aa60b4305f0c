"""Coercion of Python and numpy values to the three kinds that an Example can hold.

The rules are those of TensorFlow's tutorial "TFRecord and tf.train.Example", made strict: a value of another kind
raises. Nothing is rounded, parsed or encoded.

| kind  | takes                                   | raises on                                            |
|-------|-----------------------------------------|------------------------------------------------------|
| bytes | bytes, bytearray, memoryview, np.bytes_,| text (encode it as UTF-8 where it is read), numbers  |
|       | a tensor of one string (TensorFlow's)   |                                                      |
| float | float, np.floating                      | bool, int (declare `int64`), text                    |
| int64 | bool, int, IntEnum, np.integer, np.bool_| float (1.0 too), text, anything outside int64        |
"""

import math
from collections.abc import Callable
from enum import Enum
from numbers import Integral
from typing import Any

import numpy as np

Value = bytes | float | int

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class FeatureValueError(ValueError):
    """A value does not fit the feature that it is meant for; the message says which value and which kind."""


def coerce_bytes(value: Any) -> bytes:
    """A value of a bytes_list."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if callable(numpy := getattr(value, "numpy", None)) and isinstance(inside := numpy(), bytes):
        return inside  # accepts EagerTensors, as TensorFlow's tutorial does, without importing TensorFlow
    if isinstance(value, str):
        raise FeatureValueError(f"text {value!r:.60} is not bytes: encode it as UTF-8 where it is read")
    raise FeatureValueError(f"{_named(value)} is not bytes")


def coerce_float(value: Any) -> float:
    """A value of a float_list. Example stores 32 bits; a double is rounded to the nearest by protobuf.

    A finite double beyond float32's range would become infinite in the file: that raises too.
    """
    if not isinstance(value, float | np.floating):
        raise FeatureValueError(f"{_named(value)} is not a float")
    as_double = float(value)
    if abs(as_double) > _FLOAT32_MAX and math.isfinite(as_double):  # cheap test first: vectors have thousands
        raise FeatureValueError(f"{_named(value)} is outside the range of a 32-bit float")
    return as_double


def coerce_int64(value: Any) -> int:
    """A value of an int64_list: bool and integer types, and enums whose value is an integer."""
    if type(value) is not int:
        if isinstance(value, Enum):
            return coerce_int64(value.value)
        if not isinstance(value, Integral | np.bool_):
            raise FeatureValueError(f"{_named(value)} is not an integer")
        value = int(value)
    if not INT64_MIN <= value <= INT64_MAX:
        raise FeatureValueError(f"{value} is outside the range of a 64-bit signed integer")
    return value


_FLOAT32_MAX = float(np.finfo(np.float32).max)

COERCE: dict[str, Callable[[Any], Value]] = {"bytes": coerce_bytes, "float": coerce_float, "int64": coerce_int64}
"""The coercion of each kind of feature."""


def _named(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"
