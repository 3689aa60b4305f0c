"""The DAG run by Airflow itself on real conversions: dates, checks, failures, retries, long
output."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SETTINGS = (
    "shards: {count: 6}\nsplits: {fractions: {train: 0.7, test: 0.3}}\nimages: {reencode: always}\n"
)


@pytest.fixture
def params(photos, tmp_path):
    (tmp_path / "own.yaml").write_text(SETTINGS, encoding="utf-8")
    output = tmp_path / "dataset"
    return {"input": str(photos), "output": str(output), "config": str(tmp_path / "own.yaml")}


@pytest.fixture
def interpreter(tmp_path, airflow_home):
    """Makes a Python that does something of its own before, or instead of, `-m recordmill`.

    $real stands for it.
    """

    def make(script):
        path = tmp_path / "python"
        head = (
            f'#!/bin/sh\nreal={airflow_home["RECORDMILL_PYTHON"]}\n[ "$1" = -c ] && exec $real '
            '"$@"\n'
        )
        path.write_text(f"{head}{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return make


def pointer(output):
    return json.loads((output / "recordmill.json").read_bytes())


def marker(output):
    """The marker of the current version."""
    return json.loads((output / pointer(output)["current"] / "recordmill.json").read_bytes())


@pytest.mark.slow
def test_one_dataset_per_date_and_long_output_blocks_nothing(
    run_dag, params, interpreter, tmp_path
):
    params["output"] = str(tmp_path / "datasets" / "{date}")
    # 1 MB on stderr: the operator reads it to its end before it looks at stdout, whose pipe holds
    # 64 KB.
    noisy = interpreter('seq 1 120000 | sed "s/^/line /" >&2\nexec $real "$@"')
    done = run_dag("2026-03-04", {**params, "classes": ["cat", "dog"]}, RECORDMILL_PYTHON=noisy)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "line 120000" in done.stdout

    # Another output for each date; a class that no image has fails the check, and leaves the
    # dataset to be looked at.
    done = run_dag("2026-03-05", {**params, "classes": ["cat", "zebra"]})
    assert done.returncode != 0
    assert "2026-03-05: no image is of the class zebra" in done.stdout
    first, second = (marker(tmp_path / "datasets" / date) for date in ("2026-03-04", "2026-03-05"))
    assert first["splits"] == second["splits"]
    assert first["ledger"]["written"] == 60
    outcome = json.loads(
        (tmp_path / "datasets" / "2026-03-04.2026-03-04.outcome.json").read_bytes()
    )
    assert (outcome["status"], outcome["plan_id"]) == ("published", first["plan"]["id"])


@pytest.mark.slow
def test_a_retry_resumes(run_dag, params, interpreter, tmp_path):
    # The first try is killed, as by the kernel, when a shard is finished.
    killed_once = interpreter(
        f"""if mkdir {tmp_path}/tried 2>/dev/null; then
    $real "$@" --threads=1 & pid=$!
    until ls {tmp_path}/dataset/*/.staging-*/*.done.json >/dev/null 2>&1; do sleep 0.01; done
    kill -9 $pid
    wait $pid
    exit 137
fi
exec $real "$@"
"""
    )
    done = run_dag("2026-03-06", params, RECORDMILL_PYTHON=killed_once)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Apache Beam process failed with return code 137" in done.stdout
    assert 1 <= marker(tmp_path / "dataset")["run"]["shards_reused"] < 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (2, "own.yaml: seeed is not a setting: did you mean seed?"),
        (3, "12 of 60 images (20.00%) were rejected (12 unknown_format)"),
    ],
)
def test_what_would_fail_again_fails_at_once_and_so_does_what_follows(
    run_dag, params, photos, tmp_path, code, message
):
    if code == 2:
        (tmp_path / "own.yaml").write_text("seeed: 1\n", encoding="utf-8")
    else:
        for number in range(12):
            (photos / "cat" / f"{number}.ppm").write_bytes(b"no picture")
    done = run_dag("2026-03-07", params)
    assert done.returncode != 0
    assert message in done.stdout
    assert f"(exit code {code}: a retry would fail again)" in done.stdout
    assert done.stdout.count("Running command: ") == 1
    assert "running task <TaskInstance: recordmill.check" not in done.stdout
    assert not (tmp_path / "dataset" / "recordmill.json").exists()


@pytest.mark.slow
def test_a_job_that_succeeds_although_the_conversion_failed_fails_the_check(
    run_dag, params, interpreter, tmp_path
):
    line = json.dumps(
        {
            "status": "failed",
            "exit_code": 1,
            "message": "a disk is full",
            "plan_id": "",
            "numbers": {},
        }
    )
    path = tmp_path / "dataset.2026-03-09.outcome.json"
    done = run_dag(
        "2026-03-09", params, RECORDMILL_PYTHON=interpreter(f"printf '%s' '{line}' > {path}")
    )
    assert done.returncode != 0
    assert (
        f"{tmp_path}/dataset: the conversion is failed with exit code 1: a disk is full"
        in done.stdout
    )
    assert "KeyError" not in done.stdout


@pytest.mark.slow
def test_four_nights_of_growth_a_breach_a_kill_and_a_removal(
    run_dag, params, interpreter, tmp_path
):
    output, photos = tmp_path / "dataset", Path(params["input"])
    (tmp_path / "removed.txt").write_text("", encoding="utf-8")
    with (tmp_path / "own.yaml").open("a", encoding="utf-8") as configuration:
        configuration.write("expect: {classes: as_before, images: {'*': {change: 20}}}\n")
        configuration.write(f"exclude: {tmp_path}/removed.txt\n")
    params |= {"keep": 2}

    def night(date, **variables):
        done = run_dag(date, params, **variables)
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    night("2026-03-01")
    first = pointer(output)["current"]
    shutil.copy(photos / "cat" / "3.ppm", photos / "cat" / "copy.ppm")
    night("2026-03-02")
    grown = pointer(output)["current"]
    assert pointer(output) == {"recordmill": 2, "current": grown, "previous": first}
    assert (marker(output)["ledger"]["written"], marker(output)["run"]["images_reused"]) == (61, 60)

    (photos / "cat").rename(tmp_path / "away")
    log = night("2026-03-03")
    assert log.count("Running command: ") == 1
    assert "no image is of the class cat, which expect.classes (as_before) requires" in log
    assert "running task <TaskInstance: recordmill.report_breach" in log
    assert "running task <TaskInstance: recordmill.check" not in log
    assert pointer(output)["current"] == grown

    # Killed at once, with another plan than the one of the breach; the retry needs no --discard.
    (tmp_path / "away").rename(photos / "cat")
    shutil.copy(photos / "dog" / "3.ppm", photos / "dog" / "copy.ppm")
    killed_once = interpreter(
        f"""if mkdir {tmp_path}/tried 2>/dev/null; then
    $real "$@" --threads=1 & pid=$!
    until ls -d {output}/*/.staging-*/claim* >/dev/null 2>&1; do sleep 0.01; done
    kill -9 $pid
    wait $pid
    exit 137
fi
exec $real "$@"
"""
    )
    log = night("2026-03-04", RECORDMILL_PYTHON=killed_once)
    assert "Apache Beam process failed with return code 137" in log
    assert (marker(output)["ledger"]["written"], len(list(output.iterdir()))) == (62, 3)

    (tmp_path / "removed.txt").write_text("key:dog/copy.ppm\n", encoding="utf-8")
    night("2026-03-05")
    assert marker(output)["ledger"]["left_out"] == {"excluded": 1}
    assert marker(output)["ledger"]["written"] == 61
    assert list(output.glob("*/.staging-*")) == []
    assert len(list(output.iterdir())) == 3  # the pointer and two versions


@pytest.mark.slow
def test_what_may_end_otherwise_is_tried_three_times(run_dag, params, tmp_path):
    (tmp_path / "dataset").write_text("in the output's way", encoding="utf-8")
    done = run_dag("2026-03-08", params)
    assert done.returncode != 0
    assert "Apache Beam process failed with return code 1\n" in done.stdout
    assert done.stdout.count("Running command: ") == 3
    assert "running task <TaskInstance: recordmill.check" not in done.stdout


def test_a_job_on_dataflow_is_left_to_itself_and_its_end_awaited_without_a_slot(
    airflow_home, interpreter, tmp_path
):
    said = (
        "from types import SimpleNamespace as N; from recordmill.pipeline.runners import name_job; "
    )
    said += "from apache_beam.options.pipeline_options import PipelineOptions as O; "
    said += "print(name_job(N(job_id=lambda: '2026-1'), O([])))"
    python = interpreter(f'printf "%s\\n" "$@" > {tmp_path}/arguments\n$real -c "{said}" >&2')
    google = json.dumps({"conn_type": "google_cloud_platform", "extra": {"project": "my-project"}})
    script = REPO / "tests" / "airflow" / "defer.py"
    environment = {
        **airflow_home,
        "RECORDMILL_PYTHON": python,
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": google,
    }
    done = subprocess.run(
        [sys.executable, script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    deferred = json.loads(done.stdout.splitlines()[-1])
    assert deferred["method"] == "execute_complete"
    assert deferred["trigger"].endswith("DataflowJobStateCompleteTrigger")
    waits_for = {name: deferred["arguments"][name] for name in ("job_id", "project_id", "location")}
    assert waits_for == {"job_id": "2026-1", "project_id": "my-project", "location": "europe-west1"}
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()
    assert arguments[:3] == ["-m", "recordmill", "--runner=DataflowRunner"]
    assert {
        "--input=gs://b/raw",
        "--output=gs://b/d",
        "--outcome-file=gs://b/d.outcome.json",
        "--no-wait",
        "--project=my-project",
        "--region=europe-west1",
        "--temp_location=gs://b/temp",
        "--sdk_container_image=image",
    } <= set(arguments)
    assert not [argument for argument in arguments if argument.startswith("--summary-json")]


def test_backfills_are_known_to_airflow(airflow_home, run_airflow):
    dates = ["--from-date=2026-02-01", "--to-date=2026-02-03"]
    commands = [
        ["dags", "reserialize"],
        ["backfill", "create", "--dag-id=recordmill", *dates, "--dry-run"],
    ]
    for command in commands:
        done = run_airflow(airflow_home, *command)
        assert done.returncode == 0, done.stdout[-3000:]
    days = [f"2026-02-0{day}" for day in (1, 2, 3)]
    assert all(day in done.stdout for day in days), done.stdout


def test_the_environment_is_the_one_of_the_documentation():
    pytest.importorskip("airflow", reason="no apache-airflow here: make test-airflow")
    from importlib.metadata import version

    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    for name in (
        "apache-airflow",
        "apache-airflow-providers-apache-beam",
        "apache-airflow-providers-google",
    ):
        assert f"{name}=={version(name)}" in makefile
    assert os.environ.get("RECORDMILL_PYTHON") is None  # the DAG's own default is what users get
