"""docs/flink.md and docs/spark.md are true: their commands are run, where there is a cluster; their
flags are looked at in any case."""

import json
import os
import re
import shlex
import subprocess

import pytest
from cluster_pages import ROOT, commands_of, files, fill, run
from engines import FLINK, SPARK, marks_of

from recordmill.pipeline.configuration.options import build_parser, find_unknown_flag
from scripts.cached_jars import BEAM_JOB_SERVER
from scripts.flink_packages import FLINK as FLINK_VERSION
from scripts.spark_cluster import SPARK as SPARK_VERSION

CLUSTERS = {"flink": FLINK, "spark": SPARK}
TEXTS = {name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in CLUSTERS}
COMMANDS = {name: commands_of(text) for name, text in TEXTS.items()}
OUTPUTS = {
    "flink": ("dataset", "dataset-pool", "dataset-flink", "dataset-prism"),
    "spark": ("dataset", "dataset-pool"),
}
EACH_PAGE = pytest.mark.parametrize("name", CLUSTERS)


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    """A folder with photographs, and with the scripts that the pages name."""
    return fill(tmp_path_factory.mktemp("clusters"))


@pytest.mark.parametrize(
    "command",
    [each for commands in COMMANDS.values() for each in commands if "recordmill run" in each],
)
def test_there_are_such_flags(command):
    words = shlex.split(command)[2:]
    flags, beams = build_parser().parse_known_args(words)
    assert (flags.input, find_unknown_flag(beams)) == (["photos"], None)


def test_the_versions_are_the_scripts():
    job_server = f"job server of Beam {BEAM_JOB_SERVER}"
    assert f"Flink {FLINK_VERSION} with the {job_server}" in TEXTS["flink"]
    assert f"Spark {SPARK_VERSION} and the {job_server}" in TEXTS["spark"]


@EACH_PAGE
def test_the_ports_are_the_scripts(name):
    named = {int(port) for port in re.findall(r"localhost:(\d+)", TEXTS[name])}
    assert named <= set(CLUSTERS[name].module.PORTS.values())


@pytest.mark.parametrize("script", ["scripts/flink", "scripts/spark", "scripts/prism"])
def test_the_scripts_are_sound(script):
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


@EACH_PAGE
def test_the_script_tells_what_it_can_do(name, somewhere):
    assert f"usage: scripts/{name}" in run(f"scripts/{name} --help", somewhere).stdout


@EACH_PAGE
def test_the_targets_are_in_the_makefile(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", TEXTS[name])):
        assert f"\n{target}: " in makefile


@pytest.mark.parametrize(
    "command", re.findall(r"^\$ python -m (benchmarks\.\w+) ?(.*)$", TEXTS["flink"], re.MULTILINE)
)
def test_there_are_such_measurements(command, somewhere):
    module, flags = command
    help_text = run(f"python -m {module} --help", somewhere).stdout
    assert all(flag in help_text for flag in re.findall(r"--\w+", flags))


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in CLUSTERS])
def test_every_command_does_what_it_says(name, somewhere):
    cluster = CLUSTERS[name]
    if not cluster.is_wanted:
        pytest.skip(f"needs a cluster, which takes minutes: make test-{name}")
    try:
        for command in COMMANDS[name]:
            done = run(command, somewhere)
            if "recordmill run" in command:
                assert json.loads(done.stdout)["ledger"]["written"] == 40
        named = set(re.findall(r"`([\w-]+\.log)`", TEXTS[name]))
        assert named <= {path.name for path in cluster.folder.iterdir()}
    finally:
        cluster.down()
    run("recordmill run --input photos --output direct", somewhere)
    expected = files(somewhere / "direct")
    for dataset in OUTPUTS[name]:
        assert files(somewhere / dataset) == expected
