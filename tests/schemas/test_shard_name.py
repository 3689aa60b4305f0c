import re
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.dataset.file_names import (
    MOST_BYTES,
    PLACEHOLDERS,
    check_file_name,
    check_pattern,
    fill_pattern,
)

KNOWN = "it may use {name}, {split}, {index}, {number}, {count}, {records}"


def test_every_placeholder_is_filled():
    pattern = ".".join(f"{{{name}}}" for name in PLACEHOLDERS)
    filled = fill_pattern(pattern, name="pets", split="train", index=4, count=9, records=798)
    assert filled == "pets.train.4.5.9.798"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "{split}-{shard}",
            f"x.name '{{split}}-{{shard}}' is not a valid pattern ('shard'): {KNOWN}",
        ),
        ("{split}-{index:x.y}", "is not a valid pattern"),
        ("{split:05d}", "is not a valid pattern"),
        ("{split}-{}", "is not a valid pattern"),
        ("{split", "is not a valid pattern"),
        ("{split.foo}", "is not a valid pattern"),
        ("{index[0]}", "is not a valid pattern"),
        ("a/{split}-{index}", "'a/{split}-{index}' gives the name 'a/s-0': names of visible files"),
        ("{split:/>9}", "gives the name '////////s'"),
        (".{split}-{index}", "gives the name '.s-0': names"),
        ("", "gives the name '': names"),
        (" ", "gives the name ' ': names"),
        ("{split}\n{index}", "gives the name 's\\n0': names"),
        ("{index:c}", "gives the name '\\x00'"),
        ("{index:0300d}", "and at most 240 bytes"),
    ],
)
def test_what_can_name_no_files_raises_and_names_its_key(pattern, message):
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        check_pattern(pattern, "x.name")
    assert str(raised.value).startswith(f"x.name {pattern!r} ")
    assert "\n" not in str(raised.value)


def test_a_name_may_be_as_long_as_file_systems_allow(tmp_path):
    check_file_name("ü" * (MOST_BYTES // 2), "{name}", "x")
    (tmp_path / ("ü" * (MOST_BYTES // 2) + ".jsonl")).write_bytes(b"")
    with pytest.raises(ValueError, match="at most 240 bytes"):
        check_file_name("ü" * (MOST_BYTES // 2 + 1), "{name}", "x")


@given(
    st.lists(
        st.one_of(st.sampled_from([f"{{{name}}}" for name in PLACEHOLDERS]), st.text()), max_size=5
    ).map("".join)
)
def test_a_pattern_that_passes_names_files_that_can_be_written(tmp_path_factory, pattern):
    try:
        check_pattern(pattern, "x")
    except ValueError:
        return
    folder = tmp_path_factory.mktemp("names")
    name = fill_pattern(pattern, name="n", split="s", index=0, count=1, records=1)
    (folder / name).write_bytes(b"")
    assert [path.name for path in folder.iterdir()] == [name]
    assert {field for _, field, _, _ in Formatter().parse(pattern) if field} <= set(PLACEHOLDERS)
