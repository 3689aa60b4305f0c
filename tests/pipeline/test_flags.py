"""The flags of all commands: their spelling, and that scripts of earlier versions still work."""

import json
import re
from importlib import import_module

import pytest

from recordmill.pipeline.command import run_command
from recordmill.pipeline.configuration.options import LaunchOptions, parse_options
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

COMMANDS = ("run", "verify", "inspect", "diff", "versions", "analyze")
READERS = COMMANDS[1:]

# Version 0.1's spelling of every flag of `run`, and the options that it gives.
OF_RUN = [
    ("--runner=FlinkRunner", {"runner": "FlinkRunner"}),
    ("--sample", {"sample": True}),
    ("--no_sample", {"sample": False}),
    ("--input=photos", {"input": ("photos",)}),
    ("--output=dataset", {"output": "dataset"}),
    ("--config=own.yaml", {"config": "own.yaml"}),
    ("--set=seed=1", {"set": ("seed=1",)}),
    ("--against=dataset", {"against": "dataset"}),
    ("--reuse=dataset", {"reuse": ("dataset",)}),
    ("--plan", {"plan": True}),
    ("--no_plan", {}),
    ("--overwrite", {"overwrite": True}),
    ("--no_overwrite", {}),
    ("--update", {"update": True}),
    ("--no_update", {}),
    ("--versions", {"versions": True}),
    ("--no_versions", {}),
    ("--discard", {"discard": True}),
    ("--no_discard", {}),
    ("--wait", {}),
    ("--no_wait", {"wait": False}),
    ("--writer=beam", {"writer": "beam"}),
    ("--threads=2", {"threads": 2}),
    ("--processes=2", {"processes": 2}),
    ("--summary_json=summary.json", {"summary_json": "summary.json"}),
    ("--outcome_file=outcome.json", {"outcome_file": "outcome.json"}),
    ("--json", {"json": True}),
    ("--no_json", {"json": False}),
    ("--traceback", {"traceback": True}),
    ("--no_traceback", {}),
]
# Its switches also took a value.
OF_RUN += [
    (f"--{name}={value}", {name: value == "true"})
    for name in (
        *("sample", "plan", "overwrite", "update", "versions", "discard", "wait", "json"),
        "traceback",
    )
    for value in ("true", "false")
]

# Its spelling of the flags of the other commands, after the paths, and what they give.
OF_READERS = {
    "verify": (
        ["x"],
        [
            ("--absent=list.txt", {"absent": "list.txt"}),
            ("--level=pixels", {"level": "pixels"}),
            ("--no-metadata", {"no_metadata": True}),
        ],
    ),
    "inspect": (
        ["x"],
        [
            ("--record=train:0", {"record": "train:0"}),
            ("--where=a.jpg", {"where": "a.jpg"}),
            ("--report", {"report": True}),
            ("--follow", {"follow": True}),
            ("--index=folder", {"index": "folder"}),
            ("--extract=folder", {"extract": "folder"}),
        ],
    ),
    "diff": (["x", "y"], []),
    "versions": (
        ["x"],
        [
            ("--use=v1", {"use": "v1"}),
            ("--rollback", {"rollback": True}),
            ("--drop=v1", {"drop": ["v1"]}),
            ("--keep=2", {"keep": 2}),
        ],
    ),
    "analyze": (
        ["x"],
        [
            ("--size=32x48", {"size": (32, 48)}),
            ("--split=train", {"split": "train"}),
        ],
    ),
}


@pytest.fixture
def parse(monkeypatch):
    """Parses the flags of a command that reads datasets, and does nothing else."""

    def parse(command, *words):
        module, parsed = import_module(f"recordmill.pipeline.{command}"), []

        def keep(parser, argv, *_, **__):
            parsed.append(parser.parse_args(argv))
            return 0

        monkeypatch.setattr(module, "run_reader", keep)
        module.main(words)
        return vars(parsed[0])

    return parse


@pytest.mark.parametrize(("word", "options"), OF_RUN)
def test_every_earlier_spelling_of_a_flag_of_run_is_accepted(word, options):
    given = parse_options([word])
    assert given == LaunchOptions(**options)
    flag, equals, value = word.partition("=")
    assert parse_options([flag.replace("_", "-") + equals + value]) == given


@pytest.mark.parametrize("command", READERS)
def test_every_earlier_spelling_of_the_flags_of_other_commands_is_accepted(parse, command):
    paths, flags = OF_READERS[command]
    usual = parse(command, *paths)
    switches = [("--json", {"json": True}), ("--no_json", {"json": False})]
    switches += [("--quiet", {"quiet": True}), ("--verbose", {"verbose": True})]
    for word, given in [*flags, *switches]:
        assert parse(command, *paths, word) == {**usual, **given}
        with_hyphens, _, value = word.partition("=")
        with_hyphens = with_hyphens.replace("_", "-") + (value and f"={value}")
        assert parse(command, with_hyphens, *paths) == {**usual, **given}
    assert usual["json"] is None


def test_underscores_are_accepted_where_earlier_versions_wanted_a_hyphen(parse):
    assert parse("verify", "x", "--no_metadata")["no_metadata"] is True
    assert parse("verify", "--", "--no_metadata")["path"] == "--no_metadata"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_spells_our_flags_with_hyphens(command, capsys):
    with pytest.raises(SystemExit):
        run_command([command, "--help"], build)
    text = capsys.readouterr().out
    of_beam = ["--temp_location", "--flink_master"] if command == "run" else []
    assert re.findall(r"--\w+_\w+", text) == of_beam
    words = " ".join(text.split())
    assert re.search(
        r" --json (\[true\|false\] )?write the JSON summary to stdout even if that is a terminal"
        r" --no-json do not write the JSON summary ",
        words,
    )


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("flags", "terminal", "is_written"),
    [
        ([], False, True),
        ([], True, False),
        (["--json"], True, True),
        (["--no-json"], False, False),
    ],
)
def test_every_command_writes_its_line_by_one_rule(
    command, flags, terminal, is_written, capsys, monkeypatch, tmp_path
):
    paths = OF_READERS[command][0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    code = run_command([command, *paths, *flags], build)
    assert code in (1, 2)
    out = capsys.readouterr().out
    if not is_written:
        assert out == ""
        return
    line = json.loads(out)
    assert (line["status"], line["exit_code"]) == ("failed", code)
