"""The CronJob for Kubernetes: what it says agrees with the program.

Its container is run here as a process; the wheel is installed, as in the image.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from installed_wheel import environment_without_the_checkout
from PIL import Image

from recordmill.pipeline.configuration.options import build_parser
from recordmill.schemas.errors import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_AS_EXPECTED,
    TERMINATED,
    TOO_MANY_REJECTED,
    WRONG_USAGE,
)

REPO = Path(__file__).parents[2]
MANIFEST = REPO / "deploy" / "kubernetes" / "cronjob.yaml"


@pytest.fixture(scope="module")
def job():
    manifest = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    return manifest["spec"]["jobTemplate"]["spec"]


@pytest.fixture(scope="module")
def pod(job):
    return job["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod):
    (only,) = pod["containers"]
    return only


def test_kubernetes_own_schema_accepts_it():
    validate = shutil.which("kubernetes-validate", path=str(Path(sys.executable).parent))
    if not validate:
        pytest.skip("kubernetes-validate is not installed here: make test-dataflow")
    done = subprocess.run(
        [validate, "--strict", MANIFEST], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_would_fail_again_is_not_tried_again(job, pod, container):
    exits, disruption = job["podFailurePolicy"]["rules"]
    assert exits["action"] == "FailJob"
    assert exits["onExitCodes"]["containerName"] == container["name"]
    assert exits["onExitCodes"]["operator"] == "In"
    assert exits["onExitCodes"]["values"] == [WRONG_USAGE, TOO_MANY_REJECTED, NOT_AS_EXPECTED]
    assert not {DONE, FAILED, INTERRUPTED, TERMINATED, 128 + signal.SIGKILL} & set(
        exits["onExitCodes"]["values"]
    )
    assert disruption == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert pod["restartPolicy"] == "Never"
    assert job["backoffLimit"] >= 1


def test_the_arguments_are_known_flags(container):
    command, *arguments = container["args"]
    flags, rest = build_parser().parse_known_args(arguments)
    assert (command, rest) == ("run", [])
    assert (flags.output, flags.versions, flags.update) == ("/data/dataset", True, True)
    assert str(flags.threads) == container["resources"]["requests"]["cpu"]


def test_everything_is_written_to_a_volume(pod, container):
    # The root is read-only; outcome files and Python's temporary ones go to /tmp.
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounted) == {"/data", "/tmp"}
    assert set(mounted.values()) == {volume["name"] for volume in pod["volumes"]}
    (user,) = re.findall(
        r"^USER (\d+):\1$", (REPO / "deploy" / "Dockerfile").read_text(), re.MULTILINE
    )
    assert pod["securityContext"]["runAsUser"] == int(user)


@pytest.fixture
def run_image(installed, tmp_path):
    """Starts the image's program in an empty folder, with `tmp_path` for the volume at /data."""
    *_, image = re.split(
        r"^FROM ", (REPO / "deploy" / "Dockerfile").read_text(), flags=re.MULTILINE
    )
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", image, re.MULTILINE)[1])
    assert re.search(r"^ENV PATH=/opt/recordmill/bin:\$PATH\b", image, re.MULTILINE)
    variables = environment_without_the_checkout(
        PATH=f"{installed}{os.pathsep}{os.environ['PATH']}"
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "nightly.yaml").write_bytes((REPO / "deploy" / "nightly.yaml").read_bytes())
    (tmp_path / "removed.txt").write_text("")

    def run(*arguments):
        words = [*entry, *(text.replace("/data/", f"{tmp_path}/") for text in arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, cwd=tmp_path / "work", env=variables, **pipes)

    return run


@pytest.fixture
def start(run_image, container):
    """Starts the container's program: the image's, with the manifest's arguments and some more."""
    return lambda *more: run_image(*container["args"], *more)


def draw(folder, count):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(
                folder / label / f"{number}.png"
            )


def test_the_container_makes_a_version_and_the_pages_command_keeps_it(start, run_image, tmp_path):
    draw(tmp_path / "photos", 20)
    with start() as process:
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, json.loads(stdout)["status"]) == (DONE, "published"), stderr
    version = json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())["current"]
    marker = json.loads((tmp_path / "dataset" / version / "recordmill.json").read_bytes())
    assert marker["ledger"]["written"] == 40
    (command,) = re.findall(
        r"`recordmill (versions /data/\S+ --keep 7)`", (REPO / "docs" / "batch.md").read_text()
    )
    with run_image(*command.split()) as process:
        stdout, stderr = process.communicate(timeout=120)
    line = json.loads(stdout)
    assert (process.returncode, [each["version"] for each in line["versions"]]) == (
        DONE,
        [version],
    ), stderr


def test_the_container_without_arguments_says_what_it_can_do(run_image):
    with run_image() as process:
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (WRONG_USAGE, "")
    assert stderr.startswith("usage: recordmill COMMAND")


@pytest.mark.slow
def test_a_stopped_pod_ends_with_143_in_time_and_the_next_one_resumes(start, pod, tmp_path):
    for number in range(40):
        folder = tmp_path / "photos" / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((800, 600), 40).convert("RGB").save(folder / f"{number}.jpg")
    settings = ["--set=shards.count=8", "--set=images.reencode=always"]
    output = tmp_path / "dataset"
    with start(*settings) as process:
        end = time.monotonic() + 60
        while not list(output.glob("*/.staging-*/*.done.json")):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=pod["terminationGracePeriodSeconds"])
    assert process.returncode == TERMINATED == 143
    assert json.loads(stdout)["exit_code"] == 143
    assert not (output / "recordmill.json").exists()
    with start(*settings) as process:
        process.communicate(timeout=120)
    assert process.returncode == DONE
    current = json.loads((output / "recordmill.json").read_bytes())["current"]
    marker = json.loads((output / current / "recordmill.json").read_bytes())
    assert marker["run"]["shards_reused"] >= 1
    assert marker["ledger"]["written"] == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "code"), [("--set=seeed=1", WRONG_USAGE), ("", TOO_MANY_REJECTED)]
)
def test_the_codes_of_the_policy_are_those_that_come(start, tmp_path, spoil, code):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    for number in range(12):
        (tmp_path / "photos" / "cat" / f"{number}.jpg").write_bytes(b"no picture")
    with start(*([spoil] if spoil else [])) as process:
        process.communicate(timeout=60)
    assert process.returncode == code
