"""docs/flink.md is true: its commands are run, where there is a cluster; their flags are looked at
in any case."""

import json
import os
import re
import shlex
import subprocess

import pytest
from cluster_pages import ROOT, commands_of, files, fill, run

from recordmill.pipeline.configuration.options import build_parser, find_unknown_flag
from scripts import flink_cluster
from scripts.cached_jars import BEAM_JOB_SERVER
from scripts.flink_packages import FLINK

TEXT = (ROOT / "docs/flink.md").read_text(encoding="utf-8")
COMMANDS = commands_of(TEXT)
CONVERSIONS = [command for command in COMMANDS if "recordmill run" in command]


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    """A folder with photographs, and with the scripts that the page names."""
    return fill(tmp_path_factory.mktemp("flink"))


@pytest.mark.parametrize("command", CONVERSIONS)
def test_there_are_such_flags(command):
    words = shlex.split(command)[2:]
    flags, beams = build_parser().parse_known_args(words)
    assert (flags.input, find_unknown_flag(beams)) == (["photos"], None)


def test_the_versions_are_the_scripts():
    assert f"Flink {FLINK} with the job server of Beam {BEAM_JOB_SERVER}" in TEXT


@pytest.mark.parametrize("script", ["scripts/flink", "scripts/prism"])
def test_the_scripts_are_sound(script):
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_the_script_tells_what_it_can_do(somewhere):
    assert "usage: scripts/flink" in run("scripts/flink --help", somewhere).stdout


def test_the_targets_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", TEXT)):
        assert f"\n{target}: " in makefile


@pytest.mark.parametrize(
    "command", re.findall(r"^\$ python -m (benchmarks\.\w+) ?(.*)$", TEXT, re.MULTILINE)
)
def test_there_are_such_measurements(command, somewhere):
    module, flags = command
    help_text = run(f"python -m {module} --help", somewhere).stdout
    assert all(flag in help_text for flag in re.findall(r"--\w+", flags))


def test_every_command_does_what_it_says(somewhere):
    if not os.environ.get("RECORDMILL_FLINK"):
        pytest.skip("needs a Flink cluster, which takes minutes: make test-flink")
    try:
        for command in COMMANDS:
            done = run(command, somewhere)
            if "recordmill run" in command:
                assert json.loads(done.stdout)["ledger"]["written"] == 40
        named = set(re.findall(r"`([\w-]+\.log)`", TEXT))
        assert named <= {path.name for path in flink_cluster.RUN.iterdir()}
    finally:
        run("scripts/flink down", somewhere)
    run("recordmill run --input photos --output direct", somewhere)
    expected = files(somewhere / "direct")
    for dataset in ("dataset", "dataset-pool", "dataset-flink", "dataset-prism"):
        assert files(somewhere / dataset) == expected
