"""The rules of the code's layout: who imports whom, where tests lie, how long files and functions get."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
LAYERS = ["pipeline", "reading", "transforms", "schemas"]  # each may import itself and what stands to its right
TENSORFLOW = {"keras", "tensorflow", "tensorflow_datasets", "tensorflow_metadata", "tensorflow_transform", "tfx_bsl"}
USERS_EXTRAS = ("aws", "gcp", "tensorflow")
FORBIDDEN_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}

# Modules without a test file of their own, each with its reason.
UNMIRRORED: dict[str, str] = {}

MODULES = sorted(path.relative_to(REPO) for layer in LAYERS for path in (REPO / layer).rglob("*.py"))
SOURCES = [*MODULES, *(path.relative_to(REPO) for path in [REPO / "recordmill.py"] if path.exists())]

every_module = pytest.mark.parametrize("path", MODULES, ids=str)
every_source = pytest.mark.parametrize("path", SOURCES, ids=str)


def parse(path: Path) -> ast.Module:
    return ast.parse((REPO / path).read_text(encoding="utf-8"))


def imports(nodes: Iterator[ast.AST]) -> set[str]:
    """Dotted names; `from a import b` gives both `a` and `a.b`, for b may be a module."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below `node` that runs when the module is imported: no function's body, nothing for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from run_on_import(child)


def code_lines(path: Path) -> int:
    lines = (line.strip() for line in (REPO / path).read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def test_the_layers_are_there():
    assert {path.parts[0] for path in MODULES} == set(LAYERS)


@every_module
def test_imports_point_one_way(path):
    layer = path.parts[0]
    above = {*LAYERS[: LAYERS.index(layer)], "configs", "recordmill"} - ({"configs"} if layer == "pipeline" else set())
    assert not {name for name in imports(ast.walk(parse(path))) if name.split(".")[0] in above}


@every_source
def test_nobody_imports_the_entry_module(path):
    # What is defined in a module started with -m exists twice once somebody imports it.
    assert "pipeline.run" not in imports(ast.walk(parse(path)))


@every_source
def test_no_module_imports_tensorflow_on_import(path):
    # It costs 3 to 10 seconds and half a gigabyte in every process.
    assert not {name for name in imports(run_on_import(parse(path))) if name.split(".")[0] in TENSORFLOW}


@cache
def declared_distributions() -> set[str]:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(each for name in USERS_EXTRAS for each in extras[name])]
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


@cache
def installed_distributions() -> dict[str, list[str]]:
    """By top-level module, as `metadata.packages_distributions`, which takes too long to call for every file."""
    return {root: [name.lower() for name in names] for root, names in metadata.packages_distributions().items()}


@every_source
def test_what_is_imported_is_a_declared_dependency(path):
    # The environment also holds what our dependencies depend on: an import may work here and fail for a user.
    roots = {name.split(".")[0] for name in imports(ast.walk(parse(path)))}
    foreign = roots - sys.stdlib_module_names - {*LAYERS, "configs", "recordmill"}
    names = {root: installed_distributions().get(root, [root]) for root in foreign}  # an extra may not be installed
    assert not {root for root in foreign if declared_distributions().isdisjoint(names[root])}


def test_imaging_knows_neither_beam_nor_tensorflow():
    # Light helper processes import it for decoding alone.
    imaging = [path for path in MODULES if path.with_suffix("").parts[:2] == ("transforms", "imaging")]
    assert imaging
    for path in imaging:
        roots = {name.split(".")[0] for name in imports(ast.walk(parse(path)))}
        assert not roots & (TENSORFLOW | {"apache_beam"}), path


@every_source
def test_names_say_what_a_module_does(path):
    assert not set(path.with_suffix("").parts) & FORBIDDEN_NAMES


@every_module
def test_tests_mirror_the_code(path):
    folder, name = (path.parent.parent, path.parent.name) if path.name == "__init__.py" else (path.parent, path.stem)
    mirror = Path("tests", folder, f"test_{name}.py")
    if str(path) in UNMIRRORED:
        assert not (REPO / mirror).exists(), f"{path} has its tests: take it off UNMIRRORED"
    elif code_lines(path) > 15:
        assert (REPO / mirror).exists(), f"write {mirror}"


def test_every_exception_names_a_module():
    assert set(UNMIRRORED) <= {str(path) for path in MODULES}


@every_source
def test_files_stay_readable_at_a_sitting(path):
    assert len((REPO / path).read_text(encoding="utf-8").splitlines()) <= 250


@every_source
def test_functions_fit_on_a_screen(path):
    functions = [node for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert not {f.name: length for f in functions if (length := f.end_lineno - f.lineno + 1) > 60}
