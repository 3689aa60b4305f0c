from enum import Enum, IntEnum, IntFlag

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.coercion import (
    COERCE,
    INT64_MAX,
    INT64_MIN,
    FeatureValueError,
    coerce_bytes,
    coerce_float,
    coerce_int64,
)

FLOAT32_MAX = float(np.finfo(np.float32).max)


class Colour(Enum):
    RED = 1


class Text(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 7


class Flag(IntFlag):
    A = 4


TAKEN = [
    ("bytes", b"ab", b"ab"),
    ("bytes", b"", b""),
    ("bytes", bytearray(b"ab"), b"ab"),
    ("bytes", memoryview(b"abcd")[::2], b"ac"),
    ("bytes", np.bytes_(b"ab"), b"ab"),
    ("float", 1.5, 1.5),
    ("float", np.float16(1.5), 1.5),
    ("float", np.float32(1.5), 1.5),
    ("float", np.float64(1.5), 1.5),
    ("float", FLOAT32_MAX, FLOAT32_MAX),
    ("float", float("inf"), float("inf")),
    ("float", float("-inf"), float("-inf")),
    ("int64", True, 1),
    ("int64", False, 0),
    ("int64", np.bool_(True), 1),
    ("int64", -3, -3),
    ("int64", Colour.RED, 1),
    ("int64", Level.HIGH, 7),
    ("int64", Flag.A, 4),
    ("int64", np.int8(-3), -3),
    ("int64", np.int64(INT64_MIN), INT64_MIN),
    ("int64", np.uint8(255), 255),
    ("int64", np.uint64(INT64_MAX), INT64_MAX),
    ("int64", INT64_MAX, INT64_MAX),
    ("int64", INT64_MIN, INT64_MIN),
]

REFUSED = [
    ("bytes", "text", "text 'text' is not bytes: encode it as UTF-8 where it is read"),
    ("bytes", np.str_("text"), "is not bytes: encode it"),
    ("bytes", 1, "int 1 is not bytes"),
    ("bytes", 1.0, "float 1.0 is not bytes"),
    ("bytes", None, "NoneType None is not bytes"),
    ("bytes", [1, 2], "list [1, 2] is not bytes"),
    ("float", True, "bool True is not a float"),
    ("float", np.bool_(True), "is not a float"),
    ("float", 1, "int 1 is not a float"),
    ("float", np.int32(1), "is not a float"),
    ("float", "1.0", "str '1.0' is not a float"),
    ("float", b"1.0", "bytes b'1.0' is not a float"),
    ("float", 1 + 0j, "complex (1+0j) is not a float"),
    ("float", 1e39, "float 1e+39 is outside the range of a 32-bit float"),
    ("float", -1e39, "float -1e+39 is outside the range of a 32-bit float"),
    ("float", np.nextafter(FLOAT32_MAX, np.inf), "outside the range of a 32-bit float"),
    ("int64", 1.0, "float 1.0 is not an integer"),
    ("int64", np.float32(1), "is not an integer"),
    ("int64", "1", "str '1' is not an integer"),
    ("int64", b"1", "bytes b'1' is not an integer"),
    ("int64", None, "NoneType None is not an integer"),
    ("int64", Text.RED, "str 'red' is not an integer"),
    ("int64", np.array([1, 2]), "is not an integer"),
    ("int64", 2**63, "9223372036854775808 is outside the range of a 64-bit signed integer"),
    ("int64", np.uint64(2**63), "9223372036854775808 is outside the range of a 64-bit signed integer"),
    ("int64", -(2**63) - 1, "-9223372036854775809 is outside the range of a 64-bit signed integer"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN, ids=map(str, range(len(TAKEN))))
def test_seed_3_a_value_of_the_kind_is_taken_as_pythons_own_type(kind, value, expected):
    coerced = COERCE[kind](value)
    assert coerced == expected
    assert type(coerced) is type(expected)


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_seed_3_a_value_of_another_kind_raises_and_is_named(kind, value, message):
    with pytest.raises(FeatureValueError) as caught:
        COERCE[kind](value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nan_stays_nan():
    assert np.isnan(coerce_float(float("nan")))


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(FeatureValueError) as caught:
        coerce_bytes("x" * 10_000)
    assert len(str(caught.value)) < 200


@given(st.integers(-(2**70), 2**70))
def test_integers_pass_unchanged_or_raise(value):
    if INT64_MIN <= value <= INT64_MAX:
        assert coerce_int64(value) == value
    else:
        with pytest.raises(FeatureValueError, match="outside the range"):
            coerce_int64(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_doubles_stay_finite_as_32_bits_or_raise(value):
    try:
        coerced = coerce_float(value)
    except FeatureValueError:
        assert abs(value) > FLOAT32_MAX
    else:
        assert np.isfinite(np.float32(coerced))


def test_a_tensor_of_one_string_is_bytes():
    """As `_bytes_feature` of TensorFlow's tutorial takes it; TensorFlow need not be there."""

    class Tensor:
        def __init__(self, value):
            self.value = value

        def numpy(self):
            return self.value

    assert coerce_bytes(Tensor(b"cat")) == b"cat"
    for value in (np.array([b"cat"], object), "cat", 1.0):
        with pytest.raises(FeatureValueError, match="is not bytes"):
            coerce_bytes(Tensor(value))
