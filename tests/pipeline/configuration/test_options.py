import io
import subprocess
import sys

import pytest

from recordmill.pipeline.configuration.options import (
    MODULE,
    LaunchOptions,
    build_parser,
    check_options,
    find_unknown_flag,
    parse_options,
    write_json,
)
from recordmill.schemas.errors import UsageError

BOOLEANS = ["plan", "overwrite", "discard", "wait", "quiet", "verbose", "traceback"]


def parse(*arguments):
    return build_parser().parse_known_args(arguments)


def test_the_defaults_of_the_flags_are_those_of_the_options():
    assert parse_options([]) == LaunchOptions()
    assert [getattr(LaunchOptions(), name) for name in BOOLEANS] == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("no", ["--no-", "--no_"])
@pytest.mark.parametrize("name", BOOLEANS)
def test_every_boolean_has_a_twin_and_the_last_one_wins(name, no):
    assert getattr(parse(no + name, f"--{name}")[0], name) is True
    assert getattr(parse(f"--{name}", no + name)[0], name) is False


def test_underscores_are_taken_for_hyphens_in_our_flags_alone():
    flags, rest = parse("--summary_json=a_b", "--set=c_d=e_f", "--temp_location=x_y", "--my_own")
    assert (flags.summary_json, flags.set) == ("a_b", ["c_d=e_f"])
    assert rest == ["--temp_location=x_y", "--my_own"]
    flags, rest = parse("--", "--no_wait")  # not a flag
    assert ("wait" in flags, rest[-1]) == (False, "--no_wait")
    with pytest.raises(UsageError, match="argument --summary-json: expected one argument"):
        parse("--summary_json", "--no_wait")


@pytest.mark.parametrize(
    ("words", "plan", "rest"),
    [
        (["--dry-run"], True, ()),
        (["--dry_run"], True, ()),
        (["--dry_run", "--temp_location=x"], True, ("--temp_location=x",)),
        (["--dry-run", "--no_plan"], False, ()),
        (["--dry_run=true"], False, ("--dry_run=true",)),
        (["--dry_run="], False, ("--dry_run=",)),
        (["--dry_run", "True", "--labels=x"], False, ("--dry_run", "True", "--labels=x")),
        (["--plan", "--dry_run=true"], True, ("--dry_run=true",)),
    ],
)
def test_dry_run_without_a_value_is_plan_and_with_one_it_is_beams(words, plan, rest):
    options = parse_options(words)
    assert (options.plan, options.beam_arguments) == (plan, rest)
    assert find_unknown_flag(options.beam_arguments) is None


@pytest.mark.parametrize("words", [["--dry-run=true"], ["--dry-run", "true"]])
def test_dry_run_with_a_hyphen_and_a_value_is_refused(words):
    with pytest.raises(UsageError) as error:
        parse_options(words)
    assert str(error.value) == (
        "--dry-run takes no value: "
        "write --dry-run to see the plan, or --dry_run=true for the flag of Beam"
    )


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], None),
        (["--json"], True),
        (["--json=true"], True),
        (["--json=false"], False),
        (["--no-json"], False),
        (["--no_json"], False),
        (["--no-json", "--json"], True),
    ],
)
def test_the_line_of_json_can_be_asked_for_and_declined(words, asked):
    assert parse_options(words).json is asked


@pytest.mark.parametrize("name", BOOLEANS)
def test_every_boolean_takes_a_value(name):
    # A flex template of Dataflow gives each parameter as --name=value.
    assert getattr(parse(f"--no_{name}", f"--{name}=true")[0], name) is True
    assert getattr(parse(f"--{name}", f"--{name}=False")[0], name) is False
    with pytest.raises(
        UsageError, match=f"argument --{name}: yes is neither true nor false: see --help"
    ):
        parse(f"--{name}=yes")


def test_an_abbreviation_matches_nothing():
    # Airflow always adds --labels=...
    assert parse("--out=x", "--labels=foo", "--over")[1] == ["--out=x", "--labels=foo", "--over"]


def test_inputs_and_settings_may_be_repeated():
    options = parse_options(
        ["--input=a=1", "--input=b=2", "--set=x=1", "--set=y=2", "--temp_location=z"]
    )
    assert (options.input, options.set) == (("a=1", "b=2"), ("x=1", "y=2"))
    assert options.beam_arguments == ("--temp_location=z",)


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", ""])
def test_threads_must_be_a_number(text):
    with pytest.raises(
        UsageError, match=r"--threads: .* ?is not a number of 1 or more: see --help"
    ):
        parse(f"--threads={text}")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DirectRunner", "DirectRunner"),
        ("direct", "DirectRunner"),
        ("fnapirunner", "FnApiRunner"),
        ("PRISM", "PrismRunner"),
        ("FlinkRunner", "FlinkRunner"),
        ("my.own.Runner", "my.own.Runner"),
    ],
)
def test_a_local_runner_goes_by_its_full_name(text, name):
    assert parse(f"--runner={text}")[0].runner == name


def test_help_says_what_discard_does():
    text = " ".join(build_parser().format_help().split())
    assert "a complete dataset whose publishing was interrupted is published instead" in text


def test_help_says_how_to_reencode_every_image():
    text = build_parser().format_help()
    _, _, example = text.partition(
        "other splits, every image re-encoded, no side over 512 pixels:\n"
    )
    assert (
        "--set images.reencode=always --set images.resize.longest=512\n"
        in example.partition("labels in file")[0]
    )
    assert "photos resized \\\n      --set 'splits.fractions=" in example


STRAY = "photos may be an input or the output: write --input photos or --output photos"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--temp_location=x", "--flink_master=y", "--labels=z"], None),
        (["--direct_num_workers=2"], None),
        (["--ouput=x"], "there is no flag --ouput=x: did you mean --output?"),
        (["--sumary-json", "x"], "there is no flag --sumary-json: did you mean --summary-json?"),
        (["--sumary_json", "x"], "there is no flag --sumary_json: did you mean --summary-json?"),
        (["--no_wiat"], "there is no flag --no_wiat: did you mean --no-wait?"),
        (["--dry-rnu"], "there is no flag --dry-rnu: did you mean --dry-run?"),
        (
            ["--azure-connection-string=secret"],
            "there is no flag --azure-connection-string: did you mean --azure_connection_string?",
        ),
        (["--flink-master", "x"], "there is no flag --flink-master: did you mean --flink_master?"),
        (["photos"], STRAY),
        (["--temp_location", "x", "photos"], STRAY),
        (["--temp_location=x", "photos"], STRAY),
        (["--streaming", "photos"], STRAY),
        (["--temp_locaton=x"], "there is no flag --temp_locaton: did you mean --temp_location?"),
        (["--runer", "x"], "there is no flag --runer: did you mean --runner?"),
        (["--zzz", "--temp_location=x"], "there is no flag --zzz: see --help"),
    ],
)
def test_find_unknown_flag(arguments, sentence):
    assert find_unknown_flag(arguments) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ouput=x"], "there is no flag --ouput=x: did you mean --output?"),
        (["--setup-file=x"], "there is no flag --setup-file: did you mean --setup_file?"),
        (
            ["--objectReuse=true", "--overwrit"],
            "there is no flag --overwrit: did you mean --overwrite?",
        ),
        (
            ["--objectReuse=true", "--numberOfExecutionRetries=3", "--executionRetryDelay", "1000"],
            None,
        ),
        (["--planner=x", "--outputFormat=y", "--tempLocation=z"], None),
    ],
)
def test_a_runner_elsewhere_may_know_more_flags(arguments, sentence):
    assert find_unknown_flag(arguments, elsewhere=True) == sentence


@pytest.mark.parametrize("flag", ["output", "config", "summary_json", "outcome_file"])
def test_a_tilde_is_the_home_folder(flag, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert getattr(parse(f"--{flag}=~/x")[0], flag) == "/home/me/x"
    assert getattr(parse(f"--{flag}=gs://b/~")[0], flag) == "gs://b/~"


@pytest.mark.parametrize(
    "arguments",
    [["--experiments=a", "--experiment", "b"], ["--no_use_public_ips"], ["--streaming"]],
)
def test_flags_are_known_as_beams_own_parser_knows_them(arguments):
    assert find_unknown_flag(arguments) is None


def test_a_wrong_value_is_left_to_the_making_of_the_pipeline():
    assert find_unknown_flag(["--direct_num_workers=many"]) is None


def test_beam_is_imported_only_if_there_are_flags_for_it():
    code = (
        "import sys; from recordmill.pipeline.configuration.options import *; "
        "check_options(parse_options(['--input=x', '--output=y', '--dry_run'])); "
        "print('apache_beam' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("flags", "prog", "sample"),
    [
        ([], MODULE, True),
        (["--runner=DirectRunner"], MODULE, True),
        (["--input=x", "--output=y"], MODULE, False),
        (["--sample"], "recordmill run", True),
        (["--sample", "--output=y"], "recordmill run", True),
    ],
)
def test_the_sample_is_converted_on_request_and_by_the_module_without_places(flags, prog, sample):
    assert check_options(parse_options(flags, prog), prog).sample is sample


@pytest.mark.parametrize(
    ("flags", "prog", "sentence"),
    [
        (
            [],
            "recordmill run",
            "--input is missing: name the folder with the images, or try --sample",
        ),
        (
            ["--no_sample"],
            MODULE,
            "--input is missing: name the folder with the images, or try --sample",
        ),
        (
            ["--output=x"],
            MODULE,
            "--input is missing: name the folder with the images, or try --sample",
        ),
        (
            ["--config=x"],
            MODULE,
            "--input is missing: name the folder with the images, or try --sample",
        ),
        (["--input=x"], MODULE, "--output is missing: name the folder for the dataset"),
        (
            ["--input=x", "--sample"],
            MODULE,
            "--sample and --input both name what to convert: remove one of them",
        ),
    ],
)
def test_places_that_are_missing(flags, prog, sentence):
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        check_options(parse_options(flags, prog), prog)


@pytest.mark.parametrize(
    ("asked", "terminal", "wanted"),
    [(None, True, False), (None, False, True), (True, True, True), (False, False, False)],
)
def test_json_is_written_unless_stdout_is_a_terminal(asked, terminal, wanted, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr("sys.stdout", stream)
    write_json("{}", asked)
    assert stream.getvalue() == ("{}\n" if wanted else "")


def test_help_shows_what_was_typed():
    assert "    recordmill run photos dataset\n" in build_parser("recordmill run").format_help()
    assert "    python -m pipeline.run photos dataset\n" in build_parser().format_help()
