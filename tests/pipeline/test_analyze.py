import gc
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from recordmill.pipeline import analyze as command
from recordmill.pipeline.analyze import main
from recordmill.pipeline.verify import main as verify
from recordmill.reading.analyze_dataset import Analysis
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[2]

NOTE = {
    "plan": "abc",
    "split": "train",
    "size": [48, 64],
    "images": 1234,
    "mean": [1.0, 2.0, 3.0],
    "variance": [4.0, 5.0, 6.0],
    "labels": {"cat": 0},
}


@pytest.fixture
def report(capsys):
    """Runs the command in this process: exit code, the JSON line, and what people see."""

    def run(*flags):
        code = main(list(flags))
        captured = capsys.readouterr()
        assert captured.out.count("\n") == 1
        return code, json.loads(captured.out), captured.err

    return run


@pytest.fixture
def analysis(monkeypatch):
    """Stands for the work: records what was asked for, and gives or raises what it is given."""

    def stand_in(result):
        asked = []

        def work(path, split, size):
            asked.append((path, split, size))
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(command, "analyze_dataset", work)
        return asked

    return stand_in


def test_an_analysis_is_reported_to_people_and_programs(report, analysis):
    asked = analysis(Analysis(True, NOTE, {"imports": 4.5678, "analysis": 7.0}))
    code, line, shown = report("dataset/", "--size", "48x64", "--split", "train")
    assert asked == [("dataset", "train", (48, 64))]
    assert (code, line.pop("seconds").keys()) == (0, {"imports", "analysis", "total"})
    sentence = "dataset/transform_fn has been made from 1,234 images of train"
    assert line == {
        "status": "analyzed",
        "exit_code": 0,
        "message": sentence,
        "transform_fn": "dataset/transform_fn",
        **{key: value for key, value in NOTE.items() if key != "labels"},
    }
    assert shown == f"{sentence}\n"


def test_what_fits_is_kept(report, analysis):
    analysis(Analysis(False, NOTE, {"imports": 0.0, "analysis": 0.1}))
    code, line, shown = report("dataset")
    assert (code, line["status"]) == (0, "kept")
    assert shown == "dataset/transform_fn already fits the dataset: nothing to do\n"


NO_SIZE = " is not a size of at most 16384, such as 224 or 160x224: see --help"


@pytest.mark.parametrize(
    ("text", "size"), [("224", (224, 224)), ("1x16384", (1, 16384)), ("160X224", (160, 224))]
)
def test_sizes(report, analysis, text, size):
    asked = analysis(Analysis(True, NOTE, {}))
    assert report("x", "--size", text)[0] == 0
    assert asked == [("x", None, size)]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "the following arguments are required: PATH: see --help"),
        ([""], "a path is empty: name a folder"),
        (["x", "--size", "0"], "argument --size: 0" + NO_SIZE),
        (
            ["x", "--size", "16385x1"],
            "argument --size: 16385x1 is not a size of at most 16384, such as 224 or 160x224: see "
            "--help",
        ),
        (
            ["x", "--size", "1x2x3"],
            "argument --size: 1x2x3 is not a size of at most 16384, such as 224 or 160x224: see "
            "--help",
        ),
        (["x", "--size", "²"], "argument --size: ²" + NO_SIZE),
        (["x", "--siz", "3"], "there is no flag --siz: did you mean --size?"),
    ],
)
def test_wrong_flags_are_one_sentence_and_exit_code_2(report, flags, sentence):
    code, line, shown = report(*flags)
    assert (code, line["exit_code"], line["message"]) == (2, 2, sentence)
    assert shown == f"error: {sentence}\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (LoadError("the dataset is wrong: repair it"), 1, "the dataset is wrong: repair it"),
        (KeyboardInterrupt(), 130, "interrupted: the dataset is as it was"),
        (
            OSError(28, "No space left"),
            1,
            "x/transform_fn cannot be made: OSError: [Errno 28] No space left",
        ),
        (
            ValueError("many\nlines\nthe reason"),
            1,
            "x/transform_fn cannot be made: ValueError: the reason",
        ),
        (ValueError(), 1, "x/transform_fn cannot be made: ValueError: ValueError"),
    ],
)
def test_failures_are_one_sentence(report, analysis, error, code, sentence):
    analysis(error)
    ended, line, shown = report("x")
    failure = {"status": "failed", "exit_code": code, "message": sentence}
    assert (ended, line) == (code, failure)
    assert shown == f"error: {sentence}\n"


def test_the_collector_is_frozen_at_the_end(monkeypatch, analysis):
    analysis(Analysis(True, NOTE, {}))
    monkeypatch.setattr(sys, "argv", ["analyze", "x"])
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    assert (main(), frozen) == (0, [True])


def test_a_dataset_without_moments_gets_an_error_with_the_remedy(report, photos, convert):
    output = convert(photos).output
    code, line, _ = report(str(output))
    assert (code, line["status"]) == (1, "failed")
    assert line["message"] == (
        f"{output} was converted without channel statistics: convert it "
        "again with "
        "--set analyze=true --overwrite"
    )


def test_a_folder_without_a_dataset_is_an_error(report, tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"")
    code, line, _ = report(str(tmp_path))
    sentence = f"{tmp_path} holds no recordmill.json: name the folder of a finished dataset"
    assert (code, line["message"]) == (1, sentence)


@pytest.mark.slow
def test_the_current_version_is_analyzed(convert, photos):
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")

    def analyze():
        command = [sys.executable, "-m", "pipeline.analyze", str(done.output), "--split", "all"]
        ended = subprocess.run(
            command, cwd=REPO, capture_output=True, text=True, timeout=300, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    settings = {"splits.fractions": {"all": 1.0}, "report": False, "images.moments": True}
    old = convert(photos, "--versions", settings=settings).line["version"]
    (photos / "cat/00.jpg").unlink()
    done = convert(photos, "--versions", "--update", settings=settings)
    folder = done.output / done.line["version"] / "transform_fn"
    line = analyze()
    assert (line["status"], line["transform_fn"], line["images"]) == ("analyzed", str(folder), 9)
    assert (folder / "saved_model.pb").exists() or (folder / "transform_fn").is_dir()
    assert not (done.output / "transform_fn").exists()
    assert not (done.output / old / "transform_fn").exists()
    assert analyze()["status"] == "kept"
    assert verify([str(done.output)]) == 0
    assert convert(photos, "--versions", "--update", settings=settings).line["status"] == "kept"
