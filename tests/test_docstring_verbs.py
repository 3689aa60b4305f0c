"""A docstring of a public function begins with a verb: it says what the function does.

Properties are named like values and described as such.
"""

import ast
import re
from collections.abc import Iterator

import product_text

from scripts.count_code import ROOT, modules

NO_VERBS = frozenset(
    (
        "The",
        "A",
        "An",
        "Whether",
        "What",
        "Why",
        "How",
        "Where",
        "Which",
        "When",
        "One",
        "All",
        "Every",
        "Each",
        "Some",
        "Any",
        "Like",
        "Its",
        "This",
        "Patterns",
        "Folders",
        "Boxes",
        "Titles",
        "Strings",
        "Kinds",
        "Contradictions",
    )
)
"""Words that are often there instead of a verb, and nouns that look like one."""


def find_without_verb(nodes: list[ast.AST]) -> Iterator[str]:
    """The public functions whose docstrings begin with another word."""
    for node in nodes:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if any("property" in ast.unparse(each) for each in node.decorator_list):
            continue
        text = ast.get_docstring(node)
        if not text or node.name == "expand":  # which says what flows
            continue
        word = text.split()[0].rstrip(",")
        if word in NO_VERBS or not re.fullmatch(r"[A-Z][a-z]+(-[a-z]+)?s", word):
            yield node.name


def test_docstrings_of_public_functions_begin_with_a_verb():
    found = [
        f"{path.relative_to(ROOT)}:{name}"
        for path in modules()
        for name in find_without_verb(product_text.nodes_of(path))
    ]
    assert found == []


def test_functions_without_a_verb_are_found():
    code = '''
def size_of():
    """The size of a file."""

def find_size():
    """Finds the size of a file."""

class File:
    @property
    def size(self):
        """The size of the file."""
'''
    assert [*find_without_verb([*ast.walk(ast.parse(code))])] == ["size_of"]
