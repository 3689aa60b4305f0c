"""A function that finds nothing returns None: an empty text is a value, not the lack of one.

If `""` meant "no problem", forgetting to look at a result would not be an error of types. The test
looks for functions that are annotated `-> str` and return a literal `""`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import product_text
import pytest

from scripts.count_code import ROOT, modules

TEXTS = {
    "transforms/records/image_functions.py:digest_code": "a part of recipes, hashed as a text",
}
"""Functions whose results are texts, with the reason why one may be empty."""

STILL_TO_DO = {
    "transforms/inputs": 27,
}
"""Rooms that are not rewritten yet, each with the most such functions in it.

Lower a number when you rewrite one; none may rise. A function whose result is a text moves to
`TEXTS`.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node, except what is in another function."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from own_nodes(child)


def may_be_empty(value: ast.expr | None) -> bool:
    """Whether an expression names the empty text as one of its values."""
    if isinstance(value, ast.IfExp):
        return may_be_empty(value.body) or may_be_empty(value.orelse)
    if isinstance(value, ast.BoolOp):
        return any(map(may_be_empty, value.values))
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "next":
        return any(map(may_be_empty, value.args[1:]))
    return isinstance(value, ast.Constant) and value.value == ""


def find_functions(nodes: list[ast.AST]) -> Iterator[str]:
    """The names of the functions that are annotated `-> str` and return a literal `""`."""
    for node in nodes:
        if not isinstance(node, Function) or node.returns is None:
            continue
        results = [each.value for each in own_nodes(node) if isinstance(each, ast.Return)]
        if ast.unparse(node.returns) == "str" and any(map(may_be_empty, results)):
            yield node.name


def find_all() -> set[str]:
    """Such functions of the product, each as `module:function`."""
    found = set()
    for path in modules():
        for function in find_functions(product_text.nodes_of(path)):
            found.add(f"{path.relative_to(ROOT)}:{function}")
    return found


def room_of(name: str) -> str | None:
    """The longest name of a room that a function is in."""
    rooms = [room for room in STILL_TO_DO if re.match(rf"{re.escape(room)}[/:]", name)]
    return max(rooms, key=len, default=None)


def test_what_is_not_found_is_none():
    found = find_all() - TEXTS.keys()
    counts = Counter(map(room_of, found))
    too_many = {room for room, count in counts.items() if count > STILL_TO_DO.get(room, 0)}
    assert sorted(name for name in found if room_of(name) in too_many) == []


def test_each_exception_is_there():
    assert TEXTS.keys() - find_all() == set()
    assert [room for room in STILL_TO_DO if not (ROOT / room).exists()] == []


@pytest.mark.parametrize(
    "result",
    [
        '""',
        '"a" if problem else ""',
        'find_problem() or ""',
        'next(filter(None, problems), "")',
    ],
)
def test_empty_texts_are_found(result):
    code = f"def find() -> str:\n    for _ in range(3):\n        return {result}\n"
    assert [*find_functions([*ast.walk(ast.parse(code))])] == ["find"]


@pytest.mark.parametrize(
    "code",
    [
        "def find() -> str | None:\n    return None\n",
        "def join() -> str:\n    return ''.join('a')\n",
        "def call() -> str:\n    def inner():\n        return ''\n    return str(inner)\n",
    ],
)
def test_other_results_are_not(code):
    assert [*find_functions([*ast.walk(ast.parse(code))])] == []
