"""`scripts/install`, with Pythons that only say their version and write down what they are asked to
do."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

REPO = Path(__file__).parents[2]
SOURCES = ("requirements.lock", "pyproject.toml", "setup.py")
TOOLS = ("bash", "cat", "cp", "dirname", "mkdir", "rm", "sed", "touch")

PYTHON = """#!/bin/bash
echo "$(basename "$0")$(printf ' %s' "$@")" >>calls.txt
case "$*" in
  *"sys.version_info"*) echo {version} ;;
  *"sys.base_prefix"*) echo '{prefix} {version}.0 (main) [GCC 12.2.0]' ;;
  "-m venv "*)
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && touch "$3/pyvenv.cfg"
    for tool in pip uv; do
      echo '#!/bin/bash' >"$3/bin/$tool"
      echo 'echo "uv $*" >>calls.txt' >>"$3/bin/$tool"
      chmod +x "$3/bin/$tool"
    done ;;
esac
"""
FIRST_LINE = {
    "conversion": "Installing Recordmill and what a conversion needs into .venv (550 MB): this "
    "takes a minute, "
    "the first time only.",
    "everything": "Installing Recordmill with TensorFlow and the developers' tools into .venv (3 "
    "GB): this takes a "
    "minute or two, the first time only.",
}
STEPS = ["1 of 2: an environment", "2 of 2: packages"]
UV = "uv pip install --quiet --python .venv/bin/python --compile-bytecode "
LEAN = [UV + "--constraint requirements.lock --build-constraint requirements.lock --editable ."]
FULL = [UV + "--requirement requirements.lock", UV + "--no-deps --no-build-isolation --editable ."]


@pytest.fixture
def clone(tmp_path):
    """A clone with `add_python(path, version)` and `install(wanted, asked)`; `bin` is all that is
    on PATH."""
    root = tmp_path / "clone"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(REPO / "scripts/install", root / "scripts")
    for name in SOURCES:
        shutil.copy(REPO / name, root)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (*TOOLS, "basename", "chmod"):
        (tools / name).symlink_to(shutil.which(name))

    def add_python(name, version):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PYTHON.format(version=version, prefix=path.parent))
        path.chmod(0o755)
        return path

    def install(wanted, asked=""):
        calls = root / "calls.txt"
        calls.unlink(missing_ok=True)
        done = subprocess.run(
            [root / "scripts/install", ".venv", wanted, asked],
            env={"PATH": str(tools)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        called = calls.read_text().splitlines() if calls.exists() else []
        return SimpleNamespace(
            code=done.returncode,
            output=done.stdout.splitlines(),
            errors=done.stderr.splitlines(),
            environments=[line.split(" -m venv ")[0] for line in called if " -m venv " in line],
            packages=[line for line in called if line.startswith("uv ")],
        )

    return SimpleNamespace(root=root, add_python=add_python, install=install)


@pytest.mark.parametrize(("wanted", "packages"), [("conversion", LEAN), ("everything", FULL)])
def test_an_environment_is_made_and_filled_once(clone, wanted, packages):
    clone.add_python("bin/python3.11", "3.11")
    done = clone.install(wanted)
    assert (done.code, done.errors) == (0, [])
    assert done.output == [FIRST_LINE[wanted], *STEPS]
    assert (done.environments, done.packages) == (["python3.11"], packages)
    again = clone.install(wanted)
    assert (again.code, again.output, again.errors, again.packages) == (0, [], [], [])


def test_everything_completes_what_a_conversion_needs_and_stays(clone):
    clone.add_python("bin/python3.11", "3.11")
    clone.install("conversion")
    completed = clone.install("everything")
    assert (completed.code, completed.environments, completed.packages) == (0, [], FULL)
    assert clone.install("conversion").packages == []


@pytest.mark.parametrize("changed", SOURCES)
def test_a_change_of_what_it_is_made_from_is_installed(clone, changed):
    clone.add_python("bin/python3.11", "3.11")
    clone.install("everything")
    later = (clone.root / ".venv/.installed").stat().st_mtime + 1
    os.utime(clone.root / changed, (later, later))
    assert clone.install("conversion").packages == LEAN
    # The rest is still to be installed.
    assert clone.install("everything").packages == FULL


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (
            {"python3": "3.13", "python3.13": "3.13", "python3.12": "3.12", "python3.11": "3.11"},
            "python3.11",
        ),
        ({"python3": "3.12", "python3.13": "3.13"}, "python3.13"),
        ({"python3": "3.12"}, "python3"),
    ],
)
def test_without_a_name_the_first_supported_python_is_taken(clone, there, chosen):
    for name, version in there.items():
        clone.add_python(f"bin/{name}", version)
    assert clone.install("conversion").environments == [chosen]


def test_a_command_of_pyenv_that_is_not_selected_is_found(clone):
    shim = clone.add_python("bin/python3.13", "3.13")
    shim.write_text("#!/bin/bash\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n")
    python = clone.add_python("pyenv/3.13.0/bin/python3.13", "3.13")
    pyenv = clone.add_python("bin/pyenv", "")
    pyenv.write_text(f'#!/bin/bash\n[[ "$*" = "whence --path python3.13" ]] && echo {python}\n')
    for asked in ("python3.13", ""):
        done = clone.install("conversion", asked)
        assert (done.code, done.errors) == (0, [])
        assert (clone.root / ".venv/bin/python").read_text() == python.read_text()
        shutil.rmtree(clone.root / ".venv")


def test_a_python_is_named_by_its_path(clone):
    python = clone.add_python("opt/a python/bin/python", "3.12")
    assert clone.install("conversion", str(python)).environments == ["python"]


def test_an_environment_of_another_python_is_made_again(clone):
    clone.add_python("bin/python3.11", "3.11")
    clone.add_python("bin/python3.12", "3.12")
    clone.install("everything")
    done = clone.install("conversion", "python3.12")
    assert done.output == [
        ".venv was made with another Python (3.11): making it again",
        FIRST_LINE["conversion"],
        *STEPS,
    ]
    assert (done.environments, done.packages) == (["python3.12"], LEAN)
    # A name that means the same Python, and no name, keep it.
    for asked in ("python3.12", str(clone.root / ".venv/bin/python"), ""):
        assert clone.install("conversion", asked).output == []


def test_an_environment_whose_python_is_gone_is_made_again(clone):
    clone.add_python("bin/python3.11", "3.11")
    clone.install("conversion")
    (clone.root / ".venv/bin/python").unlink()
    done = clone.install("conversion")
    assert done.output[0] == ".venv was made with another Python (that is gone): making it again"
    assert (done.code, done.environments, done.packages) == (0, ["python3.11"], LEAN)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            "python3.14",
            "python3.14 is Python 3.14: name a Python 3.11, 3.12 or 3.13, as in PYTHON=python3.13",
        ),
        (
            "python3.15",
            "python3.15 does not run: give a Python's name on PATH, or its path, as in "
            "PYTHON=/opt/python/bin/python3.13",
        ),
        (
            "",
            "found no Python 3.11, 3.12 or 3.13 on PATH: install one, or give its path, as in "
            "PYTHON=/opt/python/bin/python3.13",
        ),
    ],
)
def test_a_python_that_cannot_be_used_ends_with_one_sentence(clone, asked, sentence):
    clone.add_python("bin/python3.14", "3.14")
    clone.add_python("bin/python3", "3.10")
    done = clone.install("conversion", asked)
    assert (done.code, done.errors) == (1, [f"error: {sentence}"])
    assert not (clone.root / ".venv").exists()


def test_a_wrong_name_leaves_the_environment_alone(clone):
    clone.add_python("bin/python3.11", "3.11")
    clone.install("conversion")
    assert clone.install("conversion", "python3.9").code == 1
    assert clone.install("conversion").output == []


def test_a_failed_installation_is_repeated(clone):
    clone.add_python("bin/python3.11", "3.11")
    clone.install("conversion")
    (clone.root / ".venv/.installed-conversion").unlink()
    uv = clone.root / ".venv/bin/uv"
    works = uv.read_text()
    uv.write_text("#!/bin/bash\nexit 2\n")
    assert clone.install("conversion").code == 2
    uv.write_text(works)
    assert clone.install("conversion").packages == LEAN
