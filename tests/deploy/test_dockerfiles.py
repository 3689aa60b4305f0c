"""The image files: linted where hadolint is installed, and what they copy is enough. No image is
built."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
FILES = ["deploy/Dockerfile", "deploy/dataflow/Dockerfile"]


def instructions(file):
    text = (REPO / file).read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", "", text)
    return [
        line.split(maxsplit=1) for line in joined.splitlines() if line and not line.startswith("#")
    ]


def copied(file):
    """What is copied from the checkout."""
    pairs = (
        rest.split()
        for name, rest in instructions(file)
        if name == "COPY" and not rest.startswith("--from")
    )
    return [source for *sources, _ in pairs for source in sources]


@pytest.mark.parametrize("file", FILES)
def test_the_linter_finds_nothing(file):
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if not hadolint:
        pytest.skip("hadolint is not installed here: make test-dataflow")
    done = subprocess.run([hadolint, file], cwd=REPO, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_what_is_copied_makes_a_whole_package(file, tmp_path):
    for name in copied(file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (REPO / name).is_dir():
            shutil.copytree(
                REPO / name,
                tmp_path / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            shutil.copy(REPO / name, tmp_path / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    linked = ("configs", "pipeline", "schemas", "transforms")
    sources = {path.relative_to(REPO) for name in linked for path in (REPO / name).rglob("*.py")}
    sources |= {path.relative_to(REPO) for path in (REPO / "configs").glob("*.yaml")}
    sources |= {path.relative_to(REPO) for path in (REPO / "docs").glob("*.md")}
    own = {path.relative_to(REPO) for path in (REPO / "recordmill").rglob("*.py")}
    assert {
        path.as_posix() for path in {Path("recordmill") / path for path in sources} | own
    } <= packed


@pytest.mark.parametrize("file", FILES)
def test_each_folder_that_the_package_links_to_is_copied(file):
    links = {path.name for path in (REPO / "recordmill").iterdir() if path.is_symlink()}
    assert links <= set(copied(file))


@pytest.mark.parametrize("file", FILES)
def test_copied_files_are_in_the_context(file):
    kept = {
        line[1:].removesuffix("/**")
        for line in (REPO / ".dockerignore").read_text().splitlines()
        if line[0] == "!"
    }
    assert set(copied(file)) <= kept


@pytest.mark.parametrize("file", FILES)
def test_the_versions_are_taken_from_the_lock(file, tmp_path):
    (run,) = [
        rest for name, rest in instructions(file) if name == "RUN" and "requirements.lock" in rest
    ]
    shutil.copy(REPO / "requirements.lock", tmp_path)
    subprocess.run(["sh", "-c", run.partition(" && ")[0]], cwd=tmp_path, check=True)
    lines = (tmp_path / "constraints.txt").read_text().splitlines()
    locked = re.findall(r"^[\w.-]+==", (REPO / "requirements.lock").read_text(), re.MULTILINE)
    assert len(lines) == len(locked) > 30
    # A package may be there once for each of several Pythons.
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+ (; [^\\]+ )?", line) for line in lines)


def test_workers_run_the_beam_of_the_lock():
    (version,) = re.findall(
        r"^apache-beam==(\S+)", (REPO / "requirements.lock").read_text(), re.MULTILINE
    )
    image = instructions("deploy/dataflow/Dockerfile")[1]
    assert image == ["FROM", f"apache/beam_python3.11_sdk:{version}"]


def test_worker_and_launcher_are_in_one_image():
    file = dict(instructions("deploy/dataflow/Dockerfile"))
    assert file["ENTRYPOINT"] == '["/opt/apache/beam/boot"]'
    assert file["ENV"] == "FLEX_TEMPLATE_PYTHON_PY_FILE=/template/main.py"
    copies = [rest for name, rest in instructions("deploy/dataflow/Dockerfile") if name == "COPY"]
    launcher = "/opt/google/dataflow/python_template_launcher"
    assert f"--from=launcher {launcher} {launcher}" in copies


def test_signals_reach_the_process():
    assert dict(instructions("deploy/Dockerfile"))["ENTRYPOINT"] == '["recordmill"]'
