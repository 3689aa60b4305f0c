import json
import random
import subprocess
import sys

import pytest

from recordmill.schemas.python_process import python_command, python_environment

SHOWN = "import json, sys; print(json.dumps(sys.path))"


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module of the user's, in a folder that a program has put on its own path."""
    (tmp_path / "own.py").write_text("def show(number):\n    print(number + 1)\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return tmp_path


@pytest.mark.parametrize("is_current", [False, True])
def test_another_interpreter_calls_a_function_that_this_one_can_import(
    own_module, monkeypatch, is_current
):
    monkeypatch.chdir(own_module if is_current else own_module.parent)
    sys.path.insert(0, "" if is_current else str(own_module))
    import own

    done = subprocess.run(
        python_command(own.show, 3), env=python_environment(), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_another_interpreter_looks_for_modules_in_the_same_order(own_module, monkeypatch):
    monkeypatch.chdir(own_module)
    sys.path[:] = ["/first", *sys.path, "/last"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", SHOWN], env=python_environment(), capture_output=True
    )
    found = json.loads(done.stdout)
    expected = [place for place in dict.fromkeys(sys.path) if place]
    assert [place for place in found if place in expected] == expected


def test_the_current_folder_is_not_searched_first(tmp_path, monkeypatch):
    (tmp_path / "random.py").write_text("raise SystemExit('not the random module of Python')")
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        python_command(random.seed, 1), env=python_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
