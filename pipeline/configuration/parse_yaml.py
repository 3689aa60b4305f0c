"""Parses YAML into plain values, or says in one sentence what is wrong."""

import unicodedata
from typing import Any

import yaml

from recordmill.pipeline.configuration.setting_errors import explain_yaml_error
from recordmill.schemas.errors import UsageError

MAX_DEPTH = 50
"""The maximum nesting depth: settings need a tenth of it."""

_TOO_DEEP = f"nests more than {MAX_DEPTH} deep: write it flatter"

MAX_VALUES = 1_000_000
"""The maximum number of values once aliases are expanded."""


class _Unusable(Exception):
    """A text in YAML does not contain settings; the message follows the text's name."""


def parse_yaml(text: str, name: str) -> Any:
    """The values of a text in YAML, with all text in Unicode's NFC: editors and shells write `é` in either form.

    Args:
        text: the text.
        name: how a sentence about it begins, such as `the configuration own.yaml`.

    Raises:
        UsageError: it is not YAML, gives a key twice (PyYAML would take the last), contains itself, or is too deep or
            too large.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, "", {}, [])
        return _clean(loader.construct_document(node), "")
    except _Unusable as problem:
        raise UsageError(f"{name} {problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not valid YAML: {explain_yaml_error(error)}") from None
    except RecursionError:
        raise UsageError(f"{name} {_TOO_DEEP}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML's own, for the date 2020-13-01, `!!int ''`, a number of 5,000 digits and the like.
        raise UsageError(
            f"{name} has a value that cannot be read ({error}): write it in quotes, if it is text"
        ) from None


def normalize(text: str) -> str:
    """A text in NFC."""
    return unicodedata.normalize("NFC", text)


def _clean(value: Any, path: str) -> Any:
    """The value with all text in NFC; raises if a number does not fit in the marker, which is JSON."""
    if isinstance(value, dict):
        return {_clean(key, path): _clean(each, f"{path}.{key}" if path else f"{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each, path) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        where = f" under {path}" if path else ""
        raise _Unusable(f"has a number of more than 64 bits{where}: give one nearer to zero")
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, written as "\\uD800"
        raise _Unusable(f"has text that is not valid Unicode ({value!r:.80}): correct it") from None
    return normalize(value)


def _measure(node: yaml.Node, path: str, sizes: dict[int, int], above: list[int]) -> int:
    """The number of values of a node once aliases are expanded."""
    if id(node) in above:
        raise _Unusable(f"contains itself{f' at {path}' if path else ''}: remove the alias")
    if len(above) >= MAX_DEPTH:
        raise _Unusable(_TOO_DEEP)
    if id(node) in sizes:
        return sizes[id(node)]
    above.append(id(node))
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_measure(each, path, sizes, above) for each in node.value)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for name, value in node.value:
            key, line = normalize(str(name.value)), name.start_mark.line + 1
            here = f"{path}.{key}" if path else key
            if key in lines:
                raise _Unusable(f"gives {here} twice, in lines {lines[key]} and {line}: remove one of them")
            lines[key] = line
            size += _measure(name, here, sizes, above) + _measure(value, here, sizes, above)
    above.pop()
    if size > MAX_VALUES:
        raise _Unusable(f"holds more than {MAX_VALUES:,} values once its aliases are expanded: remove some")
    sizes[id(node)] = size
    return size
