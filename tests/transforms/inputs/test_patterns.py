import pickle
import re

import pytest

from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.patterns import (
    MAX_LETTERS,
    compile_pattern,
    move_patterns,
    normal_path,
    why_ignored,
)


@pytest.mark.parametrize(
    ("folder", "patterns", "moved"),
    [
        ("a", ["/a/b/", "!/a/c.txt", "*.png", "/b/", "/a/"], ["/b/", "!/c.txt", "*.png"]),
        ("a/x [1]", [r"/a/x \[1\]/y/", "/a/y"], ["/y/"]),
        ("a", [], []),
    ],
)
def test_patterns_move_with_the_input(folder, patterns, moved):
    assert move_patterns(patterns, folder) == moved


def test_named_groups_are_found():
    match = compile_pattern(
        r"(?P<patient>p[0-9]+)_(?P<label>\w+)\.jpg", "source.pattern", "label"
    ).fullmatch("p12_cat.jpg")
    assert match.groupdict() == {"patient": "p12", "label": "cat"}


def test_text_beyond_ascii_matches_by_character():
    assert compile_pattern("(?P<label>.)_.", "k", "label").fullmatch("ä_\U0001d49c")["label"] == "ä"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}b"])
def test_no_pattern_hangs(pattern):
    # Python's own engine takes 2**n steps for the first, and would not come back.
    assert not compile_pattern(pattern, "k").fullmatch("a" * 5000 + "!")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing \\): \\("),
        ("[a", "missing \\]: \\[a"),
        ("*", "no argument for repetition operator: \\*"),
        (r"(a)\1", "invalid escape sequence: \\\\1"),
        ("(?=a)", "invalid perl operator: \\(\\?="),
        ("((a{1000}){1000}){1000}", "invalid repetition size"),
    ],
)
def test_an_invalid_pattern_raises_and_names_the_key(pattern, reason):
    with pytest.raises(
        ValueError, match=f"^splits.group .* is not a regular expression: .*({reason})"
    ) as caught:
        compile_pattern(pattern, "splits.group")
    assert "\n" not in str(caught.value)


def test_a_missing_group_raises_and_names_it():
    message = "source.pattern '(?P<label>x)' has no group (?P<patient>...): add it"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compile_pattern("(?P<label>x)", "source.pattern", "label", "patient")


def test_a_pattern_has_an_end():
    assert compile_pattern("a" * MAX_LETTERS, "splits.group").search("a" * MAX_LETTERS)
    with pytest.raises(
        ValueError,
        match=r"^splits.group has 200,012 letters, and a pattern at most 1,000: shorten it$",
    ):
        compile_pattern("(?P<group>" + "a?" * 100_000 + ")x", "splits.group", "group")


@pytest.mark.parametrize(
    ("path", "is_folder", "why"),
    [
        ("a/1.jpg", False, None),
        ("a/1.png", False, "taken_only_by_name"),
        ("a", True, None),
        ("cafe\u0301", True, "ignored"),
        (".git", True, "system_file"),
        ("a/.DS_Store", False, "system_file"),
        ("caf\udce9/1.jpg", False, None),
        ("caf\udce9.png", False, "taken_only_by_name"),
        ("caf\udce9", True, None),
        ("__MACOSX", True, "system_file"),
    ],
)
def test_each_path_that_is_left_alone_has_its_reason(path, is_folder, why):
    settings = ListingSettings(
        include=("*.jpg",), ignore=("caf\u00e9/",), not_included="taken_only_by_name"
    )
    assert why_ignored(settings, path, is_folder) == why


def test_paths_are_compared_in_nfc_and_must_be_text():
    assert (normal_path("a"), normal_path("cafe\u0301"), normal_path("\udcff")) == (
        "a",
        "caf\u00e9",
        None,
    )


def test_settings_travel_after_they_were_used():
    settings = ListingSettings(include=("*.jpg",), ignore=("b",))
    assert why_ignored(settings, "b", True) == "ignored"
    assert why_ignored(pickle.loads(pickle.dumps(settings)), "a.png", False) == "not_included"
