"""YAML 1.2's core schema for PyYAML: which plain words are null, truth values and numbers.

PyYAML follows YAML 1.1, where `no` is false, `4:2:0` is 14520 (base 60), `1_000` is 1000, `010` is
8, and `2024-01-01` is a date. Here all other words are text. The loader and the dumper use one
table of resolvers: https://yaml.org/spec/1.2.2/#103-core-schema.

The dumper also quotes text that readers of YAML 1.1, or ruamel.yaml, take for something else.
"""

import json
import re
import shlex
import sys
from typing import Any

import yaml

NULL, BOOL, INT, FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))

NULLS = ("", "~", "null", "Null", "NULL")

_TABLE = (
    (NULL, r"null|Null|NULL|~|", ["~", "n", "N", ""]),
    (BOOL, r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    (INT, r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        FLOAT,
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+0123456789."),
    ),
)
"""The tag, the pattern and the first letters of each kind of word; the first that fits wins."""


def _make_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Returns the table in PyYAML's form: by the first letter of a word."""
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, letters in _TABLE:
        for letter in letters:
            resolvers.setdefault(letter, []).append((tag, re.compile(rf"(?:{pattern})\Z")))
    return resolvers


RESOLVERS = _make_resolvers()

_LIKE_A_NUMBER = re.compile(r"[-+.0-9][-+.0-9a-fA-FxXoO_:]*")
"""Words that ruamel.yaml may take for a number if there is an underscore in them."""

_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks in YAML 1.1 that are none in YAML 1.2; they are escaped, so that they stay."""


class WrittenInt(int):
    """A whole number that knows how it was written.

    Attributes:
        text: such as `007`.
    """

    text: str


class WrittenFloat(float):
    """A number that knows how it was written.

    Attributes:
        text: such as `1.10`.
    """

    text: str


Written = WrittenInt | WrittenFloat


class CoreLoader(yaml.SafeLoader):
    """Loads YAML by the core schema; numbers are `Written`.

    Errors are PyYAML's, or a ValueError for a number of more than 4,300 digits.
    """

    yaml_implicit_resolvers = RESOLVERS

    def construct_truth(self, node: yaml.ScalarNode) -> bool:
        """Constructs what the table, or the tag `!!bool`, declares a truth value."""
        text = str(self.construct_scalar(node))
        if text.lower() not in ("true", "false"):
            raise _refusal(f"{text!r:.80} is not a truth value: write true or false", node)
        return text.lower() == "true"

    def construct_whole_number(self, node: yaml.ScalarNode) -> WrittenInt:
        """Constructs a whole number in base 10, 8 (`0o17`) or 16 (`0x1F`)."""
        text = str(self.construct_scalar(node))
        if not _fits(INT, text):
            raise _refusal(f"{text!r:.80} is not a whole number: write it in digits", node)
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        number = WrittenInt(text, base)
        number.text = text
        return number

    def construct_number(self, node: yaml.ScalarNode) -> WrittenFloat:
        """Constructs a number with a fraction or an exponent."""
        text = str(self.construct_scalar(node))
        if not (_fits(FLOAT, text) or _fits(INT, text)):
            raise _refusal(f"{text!r:.80} is not a number: write it in digits", node)
        # Python writes infinity and "not a number" without a dot.
        is_word = text[-1].isalpha()
        number = WrittenFloat(text.replace(".", "").lower() if is_word else text)
        number.text = text
        return number


CoreLoader.add_constructor(BOOL, CoreLoader.construct_truth)
CoreLoader.add_constructor(INT, CoreLoader.construct_whole_number)
CoreLoader.add_constructor(FLOAT, CoreLoader.construct_number)


def _refusal(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _fits(tag: str, text: str) -> bool:
    return any(pattern.match(text) for each, pattern in RESOLVERS.get(text[:1], ()) if each == tag)


class _EarlierLoader(yaml.SafeLoader):
    """Loads YAML 1.1; numbers are `Written`."""

    def construct_written(self, node: yaml.ScalarNode) -> Written:
        """Constructs a number as PyYAML does."""
        is_whole = node.tag == INT
        if is_whole:
            number: Written = WrittenInt(self.construct_yaml_int(node))
        else:
            number = WrittenFloat(self.construct_yaml_float(node))
        number.text = str(node.value)
        return number


_EarlierLoader.add_constructor(INT, _EarlierLoader.construct_written)
_EarlierLoader.add_constructor(FLOAT, _EarlierLoader.construct_written)


class CoreDumper(yaml.SafeDumper):
    """Dumps YAML that readers of YAML 1.2 and of YAML 1.1 take for the same values."""

    yaml_implicit_resolvers = RESOLVERS

    def ignore_aliases(self, data: Any) -> bool:
        """Writes a value again, rather than an alias, which our loader of settings refuses."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Represents a text; quoted if any reader might take it for another value."""
        style = None
        if _LINE_BREAKS.search(text):
            style = '"'
        elif _means_something_else(text):
            style = "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)

    def represent_written(self, number: Written) -> yaml.ScalarNode:
        """Represents a number as it was written."""
        tag = INT if isinstance(number, WrittenInt) else FLOAT
        return self.represent_scalar(tag, number.text)


CoreDumper.add_representer(str, CoreDumper.represent_text)
CoreDumper.add_multi_representer(str, CoreDumper.represent_text)
CoreDumper.add_multi_representer(list, CoreDumper.represent_list)
CoreDumper.add_multi_representer(dict, CoreDumper.represent_dict)
CoreDumper.add_representer(WrittenInt, CoreDumper.represent_written)
CoreDumper.add_representer(WrittenFloat, CoreDumper.represent_written)


def _means_something_else(text: str) -> bool:
    """Returns whether a text without quotes is not a text in YAML 1.1, or for ruamel.yaml."""
    earlier = yaml.SafeDumper.yaml_implicit_resolvers.get(text[:1], ())
    if any(pattern.match(text) for _, pattern in earlier):
        return True
    return "_" in text and _LIKE_A_NUMBER.fullmatch(text) is not None


def plain_numbers(value: Any) -> Any:
    """Returns values with plain numbers in place of `Written` ones."""
    if isinstance(value, Written):
        if isinstance(value, WrittenInt):
            return int(value)
        return float(value)
    if isinstance(value, list):
        return list(map(plain_numbers, value))
    if isinstance(value, dict):
        return {plain_numbers(key): plain_numbers(each) for key, each in value.items()}
    return value


def load_yaml(text: str | bytes) -> Any:
    """Returns the plain values of a text in YAML.

    Raises:
        yaml.YAMLError: it is not YAML.
        ValueError: a number in it has too many digits.
    """
    return plain_numbers(yaml.load(text, CoreLoader))


def load_yaml_1_1(text: str | bytes) -> Any:
    """Returns the values of a text in YAML 1.1, as PyYAML reads it; numbers are `Written`.

    Raises:
        yaml.YAMLError: it is not YAML.
        ValueError: a value in it is impossible, such as the date 2020-02-30.
    """
    return yaml.load(text, _EarlierLoader)


def write_yaml(value: Any) -> str:
    """Returns plain values as YAML, in the order of their keys."""
    return yaml.dump(value, Dumper=CoreDumper, sort_keys=False, allow_unicode=True)


def write_yaml_line(value: Any) -> str:
    """Returns a plain value as YAML in one line."""
    text = yaml.dump(
        value,
        Dumper=CoreDumper,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=sys.maxsize,
    )
    return text.removesuffix("...\n").removesuffix("\n")


def write_set_flag(path: str, value: Any) -> str:
    """Returns `--set` with a setting and its plain value, quoted for a shell."""
    text = write_yaml_line(value)
    if "'" in text:  # shells also quote with it
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"--set {shlex.quote(f'{path}={text}')}"
