"""Where the modules of the user's functions are found: by the command itself, started elsewhere."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

RECORDMILL = Path(sysconfig.get_path("scripts")) / "recordmill"
REPO = Path(__file__).parents[2]

OWN = """
import os
from pathlib import Path

Path(f"process-{os.getpid()}").touch()


def invert(image):
    return 255 - image


def is_wanted(image):
    return image.shape[1] > 20


def embed(image):
    return [float(image.max())]
"""
HOSTILE = "raise RuntimeError('the user has a module of this name')\n"
SHADOWS = ("random", "numpy", "pyarrow", "typing_extensions", "recordmill", "schemas", "pipeline")
FUNCTIONS = (
    "--set=images.function=my_functions:invert",
    "--set=keep=my_functions:is_wanted",
    "--set=features.peak=my_functions:embed",
)


@pytest.fixture
def folder(tmp_path, class_folders):
    class_folders(tmp_path / "photos", {"cat": 6, "dog": 6}, (32, 24))
    (tmp_path / "my_functions.py").write_text(OWN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(folder):
    """Runs the installed command in the folder of the images."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words):
        done = subprocess.run(
            [RECORDMILL, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


@pytest.mark.slow
def test_a_module_next_to_the_images_is_found_in_every_process_and_hides_no_other(run, folder):
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(HOSTILE, encoding="utf-8")
    places = ("--input=photos", "--output=dataset")
    shards = ("--set=splits.fractions={train: 1}", "--set=shards.count=4", "--processes=2")
    code, line = run("run", *places, *FUNCTIONS, *shards)
    assert (code, line["message"]) == (0, "12 images are in dataset")
    assert (line["changes"]["prepared"], line["notes"]) == (
        12,
        ["keep had no effect on any of 12 images"],
    )
    assert len([*folder.glob("process-*")]) == 2
    code, line = run("verify", "dataset", "--level=pixels")
    assert (code, line["findings"]) == (0, [])


def test_an_installed_module_of_the_same_name_is_taken_and_named(run, folder):
    (folder / "tabnanny.py").write_text("def invert(image): return 255 - image\n", encoding="utf-8")
    code, line = run(
        "run", "--input=photos", "--output=dataset", "--set=images.function=tabnanny:invert"
    )
    path = Path(sysconfig.get_path("stdlib")) / "tabnanny.py"
    assert (code, line["message"]) == (
        2,
        "--set: images.function 'tabnanny:invert': the module tabnanny has no function 'invert': "
        f"its file is {path}",
    )


def test_a_module_that_is_nowhere_is_reported_with_what_to_do(run):
    code, line = run("run", "--input=photos", "--output=dataset", "--set=keep=mine:is_wanted")
    assert (code, line["message"]) == (
        2,
        "--set: keep.function 'mine:is_wanted': the module cannot be imported "
        "(ModuleNotFoundError: No module named 'mine'): "
        "correct it, add its folder to PYTHONPATH, or run from that folder",
    )


def test_the_module_of_the_clone_finds_it_too(folder):
    words = ("--input=photos", "--output=dataset", "--plan", *FUNCTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "planned")
