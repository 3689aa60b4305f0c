import re

import pytest

from recordmill.pipeline.configuration.config import parse_yaml
from recordmill.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: [1, x, {b: null}]", {"a": [1, "x", {"b": None}]}),
        ("a: &some [1]\nb: *some", {"a": [1], "b": [1]}),
        ("cafe\u0301", "caf\u00e9"),
        (f"[{-(2**63)}, {2**64 - 1}]", [-(2**63), 2**64 - 1]),
        ("[" * 49 + "1" + "]" * 49, eval("[" * 49 + "1" + "]" * 49)),
    ],
)
def test_what_a_text_says(text, value):
    assert parse_yaml(text, "it") == value


BOMB = "\n".join(["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("&a [*a]", "contains itself: remove the alias"),
        ("seed: &a {b: {c: *a}}", "contains itself at seed.b.c: remove the alias"),
        ("[" * 51 + "]" * 51, "nests more than 50 deep: write it flatter"),
        ("{a: " * 400 + "1" + "}" * 400, "nests more than 50 deep: write it flatter"),
        (BOMB, "holds more than 1,000,000 values once its aliases are expanded: remove some"),
        (f"limit: {2**64}", "has a number of more than 64 bits under limit: give one nearer to zero"),
        (f"a: [{-(2**63) - 1}]", "has a number of more than 64 bits under a: give one nearer to zero"),
        ("0x" + "f" * 5000, "has a number of more than 64 bits: give one nearer to zero"),
        ('"\\uD800"', r"has text that is not valid Unicode ('\ud800'): correct it"),
        ("2020-02-30", "has a value that cannot be read (day is out of range for month): write it in quotes, if it"),
        ("!!int ''", "has a value that cannot be read ("),
        ("!!bool maybe", "has a value that cannot be read ("),
        ("a: 1\na: 2", "gives a twice, in lines 1 and 2: remove one of them"),
        ("!!python/name:os.system", "is not valid YAML: could not determine a constructor for the tag"),
        ("[", "is not valid YAML: "),
    ],
)
def test_what_cannot_be_taken_for_settings(text, sentence):
    with pytest.raises(UsageError, match=f"^it {re.escape(sentence)}"):
        parse_yaml(text, "it")
