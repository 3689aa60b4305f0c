import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import recordmill
from recordmill.pipeline import attempt as module
from recordmill.pipeline.attempt import analyze_output
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.storage.dataset_files import contents_digest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def analyses(monkeypatch):
    """Stands for the process of the analysis; what it was asked, and the exit code that it ends
    with."""
    asked = []
    state = SimpleNamespace(asked=asked, code=0)

    def run(command, **options):
        assert command[:4] == [sys.executable, "-P", "-m", "recordmill.pipeline.analyze"]
        assert str(Path(module.__file__).parents[2]) in options["env"]["PYTHONPATH"].split(":")
        state.muted = options["stderr"] == subprocess.DEVNULL
        asked.append(command[4:])
        return subprocess.CompletedProcess(command, state.code)

    monkeypatch.setattr(module, "subprocess", SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr(module, "check_tensorflow", lambda: None)
    return state


ANALYZE = {"analyze": True}


def test_a_published_dataset_is_analyzed(photos, convert, analyses):
    done = convert(photos, settings=ANALYZE)
    assert analyses.asked == [["--", str(done.output)]]
    assert (done.code, done.line["status"], done.line["analysis"]) == (0, "published", "analyzed")
    assert done.line["message"] == f"10 images are in {done.output}; transform_fn/ has been made"
    assert all(len(row["moments"]) == 3 for row in done.rows())


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_conversion_from_python_has_a_quiet_analysis(photos, tmp_path, analyses, quiet):
    recordmill.convert(photos, tmp_path / "dataset", quiet=quiet, **ANALYZE)
    assert (len(analyses.asked), analyses.muted) == (1, quiet)


def test_without_the_setting_nothing_is_analyzed(photos, convert, analyses):
    done = convert(photos, settings={"images.moments": True})
    assert (done.code, analyses.asked) == (0, [])
    assert "analysis" not in done.line


def test_a_dataset_that_is_there_is_analyzed_once(photos, convert, analyses):
    output = convert(photos, settings={"images.moments": True}).output
    late = convert(photos, settings=ANALYZE)
    assert (late.line["status"], analyses.asked) == ("kept", [["--", str(output)]])
    folder = output / "transform_fn"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"")
    note = {
        "split": "train",
        "size": [1, 1],
        "contents": contents_digest(Marker.from_json(late.marker), "train"),
    }
    (folder / "analysis.json").write_text(json.dumps(note))
    again = convert(photos, settings=ANALYZE)
    assert (again.line["status"], again.line["analysis"], len(analyses.asked)) == (
        "kept",
        "kept",
        1,
    )
    note["contents"] = "of another dataset"
    (folder / "analysis.json").write_text(json.dumps(note))
    convert(photos, settings=ANALYZE)
    assert len(analyses.asked) == 2


def test_a_plan_and_a_failure_are_not_analyzed(photos, convert, analyses, tmp_path):
    assert convert(photos, "--plan", settings=ANALYZE).code == 0
    assert convert(photos, settings={**ANALYZE, "splits.group": "(?P<group>nowhere)"}).code == 3
    assert analyses.asked == []


@pytest.mark.parametrize("code", [1, -11])
def test_a_failed_analysis_fails_the_run_and_leaves_the_dataset(photos, convert, analyses, code):
    analyses.code = code
    done = convert(photos, settings=ANALYZE)
    failed = f"the analysis failed (exit code {code}): run recordmill analyze {done.output}"
    sentence = f"10 images are in {done.output}; {failed}"
    assert (done.code, done.line["status"], done.line["message"]) == (1, "published", sentence)
    assert (done.errors, done.line["analysis"]) == ([sentence], "failed")
    assert done.marker["ledger"]["written"] == 10


@pytest.mark.parametrize("status", ["submitted", "built"])
def test_a_job_without_waiting_is_analyzed_by_hand(analyses, status):
    job = SimpleNamespace(
        settings=SimpleNamespace(analyze=True), run=SimpleNamespace(output="gs://b/out")
    )
    outcome = analyze_output(Outcome(status, "it was", 0), job, None)
    assert outcome.notes == ("once the dataset exists, run recordmill analyze gs://b/out",)
    assert analyses.asked == []


def test_a_missing_extra_is_reported_before_any_work(photos, convert, monkeypatch):
    monkeypatch.setattr("recordmill.reading.analyze_dataset.find_spec", lambda name: None)
    done = convert(photos, settings=ANALYZE)
    assert done.errors == [
        "an analysis needs TensorFlow Transform, which is not installed: pip install '.[analyze]' "
        "in a clone"
    ]
    assert (done.code, done.output.exists()) == (1, False)
    assert convert(photos, "--plan", settings=ANALYZE).code == 0


def test_a_header_check_cannot_be_analyzed(photos, convert):
    done = convert(photos, settings={**ANALYZE, "images.check": "header"})
    assert done.code == 2
    assert done.errors == ["--set: analyze needs every image's pixels: remove images.check: header"]


@pytest.mark.slow
def test_one_command_from_images_to_a_model_and_its_replacement(
    photos, convert_in_child, class_folders
):
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")
    done = convert_in_child(photos, settings=ANALYZE)
    assert done.code == 0, done.stderr
    note = json.loads((done.output / "transform_fn" / "analysis.json").read_bytes())
    assert (note["plan"], note["images"]) == (
        done.line["plan_id"],
        done.line["splits"]["train"]["images"],
    )
    assert note["size"] == [16, 24]
    assert not [name for name in done.files if "tmp" in name]
    # Another dataset in its place, and no analysis asked for: the old one's is gone.
    class_folders(photos, {"eel": 3})
    other = convert_in_child(photos, "--overwrite", settings={"images.moments": True})
    assert other.code == 0, other.stderr
    assert not [name for name in other.files if name.startswith("transform_fn")]
