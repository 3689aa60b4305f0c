"""Parses YAML into plain values, or says in one sentence what is wrong."""

import unicodedata
from typing import Any

import yaml

from recordmill.pipeline.configuration.setting_errors import explain_yaml_error

MAX_DEPTH = 50
"""The maximum nesting depth: settings need a tenth of it."""

MAX_VALUES = 1_000_000
"""The maximum number of values once aliases are expanded."""


class YamlError(ValueError):
    """The text does not contain settings; the sentence says why, and follows the name of the source."""


def parse_yaml(text: str) -> Any:
    """The values of a text in YAML, with all text in Unicode's NFC: editors and shells write `é` in either form.

    Raises:
        YamlError: it is not YAML, gives a key twice (PyYAML would take the last), contains itself, or is too deep or
            too large.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise YamlError(f"is not valid YAML: {explain_yaml_error(error)}") from None
    except RecursionError:
        raise YamlError(_too_deep()) from None
    if node is None:
        return None
    _measure(node, "", {}, [])
    try:
        value = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise YamlError(f"is not valid YAML: {explain_yaml_error(error)}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML's own, for the date 2020-13-01, `!!int ''`, a number of 5,000 digits and the like.
        raise YamlError(f"has a value that cannot be read ({error}): write it in quotes, if it is text") from None
    return _clean(value, "")


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
        raise YamlError(f"has a number of more than 64 bits{where}: give one nearer to zero")
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, written as "\\uD800"
        raise YamlError(f"has text that is not valid Unicode ({value!r:.80}): correct it") from None
    return normalize(value)


def _measure(node: yaml.Node, path: str, sizes: dict[int, int], above: list[int]) -> int:
    """The number of values of a node once aliases are expanded."""
    if id(node) in above:
        raise YamlError(f"contains itself{f' at {path}' if path else ''}: remove the alias")
    if len(above) >= MAX_DEPTH:
        raise YamlError(_too_deep())
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
                raise YamlError(f"gives {here} twice, in lines {lines[key]} and {line}: remove one of them")
            lines[key] = line
            size += _measure(name, here, sizes, above) + _measure(value, here, sizes, above)
    above.pop()
    if size > MAX_VALUES:
        raise YamlError(f"holds more than {MAX_VALUES:,} values once its aliases are expanded: remove some")
    sizes[id(node)] = size
    return size


def _too_deep() -> str:
    return f"nests more than {MAX_DEPTH} deep: write it flatter"
