import json

import pytest

from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.schemas.errors import LoadError, UsageError


@pytest.fixture
def run(capsys):
    """`run(work, *flags)`: the exit code, the line of JSON, and what people see."""

    def run(work, *flags):
        code = run_reader(reader_parser("look", "Looks.", "a folder", ""), flags, work, "stopped")
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return run


def test_the_line_is_what_the_work_returns(run):
    assert run(lambda flags: {"path": flags.path}, "x") == (0, {"exit_code": 0, "path": "x"}, "")
    assert run(lambda flags: {"exit_code": 1}, "x") == (1, {"exit_code": 1}, "")
    assert run(lambda flags: {}, "x", "--no_json") == (0, None, "")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("--a is b"), 2, "--a is b"),
        (LoadError("x is empty"), 1, "x is empty"),
        (
            OSError(13, "Permission denied", "x/labels.txt"),
            1,
            "x/labels.txt cannot be read: permission denied",
        ),
        (OSError("no answer"), 1, "x cannot be read: no answer"),
        (ValueError("Unable to get filesystem\n"), 1, "x cannot be read: Unable to get filesystem"),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_a_failure_is_one_sentence_for_people_and_programs(run, error, code, sentence):
    def fail(flags):
        raise error

    line = {"status": "failed", "exit_code": code, "message": sentence}
    assert run(fail, "x") == (code, line, f"error: {sentence}\n")
    assert run(fail, "x", "--no_json") == (code, None, f"error: {sentence}\n")


@pytest.mark.parametrize(
    ("flags", "is_json"),
    [
        (["--json", "x"], True),
        (["x", "--json"], True),
        (["--no-json", "x"], False),
        (["--no_json", "x"], False),
    ],
)
def test_the_path_may_follow_the_switch_of_the_line(run, flags, is_json):
    assert run(lambda flags: {"path": flags.path}, *flags)[:2] == (
        0,
        {"exit_code": 0, "path": "x"} if is_json else None,
    )


def test_wrong_flags_are_reported_before_the_work(run):
    code, line, shown = run(lambda flags: pytest.fail("it was called"))
    assert (code, line["message"]) == (2, "the following arguments are required: PATH: see --help")
    assert shown == f"error: {line['message']}\n"
