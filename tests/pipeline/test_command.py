"""`recordmill`: its commands, its help, and that neither costs a second of importing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recordmill.pipeline.command import HELP, run_command
from recordmill.pipeline.run import build
from recordmill.schemas.version import VERSION

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def run(capsys):
    def command(*words):
        code = run_command([*map(str, words)], build)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_without_a_word_the_help_is_shown_and_nothing_done(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run() == (2, "", HELP.format(prog="recordmill"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help(run, word):
    assert run(word) == (0, HELP.format(prog="recordmill"), "")


def test_version(run):
    assert run("--version") == (0, f"recordmill {VERSION}\n", "")


@pytest.mark.parametrize("words", [["run"], []])
def test_a_conversion_needs_no_command_but_places(run, words, photos, tmp_path):
    code, out, _ = run(*words, "--input", photos, "--output", tmp_path / "dataset", "--plan")
    assert (code, json.loads(out)["status"]) == (0, "planned")


@pytest.mark.parametrize("words", [["run"], ["--runner=DirectRunner"], ["run", "--threads=1"]])
def test_the_command_does_not_draw_the_sample_unasked(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*words)
    assert (code, err) == (
        2,
        "error: --input is missing: name the folder with the images, or try --sample\n",
    )
    assert os.listdir(tmp_path) == []


def test_the_sample_on_request(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("run", "--sample", "--plan")
    line = json.loads(out)
    assert (code, line["output"], line["ledger"]["listed"]) == (
        0,
        os.path.join("out", "quickstart"),
        255,
    )


def test_a_dataset_is_verified_and_inspected(run, convert_folders, tmp_path):
    dataset = convert_folders(tmp_path)
    code, out, err = run("verify", dataset)
    assert (code, json.loads(out)["records"], json.loads(out)["findings"]) == (0, 10, [])
    assert "no problems found: 10 records in 2 files, level files" in err
    code, out, _ = run("inspect", dataset, "--record", "train:0")
    assert (code, json.loads(out)["records"][0]["number"]) == (0, 0)
    code, out, _ = run("analyze", dataset)
    assert (code, json.loads(out)["status"]) == (1, "failed")


def test_one_file_is_one_file(run, convert_folders, tmp_path):
    (shard,) = convert_folders(tmp_path).glob("train-*")
    assert "no problems found: 4 records in 1 file, level files" in run("verify", shard)[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["photos"],
            "there is no command photos: choose one of run, verify, inspect, view, diff, versions, "
            "analyze, completion",
        ),
        (["verifi"], "there is no command verifi: did you mean verify?"),
        (["Inspect", "x"], "there is no command Inspect: did you mean inspect?"),
        (
            ["my photos", "dataset"],
            "there is no command my photos: to convert it, write recordmill run 'my photos' "
            "dataset",
        ),
        (
            ["x\x1b"],
            r"there is no command x\x1b: choose one of run, verify, inspect, view, diff, versions, "
            r"analyze, completion",
        ),
        (["verify"], "the following arguments are required: PATH: see --help"),
        (["inspect", "x", "--wher=y"], "there is no flag --wher=y: did you mean --where?"),
        (
            ["analyze", "x", "--size=0"],
            "argument --size: 0 is not a size of at most 16384, such as 224 or 160x224: see --help",
        ),
        (["run", "--ouput=x"], "there is no flag --ouput=x: did you mean --output?"),
    ],
)
def test_wrong_usage_is_one_sentence(run, words, sentence, photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    code, _, err = run(*words)
    assert (code, err) == (2, f"error: {sentence}\n")


def test_the_package_runs_as_the_command_does(run_command, convert_folders, tmp_path):
    convert_folders(tmp_path)

    def run_package(words):
        done = run_command(f"python -m recordmill {words}", tmp_path)
        return done.returncode, done.stdout, done.stderr

    shown = HELP.format(prog="python -m recordmill")
    assert shown.startswith("usage: python -m recordmill COMMAND [flags]\n")
    assert "\npython -m recordmill run --sample converts" in shown
    assert run_package("") == (2, "", shown)
    assert run_package("--help") == (0, shown, "")
    assert run_package("--version") == (0, f"recordmill {VERSION}\n", "")
    assert run_package("run")[0] == 2
    assert run_package("run --help")[1].startswith(
        "usage: python -m recordmill run [INPUT ... OUTPUT] [flags]\n"
    )
    assert run_package("verify --help")[1].startswith("usage: python -m recordmill verify [-h]")
    code, out, _ = run_package("--input photos --output again")
    assert (code, json.loads(out)["status"]) == (0, "published")
    code, out, _ = run_package("verify dataset")
    assert (code, json.loads(out)["records"]) == (0, 10)


# The words of a command line, and the exit code; in one process, which none of them may make any
# heavier.
LIGHT = [
    ([], 2),
    (["--help"], 0),
    (["--version"], 0),
    (["run", "--help"], 0),
    (["verify", "--help"], 0),
    (["inspect", "--help"], 0),
    (["analyze", "--help"], 0),
    (["run"], 2),
    (["run", "--input=x"], 2),
    (["verify"], 2),
    (["versions", "x", "--keep=0"], 2),
    (["analyze", "x", "--size=0"], 2),
    (["verify", "boxes"], 0),
    (["inspect", "boxes", "--record", "train:0"], 0),
]
PNG_QUALITY = ["--set=images.store=png", "--set=images.quality=50"]
WRONG = [
    (
        ["--set=images.qualty=3"],
        "--set: images.qualty is not a setting: did you mean images.quality?",
    ),
    (["--set=images.quality=many"], "--set: images.quality is 'many': it should be a whole number"),
    (["--set=images.quality=[1"], "--set images.quality=[1: the value cannot be read"),
    (["--config=broken.yaml"], "the configuration broken.yaml cannot be read"),
    (
        ["--set=analyze=true", "--set=images.check=header"],
        "--set: analyze needs every image's pixels",
    ),
    (PNG_QUALITY, "images.quality has no effect, since images are stored as png"),
    (
        ["--config=configs/class_folders.yaml", *PNG_QUALITY],
        "images.quality has no effect, since images are stored",
    ),
]
"""Errors in a configuration, which are found without Beam too."""
IMPORTED_AND_CODE = """
import json, sys
from recordmill.pipeline.run import main
found = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["recordmill", *words]
    try:
        main()
    except SystemExit as end:
        heavy = sorted({"apache_beam", "pyarrow", "tensorflow"} & sys.modules.keys())
        found.append([words, heavy, end.code or 0])
sys.stdout.write("\\n" + json.dumps(found))
"""


def test_help_looking_at_a_local_dataset_and_errors_of_the_user_import_no_beam(
    class_folders, tmp_path
):
    shutil.copytree(Path(__file__).parents[1] / "earlier/boxes", tmp_path / "boxes")
    class_folders(tmp_path / "photos", {"cat": 2, "dog": 2})
    (tmp_path / "broken.yaml").write_text("seed: [1")
    wrong = [["run", "--input=photos", "--output=out", *flags] for flags, _ in WRONG]
    command = [
        sys.executable,
        "-c",
        IMPORTED_AND_CODE,
        json.dumps([*(words for words, _ in LIGHT), *wrong]),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found[: len(LIGHT)] == [[words, [], code] for words, code in LIGHT]
    # Recognition asks all sources.
    assert found[len(LIGHT) :] == [[words, ["pyarrow"], 2] for words in wrong]
    errors = [
        line.removeprefix("error: ")
        for line in done.stderr.splitlines()
        if line.startswith("error: ")
    ]
    for error, (_, sentence) in zip(errors[-len(WRONG) :], WRONG, strict=True):
        assert error.startswith(sentence)
