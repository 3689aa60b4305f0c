"""Jobs on runners: in this process, and on a stand-in for one elsewhere."""

import json
import os
import signal
import sys
import tempfile
import threading
from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner, PipelineState

from recordmill.pipeline import runners
from recordmill.schemas.errors import Terminated
from recordmill.transforms.publishing.verdicts import LedgerError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync", "ended_launches")


class Job:
    """A job of the stand-in: it works while it is waited for, and ends in the state `wait`, or
    raises it."""

    def __init__(self, run, wait=None, cancel=None):
        self._run, self._wait, self._cancel = run, wait, cancel
        self.canceled = 0

    def wait_until_finish(self):
        if isinstance(self._wait, BaseException):
            raise self._wait
        self._run()
        return PipelineState.DONE if self._wait is None else self._wait

    def cancel(self):
        self.canceled += 1
        if self._cancel:
            self._cancel()


@pytest.fixture
def elsewhere(monkeypatch):
    """Makes `--runner=elsewhere.Runner` a runner whose job behaves as given; gives the list of its
    jobs."""

    def make(works=True, **behavior):
        jobs = []

        class Runner(PipelineRunner):
            def run_pipeline(self, pipeline, options):
                run = (
                    (lambda: FnApiRunner().run_pipeline(pipeline, PipelineOptions([])))
                    if works
                    else lambda: None
                )
                jobs.append(Job(run, **behavior))
                return jobs[-1]

        monkeypatch.setitem(sys.modules, "elsewhere", SimpleNamespace(Runner=Runner))
        return jobs

    return make


ON = "--runner=elsewhere.Runner"


@pytest.fixture
def no_exit(monkeypatch):
    """An interrupted launcher leaves at once; here the test goes on."""

    class Left(Exception):
        pass

    def leave(code):
        raise Left(code)

    monkeypatch.setattr("recordmill.pipeline.launch.os._exit", leave)
    return Left


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--runner=NoSuchRunner"],
            "no job can be made for --runner=NoSuchRunner: Unexpected pipeline runner",
        ),
        (
            ["--runner=no.such.Runner"],
            "no job can be made for --runner=no.such.Runner: No module named 'no'",
        ),
        (
            ["--runner=os.Runner"],
            "no job can be made for --runner=os.Runner: module 'os' has no attribute",
        ),
        (["--runner=DataflowRunner"], "Dataflow's workers do not see "),
        (
            ["--runner=FlinkRunner", "--parallelism=x"],
            "the flags --parallelism=x cannot be understood by Beam: argument --parallelism: "
            "invalid int value: 'x'",
        ),
        (
            ["--runner=FlinkRunner", "--ouput=x"],
            "there is no flag --ouput=x: did you mean --output?",
        ),
        (["--threads=many"], "argument --threads: many is not a number of 1 or more: see --help"),
        (["--threads"], "argument --threads: expected one argument: see --help"),
    ],
)
def test_flags_of_no_use_are_one_sentence(convert, photos, flags, sentence):
    done = convert(photos, *flags)
    assert (done.code, done.line["status"], done.line["exit_code"]) == (2, "failed", 2)
    (error,) = done.errors
    assert error.startswith(sentence)
    assert error == done.line["message"]
    assert "Traceback" not in done.stderr
    assert not done.output.exists()


def test_a_remote_job_is_waited_for_and_read(convert, photos, elsewhere, tmp_path):
    elsewhere()
    done = convert(photos, ON)
    assert (done.code, done.line["status"]) == (0, "published")
    assert (
        done.stderr.splitlines()[1] == "the job runs on elsewhere.Runner; progress is shown there"
    )
    assert "listing" not in done.stderr
    assert not [name for name in os.listdir(done.output) if name.startswith(".")]


def test_a_remote_plan_leaves_no_file(convert, photos, elsewhere):
    elsewhere()
    done = convert(photos, ON, "--plan")
    assert (done.code, done.line["status"]) == (0, "planned")
    assert not [path for path in done.output.rglob("*") if path.is_file()]


@pytest.mark.parametrize("kept", [False, True])
def test_a_job_without_an_outcome(convert, photos, elsewhere, tmp_path, kept):
    elsewhere(works=False, wait=PipelineState.CANCELLED)
    file = tmp_path / "outcome.json"
    file.write_text('{"run_id": "an earlier one", "exit_code": 0}')
    done = convert(photos, ON, *([f"--outcome_file={file}"] if kept else []))
    (error,) = done.errors
    begin = (
        "the job on elsewhere.Runner ended (CANCELLED) without saying how: its outcome was "
        "expected in "
    )
    assert error.startswith(f"{begin}{file}" if kept else f"{begin}{done.output}/.outcome-")
    assert error.endswith(", which must be a folder that its workers and this machine share")
    assert (done.code, done.line["message"]) == (1, error)
    if kept:
        assert json.loads(file.read_bytes())["message"] == error


def test_a_remote_job_continues_with_no_wait(convert, photos, elsewhere, tmp_path):
    jobs = elsewhere(works=False)
    done = convert(photos, ON, "--no_wait", f"--outcome_file={tmp_path / 'outcome.json'}")
    assert (done.code, done.line["status"], len(jobs)) == (0, "submitted", 1)
    assert not (tmp_path / "outcome.json").exists()


def test_a_job_that_would_be_lost_is_waited_for(convert, photos, elsewhere, monkeypatch):
    monkeypatch.setattr(runners, "ends_with_this_process", lambda *_: True)
    elsewhere()
    done = convert(photos, ON, "--no_wait")
    assert (done.code, done.line["status"]) == (0, "published")
    note = (
        "note: --no-wait has no effect, "
        "since the job server of elsewhere.Runner ends with this process"
    )
    assert done.stderr.splitlines()[1] == note


@pytest.mark.parametrize("runner", ["DirectRunner", "FnApiRunner", "direct"])
def test_a_job_in_this_process_is_waited_for_in_any_case(convert, photos, runner):
    for file in photos.rglob("*.jpg"):
        file.write_bytes(b"no picture")
    done = convert(photos, f"--runner={runner}", "--no_wait")
    assert (done.code, done.line["status"]) == (3, "failed")


@pytest.mark.parametrize(
    ("runner", "flags", "here"),
    [
        ("DirectRunner", [], True),
        ("PrismRunner", [], True),
        ("PrismRunner", ["--environment_type=DOCKER"], False),
        ("FlinkRunner", [], True),
        ("FlinkRunner", ["--flink_master=host:8081"], False),
        ("FlinkRunner", ["--flink_master=host:8081", "--environment_type=LOOPBACK"], True),
        ("PortableRunner", ["--job_endpoint=host:1"], False),
    ],
)
def test_where_the_work_is_done(runner, flags, here):
    assert runners._make_pipeline(runner, flags)[1] is here


def test_a_pipeline_that_is_not_run_leaves_no_folder(tmp_path, monkeypatch):
    # Beam makes one for each pipeline. With another version of Beam, read whether it still does.
    assert beam.__version__.startswith("2.77.")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runners._make_pipeline("FlinkRunner", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stop", "code", "how"),
    [(KeyboardInterrupt, 130, "interrupted"), (Terminated, 143, "stopped by a signal")],
)
def test_a_remote_job_is_canceled_where_its_launcher_is_stopped(
    convert, photos, elsewhere, no_exit, capsys, stop, code, how
):
    jobs = elsewhere(wait=stop())
    with pytest.raises(no_exit, match=str(code)):
        convert(photos, ON)
    assert jobs[0].canceled == 1
    line = json.loads(capsys.readouterr().out)
    again = "run the same command again to continue from its finished shards"
    assert line["message"] == f"{how}: the job on elsewhere.Runner was canceled; {again}"


def test_the_job_is_canceled_before_its_job_server_is_ended(
    convert, photos, elsewhere, no_exit, monkeypatch
):
    jobs = elsewhere(wait=KeyboardInterrupt())
    started, ended = beam.Pipeline.run, []

    def start(pipeline):
        result = started(pipeline)
        ours = signal.getsignal(signal.SIGINT)

        def theirs(*arguments):
            ended.append(jobs[0].canceled)
            ours(*arguments)

        signal.signal(signal.SIGINT, theirs)
        return result

    monkeypatch.setattr(beam.Pipeline, "run", start)
    ours = signal.getsignal(signal.SIGINT)
    with pytest.raises(no_exit, match="130"):
        convert(photos, ON)
    assert ended == [1]
    assert signal.getsignal(signal.SIGINT) is ours


@pytest.mark.parametrize(
    ("runner", "on_flink", "said"),
    [
        ("elsewhere.Runner", False, "the job on elsewhere.Runner was canceled; "),
        ("FlinkRunner", True, "the job on FlinkRunner was canceled; "),
        (
            "FlinkRunner",
            False,
            "the job on FlinkRunner may go on: look there, and stop it if it runs",
        ),
        (
            "PortableRunner",
            True,
            "the job on PortableRunner may go on: look there, and stop it if it runs",
        ),
    ],
)
def test_the_message_about_a_canceled_job_names_its_runner(monkeypatch, runner, on_flink, said):
    monkeypatch.setattr(runners, "cancel_on_flink", lambda *_: on_flink)
    assert runners._cancel(Job(lambda: None), runner, PipelineOptions([])).startswith(said)


def refuse():
    raise RuntimeError("pages\nno rights")


@pytest.mark.parametrize(
    ("cancel", "why"), [(refuse, "no rights"), (None, "no answer in 0 s")], ids=["refused", "slow"]
)
def test_a_remote_job_that_cannot_be_canceled(
    convert, photos, elsewhere, no_exit, capsys, monkeypatch, cancel, why, tmp_path
):
    monkeypatch.setattr(runners, "SECONDS_TO_CANCEL", 60 if cancel else 0.2)
    stopped = threading.Event()
    elsewhere(wait=KeyboardInterrupt(), cancel=cancel or (lambda: stopped.wait(60)))
    with pytest.raises(no_exit):
        convert(photos, ON, f"--outcome_file={tmp_path / 'outcome.json'}")
    stopped.set()
    line = json.loads(capsys.readouterr().out)
    assert line["message"] == (
        f"interrupted: the job on elsewhere.Runner may go on ({why}): look there, and stop it if "
        "it runs"
    )
    assert json.loads((tmp_path / "outcome.json").read_bytes())["exit_code"] == 130


def test_a_crash_in_a_worker_is_in_the_outcome_file_too(convert, photos, monkeypatch, tmp_path):
    def broken(*_):
        raise LedgerError("10 listed, 9 written")

    monkeypatch.setattr("recordmill.transforms.publishing.verdicts.balance_ledger", broken)
    file = tmp_path / "outcome.json"
    done = convert(photos, f"--outcome_file={file}")
    assert (done.code, done.line["status"]) == (1, "failed")
    assert "10 listed, 9 written" in done.line["message"]
    line = json.loads(file.read_bytes())
    assert (line["status"], line["exit_code"], line["message"]) == (
        "failed",
        1,
        done.line["message"],
    )
    assert line["run_id"]


def test_a_run_that_never_began_is_in_the_outcome_file_too(convert, photos, tmp_path):
    done = convert(photos, "--set=seeed=1", f"--outcome_file={tmp_path / 'outcome.json'}")
    line = json.loads((tmp_path / "outcome.json").read_bytes())
    assert (line["exit_code"], line["message"]) == (2, done.line["message"])
