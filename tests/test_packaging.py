import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import recordmill
from recordmill.pipeline.command import HELP
from recordmill.pipeline.configuration.options import build_parser

REPO = Path(__file__).parents[1]
LINKED = ["configs", "pipeline", "schemas", "transforms"]


PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_defined_once():
    assert recordmill.__version__ == PROJECT["version"]


def test_the_help_and_the_readme_describe_it_as_the_index_does():
    tagline = PROJECT["description"]
    readme = " ".join((REPO / "README.md").read_text(encoding="utf-8").split())
    assert f"Recordmill {tagline[0].lower()}{tagline[1:]}." in readme
    assert f" {tagline}. " in " ".join(HELP.split())
    assert build_parser().description == f"{tagline}."


PYTHONS = ["3.11", "3.12", "3.13"]


def test_the_supported_pythons_are_named_for_an_index():
    named = [
        name.rpartition(" :: ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name
    ]
    assert named == PYTHONS


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_file_has_one_version_of_each_package(python):
    system = {
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
    }
    environment = {**system, "python_version": python, "python_full_version": f"{python}.0"}
    lines = re.findall(
        r"^[a-z0-9][^\\\n]+", (REPO / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE
    )
    pins = [Requirement(line) for line in lines]
    pinned = {pin.name: pin for pin in pins if not pin.marker or pin.marker.evaluate(environment)}
    assert len(pinned) == len(
        [pin for pin in pins if not pin.marker or pin.marker.evaluate(environment)]
    )

    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["analyze"], *extras["dev"], *extras["tensorflow"]]
    for requirement in map(Requirement, wanted):
        (version,) = pinned[canonicalize_name(requirement.name)].specifier
        assert (version.operator, requirement.specifier.contains(version.version)) == (
            "==",
            True,
        ), requirement


def test_the_lock_file_names_no_registry():
    assert "://" not in (REPO / "requirements.lock").read_text(encoding="utf-8")


def test_every_public_name_can_be_imported():
    assert all(getattr(recordmill, name) for name in recordmill.__all__)


def test_configs_are_package_data():
    packaged = {
        entry.name
        for entry in resources.files("recordmill.configs").iterdir()
        if entry.name.endswith(".yaml")
    }
    assert packaged == {path.name for path in (REPO / "configs").glob("*.yaml")}
    assert packaged


def test_recordmill_imports_from_any_folder(tmp_path):
    subprocess.run(
        [sys.executable, "-c", "import recordmill.pipeline.run"], cwd=tmp_path, check=True
    )


@pytest.mark.parametrize("module", ["recordmill.pipeline.run", "recordmill"])
def test_entry_modules_load_no_tensorflow(tmp_path, module):
    script = f"import sys, {module}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 0


@pytest.mark.slow
def test_the_source_archive_holds_all_that_workers_need(tmp_path):
    # What Beam's --setup_file ships: an archive without a package would fail on the workers only.
    # Built from a copy: an egg-info left by an earlier build would add files that the project no
    # longer names.
    copy = tmp_path / "copy"
    shutil.copytree(
        REPO, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "out")
    )
    build = [
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(copy),
    ]
    subprocess.run(build, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        shipped = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    below = [REPO / name for name in LINKED]
    sources = {
        path.relative_to(REPO)
        for folder in below
        for ending in ("py", "jinja", "json")
        for path in folder.rglob(f"*.{ending}")
    }
    data = {path.relative_to(REPO) for path in (REPO / "configs").glob("*.yaml")}
    reading = {path.relative_to(REPO) for path in (REPO / "recordmill").rglob("*.py")}
    reading |= {
        Path("recordmill/reading/report", name) for name in ("report.html.jinja", "report.css")
    }
    types = {Path("recordmill/__init__.pyi"), Path("recordmill/py.typed")}
    assert {Path("recordmill") / path for path in sources | data} | reading | types | {
        Path("setup.py")
    } <= shipped
    assert not [path for path in shipped if path.parts[:1] and path.parts[0] in LINKED]
    assert not [path for path in shipped if path.parts[:1] == ("tests",)]
