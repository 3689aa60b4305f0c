"""The crontab line, run from the wheel as cron runs it: by sh, with next to no environment."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image

REPO = Path(__file__).parents[2]
CRONTAB = REPO / "deploy" / "cron" / "recordmill.crontab"
CONFIGURATION = REPO / "deploy" / "nightly.yaml"


@pytest.fixture
def night(installed, tmp_path):
    """Runs the line with the folders below `tmp_path` for those below /srv; gives what cron would
    mail."""
    (line,) = [line for line in CRONTAB.read_text().splitlines() if re.match(r"[0-9*]", line)]
    assert line.split()[:5] == ["15", "2", "*", "*", "*"]
    command = line.split(maxsplit=5)[5]
    assert not re.search(r"(?<!\\)%", command)  # cron would end the command there
    command = command.replace(r"\%", "%").replace("/srv", str(tmp_path))
    (tmp_path / "recordmill").mkdir()
    (tmp_path / "recordmill" / ".venv").symlink_to(installed.parent)
    (tmp_path / "nightly.yaml").write_bytes(CONFIGURATION.read_bytes())
    (tmp_path / "removed.txt").write_text("")
    # What Debian's cron sets.
    environment = {
        "HOME": str(tmp_path),
        "LOGNAME": "mill",
        "SHELL": "/bin/sh",
        "PATH": "/usr/bin:/bin",
    }

    def run():
        shell = ["/bin/sh", "-c", command]
        done = subprocess.run(
            shell, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.stdout

    return run


def draw(folder, count):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(
                folder / label / f"{number}.png"
            )


def statuses(folder):
    lines = [
        line
        for line in (folder / "recordmill.log").read_text().splitlines()
        if line.startswith("{")
    ]
    return [status for line in lines if (status := json.loads(line).get("status"))]


@pytest.mark.slow
def test_good_nights_are_silent_and_have_versions(night, tmp_path):
    draw(tmp_path / "photos", 60)
    assert night() == ""
    assert night() == ""
    Image.new("RGB", (16, 12), (1, 200, 7)).save(tmp_path / "photos" / "cat" / "new.png")
    assert night() == ""
    assert statuses(tmp_path) == ["published", "kept", "published"]
    names = {path.name for path in (tmp_path / "dataset").iterdir()}
    assert len(names) == 3
    assert json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())["current"] in names


@pytest.mark.slow
def test_a_breach_is_mailed_and_the_night_after_publishes(night, tmp_path):
    draw(tmp_path / "photos", 20)
    assert night() == ""
    (tmp_path / "photos" / "cat").rename(tmp_path / "away")
    assert json.loads(night())["exit_code"] == 4
    (tmp_path / "away").rename(tmp_path / "photos" / "cat")
    (tmp_path / "removed.txt").write_text("key:cat/3.png\n")
    assert night() == ""
    assert statuses(tmp_path) == ["published", "failed", "published"]


@pytest.mark.slow
def test_a_bad_night_is_mailed_as_one_line(night, tmp_path):
    draw(tmp_path / "photos", 12)
    for number in range(12):
        (tmp_path / "photos" / "cat" / f"{number}.png").write_bytes(b"no picture")
    mail = night()
    assert mail.count(os.linesep) == 1
    outcome = json.loads(mail)
    assert (outcome["exit_code"], outcome["status"]) == (3, "failed")
    assert outcome["ledger"]["rejected"] == {"unknown_format": 12}
