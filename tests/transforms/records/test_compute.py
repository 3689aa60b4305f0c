import sys
import types

import numpy as np
import pytest

from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.records.image_functions import (
    FunctionError,
    compute_features,
    find_function,
)

RASTER = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
PIXELS = RASTER[:, :, :3]


@pytest.fixture
def own(monkeypatch):
    """A feature of a function of the user's own."""
    module = types.ModuleType("own_module")
    monkeypatch.setitem(sys.modules, "own_module", module)

    def define(function, **settings):
        module.function = function
        find_function.cache_clear()
        return {"f": FeatureFunction(function="own_module:function", **settings)}

    yield define
    find_function.cache_clear()


def compute(functions):
    return compute_features(functions, RASTER, b"data", "a/b.jpg", "/folder/a/b.jpg")


@pytest.mark.parametrize(
    ("settings", "given", "value"),
    [
        ({}, [0.5, np.float32(1.5)], [0.5, 1.5]),
        ({}, np.array([0.5, 1.5], np.float32), [0.5, 1.5]),
        ({}, (), []),
        ({}, (x / 2 for x in range(3)), [0.0, 0.5, 1.0]),
        ({"type": "int64"}, np.array([1, 2], np.int16), [1, 2]),
        ({"type": "int64", "shape": ()}, np.int64(7), 7),
        ({"type": "int64", "shape": ()}, np.array(7), 7),
        ({"type": "bytes", "shape": ()}, b"x", b"x"),
        ({"type": "bytes"}, [b"x", b""], [b"x", b""]),
    ],
)
def test_what_a_function_gives_is_taken_as_it_is(own, settings, given, value):
    found = compute(own(lambda image: given, **settings))
    assert repr(found) == repr({"f": value})


def test_a_function_gets_the_image_or_the_file(own):
    def see(image):
        assert (image.shape, image.dtype, image.flags.c_contiguous) == ((2, 3, 3), np.uint8, True)
        values = image.ravel().astype(float)
        image[:] = 0  # it may: the image is its own
        return values

    assert compute(own(see)) == {"f": PIXELS.ravel().tolist()}
    assert PIXELS.max() == 22
    found = compute(own(lambda data, uri: [data, uri.encode()], of="file", type="bytes"))
    assert found == {"f": [b"data", b"/folder/a/b.jpg"]}


def fail(image):
    raise KeyError("weights\nare missing")


@pytest.mark.parametrize(
    ("settings", "function", "message"),
    [
        (
            {},
            fail,
            r"features.f: own_module:function failed on a/b.jpg: KeyError: 'weights\nare missing'",
        ),
        (
            {},
            lambda: [1.0],
            "features.f: own_module:function failed on a/b.jpg: TypeError: ",
        ),
        (
            {},
            lambda image: [1],
            "features.f: what own_module:function gave for a/b.jpg does not fit: int 1 is not a "
            "float",
        ),
        ({}, lambda image: None, "must be a list (with shape: [], one value)"),
        ({}, lambda image: 1.5, "must be a list"),
        ({}, lambda image: "text", "must be a list"),
        ({}, lambda image: np.zeros((2, 2)), "does not fit: list [0.0, 0.0] is not a float"),
        (
            {},
            lambda image: [1e39],
            "does not fit: float 1e+39 is outside the range of a 32-bit float",
        ),
        ({"shape": ()}, lambda image: [1.0], "does not fit: list [1.0] is not a float"),
        ({"type": "bytes", "shape": ()}, lambda image: "x", "does not fit: str 'x' is not bytes"),
    ],
)
def test_a_function_that_fails_is_named_with_the_file(own, settings, function, message):
    with pytest.raises(FunctionError) as failed:
        compute(own(function, **settings))
    assert message in str(failed.value)
    assert "\n" not in str(failed.value)
