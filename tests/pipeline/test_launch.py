"""One run of the command: what it reports, where, and its exit code."""

import io
import json
import os
import pty
import re
import signal
import struct

import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.version import VERSION

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

GPS = 0x8825


@pytest.fixture
def command(spawn):
    def run(*flags, **options):
        process = spawn(*flags, **options)
        stdout, stderr = process.communicate(timeout=60)
        return process.returncode, stdout, stderr

    return run


def test_help_is_grouped_and_has_examples(command):
    code, stdout, stderr = command("--help")
    assert (code, stderr) == (0, "")
    groups = ("what to convert:", "how to run:", "what to report:", "examples:", "exit codes:")
    for text in (*groups, "--input [NAME=]DIR"):
        assert text in stdout
    assert stdout.count("\n    python -m pipeline.run photos ") >= 2


def test_version(command):
    assert command("--version") == (0, f"recordmill {VERSION}\n", "")


def test_stdout_is_one_short_json_line_and_the_rest_is_on_stderr(
    spawn, conversion, photos, tmp_path
):
    (photos / "bird").mkdir()
    process = spawn(f"--input={photos}", f"--output={tmp_path / 'dataset'}")
    # Airflow reads one pipe to its end before the other.
    stderr, stdout = process.stderr.read(), process.stdout.read()
    done = conversion(process.wait(), stdout, stderr, tmp_path / "dataset")
    assert done.code == 0
    assert done.stdout.endswith("}\n")
    assert len(done.stdout) < 4096
    assert set(done.line) == {
        "status", "exit_code", "message", "output", "plan_id", "splits", "ledger",
        "classes", "changes", "duplicates", "unit", "input_bytes", "output_bytes", "report",
        "remarks", "notes", "seconds", "recognized", "recognised",
    }  # fmt: skip
    assert (done.line["status"], done.line["exit_code"], done.line["output"]) == (
        "published",
        0,
        str(done.output),
    )
    assert done.line["plan_id"] == done.marker["plan"]["id"]
    assert done.line["splits"] == {
        name: {"images": split["records"], "shards": len(split["shards"]), "bytes": split["bytes"]}
        for name, split in done.marker["splits"].items()
    }
    assert done.line["seconds"]["total"] > 0
    assert "note: bird: the folder is empty" in done.stderr
    assert re.search(r"^train +9 +1 +", done.stderr, re.M) or re.search(
        r"^train +\d+ +1 +", done.stderr, re.M
    )
    assert "10 images are in" in done.stderr
    assert "warning" not in done.stderr.lower()


@pytest.mark.parametrize(
    ("flags", "code", "status"),
    [
        ([], 0, "published"),
        (["--plan"], 0, "planned"),
        (["--set=images.quality=0"], 2, "failed"),
        (["--zzz"], 2, "failed"),
        (["--threads=many"], 2, "failed"),
        (["--json=maybe"], 2, "failed"),
    ],
)
def test_summary_json_repeats_the_line(convert, photos, tmp_path, flags, code, status):
    done = convert(photos, *flags, f"--summary_json={tmp_path / 'summary.json'}")
    assert (done.code, done.line["status"]) == (code, status)
    assert (tmp_path / "summary.json").read_text() == done.stdout


def test_the_outcome_file_says_how_it_ended(convert, photos, tmp_path):
    file = tmp_path / "outcome.json"
    done = convert(photos, f"--outcome_file={file}")
    outcome = json.loads(file.read_bytes())
    assert set(outcome) == {
        "status",
        "message",
        "exit_code",
        "plan_id",
        "numbers",
        "notes",
        "run_id",
    }
    shared = ("status", "message", "exit_code", "plan_id")
    assert {key: outcome[key] for key in shared} == {key: done.line[key] for key in shared}
    assert outcome["message"] == f"10 images are in {done.output}"
    assert outcome["numbers"] == {key: done.line[key] for key in outcome["numbers"]}
    assert outcome["run_id"] == done.marker["run"]["id"]
    refused = convert(photos, f"--outcome_file={file}", settings={"seed": 1})
    assert json.loads(file.read_bytes())["message"] == refused.line["message"]
    assert json.loads(file.read_bytes())["status"] == "refused"


def test_nothing_is_left_in_the_temporary_folder(convert, photos, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert convert(photos).code == 0
    assert convert(photos, settings={"seed": 1}).code == 1
    assert os.listdir(tmp_path / "temporary") == []


def test_plan_writes_nothing_and_its_numbers_come_true(convert, class_folders, state_of, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30, "dog": 30})
    (root / "loose.jpg").touch()
    (root / ".hidden").touch()
    settings = {
        "shards.count": 3,
        "splits.fractions": {"train": 0.5, "test": 0.3},
        "limit": 50,
        "images.reencode": "always",
    }
    before = state_of(tmp_path)
    planned = convert(root, "--plan", settings=settings)
    assert state_of(tmp_path) == before
    assert (planned.code, planned.line["status"]) == (0, "planned")
    assert (
        planned.line["message"]
        == f"nothing was written; without --plan the dataset would be in {planned.output}"
    )
    done = convert(root, settings=settings)
    assert planned.line["plan_id"] == done.line["plan_id"]
    for split, numbers in done.line["splits"].items():
        expected = planned.line["splits"][split]
        assert (expected["images"], expected["shards"]) == (numbers["images"], numbers["shards"])
        assert 0.75 * numbers["bytes"] < expected["bytes"] < 1.25 * numbers["bytes"]
    ledger = {key: value for key, value in done.line["ledger"].items() if key != "written"}
    assert planned.line["ledger"] == ledger


def test_a_plan_names_a_price_and_the_run_says_how_wrong_it_was(
    convert, photos, monkeypatch, tmp_path
):
    # Too few images are not worth it.
    assert "price" not in convert(photos, output=tmp_path / "other").line
    monkeypatch.setattr("recordmill.transforms.plan_shards.PRICED_FROM", 1)
    planned, run = convert(photos, "--plan").line["price"], convert(photos)
    done = run.line["price"]
    assert (list(planned), list(done)) == (["predicted"], ["predicted", "measured"])
    sizes = ("bytes_read", "bytes_shuffled", "bytes_written")
    assert [planned["predicted"][key] for key in sizes] == [done["predicted"][key] for key in sizes]
    measured = done["measured"]
    assert measured.keys() == done["predicted"].keys() - {"bytes_shuffled"}
    assert measured["bytes_read"] == done["predicted"]["bytes_read"]
    assert measured["bytes_written"] == pytest.approx(done["predicted"]["bytes_written"], rel=0.25)
    assert min(measured.values()) >= 0
    kept = run.marker["run"]["price"]
    assert kept["predicted"] == done["predicted"]
    assert kept["measured"].keys() == measured.keys()
    assert [kept["measured"][key] for key in sizes if key in measured] == [
        measured[key] for key in sizes if key in measured
    ]
    assert kept["measured"]["cpu_seconds"] <= measured["cpu_seconds"]  # without the report


def test_plan_of_a_dataset_that_is_there_changes_nothing(convert, photos, state_of, tmp_path):
    convert(photos)
    before = state_of(tmp_path)
    assert convert(photos, "--plan").line["status"] == "kept"
    assert convert(photos, "--plan", settings={"seed": 1}).line["status"] == "refused"
    assert (
        convert(photos, "--plan", "--overwrite", settings={"seed": 1}).line["status"] == "planned"
    )
    assert state_of(tmp_path) == before


def test_direct_runner_is_beams_in_process_runner(convert, photos, tmp_path):
    one = convert(photos, "--runner=DirectRunner", output=tmp_path / "one")
    other = convert(photos, "--runner=FnApiRunner", output=tmp_path / "other")
    assert one.deterministic_files == other.deterministic_files
    assert (one.marker["run"]["runner"], other.marker["run"]["runner"]) == (
        "DirectRunner",
        "FnApiRunner",
    )


def test_flags_of_beam_are_passed_on(convert, photos, tmp_path):
    assert convert(photos, f"--temp_location={tmp_path / 't'}", "--direct_num_workers=1").code == 0


def test_without_places_the_sample_is_converted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert launch([], build) == 0
    captured = capsys.readouterr()
    line = json.loads(captured.out)
    assert "converting the generated sample out/sample-3" in captured.err
    assert (line["output"], line["ledger"]["written"]) == ("out/quickstart", 250)
    assert line["ledger"] == {
        "listed": 255,
        "written": 250,
        "rejected": {"empty": 1, "truncated": 1, "unknown_format": 1},
        "ignored": {"system_file": 2},
        "left_out": {},
    }
    assert sorted(os.listdir("out/quickstart")) == [
        "README.md", "config.yaml", "croissant.json", "dataset_info.json", "duplicates.jsonl",
        "features.json", "image.class.label.labels.txt", "labels.txt", "recordmill.json",
        "records.index", "records.versions", "rejected.jsonl", "report.html", "report.json",
        "samples.svg", "schema.pbtxt", "sidecars", "test-00000-of-00001.tfrecord",
        "train-00000-of-00001.tfrecord",
    ]  # fmt: skip


def test_an_unexpected_error_is_one_sentence_and_its_traceback_is_there_on_request(
    convert, photos, monkeypatch
):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("recordmill.transforms.shards.shard_writer.convert_image", broken)
    done = convert(photos)
    assert done.code == 1
    (sentence,) = done.errors
    assert sentence.startswith("unexpected ")
    assert "a bug" in sentence
    assert "Traceback" not in done.stderr
    traced = convert(photos, "--traceback")
    assert (traced.code, traced.line["status"]) == (1, "failed")
    assert "Traceback" in traced.stderr
    assert 'raise ZeroDivisionError("a bug")' in traced.stderr


def test_a_damaged_marker_is_one_sentence(convert, photos):
    done = convert(photos)
    (done.output / "recordmill.json").write_text("{")
    again = convert(photos)
    assert again.code == 1
    assert len(again.errors) == 1
    assert "Traceback" not in again.stderr


def test_it_runs_from_any_folder(photos, tmp_path, run_command):
    flags = "--input=photos --output=here --config=configs/class_folders.yaml"
    done = run_command(f"python -m pipeline.run {flags}", tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["output"] == "here"
    assert (tmp_path / "here/recordmill.json").exists()


def test_the_order_of_flags_has_no_say(photos, tmp_path, convert):
    done = convert(photos, "--set=seed=1", "--set=seed=2")
    assert done.marker["plan"]["recipe"]["seed"] == 2


def test_a_plan_says_that_the_run_would_fail(convert, tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    (root / "1.jpg").write_bytes(b"flat")
    flat = {"source.kind": "class_folders"}
    done = convert(root, "--plan", settings=flat)
    why = (
        "nothing is left: the only image was rejected (1 no_class)\nno_class: 1.jpg (the file is "
        "not in a class folder)\n"
    )
    assert done.code == 3
    assert done.line["status"] == "planned"
    assert done.line["message"].startswith(f"this run would fail: {why}")
    assert convert(root, settings=flat).code == 3


def test_a_plan_foresees_labels_without_a_class(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 12})
    settings = {"labels.classes": ["cat"]}
    planned = convert(root, "--plan", settings=settings)
    assert not planned.output.exists()
    done = convert(root, settings=settings)
    assert (planned.code, done.code) == (3, 3)
    why = "12 of 24 images (50.00%) were rejected (12 unknown_label)"
    expected = (
        f"this run would fail: {why}, which is over max_rejected.count (10) and "
        "max_rejected.share (1.00%)\nunknown_label: the label 'dog'\n"
    )
    assert planned.line["message"].startswith(expected)
    assert done.line["message"].startswith(f"{why}, which is over max_rejected.count (10)")
    assert "\nunknown_label: dog/00.jpg (" in done.line["message"]


def test_a_plan_tells_of_few_labels_without_a_class(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 2})
    settings = {"labels.classes": ["cat"], "max_rejected.lost_classes": 1}
    planned = convert(root, "--plan", settings=settings)
    assert (planned.code, planned.line["notes"]) == (
        0,
        [
            "2 images whose label is not in labels.classes would be rejected, such as the label "
            "'dog'",
        ],
    )
    assert convert(root, settings=settings).code == 0


def test_fractions_below_one_say_what_is_in_no_split(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 12})
    settings = {"splits.fractions.train": 0.5}
    planned, done = convert(root, "--plan", settings=settings), convert(root, settings=settings)
    assert {name: split["images"] for name, split in done.line["splits"].items()} == {
        "train": 15,
        "test": 1,
    }
    assert (
        planned.line["notes"]
        == done.line["notes"]
        == ["splits.fractions sum to 0.6: 8 of 24 images are in no split"]
    )


@pytest.fixture
def shown_by(spawn):
    """Runs the command with stdout and stderr on one terminal: its exit code, and what it
    showed."""

    def run(*flags):
        ours, theirs = pty.openpty()
        process = spawn(*flags, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # Linux says so where the other end is closed
            pass
        os.close(ours)
        return process.wait(60), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())

    return run


@pytest.mark.parametrize(("flags", "lines"), [(["--ouput=x"], 1), (["--ouput=x", "--json"], 2)])
def test_on_a_terminal_an_error_appears_once(shown_by, flags, lines):
    code, shown = shown_by(*flags)
    assert code == 2
    assert shown.count("error: there is no flag --ouput=x: did you mean --output?") == 1
    assert len(shown.splitlines()) == lines


@pytest.mark.slow
def test_on_a_terminal_a_failed_run_says_its_error_once(shown_by, photos, tmp_path):
    (photos / "cat/text.jpg").write_bytes(b"not a picture")
    code, shown = shown_by(
        f"--input={photos}", f"--output={tmp_path / 'dataset'}", "--set=max_rejected.count=0"
    )
    assert code == 3
    once = ("1 of 11 images (9.09%) was rejected", "unknown_format: ", "fix_rejected.md")
    assert [shown.count(text) for text in (*once, "{")] == [1, 1, 1, 0], shown


def test_on_a_terminal_a_run_that_ends_well_prints_no_json(shown_by, photos, tmp_path):
    code, shown = shown_by(f"--input={photos}", f"--output={tmp_path / 'dataset'}")
    assert code == 0
    assert [shown.count(text) for text in ("10 images are in", "{")] == [1, 0], shown


def test_the_table_and_the_json_line_say_one_number_of_classes(convert, photos):
    done = convert(photos, settings={"labels.classes": ["cat", "dog", "emu"]})
    assert done.line["classes"] == 3
    assert re.findall(r"^classes +(\d+)", done.stderr, re.MULTILINE) == ["3"]


def _exif(*entries):
    """EXIF of entries (tag, type, count, four bytes), which need not be right."""
    packed = b"".join(struct.pack("<HHI4s", *entry) for entry in entries)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, len(entries)) + packed + bytes(4)


def test_odd_exif_is_not_talked_about(convert_in_child, photos, tmp_path):
    upright = (0x112, 3, 1, b"\x06\0\0\0")
    odd = {
        "many": _exif((0x112, 3, 2, b"\x06\0\x01\0")),
        "beyond": _exif(upright, (0x10E, 2, 900, struct.pack("<I", 5000))),
        "cut": _exif(upright)[:-9],
        "gps": _exif(upright, (GPS, 4, 1, struct.pack("<I", 4))),
    }
    for name, exif in odd.items():
        Image.new("RGB", (40, 30), "red").save(photos / "cat" / f"{name}.jpg", exif=exif)
        Image.new("RGB", (40, 30), "blue").save(photos / "dog" / f"{name}.png", exif=exif)
    with (
        pytest.warns(UserWarning, match="EXIF|Truncated"),
        Image.open(photos / "cat" / "cut.jpg") as image,
    ):
        dict(image.getexif())  # what others hear of it
    done = convert_in_child(photos, settings={"images.reencode": "always"})
    assert (done.code, done.line["ledger"]["written"]) == (0, 18)
    assert "PIL" not in done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("reencode", ["always", "when_needed"])
def test_reencoding_removes_the_place_of_a_photo(convert, photos, reencode):
    exif = Image.Exif()
    exif[GPS] = {1: "N", 2: (48.0, 51.0, 29.6), 3: "E", 4: (2.0, 17.0, 40.2)}
    for path in photos.rglob("*.jpg"):
        Image.open(path).save(path, exif=exif)
    examples = convert(photos, settings={"images.reencode": reencode}).examples()
    images = [Image.open(io.BytesIO(values["image/encoded"])) for values in examples]
    kept = reencode == "when_needed"
    assert [bool(image.getexif().get_ifd(GPS)) for image in images] == [kept] * 10
    assert ["exif" in image.info for image in images] == [kept] * 10


def test_an_interruption_while_modules_are_imported_is_one_sentence(monkeypatch, capsys, tmp_path):
    class Ended(Exception):
        pass

    def interrupt(*_):
        raise KeyboardInterrupt

    def leave(code):
        raise Ended(code)

    monkeypatch.setattr("recordmill.pipeline.launch._attempt", interrupt)
    monkeypatch.setattr("recordmill.pipeline.launch.os._exit", leave)
    with pytest.raises(Ended, match="130"):
        launch([f"--input={tmp_path}", f"--output={tmp_path}/dataset"], build)
    assert capsys.readouterr().err == "error: interrupted before any work\n"


def test_a_signal_does_not_change_how_a_run_ends_that_is_over(convert, photos, monkeypatch):
    report = Terminal.report_outcome

    def stop_and_report(*arguments):
        signal.raise_signal(signal.SIGTERM)
        report(*arguments)

    monkeypatch.setattr(Terminal, "report_outcome", stop_and_report)
    done = convert(photos)
    assert (done.code, done.line["status"], done.marker["ledger"]["written"]) == (
        0,
        "published",
        10,
    )


def test_a_quiet_run_that_ends_well_writes_nothing_to_stderr(convert, photos):
    (photos / "cat/text.jpg").write_bytes(b"text")
    done = convert(photos, "--quiet")
    assert (done.code, done.stderr, done.line["status"]) == (0, "", "published")


def test_a_quiet_run_that_fails_writes_its_errors_alone(convert, photos, tmp_path):
    (photos / "cat/text.jpg").write_bytes(b"text")
    strict = {"max_rejected": {"count": 0, "share": 0}}
    done = convert(photos, "--quiet", settings=strict)
    assert done.stderr == "".join(f"error: {line}\n" for line in done.errors)
    assert done.answer[:2] == (
        3,
        "1 of 11 images (9.09%) was rejected (1 unknown_format), which is over max_rejected.count "
        "(0) and max_rejected.share (0.00%)",
    )
    unwritable = convert(photos, "--quiet", f"--summary-json={tmp_path}")
    assert unwritable.stderr.startswith(f"error: the summary {tmp_path} cannot be written: ")


@pytest.mark.runner
@pytest.mark.slow
def test_a_verbose_run_shows_the_messages_of_beam(spawn, photos, tmp_path):
    places = f"--input={photos}", f"--output={tmp_path / 'dataset'}", "--set=report=false"
    _, shown = spawn(*places, "--verbose").communicate(timeout=120)
    assert re.search(r"^(root|apache_beam\S*): ", shown, re.MULTILINE)
    _, usual = spawn(*places, "--overwrite").communicate(timeout=120)
    assert not re.search(r"^(root|apache_beam\S*): ", usual, re.MULTILINE)


def test_quiet_and_verbose_contradict_each_other(convert, photos):
    done = convert(photos, "--quiet", "--verbose")
    assert done.answer == (
        2,
        "--quiet and --verbose contradict each other: remove one of them",
    )
