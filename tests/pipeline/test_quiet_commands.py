"""`--quiet` and `--verbose` of the commands that read datasets."""

import json
import logging
from importlib import import_module

import pytest

from recordmill.pipeline.command import run_command
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def run(capsys):
    """`run(*words)`: the exit code, the line of stdout if there is one, and stderr."""

    def run(*words):
        code = run_command([*map(str, words)], build)
        captured = capsys.readouterr()
        return code, captured.out and json.loads(captured.out), captured.err

    return run


@pytest.fixture
def dataset(convert, photos):
    return convert(photos, "--versions").output


@pytest.mark.parametrize(
    "command",
    [["verify"], ["inspect"], ["inspect", "--record=train:0"], ["versions"]],
    ids=" ".join,
)
def test_a_quiet_command_writes_nothing_but_its_summary(run, dataset, command):
    spoken = run(*command, dataset)
    assert spoken[2] != ""
    code, line, shown = run(*command, dataset, "--quiet")
    assert (code, shown) == (spoken[0], "")
    assert line.keys() == spoken[1].keys()


def test_a_quiet_comparison_writes_nothing_but_its_summary(run, dataset, photos):
    (photos / "dog/00.jpg").unlink()
    code, line, shown = run("diff", dataset, photos, "--quiet")
    assert (code, line["status"], shown) == (1, "different", "")


def test_a_quiet_verification_still_shows_damage(run, dataset):
    (shard,) = dataset.glob("*/train-*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[100] ^= 1
    shard.unlink()
    shard.write_bytes(content)
    code, line, shown = run("verify", dataset, "--quiet")
    assert (code, line["damages"]) == (1, len(shown.splitlines()))
    assert {each.partition(":")[0] for each in shown.splitlines()} == {"damage"}


def test_a_quiet_command_still_reports_an_error(run, tmp_path):
    code, line, shown = run("verify", tmp_path / "none", "--quiet")
    assert (code, shown) == (1, f"error: {line['message']}\n")


@pytest.mark.parametrize("command", ["verify", "inspect", "versions", "analyze", "view"])
def test_quiet_and_verbose_contradict_each_other(run, command, tmp_path):
    code, line, _ = run(command, tmp_path, "--quiet", "--verbose")
    assert (code, line["message"]) == (
        2,
        "--quiet and --verbose contradict each other: remove one of them",
    )


def test_a_quiet_viewer_is_refused_since_it_would_hide_its_address(run, tmp_path):
    code, line, _ = run("view", tmp_path, "--quiet")
    assert (code, line["message"]) == (
        2,
        "--quiet would hide the address of the page: leave it out",
    )


@pytest.mark.parametrize("flags", [[], ["--verbose"]])
def test_only_a_verbose_command_shows_messages_of_libraries(
    run, dataset, monkeypatch, caplog, flags
):
    module = import_module("recordmill.pipeline.verify")

    def open_and_log(path):
        logging.getLogger("apache_beam.io").warning("a retry")
        return opened(path)

    opened = module.open_dataset
    monkeypatch.setattr(module, "open_dataset", open_and_log)
    assert run("verify", dataset, *flags)[0] == 0
    assert ("a retry" in caplog.messages) == bool(flags)
