"""docs/scale.md: its commands are run small, and its arithmetic is done again."""

import json
import math
import re
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.scale_model import MOVES_AT_ONCE
from recordmill.transforms.plan_shards import HELD_REFERENCES
from recordmill.transforms.planning.plan import MOST_PER_SHARD
from recordmill.transforms.planning.summary import MAX_BINS
from recordmill.transforms.publishing.duplicates import GROUP_IMAGES
from recordmill.transforms.shards.read_ahead import REMOTE_READERS

PAGE = "docs/scale.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")


def table(header):
    """The rows of the table that begins so, as lists of cells."""
    (block,) = re.findall(rf"^\| {re.escape(header)}.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]


def number(text):
    return float(re.sub(r"[,$]", "", text.split()[0]))


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


def test_predictions_follow_from_the_lines_and_ratios_from_the_predictions():
    lines = {row[0]: (number(row[1]), number(row[2])) for row in table("fitted")}
    rows = table("| 300,000: predicted")
    assert [row[0] for row in rows] == list(lines)
    assert len(rows) == len(scale.CHECKED)
    for name, *cells in rows:
        fixed, million = lines[name]
        for millions, (predicted, measured, ratio) in ((0.3, cells[:3]), (1.0, cells[3:])):
            assert number(predicted) == pytest.approx(fixed + million * millions, rel=0.01)
            assert number(ratio) == pytest.approx(number(measured) / number(predicted), abs=0.006)
            assert abs(number(ratio) - 1) <= scale.WITHIN


def test_the_first_line_of_the_estimate_by_hand():
    page = {row[0]: row[1:] for row in table("what | arithmetic")}
    constants = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.e-]+)[,)]", TEXT)}
    images, processes = 1_000_000, 40
    listing = 1_000 * 0.2 + images * constants["listing"] * 2
    converting = max(images * 2.6e-3 * 2 / processes, images * 0.05 / (processes * REMOTE_READERS))
    shards = math.ceil(images * constants["output_bytes"] / 2**27)
    publishing = images * constants["publishing"] * 2 + shards * (1 + 4 / MOVES_AT_ONCE) * 0.05
    seconds = (
        240 + listing + images * constants["shuffling"] * 2 / processes + converting + publishing
    )
    shown = [
        page[name][1] for name in ("listing", "converting", "shards", "publishing", "total time")
    ]
    assert shown == [
        f"{listing:.0f} s",
        f"{converting:.0f} s",
        f"{shards}",
        f"{publishing:.0f} s",
        f"{seconds / 60:.1f} min",
    ]
    hours = seconds / 3_600
    costs = [
        40 * hours * 0.056,
        160 * hours * 0.0036,
        0.4,
        images * constants["shuffled_bytes"] / 1e9 * 0.011,
    ]
    assert [number(page[name][1]) for name in ("vCPUs", "memory", "reads", "shuffle")] == [
        round(cost, 3 if cost < 0.01 else 2) for cost in costs
    ]
    assert number(page["total"][1]) == round(sum(costs), 2)
    first = table("images | workers of 4 vCPUs")[0]
    assert (number(first[3]), first[8], number(first[10])) == (
        shards,
        f"{seconds / 60:.1f}",
        round(sum(costs), 2),
    )


def test_the_bounds_are_those_of_the_code():
    assert f"{MAX_BINS:,} bins per split" in TEXT
    assert f"at most {MOST_PER_SHARD:,}" in TEXT
    assert f"sorts {HELD_REFERENCES:,} references" in TEXT
    assert f"about {GROUP_IMAGES // 10**6} million images" in TEXT
    assert (scale.SIZE, scale.CLASSES, f"{scale.IMAGES_A_SHARD:,} of them" in TEXT) == (
        (64, 48),
        100,
        True,
    )
    assert scale.KEEPING in TEXT
