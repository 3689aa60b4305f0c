"""docs/spark.md is true: its commands are run, where there is a cluster; their flags are looked at
in any case."""

import json
import os
import re
import shlex
import subprocess

import pytest
from cluster_pages import ROOT, commands_of, files, fill, run

from recordmill.pipeline.configuration.options import build_parser, find_unknown_flag
from scripts import spark_cluster
from scripts.cached_jars import BEAM_JOB_SERVER

TEXT = (ROOT / "docs/spark.md").read_text(encoding="utf-8")
COMMANDS = commands_of(TEXT)
CONVERSIONS = [command for command in COMMANDS if "recordmill run" in command]


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    """A folder with photographs, and with the scripts that the page names."""
    return fill(tmp_path_factory.mktemp("spark"))


@pytest.mark.parametrize("command", CONVERSIONS)
def test_there_are_such_flags(command):
    words = shlex.split(command)[2:]
    flags, beams = build_parser().parse_known_args(words)
    assert (flags.input, find_unknown_flag(beams)) == (["photos"], None)


def test_the_script_is_sound(somewhere):
    assert os.access(ROOT / "scripts/spark", os.X_OK)
    subprocess.run(["bash", "-n", ROOT / "scripts/spark"], check=True)
    assert "usage: scripts/spark" in run("scripts/spark --help", somewhere).stdout


def test_the_targets_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", TEXT)):
        assert f"\n{target}: " in makefile


def test_the_versions_and_ports_are_the_scripts():
    assert f"Spark {spark_cluster.SPARK}" in TEXT
    assert f"job server of Beam {BEAM_JOB_SERVER}" in TEXT
    named = {int(port) for port in re.findall(r"localhost:(\d+)", TEXT)}
    assert named <= set(spark_cluster.PORTS.values())


def test_every_command_does_what_it_says(somewhere):
    if not os.environ.get("RECORDMILL_SPARK"):
        pytest.skip("needs a Spark cluster, which takes minutes: make test-spark")
    try:
        for command in COMMANDS:
            done = run(command, somewhere)
            if "recordmill run" in command:
                assert json.loads(done.stdout)["ledger"]["written"] == 40
        named = set(re.findall(r"`([\w-]+\.log)`", TEXT))
        assert named <= {path.name for path in spark_cluster.RUN.iterdir()}
    finally:
        run("scripts/spark down", somewhere)
    run("recordmill run --input photos --output direct", somewhere)
    expected = files(somewhere / "direct")
    for dataset in ("dataset", "dataset-pool"):
        assert files(somewhere / dataset) == expected
