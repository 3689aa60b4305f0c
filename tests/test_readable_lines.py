"""A line says one thing: conditions and loops within expressions are few, and short.

Conditional expressions, and comprehensions with another one or with two `for`s, are counted per
1,000 lines of code. Statements, early returns and small functions say the same in plain order.
"""

import ast
from dataclasses import dataclass, field

import pytest

from scripts.count_code import ROOT, code_lines, modules

MOST_CONDITIONALS = 20
MOST_NESTED_LOOPS = 2
"""The most of each per 1,000 lines of code."""

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass
class Density:
    """The places of dense expressions, as `line: code`."""

    conditionals: list[str] = field(default_factory=list)
    nested_conditionals: list[str] = field(default_factory=list)
    nested_loops: list[str] = field(default_factory=list)

    def add(self, node: ast.AST, in_conditional: bool = False, in_loop: bool = False) -> None:
        """Adds everything below a node."""
        for child in ast.iter_child_nodes(node):
            is_conditional = isinstance(child, ast.IfExp)
            is_loop = isinstance(child, Comprehension)
            if is_conditional:
                self.conditionals.append(place_of(child))
            if is_conditional and in_conditional:
                self.nested_conditionals.append(place_of(child))
            if is_loop and (in_loop or len(child.generators) > 1):
                self.nested_loops.append(place_of(child))
            self.add(child, in_conditional or is_conditional, in_loop or is_loop)


def place_of(node: ast.expr) -> str:
    return f"{node.lineno}: {ast.unparse(node)}"


def density_of(code: str | bytes) -> Density:
    found = Density()
    found.add(ast.parse(code))
    return found


@pytest.fixture(scope="module")
def found():
    """The density of each module, by its name."""
    return {str(path.relative_to(ROOT)): density_of(path.read_bytes()) for path in modules()}


@pytest.fixture(scope="module")
def thousands():
    return sum(map(code_lines, modules())) / 1_000


def test_conditional_expressions_are_few(found, thousands):
    counts = {name: len(density.conditionals) for name, density in found.items()}
    worst = sorted(counts, key=counts.get, reverse=True)[:10]
    assert sum(counts.values()) <= MOST_CONDITIONALS * thousands, worst


def test_comprehensions_within_comprehensions_are_few(found, thousands):
    places = {name: density.nested_loops for name, density in found.items()}
    total = sum(map(len, places.values()))
    assert total <= MOST_NESTED_LOOPS * thousands, {name: at for name, at in places.items() if at}


def test_no_conditional_is_inside_a_conditional(found):
    places = {name: density.nested_conditionals for name, density in found.items()}
    assert not {name: at for name, at in places.items() if at}


def test_dense_expressions_are_found():
    assert density_of("a = b if c else d if e else f") == Density(
        ["1: b if c else d if e else f", "1: d if e else f"], ["1: d if e else f"]
    )
    assert density_of("a = [b for c in d for b in c]").nested_loops == [
        "1: [b for c in d for b in c]"
    ]
    assert density_of("a = {b: [c for c in d] for b, d in e}").nested_loops == ["1: [c for c in d]"]


def test_plain_statements_are_not():
    code = """
if c:
    a = b
a = [b for b in c if b]
a = [b(c) for c in d]
"""
    assert density_of(code) == Density()
