"""The product's words in its code: messages, docstrings and comments, with the place of each."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scripts.count_code import docstrings, modules

ROOT = Path(__file__).parents[2]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_bytes())))


@cache
def _docstrings_of(path: Path) -> list[ast.Constant]:
    return docstrings(nodes_of(path))


def messages() -> Iterator[tuple[str, str]]:
    """Every text of three words or more in the code, `{}` in the place of each value: what a user may read."""
    for path in modules():
        nodes = nodes_of(path)
        hidden = {id(node) for node in _docstrings_of(path)}
        texts = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        hidden |= {id(part) for text in texts for part in ast.walk(text) if part is not text}
        texts += [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for node in texts:
            if id(node) not in hidden and len(re.findall(r"[A-Za-z]{2,}", text := _template(node))) > 2 and " " in text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def _template(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    assert isinstance(node, ast.Constant)
    return str(node.value)


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
