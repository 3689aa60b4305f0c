import re

import pytest

from recordmill.pipeline.configuration.parse_yaml import parse_yaml
from recordmill.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: [1, x, {b: null}]", {"a": [1, "x", {"b": None}]}),
        ("cafe\u0301", "caf\u00e9"),
        ("{'a:b': , c:d: 1, e: }", {"a:b": None, "c:d": 1, "e": None}),
        (f"[{1 - 2**63}, {2**63 - 1}]", [1 - 2**63, 2**63 - 1]),
        ("[" * 49 + "1" + "]" * 49, eval("[" * 49 + "1" + "]" * 49)),
    ],
)
def test_yaml_is_parsed_to_plain_values(text, value):
    assert parse_yaml(text, "it") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("&a [*a]", "an alias is not allowed here: write the value again (line 1, column 5)"),
        (
            "shards: &some {count: 2}\nimages: {<<: *some}",
            "an alias is not allowed here: write the value again (line 2, ",
        ),
        ("[" * 51 + "]" * 51, "it nests more than 50 deep: write it flatter (line 1, column 51)"),
        ("{a: " * 400 + "1" + "}" * 400, "it nests more than 50 deep: write it flatter (line 1, "),
        (
            f"limit: {2**63}",
            f"a number is outside \u00b1{2**63 - 1}: give one nearer to zero (line 1, column 8)",
        ),
        ("0x" + "f" * 5000, "a number is outside "),
        ("9" * 5000, "Exceeds the limit"),
        ('"\\uD800"', r"'utf-8' codec can't encode character '\ud800'"),
        ("a: |", "| begins a text of several lines, and there is none: put it in quotes"),
        ("!!bool yes", "'yes' is not a truth value: write true or false (line 1, column 1)"),
        ("!!int ''", ""),
        ("!!bool maybe", "'maybe'"),
        ("a: 1\na: 2", "a is given twice: remove one of them (line 2, column 1)"),
        ("!!python/name:os.system", "could not determine a constructor for the tag"),
        ("a: \0", "unacceptable character #x0000: special characters are not allowed"),
        (
            "{train:2}",
            "there is no blank after the colon in train:2: write train: 2 (line 1, column 2)",
        ),
        ("shards: {count:2, size: 1}", "there is no blank after the colon in count:2: write "),
        ("a: [", "expected the node content, but found '<stream end>' (line 1, column 5)"),
    ],
)
def test_yaml_that_holds_other_things_than_settings_is_refused(text, problem):
    with pytest.raises(UsageError, match=f"^it cannot be read: {re.escape(problem)}"):
        parse_yaml(text, "it")
