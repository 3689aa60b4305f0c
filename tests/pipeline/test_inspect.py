import json
import re
from dataclasses import asdict

import pytest

from recordmill.pipeline.inspect import main
from recordmill.pipeline.verify import main as verify
from recordmill.reading.follow_run import RunProgress

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def ours(tmp_path, convert_folders):
    return convert_folders(tmp_path)


def test_inspect_describes_a_dataset(ours, capsys):
    assert main([str(ours), "--json"]) == 0
    captured = capsys.readouterr()
    assert f"{ours}  a dataset of Recordmill, convention default" in captured.err.replace("\n", "")
    line = json.loads(captured.out)
    assert sum(split["records"] for split in line["splits"].values()) == 10
    assert line["labels"] == {"cat": 0, "dog": 1}
    assert line["features"]["image/encoded"]["kind"] == "bytes"
    assert line["first_record"]["source"]["key"].endswith(".jpg")
    assert line["first_record"]["features"]["image/format"]["values"] == ["jpg"]
    assert line["first_record"]["features"]["image/encoded"]["values"][0]["bytes"] > 100


def test_a_dataset_without_splits_is_empty(tmp_path, capsys):
    (tmp_path / "dataset_info.json").write_text(json.dumps({"name": "x", "splits": []}))
    assert main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"] == {}
    assert verify([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0


def test_one_record_and_its_source(ours, capsys):
    assert main([str(ours), "--record", "train:2", "--json"]) == 0
    captured = capsys.readouterr()
    (record,) = json.loads(captured.out)["records"]
    assert (record["split"], record["number"]) == ("train", 2)
    assert f"from {record['source']['key']}, " in captured.err
    assert main([str(ours), "--where", record["source"]["key"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == [record]


def test_a_record_by_its_key(ours, capsys):
    assert main([str(ours), "--record", "train:1", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)["records"]
    assert main([str(ours), "--record", records[0]["source"]["key"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == records


def test_indexes_for_dali_and_pytorch(ours, tmp_path, capsys):
    folder = tmp_path / "indexes"
    assert main([str(ours), "--index", str(folder), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == f"2 indexes written to {folder}\n"
    names = ["train-00000-of-00001.tfrecord.idx", "test-00000-of-00001.tfrecord.idx"]
    assert json.loads(shown.out)["indexes"] == [f"{folder}/{name}" for name in names]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert verify([str(ours)]) == 0


def test_a_run_is_followed_line_by_line(ours, capsys, monkeypatch):
    steps = [RunProgress("p", shards, 2, 3 * shards, 6, 0, 1024 * shards) for shards in (1, 2)]
    monkeypatch.setattr("recordmill.pipeline.inspect.follow_run", lambda path, wait: iter(steps))
    assert main([str(ours), "--follow", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "1 of 2 shards, 3 of 6 images (50%), 0 rejected, 1.0 KiB",
        "2 of 2 shards, 6 of 6 images (100%), 0 rejected, 2.0 KiB",
        f"the dataset in {ours} is complete",
    ]
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert lines[:2] == [{"status": "running", **asdict(each)} for each in steps]
    assert lines[2] == {"exit_code": 0, "path": str(ours), "status": "complete"}


def test_following_what_is_not_there_and_with_other_flags(ours, capsys):
    assert main([str(ours.parent), "--follow", "--json"]) == 1
    assert "which holds no finished dataset: a run can be followed" in capsys.readouterr().err
    assert main([str(ours), "--follow", "--extract", "x"]) == 2
    assert (
        capsys.readouterr().err
        == "error: --extract writes images: leave out --report, --follow and --index\n"
    )


def test_images_on_request(ours, tmp_path, capsys):
    assert main([str(ours), "--extract", str(tmp_path / "images")]) == 0
    assert "10 images written to " in capsys.readouterr().err
    assert len(list((tmp_path / "images").rglob("*.jpeg"))) == 10


def test_the_report_is_made_again(ours, capsys):
    page = (ours / "report.html").read_bytes()
    (ours / "report.html").unlink()
    assert main([str(ours), "--report", "--json"]) == 0
    printed = capsys.readouterr()
    assert (printed.err, json.loads(printed.out)) == (
        f"the report is {ours}/report.html\n",
        {"exit_code": 0, "path": str(ours), "report": "report.html"},
    )
    assert (ours / "report.html").read_bytes() == page
    (sidecar,) = (ours / "sidecars").glob("train-*")
    sidecar.write_text("x")
    assert main([str(ours), "--report"]) == 1
    assert re.fullmatch(
        rf"error: the sidecar {re.escape(str(sidecar))} cannot be understood \(.+\): restore it\n",
        capsys.readouterr().err,
    )
    assert (ours / "report.html").read_bytes() == page


@pytest.mark.parametrize(
    ("forged", "more"),
    [
        ({"key": ["x"]}, ["--where", "cat/00.jpg"]),
        ({"sha256": ["x"]}, ["--record", "cat/00.jpg"]),
        ({"key": ["x"]}, ["--extract", "images"]),
    ],
    ids=repr,
)
def test_a_forged_row_of_a_sidecar_is_one_sentence(
    ours, tmp_path, monkeypatch, capsys, more, forged
):
    monkeypatch.chdir(tmp_path)
    for sidecar in (ours / "sidecars").iterdir():
        rows = [json.loads(line) | forged for line in sidecar.read_text().splitlines()]
        sidecar.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main([str(ours), *more]) == 1
    error = capsys.readouterr().err.strip()  # below the line of progress of --extract
    assert re.fullmatch(
        r"error: the sidecar .+ cannot be understood \(.+ is not text\): restore it", error
    )
    assert verify([str(ours)]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (["--record", ""], 1, "error: no record of "),
        (["--record", "train"], 1, "error: no record of "),
        (["--record", "train:10"], 1, "error: there is no record 10: this split has 4 records"),
        (
            ["--index", "x", "--report"],
            2,
            "error: argument --report: not allowed with argument --index: see --help",
        ),
        (
            ["--record", "val:1"],
            1,
            "error: there is no split and no file 'val' with records: the splits are train,",
        ),
        (
            ["--record", "train:1", "--where", "x"],
            2,
            "error: argument --where: not allowed with argument --record",
        ),
        (["--where", "nothing.jpg"], 1, "error: no record of "),
        (
            ["--report", "--record", "train:1"],
            2,
            "error: argument --record: not allowed with argument --report",
        ),
        (
            ["--index", "x", "--where", "x"],
            2,
            "error: argument --where: not allowed with argument --index",
        ),
    ],
)
def test_errors_are_one_sentence(ours, capsys, more, code, sentence):
    capsys.readouterr()
    assert main([str(ours), *more]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(sentence)
    assert shown.count("\n") == 1


@pytest.mark.parametrize("look", [main, verify])
def test_a_file_of_another_kind_is_refused(ours, capsys, look):
    page = ours / "report.html"
    assert page.is_file()
    capsys.readouterr()
    assert look([str(page)]) == 1
    assert capsys.readouterr().err == (
        f"error: {page} is not a TFRecord file, and no record is in it: name a dataset's folder, a "
        "TFRecord file, "
        "or a pattern that matches local ones\n"
    )


def test_a_file_whose_first_record_is_damaged_is_still_one(ours, tmp_path, capsys):
    content = bytearray(
        max(ours.glob("train-*"), key=lambda path: path.stat().st_size).read_bytes()
    )
    content[0] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(content)
    assert verify([str(tmp_path / "a.tfrecord")]) == 1
    shown = capsys.readouterr().err
    assert (
        "damage: a.tfrecord, record 0 at byte 0: the length does not match its checksum\n" in shown
    )
    assert main([str(tmp_path / "a.tfrecord")]) == 0
    assert (
        "note: the dataset is damaged: recordmill verify lists the damage"
        in capsys.readouterr().err
    )


def test_text_from_a_stranger_cannot_draw_on_the_terminal(tmp_path, capsys):
    from recordmill.schemas.features import Example
    from recordmill.storage.tfrecord_file import RecordSink

    message = Example()
    message.features.feature["\x1b[31mkey[/red]"].bytes_list.value.append(b"\x1b]0;title\x07[bold]")
    sink = RecordSink(str(tmp_path / "a.tfrecord"), "none")
    sink.write(message.SerializeToString())
    sink.close()
    assert main([str(tmp_path / "a.tfrecord")]) == 0
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\\x1b[31mkey[/red]" in shown
    assert "\\x1b]0;title\\x07[bold]" in shown
