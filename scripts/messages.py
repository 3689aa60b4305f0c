"""Prints every message of the product with its place: `make messages`.

A message is a text of three words or more in the code; `{}` stands for each value in it.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.count_code import ROOT, docstrings, modules

_FEWEST_WORDS = 3


def messages() -> Iterator[tuple[str, str]]:
    """Yields the place of each message in the product, as `path:line`, and its text."""
    for path in modules():
        for line, text in messages_of(path):
            yield f"{path.relative_to(ROOT)}:{line}", text


def messages_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line number of each message in a module, and its text."""
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    hidden = {id(node) for node in docstrings(nodes)}
    texts: list[ast.expr] = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    hidden |= {id(part) for text in texts for part in ast.walk(text) if part is not text}
    texts += [
        node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for node in texts:
        text = _template(node)
        is_message = " " in text and len(re.findall(r"[A-Za-z]{2,}", text)) >= _FEWEST_WORDS
        if is_message and id(node) not in hidden:
            yield node.lineno, text


def _template(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    assert isinstance(node, ast.Constant)
    return str(node.value)


if __name__ == "__main__":
    for place, message in messages():
        sys.stdout.write(f"{place}: {' '.join(message.split())}\n")
