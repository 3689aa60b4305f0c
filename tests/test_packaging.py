import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import recordmill

REPO = Path(__file__).parents[1]
LINKED = ["configs", "pipeline", "schemas", "transforms"]


def test_the_version_is_defined_once():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert recordmill.__version__ == project["version"]


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
