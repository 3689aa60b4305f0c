"""docs/command_line.md: its commands do what it says."""

import re
import subprocess
from pathlib import Path

import pytest
from documented_inputs import count_records, draw_collections

from recordmill.pipeline.completion import write_completion

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/command_line.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_commands_do_what_the_page_says(run_command, tmp_path):
    folder = draw_collections(tmp_path)
    places, completion = BLOCKS
    commands = places.splitlines()
    first, both, quiet = (run_command(command, folder) for command in commands)
    assert [first.returncode, both.returncode, quiet.returncode] == [0, 0, 0]
    assert sum(count_records(folder / "dataset").values()) == 40
    assert "72 to convert" in both.stderr
    assert not (folder / "both").exists()
    assert quiet.stderr == ""
    assert count_records(folder / "quiet") == count_records(folder / "dataset")
    done = run_command(completion.partition(" >>")[0], folder)
    assert done.stdout == write_completion("bash")
    check = ["bash", "-n"]
    assert subprocess.run(check, input=done.stdout, text=True, check=False).returncode == 0
