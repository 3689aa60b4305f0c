"""The product's words in its code: docstrings and comments, with the place of each."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scripts.count_code import ROOT, docstrings, modules


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_bytes())))


@cache
def _docstrings_of(path: Path) -> list[ast.Constant]:
    return docstrings(nodes_of(path))


def explanations() -> Iterator[tuple[str, str]]:
    """The lines of docstrings and comments."""
    for path in modules():
        for node in _docstrings_of(path):
            for number, line in enumerate(str(node.value).splitlines(), node.lineno):
                yield f"{path.relative_to(ROOT)}:{number}", line
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if comment := re.search(r"(?:^|\s)#\s(.*)", line):
                yield f"{path.relative_to(ROOT)}:{number}", comment[1]


def test_names() -> Iterator[tuple[str, str]]:
    """What the tests say that they hold."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if named := re.match(r"\s*def (test_\w+)", line):
                yield f"{path.relative_to(ROOT)}:{number}", named[1].replace("_", " ")
