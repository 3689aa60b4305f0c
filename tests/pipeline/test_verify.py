import json
import shutil

import pytest
from cut_switch import cut_switch

from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.verify import main

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def ours(tmp_path, convert_folders):
    return convert_folders(tmp_path)


def test_a_sound_dataset(ours, capsys):
    assert main([str(ours), "--json", "--level", "pixels"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[1].split() == ["split", "files", "records", "bytes"]
    assert captured.err.splitlines()[-1].startswith("no problems found: 10 records in ")
    line = json.loads(captured.out)
    assert (line["exit_code"], line["records"], line["findings"], line["level"]) == (
        0,
        10,
        [],
        "pixels",
    )


def test_a_damaged_one(ours, capsys):
    shard = next(ours.glob("train-*"))
    content = bytearray(shard.read_bytes())
    content[40] ^= 1
    shard.write_bytes(content)
    assert main([str(ours), "--json"]) == 1
    captured = capsys.readouterr()
    line = json.loads(captured.out)
    (finding,) = line["findings"]
    assert (finding["shard"], finding["record"], finding["offset"], finding["kind"]) == (
        shard.name,
        0,
        0,
        "data",
    )
    said = (
        f"damage: {shard.name}, record 0 at byte 0 ({finding['source']}): the data do not match "
        "their checksum"
    )
    assert said in captured.err.splitlines()
    assert captured.err.splitlines()[-1].startswith("1 problem found: ")
    assert main([str(ours), "--no_json"]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["/no/such/place"], 1, "error: /no/such/place does not exist or is empty"),
        ([], 2, "error: the following arguments are required: PATH: see --help"),
        (["x", "--level", "deep"], 2, "error: argument --level: invalid choice: 'deep'"),
    ],
)
def test_errors_are_one_sentence(capsys, arguments, code, sentence):
    assert main(arguments) == code
    shown = capsys.readouterr().err
    assert shown.startswith(sentence)
    assert shown.count("\n") == 1


def test_names_cannot_draw_on_the_terminal(tmp_path, capsys):
    (tmp_path / "\x1b[31m[red]evil.tfrecord").write_bytes(b"")
    assert main([str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "damage: \\x1b[31m[red]evil.tfrecord: the file is empty: 0 bytes" in shown


def test_an_unlisted_file_with_a_name_that_is_not_utf_8(tmp_path, capsys):
    name = b"\xff.tfrecord".decode("utf-8", "surrogateescape")
    (tmp_path / name).write_bytes(b"")
    assert main([str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["shard"] == name


def test_a_copied_dataset_verifies_elsewhere(ours, tmp_path):
    shutil.copytree(ours, tmp_path / "copy")
    shutil.rmtree(ours)
    assert main([str(tmp_path / "copy")]) == 0


@pytest.mark.parametrize("again", [[], ["--overwrite", "--set=shards.count=2"]])
def test_a_cut_publication_is_reported_until_it_is_finished(
    tmp_path, convert_folders, capsys, again
):
    dataset = convert_folders(tmp_path)
    if not again:
        shutil.rmtree(dataset)
    (photos,) = (path for path in tmp_path.iterdir() if path.is_dir() and path != dataset)
    command = [f"--input={photos}", f"--output={dataset}", *again]
    with cut_switch("write_file", 1):
        assert launch(command, build) == 1
    assert list(dataset.glob("train-*.tfrecord"))
    (staging,) = dataset.glob(".staging-*")
    sentence = (
        f"error: {dataset} is not finished: it holds {staging.name}, of a run that is still "
        "working on it, or was interrupted, or failed: run the same command again, corrected if "
        "it failed\n"
    )
    capsys.readouterr()
    for command_of_readers in (main, inspect):
        assert command_of_readers([str(dataset)]) == 1
        assert capsys.readouterr().err == sentence
    assert launch(command, build) == 0
    assert main([str(dataset)]) == inspect([str(dataset)]) == 0
