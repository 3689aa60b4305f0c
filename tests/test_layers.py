"""The rules of the code's layout: which layer imports which, how long files and functions are.

Each test lists every violation at once, as `{module: what is wrong}`.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import product_text
import pytest

from scripts.count_code import code_lines

REPO = Path(__file__).parents[1]
PACKAGE = "recordmill"
LINKED = ["pipeline", "transforms", "schemas", "configs"]
"""Folders of the repository that `recordmill/` links to: they are imported as `recordmill.pipeline`
and so on."""
LAYERS = {
    "pipeline": (
        *("pipeline", "transforms", "viewing", "reading", "annotations", "storage", "imaging"),
        "schemas",
        "configs",
    ),
    "transforms": ("transforms", "annotations", "storage", "imaging", "schemas"),
    "viewing": ("viewing", "reading", "annotations", "storage", "imaging", "schemas"),
    "reading": ("reading", "annotations", "storage", "imaging", "schemas"),
    "annotations": ("annotations", "imaging", "schemas"),
    "storage": ("storage", "schemas"),
    "imaging": ("imaging", "schemas"),
    "schemas": ("schemas",),
}
"""Each layer, and those that it may import."""
TENSORFLOW = {
    "keras",
    "tensorflow",
    "tensorflow_datasets",
    "tensorflow_metadata",
    "tensorflow_transform",
    "tfx_bsl",
}
USERS_EXTRAS = ("analyze", "aws", "gcp", "heic", "tensorflow", "torch")
FORBIDDEN_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
MOST_CODE_LINES = 500
MOST_FUNCTION_LINES = 55

FOLDERS = {name: Path(name) if name in LINKED else Path("recordmill", name) for name in LAYERS}
MODULES = {
    path.relative_to(REPO): layer
    for layer, folder in FOLDERS.items()
    for path in sorted((REPO / folder).rglob("*.py"))
}
SOURCES = [*MODULES, Path("recordmill/__init__.py"), Path("recordmill/__main__.py")]


def tree_of(path: Path) -> ast.Module:
    return nodes_of(path)[0]


def nodes_of(path: Path) -> list[ast.AST]:
    return product_text.nodes_of(REPO / path)


@cache
def lines_of(path: Path) -> int:
    return code_lines(REPO / path)


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    """Dotted names; `from a import b` gives both `a` and `a.b`, for b may be a module."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def roots(nodes: Iterable[ast.AST]) -> set[str]:
    return {name.split(".")[0] for name in imports(nodes)}


def run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below `node` that runs when the module is imported: no function's body, nothing
    for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from run_on_import(child)


def ours(path: Path) -> set[tuple[str, ...]]:
    """Our own modules that one imports, as the parts of their names below the package."""
    names = [
        tuple(name.split(".")[1:])
        for name in imports(nodes_of(path))
        if name.split(".")[0] == PACKAGE
    ]
    return {name for name in names if name}


def folder_of(name: tuple[str, ...]) -> Path | None:
    """The folder of what an import names: a module, or something in one."""
    start = REPO if name[0] in LINKED else REPO / PACKAGE
    for length in range(len(name), 0, -1):
        place = start.joinpath(*name[:length])
        if place.with_suffix(".py").exists():
            return place.parent.relative_to(REPO)
        if (place / "__init__.py").exists():
            return place.relative_to(REPO)
    return None


def for_type_checkers(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Everything within `if TYPE_CHECKING:`."""
    found: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            found.update(child for part in node.body for child in ast.walk(part))
    return found


def module_at(name: str) -> Path | None:
    """The file of one of our own modules or packages."""
    first, *rest = name.split(".")
    if first != PACKAGE or not rest:
        return None
    place = (Path() if rest[0] in LINKED else Path(PACKAGE)).joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((each for each in files if each in MODULES), None)


def modules_imported_by(path: Path) -> set[Path]:
    """Our own modules that one imports when it runs, sooner or later."""
    nodes = nodes_of(path)
    skipped = for_type_checkers(nodes)
    found: set[Path | None] = set()
    for node in nodes:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(module_at(each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{each.name}" for each in node.names]
            found.update(module_at(name) or module_at(node.module) for name in names)
    return {each for each in found if each} - {path}


def find_circle(arrows: dict[Path, set[Path]]) -> list[Path]:
    """The modules that are in circles, or lead only to them; empty if there are none."""
    left = dict(arrows)
    while ends := [path for path, targets in left.items() if targets.isdisjoint(left)]:
        for path in ends:
            del left[path]
    return sorted(left)


def test_no_module_imports_itself_by_way_of_others():
    assert find_circle({path: modules_imported_by(path) for path in MODULES}) == []


def test_circles_are_found():
    one, two, three = map(Path, ("one", "two", "three"))
    assert find_circle({one: {two}, two: {three}, three: set()}) == []
    assert find_circle({one: {two}, two: {one}, three: set()}) == [one, two]


def test_imports_follow_the_layers():
    wrong = {}
    for path, layer in MODULES.items():
        beyond = {name[0] for name in ours(path)} - set(LAYERS[layer])
        if beyond:
            wrong[str(path)] = beyond
    assert not wrong


def test_no_folder_points_back():
    arrows: dict[Path, set[Path]] = {}
    for path in MODULES:
        folders = {folder for name in ours(path) if (folder := folder_of(name))}
        arrows.setdefault(path.parent, set()).update(folders - {path.parent})
    circles = {}
    for folder in arrows:
        reached, new = set(), {folder}
        while new:
            reached |= new
            new = {each for one in new for each in arrows.get(one, ())} - reached
        if back := {str(each) for each in reached - {folder} if folder in arrows.get(each, ())}:
            circles[str(folder)] = back
    assert not circles


def test_our_modules_are_imported_below_the_package():
    # Imported as `transforms`, a module would be another one than `recordmill.transforms`, with
    # classes of its own.
    places = [REPO / name for name in ("benchmarks", "deploy", "examples", "scripts", "tests")]
    others = [path.relative_to(REPO) for place in places for path in place.rglob("*.py")]
    # Parsing all files takes 3 s.
    named = re.compile(rf"\b(?:import|from)\s+(?:{'|'.join(LINKED)})\b")
    suspects = [
        path
        for path in [*SOURCES, *others]
        if named.search((REPO / path).read_text(encoding="utf-8"))
    ]
    wrong = {str(path): found for path in suspects if (found := roots(nodes_of(path)) & {*LINKED})}
    assert not wrong


def test_the_package_links_to_the_folders():
    links = {
        path.name: path.resolve() for path in (REPO / "recordmill").iterdir() if path.is_symlink()
    }
    assert links == {name: (REPO / name).resolve() for name in [*LINKED, "docs"]}


def test_the_entry_modules_define_only_functions():
    # What is defined in a module started with -m exists twice once it is imported: harmless for
    # functions alone.
    bodies = [tree_of(Path(name)).body for name in ("pipeline/run.py", "recordmill/__main__.py")]
    defined = [type(node) for body in bodies for node in body]
    assert not {ast.ClassDef, ast.Assign, ast.AnnAssign} & set(defined)


def test_no_module_imports_tensorflow_on_import():
    # It costs 3 to 10 seconds and half a gigabyte in every process.
    assert not [str(path) for path in SOURCES if roots(run_on_import(tree_of(path))) & TENSORFLOW]


@cache
def declared_distributions() -> set[str]:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [
        *project["dependencies"],
        *(each for name in USERS_EXTRAS for each in extras[name]),
    ]
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


def test_imported_packages_are_declared_dependencies():
    # The environment also holds what our dependencies depend on: an import may work here and fail
    # for a user.
    installed = metadata.packages_distributions()
    wrong = {}
    for path in SOURCES:
        foreign = roots(nodes_of(path)) - sys.stdlib_module_names - {PACKAGE}
        names = {
            root: {name.lower() for name in installed.get(root, [root.replace("_", "-")])}
            for root in foreign
        }
        if undeclared := {
            root for root in foreign if declared_distributions().isdisjoint(names[root])
        }:
            wrong[str(path)] = undeclared
    assert not wrong


@pytest.mark.parametrize("layer", ["imaging", "annotations"])
def test_imaging_and_annotations_know_neither_beam_nor_tensorflow(layer):
    # Light helper processes import them for decoding alone.
    modules = [path for path, each in MODULES.items() if each == layer]
    assert modules
    assert not [
        str(path) for path in modules if roots(nodes_of(path)) & (TENSORFLOW | {"apache_beam"})
    ]


def test_names_say_what_a_module_does():
    assert not [str(path) for path in SOURCES if set(path.with_suffix("").parts) & FORBIDDEN_NAMES]


def test_files_stay_readable_at_a_sitting():
    assert not {str(path): lines for path in SOURCES if (lines := lines_of(path)) > MOST_CODE_LINES}


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Those of a public function have an example."""
    return len((ast.get_docstring(function) or "").splitlines())


def test_functions_fit_on_a_screen():
    wrong = {}
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = node.end_lineno - node.lineno + 1 - docstring_lines(node)
                if length > MOST_FUNCTION_LINES:
                    wrong[f"{path}:{node.name}"] = length
    assert not wrong
