"""The commands that messages print."""

import pytest

from recordmill.transforms.planning.explain_unclaimed import as_command


@pytest.mark.parametrize(
    ("flags", "command", "printed"),
    [
        (
            [
                "--input",
                "in",
                "--set",
                "ignore=[/a]",
                "--set",
                "seed=7",
                "--set",
                "ignore=[/a, /b]",
            ],
            ["--input", "in", "--set", "ignore=[/a]", "--set", "seed=7"],
            "recordmill run --input in --set seed=7 --set 'ignore=[/a, /b]'",
        ),
        (["--set", "ignore=[/a]"], [], "add --set 'ignore=[/a]'"),
        (
            ["--input", "a", "--input", "b", "--plan", "--set", "splits.seed=1", "--set", "seed=1"],
            ["--plan"],
            "recordmill run --input a --input b --plan --set splits.seed=1 --set seed=1",
        ),
    ],
)
def test_a_printed_command_gives_each_setting_once(flags, command, printed):
    assert as_command(flags, command) == printed
