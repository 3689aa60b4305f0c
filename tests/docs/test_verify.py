"""docs/verify.md is true: its commands run and do what it says."""

import json
from pathlib import Path

import pytest
from PIL import Image

PAGE = "docs/verify.md"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("verify")
    for number in range(30):
        for animal in ("cat", "dog"):
            path = folder / "photos" / animal / f"{number:04d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (40, 30), (8 * number, 90, 200 * (animal == "dog"))).save(path)
    assert run_command("python -m pipeline.run --input photos --output dataset", folder).returncode == 0
    return folder


def test_the_page_runs_and_gives_what_it_says(run_page, somewhere):
    whole, frames, pixels, one_file, inspected, record, where, one, images, script = run_page(PAGE, somewhere)
    for done, level, records in ((whole, "files", 60), (frames, "frames", 60), (pixels, "pixels", 60)):
        said = f"nothing is wrong: {records} records in 2 files, level {level}, "
        assert done.stderr.splitlines()[-1].startswith(said)
    assert json.loads(pixels.stdout)["findings"] == []
    assert whole.stdout == ""
    assert "in 1 files, level files" in one_file.stderr
    assert "dataset  a dataset of Recordmill, convention default" in inspected.stderr
    assert "train:12  record 12 of train-00000-of-00001.tfrecord" in record.stderr
    assert "from cat/0001.jpg, " in where.stderr
    (path,) = (path for path in (somewhere / "one").rglob("*") if path.is_file())
    assert path.read_bytes() == (somewhere / "photos" / "cat" / "0001.jpg").read_bytes()
    assert "1 image is in one" in one.stderr
    assert len(list((somewhere / "images").rglob("*.jpg"))) == 10
    assert "10 images are in images" in images.stderr
    assert script.stderr == ""


def test_a_damage_is_told_as_the_page_shows(somewhere, run_command, tmp_path):
    shard = somewhere / "dataset" / "train-00000-of-00001.tfrecord"
    content = shard.read_bytes()
    try:
        shard.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
        done = run_command("python -m pipeline.verify dataset", somewhere)
    finally:
        shard.write_bytes(content)
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("damage: "))
    shown = (ROOT / PAGE).read_text(encoding="utf-8").split("\ndamage: ")[1].splitlines()[0]
    assert line.rpartition(": ")[2] == shown.rpartition(": ")[2] == "the data do not fit their checksum"
    assert line.startswith("damage: train-00000-of-00001.tfrecord, record 0 at byte 0 (")
