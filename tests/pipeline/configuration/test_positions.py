"""Inputs and the output without flags, and words that may be either."""

import pytest

from recordmill.pipeline.configuration.options import parse_options
from recordmill.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("words", "inputs", "output"),
    [
        (["photos", "dataset"], ["photos"], "dataset"),
        (["photos", "dataset", "--plan"], ["photos"], "dataset"),
        (["a=photos", "b=others", "gs://b/dataset"], ["a=photos", "b=others"], "gs://b/dataset"),
        (["photos"], ["photos"], ""),
        (["photos", "-o", "dataset"], ["photos"], "dataset"),
        (["photos", "--output=dataset", "--plan"], ["photos"], "dataset"),
        (["photos", "~/dataset"], ["photos"], "/home/me/dataset"),
        (["--input", "photos", "-o=dataset"], ["photos"], "dataset"),
        (["--plan", "--input", "photos", "-o", "dataset"], ["photos"], "dataset"),
    ],
)
def test_words_before_the_first_flag_are_inputs_and_the_output(words, inputs, output, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    options = parse_options(words)
    assert (options.input, options.output) == (tuple(inputs), output)


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["photos", "dataset", "--temp_location", "tmp"], ("--temp_location", "tmp")),
        (
            ["--objectReuse", "x", "--plan", "--my_own", "y"],
            ("--objectReuse", "x", "--my_own", "y"),
        ),
    ],
)
def test_a_word_after_a_flag_of_beam_is_its_value(words, rest):
    assert parse_options(words).beam_arguments == rest


def test_short_flags_are_the_long_ones():
    options = parse_options(["photos", "-o", "dataset", "-c", "own.yaml", "--plan", "true"])
    assert (options.output, options.config, options.plan) == ("dataset", "own.yaml", True)
    assert parse_options(["-c", "-"]).config == "-"


@pytest.mark.parametrize(
    ("words", "stray"),
    [
        (["--input", "photos", "dataset"], "dataset"),
        (["--plan", "photos", "dataset"], "photos"),
        (["photos", "--plan", "dataset"], "dataset"),
        (["photos", "dataset", "--temp_location=x", "more"], "more"),
        (["photos", "dataset", "--runner=FlinkRunner", "more"], "more"),
        (["photos", "dataset", "--no-wait", "false"], "false"),
        (["photos", "dataset", "--output", "other"], "dataset"),
        (["photos", "--input", "more"], "photos"),
        (["photos", "dataset", "--input", "more"], "dataset"),
        (["--plan", "--", "photos"], "photos"),
        (["--threads", "2", "it's"], "it's"),
    ],
)
def test_other_words_are_refused_with_both_readings(words, stray):
    quoted = {"it's": "'it'\"'\"'s'"}.get(stray, stray)
    with pytest.raises(UsageError) as error:
        parse_options(words)
    assert str(error.value) == (
        f"{stray} may be an input or the output: write --input {quoted} or --output {quoted}"
    )


@pytest.mark.parametrize(
    ("word", "flag"),
    [("-output", "--output"), ("-config=x", "--config"), ("-oo", None)],
)
def test_one_hyphen_before_a_long_flag_is_refused(word, flag):
    with pytest.raises(UsageError, match=f"^there is no flag {word}: ") as error:
        parse_options(["photos", word, "dataset"])
    if flag:
        assert str(error.value).endswith(f"did you mean {flag}?")
