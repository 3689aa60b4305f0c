"""The crontab line, run as cron runs it: by sh, with next to no environment."""

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from PIL import Image

REPO = Path(__file__).parents[2]
CRONTAB = REPO / "deploy" / "cron" / "recordmill.crontab"


@pytest.fixture
def night(tmp_path):
    """Runs the line with the folders below `tmp_path` for those below /srv; gives what cron would mail."""
    (line,) = [line for line in CRONTAB.read_text().splitlines() if re.match(r"[0-9*]", line)]
    assert line.split()[:5] == ["15", "2", "*", "*", "*"]
    command = line.split(maxsplit=5)[5]
    assert not re.search(r"(?<!\\)%", command)  # cron would end the command there
    command = command.replace(r"\%", "%").replace("/srv", str(tmp_path))
    (tmp_path / "recordmill").mkdir()
    (tmp_path / "recordmill" / ".venv").symlink_to(sys.prefix)
    # What Debian's cron sets; what an editable install adds to the path is this checkout.
    environment = {"HOME": str(tmp_path), "LOGNAME": "mill", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}

    def run():
        shell = ["/bin/sh", "-c", command]
        done = subprocess.run(shell, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout

    return run


def draw(folder, count):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(folder / label / f"{number}.png")


@pytest.mark.slow
def test_a_good_night_is_silent_and_a_second_run_changes_nothing(night, tmp_path):
    draw(tmp_path / "photos", 10)
    before = date.today()
    assert night() == ""
    output = tmp_path / "datasets" / before.isoformat()
    if date.today() != before:
        pytest.skip("it became midnight")
    written = {path.name: path.stat().st_mtime_ns for path in output.iterdir()}
    assert "recordmill.json" in written
    assert night() == ""
    assert {path.name: path.stat().st_mtime_ns for path in output.iterdir()} == written
    lines = [line for line in (tmp_path / "recordmill.log").read_text().splitlines() if line.startswith("{")]
    assert [json.loads(line)["status"] for line in lines] == ["published", "kept"]


def test_a_bad_night_is_mailed_as_one_line(night, tmp_path):
    draw(tmp_path / "photos", 12)
    for number in range(12):
        (tmp_path / "photos" / "cat" / f"{number}.png").write_bytes(b"no picture")
    mail = night()
    assert mail.count(os.linesep) == 1
    outcome = json.loads(mail)
    assert (outcome["exit_code"], outcome["status"]) == (3, "failed")
    assert outcome["ledger"]["rejected"] == {"unknown_format": 12}
