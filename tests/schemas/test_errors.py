import pickle
import re
from pathlib import Path

import pytest

import recordmill
from recordmill.schemas.dataset.outcome import ConversionError, Outcome
from recordmill.schemas.errors import LoadError, RecordmillError, SettingError, UsageError


def test_errors_have_one_base_and_the_exit_code_of_a_command():
    assert {each.__name__: each.exit_code for each in RecordmillError.__subclasses__()} == {
        "UsageError": 2,
        "LoadError": 1,
        "ConversionError": 1,
    }
    assert issubclass(LoadError, ValueError)
    assert issubclass(UsageError, ValueError)


def test_a_conversion_that_failed_says_how_it_ended():
    error = ConversionError(Outcome("failed", "the input is empty", 1))
    assert (str(error), error.outcome.exit_code) == ("the input is empty", 1)


@pytest.mark.parametrize(
    ("path", "problem", "message"),
    [
        ("quality", "is 0: give 1 or more", "quality is 0: give 1 or more"),
        ("formats", ": name at least one", "formats: name at least one"),
        ("type", ", shape and of are fixed", "type, shape and of are fixed"),
        ("", ": give one size", "give one size"),
    ],
)
def test_a_setting_error_begins_with_the_path(path, problem, message):
    error = pickle.loads(pickle.dumps(SettingError(path, problem)))
    assert (error.path, error.problem, str(error)) == (path, problem, message)


@pytest.mark.parametrize(
    ("path", "place", "whole"),
    [
        ("quality", "images", "images.quality"),
        ("images.quality", "images", "images.quality"),
        ("", "images.resize", "images.resize"),
        ("source.split", "source", "source.split"),
        ("source", "source", "source"),
        ("seed", "", "seed"),
    ],
)
def test_a_setting_error_gets_the_keys_above_it(path, place, whole):
    error = SettingError(path, "is wrong").at(place)
    assert (error.path, error.problem) == (whole, "is wrong")


def test_the_page_lists_the_public_errors():
    page = Path("docs/python.md").read_text(encoding="utf-8")
    public = {name for name in recordmill.__all__ if name.endswith("Error")}
    assert {
        *re.findall(r"^\| `recordmill\.(\w+)`", page, re.MULTILINE),
        "RecordmillError",
    } == public
    for name in re.findall(
        r"`(\w+)`", "".join(re.findall(r"^\| `recordmill.*?\|(.*?)\|", page, re.MULTILINE))
    ):
        assert name in recordmill.__all__


def test_one_class_catches_what_readers_and_conversions_raise(tmp_path):
    with pytest.raises(recordmill.RecordmillError, match="does not exist or is empty"):
        recordmill.open_dataset(str(tmp_path / "nothing"))
    with pytest.raises(recordmill.RecordmillError, match="nothing does not exist: check the path"):
        recordmill.convert(tmp_path / "nothing", tmp_path / "out", quiet=True)
