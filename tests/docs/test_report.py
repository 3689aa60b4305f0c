"""docs/report.md is true: its commands are run, its lines have the shape that is shown, its numbers
are the code's."""

import json
import re
from pathlib import Path

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.reading.report.image_statistics import MOST_BYTES, MOST_RECORDS, MOST_SHARDS
from recordmill.reading.report.thumbnails import MOST_CLASSES, MOST_DRAWN_ON, MOST_IMAGES
from recordmill.reading.report.write_report import MOST_BARS, SMALLEST_BARS
from recordmill.transforms.publishing.companions.describe_dataset import MOST_SHARDS_SHOWN
from recordmill.transforms.publishing.duplicates import MOST_BITS, MOST_LISTED, MOST_PAIRS

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/report.md").read_text(encoding="utf-8").split())


def draw(path, seed, size=(160, 120)):
    noise = bytes((seed * 97 + at * at * 31 + at * seed * 13) % 256 for at in range(6 * 4 * 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.frombytes("RGB", (6, 4), noise).resize((160, 120), Image.Resampling.BICUBIC).resize(
        size
    ).save(path)


def test_the_page_does_what_it_says(run_page, tmp_path):
    for number in range(12):
        draw(tmp_path / f"photos/{('cat', 'dog')[number % 2]}/{number}.jpg", number)
    draw(tmp_path / "photos/cat/copy.jpg", 0)
    draw(tmp_path / "photos/dog/small.jpg", 0, (80, 60))
    plain, _, _, compared = run_page("docs/report.md", tmp_path)
    assert "report.html" in plain.stderr
    assert (tmp_path / "dataset/report.html").is_file()
    assert not (tmp_path / "plain/report.html").exists()

    def lines(name):
        return [
            json.loads(line)
            for line in (tmp_path / name / "duplicates.jsonl").read_text().splitlines()
        ]

    shown = [
        json.loads(block)
        for block in re.findall(r"```json\n(.*?)```", (ROOT / "docs/report.md").read_text(), re.S)
    ]
    same, alike = lines("compared")
    assert lines("dataset") == lines("plain") == [same]
    assert [list(line) for line in (same, alike)] == [list(line) for line in shown]
    for line, example in ((same, shown[0]), (alike, shown[1])):
        assert [list(image) for image in line["images"]] == [
            list(image) for image in example["images"]
        ]
    assert {image["key"] for image in same["images"]} == {"cat/0.jpg", "cat/copy.jpg"}
    assert {image["key"] for image in alike["images"]} > {"dog/small.jpg"}
    assert "1 near-duplicate pair (" in compared.stderr
    marker = json.loads((tmp_path / "compared/recordmill.json").read_text())
    assert marker["duplicates"]["same_bytes"]["groups"] == 1
    assert marker["duplicates"]["look_alike"]["complete"] is True


def test_its_numbers_are_the_codes():
    largest = MOST_BARS - SMALLEST_BARS
    between = f"those between the {largest} largest and the {SMALLEST_BARS} smallest"
    assert f"more than {MOST_BARS} classes, a click shows {between}" in PAGE
    assert f"come from at most {MOST_SHARDS_SHOWN} shards" in PAGE
    assert (
        f"at most {MOST_IMAGES} images of {MOST_CLASSES} classes, or {MOST_DRAWN_ON} with boxes"
        in PAGE
    )
    assert (
        f"at most {MOST_RECORDS:,} records of {MOST_BYTES >> 20} MiB in {MOST_SHARDS} shards"
        in PAGE
    )
    assert f"the first records of {MOST_SHARDS} shards" in PAGE
    assert f"at most {MOST_BITS} bits" in PAGE
    assert f"the first {MOST_LISTED:,} are listed" in PAGE
    assert f"At most {MOST_PAIRS:,} pairs are listed" in PAGE
    settings = make_settings()
    assert (settings.report, settings.images.near_duplicates) == (True, False)


def test_the_picture_is_small():
    with Image.open(ROOT / "docs/report.png") as picture:
        assert picture.width >= 640
    assert (ROOT / "docs/report.png").stat().st_size < 200_000
