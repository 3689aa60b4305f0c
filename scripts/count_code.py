"""Counts the product's code: `python -m scripts.count_code` prints a row per folder, and the sum.

A line counts if a token of code is on it: comments, docstrings and blank lines do not.
"""

import ast
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipeline", "transforms", "schemas", "recordmill")
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def modules() -> Iterator[Path]:
    """The product's modules; links below `recordmill` are not followed."""
    for top in FOLDERS:
        yield from (path for path in sorted((ROOT / top).rglob("*.py")) if path.resolve() == path)


def docstrings(nodes: Iterable[ast.AST]) -> list[ast.Constant]:
    """Strings that are statements: docstrings of modules, classes, functions and attributes."""
    found = [node.value for node in nodes if isinstance(node, ast.Expr)]
    return [
        node for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def code_lines(path: Path) -> int:
    """The number of lines of a module that contain code."""
    prose: set[int] = set()
    for node in docstrings(ast.walk(ast.parse(path.read_bytes()))):
        prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in _LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def count_code() -> dict[str, int]:
    """The lines of code directly in each folder of the product."""
    counts: dict[str, int] = {}
    for path in modules():
        folder = str(path.parent.relative_to(ROOT))
        counts[folder] = counts.get(folder, 0) + code_lines(path)
    return counts


if __name__ == "__main__":
    found = count_code()
    for name, lines in found.items():
        sys.stdout.write(f"{lines:7,}  {name}\n")
    sys.stdout.write(f"{sum(found.values()):7,}  together\n")
