import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import pytest

from recordmill.schemas.dataset import marker, side_files
from recordmill.schemas.dataset.json_values import json_keys
from recordmill.schemas.dataset.marker import About
from recordmill.schemas.dataset.totals import BareImages
from recordmill.schemas.features import FeatureEntry

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
SECTIONS = {
    "The marker": marker.Marker,
    "The pointer": marker.Pointer,
    "plan": marker.PlanEntry,
    "features": FeatureEntry,
    "splits": marker.SplitEntry,
    "splits.shards": marker.ShardEntry,
    "fingerprint": marker.Fingerprint,
    "ledger": marker.Ledger,
    "named": marker.NamedImages,
    "annotations": marker.AnnotationEntry,
    "annotations.images_without": BareImages,
    "made_from": marker.SourceEntry,
    "duplicates": marker.DuplicateCounts,
    "duplicates.same_bytes": marker.SameBytes,
    "duplicates.look_alike": marker.LookAlikes,
    "about": About,
    "run": marker.RunEntry,
    "Rows of records": side_files.SidecarRow,
    "Rows of other references": side_files.RejectedRow,
}
TABLES = {
    title: re.findall(r"^\| `(\w+)` \| (.*?) \|", body, re.M)
    for title, body in re.findall(r"^###? (.+)\n((?:(?!##).*\n)*)", PAGE, re.M)
}
WORDS = {int: "integer", float: "number", str: "string", bool: "boolean", Any: "any"}
PLURALS = {
    "integer": "integers",
    "number": "numbers",
    "string": "strings",
    "object": "objects",
    "array": "arrays",
    "any": "",
}


def type_in_json(kind):
    """The type of a field as the page names it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return f"{type_in_json(inner[0])} or null"
    if origin is Literal:
        return "string"
    if origin in (tuple, Sequence) or (origin and issubclass(origin, Mapping)):
        plain, item = ("object", inner[1]) if issubclass(origin, Mapping) else ("array", inner[0])
        of = (
            PLURALS[type_in_json(item).split()[0]]
            if not is_dataclass(item) or plain == "array"
            else ""
        )
        return f"{plain} of {of}" if of else plain
    return "object" if is_dataclass(kind) else WORDS[kind]


def test_each_table_describes_a_dataclass():
    assert {title for title, keys in TABLES.items() if keys} == set(SECTIONS)


@pytest.mark.parametrize("title", SECTIONS)
def test_keys_and_types_are_those_of_the_fields(title):
    parts = json_keys(SECTIONS[title])
    # Rows of records without images lack `moments`; images whose values were not added up have null
    # there.
    types = [type_in_json(part.kind) + " or null" * (part.key == "moments") for part in parts]
    assert TABLES[title] == list(zip([part.key for part in parts], types, strict=True))


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_says_which_keys_may_be_absent(title):
    body = PAGE.split(f"# {title}\n")[1].split("\n#")[0]
    said = {key for key, line in re.findall(r"^\| `(\w+)` (.*)", body, re.M) if "absent" in line}
    assert said == {part.key for part in json_keys(SECTIONS[title]) if part.is_omitted}


def test_the_version_is_the_current_one():
    assert f"version of the format: {marker.MARKER_FORMAT} |" in PAGE
