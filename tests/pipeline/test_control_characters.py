"""Control characters and direction marks from data: no command and no README.md passes them on."""

import json
import re
import shutil

import pytest

from recordmill.pipeline.diff import main as diff
from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.verify import main as verify
from recordmill.pipeline.versions import main as versions

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

EVIL = "\x1b]0;title\x07\x1b[2J\x9b2J\u202egpj.\u2066\u200f\u2028"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def evil(tmp_path, class_folders, convert):
    """A dataset all of whose texts have them."""
    class_folders(tmp_path / "photos", {f"cat{EVIL}": 3, f"dog{EVIL}": 2})
    (tmp_path / f"photos/cat{EVIL}/bad{EVIL}.jpg").write_bytes(b"no picture")
    settings = {
        "max_rejected.share": 1,
        "creator": f"me{EVIL}",
        "citation": f"me{EVIL}, 2026\r\nwith\ttabs",
        "license": f"mine{EVIL}",
    }
    done = convert(tmp_path / "photos", settings=settings)
    assert done.code == 0, done.stderr
    assert not RAW.search(done.stdout + done.stderr)
    return done.output


def test_readme_shows_them_as_escapes(evil):
    text = (evil / "README.md").read_bytes().decode()
    assert not RAW.search(text)
    assert "\\x1b" in text
    assert verify([str(evil)]) == 0


def test_no_command_passes_them_on(evil, tmp_path, capsys):
    path = str(evil)
    key = f"cat{EVIL}/bad{EVIL}.jpg"
    shutil.copytree(evil, tmp_path / "other")
    marker = json.loads((evil / "recordmill.json").read_bytes())
    marker["notes"] = [f"a note{EVIL}"]
    marker["remarks"] = [f"a remark{EVIL}"]
    marker["convention"] = EVIL
    marker["run"] |= {"finished": EVIL, "recordmill": EVIL, "notes": [EVIL]}
    (tmp_path / "other/recordmill.json").write_text(json.dumps(marker))
    (tmp_path / f"other/more{EVIL}-00000-of-00001.tfrecord").write_bytes(b"x")
    for command, words in (
        (verify, []),
        (verify, ["--level=pixels"]),
        (inspect, []),
        (inspect, [f"--where={key}"]),
        (inspect, [f"--record={EVIL}"]),
        (diff, [path]),
        (diff, [str(tmp_path / "photos")]),
        (versions, []),
        (versions, [f"--use={EVIL}"]),
    ):
        command([str(tmp_path / "other"), *words])
        printed = capsys.readouterr()
        assert not RAW.search(printed.out + printed.err), (command, words)


def test_a_marker_with_an_unknown_unit_is_refused(evil, tmp_path, capsys):
    marker = json.loads((evil / "recordmill.json").read_bytes())
    (evil / "recordmill.json").write_text(json.dumps(marker | {"unit": EVIL}))
    for command in (verify, inspect, versions):
        assert command([str(evil)]) == 1
    assert diff([str(evil), str(evil)]) == 2
    printed = capsys.readouterr()
    assert "unit is not one of image, row, file" in printed.err
    assert not RAW.search(printed.out + printed.err)
