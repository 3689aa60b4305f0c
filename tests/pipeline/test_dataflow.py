"""What the launcher knows of Dataflow; `tests/dataflow` builds real jobs where `apache-beam[gcp]`
is installed."""

import json
import os
import re
from types import SimpleNamespace

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineRunner, PipelineState

from recordmill.pipeline import runners
from recordmill.pipeline.runners import check_dataflow, explain_built, is_dataflow, name_job
from recordmill.schemas.errors import UsageError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync", "ended_launches")

SHIPPED = ["--setup_file=./setup.py"]


@pytest.mark.parametrize(
    ("runner", "known"),
    [
        ("DataflowRunner", True),
        ("dataflow", True),
        ("DATAFLOWRUNNER", True),
        ("FlinkRunner", False),
        ("my.Runner", False),
    ],
)
def test_is_dataflow(runner, known):
    assert is_dataflow(runner) is known


@pytest.mark.parametrize(
    "flag", ["--setup_file=./setup.py", "--sdk_container_image=i", "--extra_package=r.tar.gz"]
)
def test_a_job_with_the_package_and_with_objects_alone_is_fine(flag):
    check_dataflow([flag], ["gs://b/photos"], "gs://b/dataset", None)
    check_dataflow([flag], ["gs://b/photos"], "gs://b/dataset", "gs://b/outcome.json")


@pytest.mark.parametrize(
    ("places", "flag", "path"),
    [
        ((["gs://b/a", "photos"], "gs://b/d", None), "--input", "photos"),
        ((["gs://b/a"], "/data/d", None), "--output", "/data/d"),
        ((["gs://b/a"], "gs://b/d", "outcome.json"), "--outcome-file", "outcome.json"),
    ],
)
def test_folders_of_this_machine_are_refused(places, flag, path):
    sentence = (
        f"Dataflow's workers do not see {path} of this machine: give {flag} as gs://bucket/..."
    )
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        check_dataflow(SHIPPED, *places)


def test_workers_without_the_package_are_refused():
    with pytest.raises(
        UsageError,
        match=r"^Dataflow's workers lack Recordmill: add --setup_file=./setup.py, or an image",
    ):
        check_dataflow(["--project=p"], ["gs://b/a"], "gs://b/d", None)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], None),
        (["--dry_run=True"], "the Dataflow job was built and, as --dry_run asks, not started"),
        (
            ["--template_location=gs://b/t"],
            "the Dataflow job was built and is a template in gs://b/t",
        ),
    ],
)
def test_explain_built(flags, sentence):
    assert explain_built(PipelineOptions(flags)) == sentence


def test_name_job_is_understood_by_airflow():
    # The pattern of airflow.providers.google.cloud.hooks.dataflow.JOB_ID_PATTERN, google provider
    # 22.8.0.
    pattern = (
        r"Submitted job: (?P<job_id_java>[^\"\n\s]*)|Created job with id: "
        r"\[(?P<job_id_python>[^\"\n\s]*)\]"
    )
    line = name_job(
        SimpleNamespace(job_id=lambda: "2026-11-21_01"),
        PipelineOptions(["--project=p", "--region=r"]),
    )
    assert re.search(pattern, line)["job_id_python"] == "2026-11-21_01"
    assert line.endswith("https://console.cloud.google.com/dataflow/jobs/r/2026-11-21_01?project=p")


class _Dataflow(PipelineRunner):
    """Takes a job as Dataflow does, and never finishes it."""

    def run_pipeline(self, pipeline, options):
        return SimpleNamespace(
            job_id=lambda: "job-1", wait_until_finish=lambda: PipelineState.FAILED
        )


@pytest.fixture
def dataflow(monkeypatch, photos, tmp_path):
    """The launcher on a Dataflow that is none; local folders stand in for buckets."""
    make = runners._make_pipeline

    def made(runner, arguments):
        pipeline, here = make("FlinkRunner", [*arguments, "--flink_master=elsewhere"])
        pipeline.runner = _Dataflow()
        return pipeline, here

    monkeypatch.setattr(runners, "_make_pipeline", made)
    monkeypatch.setattr("recordmill.pipeline.runners.storage.is_local", lambda path: False)
    return ["--runner=DataflowRunner", *SHIPPED, f"--outcome_file={tmp_path / 'outcome.json'}"]


def test_a_started_job_is_named_and_left(convert, photos, dataflow, tmp_path):
    done = convert(photos, *dataflow, "--no_wait")
    assert (done.code, done.line["status"]) == (0, "submitted")
    assert "\nCreated job with id: [job-1], see https://" in done.stderr
    assert not os.path.exists(tmp_path / "outcome.json")


def test_a_started_job_is_waited_for(convert, photos, dataflow, tmp_path):
    done = convert(photos, *dataflow)
    assert (done.code, done.line["status"]) == (1, "failed")
    assert done.errors == [
        "the job on DataflowRunner ended (FAILED) without saying how: its outcome was expected in "
        f"{tmp_path / 'outcome.json'}"
    ]
    assert json.loads((tmp_path / "outcome.json").read_bytes())["exit_code"] == 1


@pytest.mark.parametrize(
    ("flag", "wait"),
    [("--dry_run=True", "--wait"), ("--template_location=gs://b/t", "--no_wait")],
)
def test_what_is_only_built_is_not_waited_for(convert, photos, dataflow, tmp_path, flag, wait):
    # The launcher of a flex template gives a template_location, and starts the job when this
    # process has ended well.
    done = convert(photos, *dataflow, flag, wait, "--summary_json", str(tmp_path / "summary.json"))
    assert (done.code, done.line["status"], done.errors) == (0, "built", [])
    assert "Created job" not in done.stderr
    assert json.loads((tmp_path / "summary.json").read_bytes())["status"] == "built"
    assert not os.path.exists(tmp_path / "outcome.json")  # the job's to write
