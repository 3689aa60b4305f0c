"""README.md is true: its commands are run, its output is what comes out, its tables are what the
code says."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from documented_inputs import count_records, draw_collections
from stored_records import sorted_records

from scripts import readme

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language):
    return [block for kind, block in BLOCKS if kind == language]


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    return draw_collections(tmp_path_factory.mktemp("readme"))


def test_the_first_command_prints_what_is_shown(tmp_path, run_command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^run: ##.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe == (
        '\t@scripts/install $(VENV) conversion "$(PYTHON)"\n'
        "\t$(BIN)/python -m pipeline.run --runner=DirectRunner $(ARGS)\n"
    )
    command, shown = blocks("console")[0].split("\n", 1)
    assert command == "$ make run"
    done = run_command("python -m pipeline.run --runner=DirectRunner", tmp_path)
    assert done.returncode == 0
    assert done.stderr == shown
    assert json.loads(done.stdout)["ledger"]["written"] == 250


def test_the_recipes_run_and_give_what_they_say(somewhere, run_command):
    for commands in blocks("sh"):
        if "activate" in commands:
            done = subprocess.run(
                ["sh", "-c", commands], cwd=somewhere, capture_output=True, text=True, check=False
            )
        else:
            done = run_command(re.sub(r"\\\n\s*", "", commands).strip(), somewhere)
        assert done.returncode == 0, done.stderr

    assert count_records(somewhere / "dataset-boxes") == {"train": 1, "validation": 1}
    label_map = (somewhere / "dataset-boxes" / "label_map.pbtxt").read_text(encoding="utf-8")
    assert label_map == 'item {\n  id: 18\n  name: "dog"\n}\n'
    assert sum(count_records(somewhere / "dataset-csv").values()) == 40
    for sidecar in (somewhere / "dataset-reencoded" / "sidecars").iterdir():
        rows = [json.loads(line) for line in sidecar.read_text(encoding="utf-8").splitlines()]
        assert rows
        assert all(row["changes"] == ["reencoded"] for row in rows)
    assert json.loads((somewhere / "summary.json").read_text(encoding="utf-8"))["exit_code"] == 0


def test_the_extras_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"'\.\[(\w+)\]'", TEXT))
    assert named == {"analyze", "tensorflow", "torch", "gcp", "aws"}
    assert named <= set(project["optional-dependencies"])
    assert project["scripts"]["recordmill"] == "recordmill.pipeline.run:main"


def test_it_converts_and_reads_from_python(somewhere, run_command):
    pytest.importorskip("tensorflow")
    block, _ = blocks("python")
    check = "\nassert first.shape == (120, 160, 3), first.shape\n"
    (somewhere / "first.py").write_text(
        block.replace('"dataset"', '"dataset-python"') + check, encoding="utf-8"
    )
    done = run_command("python first.py", somewhere)
    assert done.returncode == 0, done.stderr
    counts = count_records(somewhere / "dataset-python")
    assert done.stdout.splitlines()[0] == f"{counts} {{'cat': 0, 'dog': 1}}"
    assert sum(counts.values()) == 40


def test_its_pipeline_writes_what_a_conversion_writes(somewhere, run_command):
    _, block = blocks("python")
    (somewhere / "chain.py").write_text(block, encoding="utf-8")
    done = run_command("python chain.py", somewhere)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    flags = "--input photos --output quality --set images.quality=90"
    assert run_command(f"recordmill run {flags}", somewhere).returncode == 0
    for split in ("train", "test"):
        steps = sorted_records(somewhere / "steps", f"{split}-*")
        assert steps == sorted_records(somewhere / "quality", f"{split}-*")


def test_the_tables_are_up_to_date():
    texts = {page: page.read_text(encoding="utf-8") for page in readme.PAGES}
    assert readme.fill(texts) == texts, "run `make docs`"


def test_the_tables_leave_out_sources_without_a_page(monkeypatch):
    assert "yolo" in readme.documented_sources()
    monkeypatch.setattr(readme, "PAGES", [ROOT / "docs/tables.md"])
    assert readme.documented_sources() == ["table"]


def test_checking_says_by_its_exit_code_whether_the_tables_are_up_to_date(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["readme", "--check"])
    with pytest.raises(SystemExit) as ended:
        readme.main()
    assert ended.value.code == 0
    fill = readme.fill
    monkeypatch.setattr(
        readme, "fill", lambda texts: {page: text + "more" for page, text in fill(texts).items()}
    )
    with pytest.raises(
        SystemExit, match=r"^the tables of README\.md, .* are out of date: run `make docs`$"
    ):
        readme.main()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!-- x -->\n", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n\n| old |\n| o |\n", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n| old |", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n\n| old |\n## next\n\nmore\n", "<!-- x -->\n\n| new |\n\n## next\n\nmore\n"),
        (
            "<!-- x -->\n\n| old |\n\n\ntext\n\n| mine |\n",
            "<!-- x -->\n\n| new |\n\ntext\n\n| mine |\n",
        ),
        ("<!-- x -->\ntext\n| mine |\n", "<!-- x -->\n\n| new |\n\ntext\n| mine |\n"),
    ],
)
def test_filling_replaces_the_rows_of_a_table_and_nothing_else(monkeypatch, before, after):
    monkeypatch.setattr(readme, "tables", lambda: {"x": "| new |"})
    page = ROOT / "README.md"
    assert readme.fill({page: f"# Title\n\n{before}"}) == {page: f"# Title\n\n{after}"}
    assert readme.fill({page: f"# Title\n\n{after}"}) == {page: f"# Title\n\n{after}"}


def test_every_table_has_a_heading_of_its_own():
    names = set(readme.tables())
    for page in readme.PAGES:
        headed = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                headed = True
            elif (marker := re.fullmatch(r"<!-- (.*) -->", line)) and marker[1] in names:
                assert headed, f"{page.name}: give <!-- {marker[1]} --> a heading of its own"
                headed = False
