"""One name means one thing: no two classes, aliases or public functions share one.

Whoever searches for a name finds its only definition. A leading `_` is not counted for classes and
aliases: `_Row` next to `Row` would be two things of one name all the same.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import product_text
import pytest

from scripts.count_code import ROOT, modules

SHARED = {
    "main": "each command begins with one",
    "make_parser": "each command has one, from which its completion is made",
}
"""Public functions of which there may be several, each with the reason."""

Names = dict[str, list[str]]


def at_module_level(path: Path) -> Iterator[ast.stmt]:
    """The statements of a module, also those for type checkers."""
    module = product_text.nodes_of(path)[0]
    assert isinstance(module, ast.Module)
    for node in module.body:
        if isinstance(node, ast.If):
            yield from node.body
        yield node


def is_capitalized(name: str) -> bool:
    """Whether a name is written as classes are: constants are in capitals throughout."""
    bare = name.lstrip("_")
    return bare[:1].isupper() and bare != bare.upper()


def classes_in(nodes: Iterator[ast.stmt]) -> Iterator[str]:
    """The classes and aliases, without a leading `_`."""
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        yield from (name.lstrip("_") for name in names if is_capitalized(name))


def public_functions_in(nodes: Iterator[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def find_shared(names_in) -> Names:
    """The names that several modules define, each with these modules."""
    found = defaultdict(list)
    for path in modules():
        for name in names_in(at_module_level(path)):
            found[name].append(str(path.relative_to(ROOT)))
    return {name: places for name, places in found.items() if len(places) > 1}


def test_each_class_and_alias_has_a_name_of_its_own():
    assert find_shared(classes_in) == {}


def test_each_public_function_has_a_name_of_its_own():
    assert find_shared(public_functions_in).keys() == SHARED.keys()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("class _Row: ...", ["Row"]),
        ("Row = tuple[int, str]", ["Row"]),
        ("Row: TypeAlias = int", ["Row"]),
        ("ROW = 1", []),
        ("T = TypeVar('T')", []),
        ("_row = Row()", []),
    ],
)
def test_classes_and_aliases_are_found(code, names):
    assert [*classes_in(iter(ast.parse(code).body))] == names
