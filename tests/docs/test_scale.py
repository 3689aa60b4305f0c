"""docs/scale.md: runs its commands small, and compares its bounds with the code's."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import scale
from recordmill.transforms.plan_shards import HELD_REFERENCES
from recordmill.transforms.planning.plan import MOST_PER_SHARD
from recordmill.transforms.planning.summary import MAX_BINS
from recordmill.transforms.publishing.duplicates import GROUP_IMAGES

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/scale.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")


def table(header):
    """The rows of the table that begins so, as lists of cells."""
    (block,) = re.findall(rf"^\| {re.escape(header)}.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]


@pytest.mark.slow
def test_the_commands_do_what_the_page_says(run_page, tmp_path):
    tried, estimated = run_page(PAGE, tmp_path)
    result = json.loads(tried.stdout)
    assert list(result["measured"]) == ["800"]
    assert (tmp_path / "work" / "scale-prediction.json").is_file()
    assert "predicted, then measured" in tried.stderr
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in estimated.stdout.splitlines()
    ]
    assert rows == table("images | workers of 4 vCPUs")


def test_the_bounds_are_those_of_the_code():
    assert f"{MAX_BINS:,} bins per split" in TEXT
    assert f"at most {MOST_PER_SHARD:,} images" in TEXT
    assert f"sorts {HELD_REFERENCES:,} references" in TEXT
    assert f"about {GROUP_IMAGES // 10**6} million images" in TEXT
    assert (scale.SIZE, scale.CLASSES, f"{scale.IMAGES_A_SHARD:,} of them" in TEXT) == (
        (64, 48),
        100,
        True,
    )
    assert scale.KEEPING in TEXT
