import re
from dataclasses import fields
from pathlib import Path

import pytest

from recordmill.schemas.dataset import marker, sidecar_row
from recordmill.schemas.dataset.annotation_counts import ImagesWithoutBoxes
from recordmill.schemas.features import FeatureEntry

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
SECTIONS = {
    "The marker": marker.Marker,
    "plan": marker.PlanEntry,
    "features": FeatureEntry,
    "splits": marker.SplitEntry,
    "splits.shards": marker.ShardEntry,
    "ledger": marker.Ledger,
    "named": marker.NamedImages,
    "images_without_boxes": ImagesWithoutBoxes,
    "duplicates": marker.DuplicateCounts,
    "duplicates.same_bytes": marker.SameBytes,
    "duplicates.look_alike": marker.LookAlikes,
    "run": marker.RunEntry,
    "Rows of records": sidecar_row.SidecarRow,
    "Rows of rejected references": sidecar_row.RejectedRow,
}
TABLES = {
    title: re.findall(r"^\| `(\w+)` \|", body, re.M)
    for title, body in re.findall(r"^###? (.+)\n((?:(?!##).*\n)*)", PAGE, re.M)
}


def test_each_table_describes_a_dataclass():
    assert {title for title, keys in TABLES.items() if keys} == set(SECTIONS)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_keys_are_the_fields(title):
    stored = [each for each in fields(SECTIONS[title]) if "rest" not in each.metadata]
    assert TABLES[title] == [each.metadata.get("key", each.name) for each in stored]


def test_the_version_is_the_current_one():
    assert f"version of the format: {marker.MARKER_FORMAT} |" in PAGE
