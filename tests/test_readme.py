"""README.md is true: its commands are run, its output is what comes out, its tables are what the code says."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from PIL import Image

from recordmill.pipeline.config import load_settings
from scripts import readme

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language):
    return [block for kind, block in BLOCKS if kind == language]


def draw(path, shade):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (160, 120), (shade % 256, (7 * shade) % 256, 90)).save(path, quality=90)


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    """A folder with the collections that README's commands name."""
    folder = tmp_path_factory.mktemp("readme")
    for number in range(20):
        for animal in ("cat", "dog"):
            draw(folder / "photos" / animal / f"{number:04d}.jpg", number + 50 * (animal == "dog"))
            draw(folder / "collection" / ("val" if number < 4 else "train") / animal / f"{number}.jpg", number)
        draw(folder / "masks" / "cell" / f"{number}.png", number)
        draw(folder / "digits" / f"img_{number:05d}_{number % 10}.jpg", number)
        for side in ("left", "right"):
            draw(folder / "patients" / ("sick" if number % 2 else "well") / f"p{number:03d}_{side}.jpg", number)
    rows = [f"photos/{animal}/{number:04d}.jpg,{animal}" for number in range(20) for animal in ("cat", "dog")]
    (folder / "labels.csv").write_text("\n".join(["file,class", *rows]), encoding="utf-8")
    for word, number in (("train", 1), ("val", 2)):
        draw(folder / "coco" / word / f"{number}.jpg", number)
        said = {
            "images": [{"id": number, "file_name": f"{number}.jpg", "width": 160, "height": 120}],
            "categories": [{"id": 18, "name": "dog"}],
            "annotations": [{"id": 1, "image_id": number, "category_id": 18, "bbox": [16, 12, 80, 60]}],
        }
        (folder / "coco" / "annotations").mkdir(exist_ok=True)
        (folder / "coco" / "annotations" / f"instances_{word}2017.json").write_text(json.dumps(said), encoding="utf-8")
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def test_the_first_command_prints_what_is_shown(tmp_path, run_command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "run: setup" in makefile
    assert "$(BIN)/python -m pipeline.run --runner=DirectRunner" in makefile
    command, shown = blocks("console")[0].split("\n", 1)
    assert command == "$ make run"
    done = run_command("python -m pipeline.run --runner=DirectRunner", tmp_path)
    assert done.returncode == 0
    assert done.stderr == shown
    assert json.loads(done.stdout)["ledger"]["written"] == 250


def test_the_recipes_run_and_give_what_they_say(somewhere, run_command):
    for commands in blocks("sh"):
        if "activate" in commands:
            done = subprocess.run(["sh", "-c", commands], cwd=somewhere, capture_output=True, text=True, check=False)
        else:
            done = run_command(re.sub(r"\\\n\s*", "", commands).strip(), somewhere)
        assert done.returncode == 0, done.stderr

    def splits(name):
        marker = json.loads((somewhere / name / "recordmill.json").read_text(encoding="utf-8"))
        return {split: there["records"] for split, there in marker["splits"].items()}

    assert not (somewhere / "dataset-planned").exists()
    assert splits("dataset-given") == {"train": 32, "validation": 8}
    assert splits("dataset-digits") == {"train": 20}
    assert (somewhere / "dataset-digits" / "train.record").is_file()
    assert splits("dataset-boxes") == {"train": 1, "validation": 1}
    label_map = (somewhere / "dataset-boxes" / "label_map.pbtxt").read_text(encoding="utf-8")
    assert label_map == 'item {\n  id: 18\n  name: "dog"\n}\n'
    assert sum(splits("dataset-csv").values()) == 40
    assert sum(splits("dataset-unlabelled").values()) == 20
    assert (somewhere / "dataset-unlabelled" / "labels.txt").read_text(encoding="utf-8") == ""
    assert splits("dataset-stratified") == {"train": 20, "validation": 10, "test": 10}
    assert sum(splits("dataset-small").values()) == 20
    assert sum(splits("dataset-both").values()) == 80
    for sidecar in (somewhere / "dataset-exact" / "sidecars").iterdir():
        rows = [json.loads(line) for line in sidecar.read_text(encoding="utf-8").splitlines()]
        assert rows
        assert all(row["changes"] == [] for row in rows)
    rows = {}
    for sidecar in (somewhere / "dataset-grouped" / "sidecars").iterdir():
        for line in sidecar.read_text(encoding="utf-8").splitlines():
            patient = re.search("p[0-9]+", line).group()
            rows.setdefault(patient, set()).add(sidecar.name.split("-")[0])
    assert len(rows) == 20
    assert all(len(splits) == 1 for splits in rows.values())


def test_the_extras_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"'\.\[(\w+)\]'", TEXT))
    assert named == {"tensorflow", "gcp", "aws"}
    assert named <= set(project["optional-dependencies"])
    assert project["scripts"]["recordmill"] == "recordmill.pipeline.run:main"


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_configuration_is_one(block, tmp_path):
    (tmp_path / "own.yaml").write_text(block, encoding="utf-8")
    settings, _ = load_settings(str(tmp_path / "own.yaml"), [])
    assert settings.labels.catch_all == "other"


def test_it_converts_from_python(somewhere, run_command):
    (block,) = [each for each in blocks("python") if "recordmill.convert" in each]
    (somewhere / "convert.py").write_text(block, encoding="utf-8")
    done = run_command("python convert.py", somewhere)
    assert (done.returncode, done.stdout) == (0, "{'train': 36, 'test': 4} {'cat': 0, 'dog': 1}\n"), done.stderr


@pytest.mark.slow
def test_the_reader_reads(somewhere, run_command):
    pytest.importorskip("tensorflow")
    (block,) = [each for each in blocks("python") if "recordmill.load" in each]
    if not (somewhere / "dataset" / "recordmill.json").exists():
        assert run_command("python -m pipeline.run --input photos --output dataset", somewhere).returncode == 0
    check = "\nassert first.shape == (120, 160, 3), first.shape\n"
    (somewhere / "read.py").write_text(block + check, encoding="utf-8")
    done = run_command("python read.py", somewhere)
    assert done.returncode == 0, done.stderr


def test_the_tables_are_up_to_date():
    texts = {page: page.read_text(encoding="utf-8") for page in readme.PAGES}
    assert readme.fill(texts) == texts, "run `make docs`"


def test_checking_says_by_its_exit_code_whether_the_tables_are_up_to_date(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["readme", "--check"])
    with pytest.raises(SystemExit) as ended:
        readme.main()
    assert ended.value.code == 0
    fill = readme.fill
    monkeypatch.setattr(readme, "fill", lambda texts: {page: text + "more" for page, text in fill(texts).items()})
    with pytest.raises(SystemExit, match=r"^the tables of README\.md, .* are out of date: run `make docs`$"):
        readme.main()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!-- x -->\n", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n\n| old |\n| o |\n", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n| old |", "<!-- x -->\n\n| new |\n"),
        ("<!-- x -->\n\n| old |\n## next\n\nmore\n", "<!-- x -->\n\n| new |\n\n## next\n\nmore\n"),
        ("<!-- x -->\n\n| old |\n\n\ntext\n\n| mine |\n", "<!-- x -->\n\n| new |\n\ntext\n\n| mine |\n"),
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
