"""A function that finds nothing returns None: an empty text is a value, not the lack of one.

If `""` meant "no problem", forgetting to look at a result would not be an error of types. The tests
look for functions that are annotated `-> str` and return a literal `""`, and for faults that are
`""` where there is none.
"""

import ast
from collections.abc import Iterator

import product_text
import pytest

from scripts.count_code import ROOT, modules

TEXTS = {
    "schemas/image_ref.py:pack_fields": "a part of references, which is empty for most",
    "transforms/inputs/tables/known_tables.py:_below": "a path: that of the table's own folder",
    "transforms/inputs/tables/table_heads.py:_show_cell": "a cell as in CSV, where it may be empty",
    "transforms/records/image_functions.py:digest_code": "a part of recipes, hashed as a text",
}
"""Functions whose results are texts, with the reason why one may be empty."""

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
    if isinstance(value, ast.Call):
        defaults = [each.value for each in value.keywords if each.arg == "default"]
        if ast.unparse(value.func) == "next" or ast.unparse(value.func).endswith(".get"):
            defaults += value.args[1:]
        return any(map(may_be_empty, defaults))
    return isinstance(value, ast.Constant) and value.value == ""


def find_functions(nodes: list[ast.AST]) -> Iterator[str]:
    """The names of the functions that are annotated `-> str` and return a literal `""`."""
    for node in nodes:
        if not isinstance(node, Function) or node.returns is None:
            continue
        results = [each.value for each in own_nodes(node) if isinstance(each, ast.Return)]
        if ast.unparse(node.returns) == "str" and any(map(may_be_empty, results)):
            yield node.name


FAULTS = frozenset(("error", "fault", "problem"))
"""Names of fields that say what is wrong, which is None if nothing is."""


def find_empty_faults(nodes: list[ast.AST]) -> Iterator[str]:
    """The fields and attributes for a fault that are `""` without one."""
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not may_be_empty(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [ast.unparse(target).rpartition(".")[2] for target in targets]
        yield from FAULTS.intersection(names)


def test_no_fault_is_none():
    found = {str(path): [*find_empty_faults(product_text.nodes_of(path))] for path in modules()}
    assert {path: names for path, names in found.items() if names} == {}


def find_all() -> set[str]:
    """Such functions of the product, each as `module:function`."""
    found = set()
    for path in modules():
        for function in find_functions(product_text.nodes_of(path)):
            found.add(f"{path.relative_to(ROOT)}:{function}")
    return found


def test_what_is_not_found_is_none():
    assert find_all() - TEXTS.keys() == set()


def test_each_exception_is_there():
    assert TEXTS.keys() - find_all() == set()


@pytest.mark.parametrize(
    "result",
    [
        '""',
        '"a" if problem else ""',
        'find_problem() or ""',
        'next(filter(None, problems), "")',
        'min(problems, default="")',
        'PROBLEMS.get(code, "")',
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


def test_empty_faults_are_found():
    code = 'class Row:\n    fault: str = ""\n    error: str | None = None\n    name = ""\n'
    assert [*find_empty_faults([*ast.walk(ast.parse(code))])] == ["fault"]
