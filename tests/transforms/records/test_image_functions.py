import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.records.image_functions import digest_code, find_function, mean_std


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
    find_function.cache_clear()
    for name in written:
        sys.modules.pop(name, None)


def test_functions_are_found_by_their_names(module):
    module(
        "own_functions",
        "def embed(image):\n    return [1.0]\nclass Model:\n    run = staticmethod(embed)\n",
    )
    assert find_function("own_functions:embed")(None) == [1.0]
    assert find_function("own_functions:Model.run")(None) == [1.0]
    assert find_function("mean_std") is mean_std


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Writes modules into the current folder, which is not on Python's path; forgets them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", os.getcwd())])
    known = {*sys.modules}

    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return path

    yield write
    find_function.cache_clear()
    for name in {*sys.modules} - known:
        del sys.modules[name]


def test_a_module_in_the_current_folder_is_found_last_and_only_while_it_is_imported(here):
    path, before = (
        here("own_near", "import sys\nseen = [*sys.path]\ndef embed(image): ...\n"),
        [*sys.path],
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest_code("own_near:embed") == digest
    assert sys.modules["own_near"].seen == [*before, ""]
    assert sys.path == before
    here("own_broken", "x = 1 / 0\n")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        find_function("own_broken:x")
    assert sys.path == before


def test_a_module_in_the_current_folder_shadows_none(here, monkeypatch):
    monkeypatch.delitem(sys.modules, "tabnanny", raising=False)
    path = here("tabnanny", "def embed(image): ...\n")
    with pytest.raises(
        ValueError, match="the module tabnanny has no function 'embed': its file is "
    ) as error:
        find_function("tabnanny:embed")
    assert str(path) not in str(error.value)


def test_the_path_of_the_user_stays_as_it_is(here):
    sys.path.insert(0, "")
    here("own_near", "def embed(image): ...\n")
    here("own_other", "import sys\nsys.path.append('own')\ndef embed(image): ...\n")
    before = [*sys.path]
    find_function("own_near:embed")
    assert sys.path == before
    find_function("own_other:embed")
    assert sys.path == [*before, "own"]
    here("own_strict", "import sys\nsys.path[:] = ['own']\ndef embed(image): ...\n")
    find_function("own_strict:embed")
    assert sys.path == ["own"]


def test_modules_are_found_by_several_threads_at_once(here):
    names = [f"own_number_{number}" for number in range(16)]
    for name in names:
        here(name, f"import threading\ndef embed(image): return {name!r}\n")
    before = [*sys.path]
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(find_function, [f"{name}:embed" for name in names])
        assert [function(None) for function in found] == names
    assert sys.path == before


def test_a_current_folder_that_is_gone_does_no_harm(here, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ValueError, match="No module named 'own_none'"):
        find_function("own_none:embed")
    assert "" not in sys.path


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
        (
            {"function": "mean"},
            "function is 'mean', which does not exist: write one of mean_std, ",
        ),
        (
            {"function": "no.such:one"},
            r"the module cannot be imported \(ModuleNotFoundError: No module named 'no'\)",
        ),
        ({"function": "own_functions:two"}, "the module own_functions has no function 'two'"),
        ({"function": "own_functions:"}, "has no function ''"),
        ({"function": ":embed"}, "the module cannot be imported"),
        ({"function": "own_functions:number"}, "has no function 'number'"),
        (
            {"function": "own_broken:x"},
            r"the module cannot be imported \(ZeroDivisionError: division by zero\)",
        ),
        (
            {"function": "mean_std", "type": "float"},
            "type, shape and of are fixed for mean_std: remove them",
        ),
    ],
)
def test_a_function_that_cannot_be_found_or_imported_is_refused(module, settings, message):
    module("own_functions", "number = 1\ndef embed(image): ...\n")
    module("own_broken", "x = 1 / 0\n")
    module("own_exits", "raise SystemExit(3)\n")
    with pytest.raises(ValueError, match=message):
        find_function(FeatureFunction(**settings).function)
