import io
import sys
from dataclasses import replace

import pytest
import yaml
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import S3Options

from recordmill.pipeline import attempt as module
from recordmill.pipeline.attempt import attempt, prepare_job
from recordmill.pipeline.configuration.options import LaunchOptions, parse_options
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.errors import LoadError, RecordmillError, Terminated, UsageError
from recordmill.schemas.settings.source import Input
from recordmill.storage.stores.find_store import file_system_options

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

AGAIN = "run the same command again"


@pytest.fixture
def prepare(photos):
    def run(*flags, arguments=()):
        words = [f"--input={photos}", f"--output={photos.parent}/dataset/", *flags, *arguments]
        return prepare_job(parse_options(words), Terminal(sys.stderr))

    return run


def test_flags_become_a_job(prepare, photos):
    job = prepare("--set=seed=3", "--threads=2", "--plan", "--overwrite")
    run = job.run
    assert (job.settings.seed, job.inputs) == (3, (Input(str(photos)),))
    assert (run.output, run.threads, run.preview, run.overwrite) == (
        f"{photos.parent}/dataset",
        2,
        True,
        True,
    )
    assert run.inputs == {"": str(photos)}
    assert yaml.safe_load(job.recipe.config_text)["seed"] == job.recipe.values["seed"] == 3
    assert set(run.facts) == {"recordmill", "beam", "runner", "started"}


def test_one_file_as_an_input_is_in_its_folder(prepare, photos):
    parsed = [f"--input=one={photos}/cat/00.jpg", f"--output={photos.parent}/dataset"]
    job = prepare_job(parse_options(parsed), Terminal(sys.stderr))
    assert job.run.inputs == {"one": f"{photos}/cat"}


@pytest.mark.parametrize("runner", ["DirectRunner", "PrismRunner"])
def test_a_job_on_this_machine_says_how_it_ended_in_the_temporary_folder(
    prepare, runner, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", "/temporary")
    run = prepare(f"--runner={runner}").run
    assert run.outcome_file == f"/temporary/recordmill-{run.run_id}.json"


def test_a_job_elsewhere_says_how_it_ended_in_the_output(prepare):
    run = prepare("--runner=FlinkRunner").run
    assert run.outcome_file == f"{run.output}/.outcome-{run.run_id}.json"
    assert prepare("--runner=FlinkRunner", "--outcome_file=/x.json").run.outcome_file == "/x.json"


@pytest.mark.parametrize("runner", ["FlinkRunner", "DirectRunner"])
def test_workers_elsewhere_which_start_in_other_folders_get_whole_paths(
    prepare, photos, monkeypatch, runner
):
    monkeypatch.chdir(photos.parent)
    places = [
        "--input=one=photos/",
        "--input=two=photos/cat/00.jpg",
        "--output=out",
        "--outcome_file=outcome.json",
    ]
    job = prepare_job(parse_options([*places, f"--runner={runner}"]), Terminal(sys.stderr))
    start = f"{photos.parent}/" if runner == "FlinkRunner" else ""
    assert [each.path for each in job.inputs] == [f"{start}photos", f"{start}photos/cat/00.jpg"]
    assert job.run.inputs == {"one": f"{start}photos", "two": f"{start}photos/cat"}
    assert (job.run.output, job.run.outcome_file) == (f"{start}out", f"{start}outcome.json")


def test_the_urls_of_workers_elsewhere_stay(prepare):
    job = prepare("--runner=FlinkRunner", "--outcome_file=gs://bucket/outcome.json")
    assert job.run.outcome_file == "gs://bucket/outcome.json"


def test_a_plan_discards_nothing(prepare, photos, capsys):
    staging = photos.parent / "dataset/.staging-1"
    staging.mkdir(parents=True)
    prepare("--discard", "--plan")
    assert staging.exists()
    prepare("--discard")
    assert not staging.exists()
    assert "deleted the unfinished work .staging-1" in capsys.readouterr().err.splitlines()


def test_a_stores_address_is_known_before_there_is_a_pipeline(prepare):
    FileSystems.set_options(None)
    prepare(arguments=["--s3_endpoint_url=http://localhost:1"])
    options = file_system_options().view_as(S3Options)
    assert options.s3_endpoint_url == "http://localhost:1"
    FileSystems.set_options(None)


def test_a_secret_is_refused_on_any_runner(prepare):
    with pytest.raises(UsageError, match="--s3_secret_access_key"):
        prepare("--runner=MyRunner", arguments=["--s3_secret_access_key=x"])


@pytest.mark.parametrize(
    ("flags", "arguments", "system", "processes"),
    [
        ((), (), "linux", 6),
        ((), (), "darwin", 1),
        (("--threads=2",), (), "linux", 1),
        (("--threads=2", "--processes=3"), (), "linux", 3),
        (("--processes=1",), (), "linux", 1),
        (("--processes=1", "--runner=PrismRunner"), (), "linux", 1),
        (("--runner=PrismRunner",), (), "linux", 1),
        ((), ("--direct_num_workers=2", "--direct_running_mode=multi_processing"), "linux", 1),
    ],
)
def test_processes_are_used_where_the_launcher_works_alone(
    prepare, monkeypatch, flags, arguments, system, processes
):
    monkeypatch.setattr("recordmill.pipeline.attempt.default_processes", lambda: 6)
    monkeypatch.setattr("recordmill.pipeline.attempt.available_processors", lambda: 8)
    monkeypatch.setattr("recordmill.pipeline.attempt.sys.platform", system)
    run = prepare(*flags, arguments=arguments).run
    assert run.processes == processes
    assert (run.fewest_for_processes > 0) == ("--processes" not in "".join(flags))


@pytest.mark.parametrize(
    ("asked", "used", "notes"),
    [
        (6, 6, ()),
        (7, 6, ("--processes=7 became 6: more than two for each processor do not help",)),
        (1000, 6, ("--processes=1000 became 6: more than two for each processor do not help",)),
    ],
)
def test_processes_are_at_most_twice_the_processors(prepare, monkeypatch, asked, used, notes):
    monkeypatch.setattr("recordmill.pipeline.attempt.available_processors", lambda: 3)
    monkeypatch.setattr("recordmill.pipeline.attempt.sys.platform", "linux")
    run = prepare(f"--processes={asked}").run
    assert (run.processes, run.gives_processes, run.notes) == (used, True, notes)


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [(("--runner=PrismRunner",), ()), ((), ("--direct_num_workers=2",))],
    ids=str,
)
def test_processes_are_refused_where_runners_have_workers(prepare, flags, arguments):
    with pytest.raises(
        UsageError, match=r"^--processes=2 is for DirectRunner in one process: .*; remove it$"
    ):
        prepare("--processes=2", *flags, arguments=arguments)


def test_options_stay_as_they_were(photos, monkeypatch):
    monkeypatch.setattr("recordmill.pipeline.attempt.ensure_sample", lambda: photos)
    options = LaunchOptions(sample=True, output=str(photos.parent / "dataset"))
    before = replace(options)
    job = prepare_job(options, Terminal(sys.stderr))
    assert (options, job.inputs) == (before, (Input(str(photos)),))


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("the flags"), 2, "the flags"),
        (LoadError("the dataset"), 1, "the dataset"),
        (UsageError("seed is x\nlimit is y"), 2, "seed is x\nlimit is y"),
        (RecordmillError("the input"), 1, "the input"),
        (KeyboardInterrupt(), 130, f"interrupted after 0 images: {AGAIN}"),
        (KeyboardInterrupt("the job was canceled"), 130, "interrupted: the job was canceled"),
        (Terminated(), 143, f"stopped by a signal after 0 images: {AGAIN}"),
        (
            ZeroDivisionError("first line\nlast line"),
            1,
            "unexpected ZeroDivisionError: last line: add --traceback to see where it comes from",
        ),
        (
            ConnectionResetError("the peer is gone"),
            1,
            f"unexpected ConnectionResetError: the peer is gone: {AGAIN}, or add --traceback to "
            "see where it comes from",
        ),
        (
            RuntimeError("Unable to fetch remote job server jar"),
            1,
            "unexpected RuntimeError: Unable to fetch remote job server jar: add --traceback to "
            "see where it comes from",
        ),
    ],
)
def test_whatever_goes_wrong_is_an_outcome(monkeypatch, error, code, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(module, "prepare_job", fail)
    outcome, job = attempt(LaunchOptions(), None, Terminal(io.StringIO()))
    assert (outcome.status, outcome.exit_code, outcome.message, job) == (
        "failed",
        code,
        sentence,
        None,
    )


def test_an_interrupted_run_says_what_is_done(prepare, photos, monkeypatch):
    def stop(job, *_):
        job.run.progress.begin("row")
        job.run.progress.add_done(7)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare_job", lambda *_: prepare())
    monkeypatch.setattr("recordmill.pipeline.runners.run_job", stop)
    outcome, _ = attempt(LaunchOptions(), None, Terminal(io.StringIO()))
    assert outcome.message == "interrupted after 7 rows: run the same command again"


@pytest.mark.parametrize("flag", ["--reuse", "--against"])
def test_the_store_of_an_earlier_dataset_must_answer(prepare, monkeypatch, flag):
    expect = ("--set=expect.class_drift=1",)

    def describe(path):
        raise TimeoutError(f"no answer about {path}")

    monkeypatch.setattr("recordmill.storage.describe", describe)
    with pytest.raises(RecordmillError) as raised:
        prepare(f"{flag}=gs://b/earlier/", *expect)
    asked = "no answer about gs://b/earlier/recordmill.json"
    assert (
        str(raised.value) == f"the store of the dataset gs://b/earlier cannot be reached: {asked}"
    )
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(
        RecordmillError, match=r"^the dataset gs://b/earlier needs its store's client"
    ):
        prepare(f"{flag}=gs://b/earlier/", *expect)


def test_a_dataset_that_is_named_twice_is_reused_once(prepare, convert, photos):
    dataset = convert(photos).output
    flags = (f"--reuse={dataset}", f"--reuse={dataset}/", "--update")
    job = prepare(*flags)
    assert [each.folder for each in job.earlier.reuse] == [str(dataset)]
    assert job.run.reuses
