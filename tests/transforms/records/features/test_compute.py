import hashlib
import sys
import types

import numpy as np
import pytest

from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.records.features.built_in import mean_std
from recordmill.transforms.records.features.compute import (
    FeatureFunctionError,
    compute_features,
    digest_code,
    resolve,
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
        resolve.cache_clear()
        return {"f": FeatureFunction(function="own_module:function", **settings)}

    yield define
    resolve.cache_clear()


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
        ({}, fail, r"features.f: own_module:function failed on a/b.jpg: KeyError: 'weights\nare missing'"),
        (
            {},
            lambda: [1.0],
            "features.f: own_module:function failed on a/b.jpg: TypeError: ",
        ),
        (
            {},
            lambda image: [1],
            "features.f: what own_module:function gave for a/b.jpg does not fit: int 1 is not a float",
        ),
        ({}, lambda image: None, "must be a list (with shape: [], one value)"),
        ({}, lambda image: 1.5, "must be a list"),
        ({}, lambda image: "text", "must be a list"),
        ({}, lambda image: np.zeros((2, 2)), "does not fit: its shape is [2, 2], not that of a list: give it flat"),
        ({}, lambda image: [1e39], "does not fit: float 1e+39 is outside the range of a 32-bit float"),
        ({"shape": ()}, lambda image: [1.0], "does not fit: list [1.0] is not a float"),
        ({"type": "bytes", "shape": ()}, lambda image: "x", "does not fit: text 'x' is not bytes"),
    ],
)
def test_a_function_that_fails_is_named_with_the_file(own, settings, function, message):
    with pytest.raises(FeatureFunctionError) as failed:
        compute(own(function, **settings))
    assert message in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that can be imported, and forgets it."""
    written = []

    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        written.append(name)
        return path

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    resolve.cache_clear()
    for name in written:
        sys.modules.pop(name, None)


def test_functions_are_found_by_their_names(module):
    module("own_functions", "def embed(image):\n    return [1.0]\nclass Model:\n    run = staticmethod(embed)\n")
    assert resolve("own_functions:embed")(None) == [1.0]
    assert resolve("own_functions:Model.run")(None) == [1.0]
    assert resolve("mean_std") is mean_std


def test_changed_code_has_another_digest(module):
    path = module("own_functions", "def embed(image): ...\n")
    assert digest_code("own_functions:embed") == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text("def embed(image): return [1.0]\n", encoding="utf-8")
    assert digest_code("own_functions:embed") == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_code_of_a_function_is_where_it_was_written(module):
    inner = module("own_inner", "def embed(image): ...\n")
    outer = module("own_outer", "from own_inner import embed\n")
    digest = hashlib.sha256(inner.read_bytes() + outer.read_bytes()).hexdigest()
    assert digest_code("own_outer:embed") == digest


def test_what_comes_with_recordmill_has_a_version():
    assert digest_code("mean_std") == ""


def test_a_module_may_pass_on_what_is_pythons_own(module):
    path = module("own_passing_on", "from os.path import join\nfrom math import sqrt\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest_code("own_passing_on:join") == digest
    assert digest_code("own_passing_on:sqrt") != ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"function": each}, "is Python's own: name a function in a module of your own")
            for each in ("os:system", "os.path:join", "sys:intern", "builtins:len")
        ),
        ({"function": "own_exits:one"}, r"the module cannot be imported \(SystemExit: 3\)"),
        ({"function": "mean"}, "unknown function 'mean': write one of mean_std, color_histogram, difference_hash, "),
        ({"function": "no.such:one"}, r"the module cannot be imported \(ModuleNotFoundError: No module named 'no'\)"),
        ({"function": "own_functions:two"}, "the module own_functions has no function 'two'"),
        ({"function": "own_functions:"}, "has no function ''"),
        ({"function": ":embed"}, "the module cannot be imported"),
        ({"function": "own_functions:number"}, "has no function 'number'"),
        ({"function": "own_broken:x"}, r"the module cannot be imported \(ZeroDivisionError: division by zero\)"),
        ({"function": "mean_std", "type": "float"}, "type, shape and of are fixed for mean_std: remove them"),
        ({"function": "own_functions:embed", "shape": (None, None)}, "shape is "),
    ],
)
def test_what_cannot_be_is_refused(module, settings, message):
    module("own_functions", "number = 1\ndef embed(image): ...\n")
    module("own_broken", "x = 1 / 0\n")
    module("own_exits", "raise SystemExit(3)\n")
    with pytest.raises(ValueError, match=message):
        resolve(FeatureFunction(**settings).function)
