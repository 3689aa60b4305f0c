"""How often a run opens `recordmill.json`: in the output, in a version's folder and in staging."""

import re
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SCRIPT = """
import os, sys
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.fsencode(arguments[0])
        if os.path.basename(path) == b"recordmill.json":
            os.write(log, path + b"\\n")

sys.addaudithook(note)
sys.exit(launch(sys.argv[2:], build))
"""
"""A conversion, with a hook that forked workers inherit."""


@pytest.fixture
def opened(spawn, photos, picture, tmp_path):
    """`opened(*flags)`: converts the photos and one more; gives the paths that were opened."""

    def run(*flags):
        log = tmp_path / "opened"
        log.unlink(missing_ok=True)
        (photos / f"cat/{flags}.jpg").write_bytes(picture(flags))
        words = [f"--input={photos}", f"--output={tmp_path / 'out'}", "--set=shards.count=2"]
        process = spawn(log, *words, "--processes=2", *flags, script=SCRIPT)
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        assert '"status":"published"' in stdout
        paths = (str(Path(line).relative_to(tmp_path)) for line in log.read_text().splitlines())
        return Counter(re.sub(r"[0-9a-f]{16}", "PLAN", path) for path in paths)

    return run


def test_a_run_opens_no_marker_without_a_reason(opened):
    # Another run of the plan may have put its own into staging.
    assert opened() == {"out/.staging-PLAN/recordmill.json": 1}
    assert opened("--update") == {
        "out/recordmill.json": 3,  # what to update; once the output is claimed; before it goes
        "out/.staging-PLAN/recordmill.json": 1,
    }


@pytest.mark.slow
def test_a_run_with_versions_opens_no_marker_without_a_reason(opened):
    assert opened("--versions") == {"out/PLAN/.staging-PLAN/recordmill.json": 1}
    assert opened("--versions", "--update") == {
        "out/recordmill.json": 2,  # the pointer: what to update, and before it is replaced
        "out/PLAN/recordmill.json": 1,
        "out/PLAN/.staging-PLAN/recordmill.json": 1,
    }
