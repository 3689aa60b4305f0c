import hashlib
import sys

import pytest

from recordmill.schemas.features import Feature
from recordmill.transforms.records.features.built_in import BUILT_IN, mean_std
from recordmill.transforms.records.features.settings import FeatureFunction, resolve


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


def test_a_feature_is_as_declared(module):
    module("own_functions", "def embed(image): ...\n")
    own = "own_functions:embed"
    meaning = "computed by `own_functions:embed`"
    assert FeatureFunction(function=own).as_feature("x") == Feature("x", "float", "x", meaning, many=True)
    stated = FeatureFunction(function=own, type="int64", shape=(), of="file", meaning="a count")
    assert stated.as_feature("n") == Feature("n", "int64", "n", "a count")
    assert (stated.takes, FeatureFunction(function=own).takes) == ("file", "image")
    known = FeatureFunction(function="file_sha256")
    assert known.as_feature("h") == Feature("h", "bytes", "h", BUILT_IN["file_sha256"].meaning)
    assert known.takes == "file"


def test_changed_code_has_another_digest(module):
    path = module("own_functions", "def embed(image): ...\n")
    function = FeatureFunction(function="own_functions:embed")
    assert function.code_digest == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text("def embed(image): return [1.0]\n", encoding="utf-8")
    assert function.code_digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_code_of_a_function_is_where_it_was_written(module):
    inner = module("own_inner", "def embed(image): ...\n")
    outer = module("own_outer", "from own_inner import embed\n")
    digest = hashlib.sha256(inner.read_bytes() + outer.read_bytes()).hexdigest()
    assert FeatureFunction(function="own_outer:embed").code_digest == digest


def test_what_comes_with_recordmill_has_a_version():
    assert FeatureFunction(function="mean_std").code_digest == ""


def test_a_module_may_pass_on_what_is_pythons_own(module):
    path = module("own_passing_on", "from os.path import join\nfrom math import sqrt\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert FeatureFunction(function="own_passing_on:join").code_digest == digest
    assert FeatureFunction(function="own_passing_on:sqrt").code_digest != ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"function": each}, "is Python's own: name a function in a module of your own")
            for each in ("os:system", "os.path:join", "sys:intern", "builtins:len")
        ),
        ({"function": "own_exits:one"}, r"the module cannot be imported \(SystemExit: 3\)"),
        ({"function": "mean"}, "function 'mean' is none of mean_std, color_histogram, difference_hash, "),
        ({"function": "no.such:one"}, r"the module cannot be imported \(ModuleNotFoundError: No module named 'no'\)"),
        ({"function": "own_functions:two"}, "the module own_functions has no function 'two'"),
        ({"function": "own_functions:"}, "has no function ''"),
        ({"function": ":embed"}, "the module cannot be imported"),
        ({"function": "own_functions:number"}, "has no function 'number'"),
        ({"function": "own_broken:x"}, r"the module cannot be imported \(ZeroDivisionError: division by zero\)"),
        ({"function": "mean_std", "type": "float"}, "type, shape and of are known of mean_std: remove them"),
        ({"function": "own_functions:embed", "shape": (None, None)}, "shape is "),
    ],
)
def test_what_cannot_be_is_refused(module, settings, message):
    module("own_functions", "number = 1\ndef embed(image): ...\n")
    module("own_broken", "x = 1 / 0\n")
    module("own_exits", "raise SystemExit(3)\n")
    with pytest.raises(ValueError, match=message):
        FeatureFunction(**settings)
