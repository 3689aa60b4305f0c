"""Reads the YAML of settings: plain values only, in Unicode's NFC, and errors in one sentence."""

import re
import unicodedata
from typing import Any

import yaml

from recordmill.schemas.errors import UsageError
from recordmill.schemas.features import INT64_MAX
from recordmill.schemas.yaml_core import BOOL, FLOAT, INT, NULL, CoreLoader, WrittenInt

MAX_DEPTH = 50
"""The maximum nesting depth: settings need a tenth of it."""


class _Loader(CoreLoader):
    """A loader that reads strings in Unicode's NFC.

    It refuses what settings never need, and what could not be stored as JSON.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuses deep nesting and aliases.

        With aliases, a few lines could become a million values.
        """
        if self.check_event(yaml.AliasEvent):
            raise _refusal("an alias is not allowed here: write the value again", self.peek_event())
        if self.depth == MAX_DEPTH:
            raise _refusal(
                f"it nests more than {MAX_DEPTH} deep: write it flatter", self.peek_event()
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_scalar(self, node: Any) -> str:
        """Normalizes text; half of a surrogate pair gives a UnicodeEncodeError."""
        text = normalize(str(super().construct_scalar(node)))
        if not text and node.style in ("|", ">"):
            raise _refusal(
                f"{node.style} begins a text of several lines, and there is none: put it in quotes",
                node,
            )
        text.encode()
        return text

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuses a key that is given twice: PyYAML would take the last value.

        All keys of settings are texts, so numbers and words like `true` are keys as they were
        written.
        """
        seen: set[str] = set()
        for key, value in node.value:
            name = normalize(str(key.value))
            if _lacks_blank(key, value):
                written = re.sub(":", ": ", name, count=1)
                raise _refusal(f"there is no blank after the colon in {name}: write {written}", key)
            if name in seen:
                raise _refusal(f"{name} is given twice: remove one of them", key)
            seen.add(name)
            if key.tag in (NULL, BOOL, INT, FLOAT) and name:
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_whole_number(self, node: yaml.ScalarNode) -> WrittenInt:
        """Refuses a number that does not fit in 64 bits."""
        number = super().construct_whole_number(node)
        if not -INT64_MAX <= number <= INT64_MAX:
            raise _refusal(f"a number is outside \u00b1{INT64_MAX}: give one nearer to zero", node)
        return number


_Loader.add_constructor(INT, _Loader.construct_whole_number)


def _lacks_blank(key: yaml.Node, value: yaml.Node) -> bool:
    """Returns whether `{train:2}` was written, which YAML takes for a key without a value."""
    has_value = value.start_mark.index < value.end_mark.index
    is_plain = isinstance(key, yaml.ScalarNode) and key.style is None
    return is_plain and not has_value and re.fullmatch(r"[^:]+:[^:]+", str(key.value)) is not None


def _refusal(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parse_yaml(text: str, name: str) -> Any:
    """Returns the values of a string in YAML, with all strings in Unicode's NFC.

    Editors and shells write `é` in either form.

    Args:
        text: the string.
        name: how a sentence about it begins, such as `the configuration own.yaml`.

    Raises:
        UsageError: it is not YAML, or not as `_Loader` takes it.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise UsageError(f"{name} cannot be read: {error.problem}{where}") from None
    except (
        yaml.YAMLError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # PyYAML raises errors of any class for a number of 5,000 digits, `!!timestamp x` and the
        # like.
        raise UsageError(f"{name} cannot be read: {' '.join(str(error).split())}") from None


def normalize(text: str) -> str:
    """Returns a text in NFC."""
    return unicodedata.normalize("NFC", text)
