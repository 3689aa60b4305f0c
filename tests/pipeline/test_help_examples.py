"""The examples that `--help` prints, pasted one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documented_inputs import draw_collections

from recordmill.pipeline.command import run_command
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LIGHT = ("run", "verify", "inspect", "diff", "versions")
"""Commands whose examples need neither a shell of their own nor TensorFlow."""


def examples_of(command, capsys):
    """The commands in the help, in the order of the page."""
    with pytest.raises(SystemExit):
        run_command([command, "--help"], build)
    _, _, text = capsys.readouterr().out.partition("\nexamples:\n")
    text = re.sub(r" \\\n +", " ", text.partition("\n\n")[0])
    found = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    assert found
    return found


def test_each_example_works_as_it_is_printed(tmp_path, run_command, capsys):
    folder = draw_collections(tmp_path)
    for flags in ("", " --set seed=7"):
        made = run_command(f"recordmill run photos nightly --versions{flags}", folder)
        assert made.returncode == 0, made.stderr
    for command in LIGHT:
        for example in examples_of(command, capsys):
            done = run_command(example, folder)
            differs = command == "diff" and done.returncode == 1
            assert done.returncode == 0 or differs, f"{example}\n{done.stderr}"
    assert [path.name for path in (folder / "first").iterdir()] != []
    assert len([*(folder / "nightly").glob("*/recordmill.json")]) == 2


@pytest.mark.slow
def test_the_example_of_the_analysis_works(tmp_path, run_command, capsys):
    pytest.importorskip("tensorflow_transform")
    folder = draw_collections(tmp_path)
    made = run_command("recordmill run photos dataset --set images.moments=true", folder)
    assert made.returncode == 0
    for example in examples_of("analyze", capsys):
        done = run_command(example, folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_examples_of_the_completion_work_in_bash(tmp_path, capsys):
    program = Path(sys.executable).with_name("recordmill")
    if not program.exists():
        pytest.skip("the command recordmill is not installed")
    variables = {**os.environ, "HOME": str(tmp_path)}
    variables["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    for example in examples_of("completion", capsys):
        subprocess.run(["bash", "-ec", example], cwd=tmp_path, env=variables, check=True)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {
        ".bash_completion",
        ".zfunc/_recordmill",
        ".config/fish/completions/recordmill.fish",
    }
