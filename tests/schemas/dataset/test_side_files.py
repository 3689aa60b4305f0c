import json

import pytest

from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.side_files import DuplicateGroup, RejectedFile, ReportData

SAME = {"kind": "same_bytes", "sha256": "00", "count": 2, "splits": ["train"], "classes": ["", "cat"]}
SAME |= {"images": [{"key": "a", "split": "train", "class": None}, {"key": "b", "split": "train", "class": "cat"}]}
ALIKE = {"kind": "look_alike", "distance": 3, "splits": ["train"], "classes": ["cat"]}
ALIKE |= {"images": [{"key": "a", "split": "train", "class": "cat", "sha256": "00"}]}
REJECTED = {"uri": "in/a", "stage": "decode", "reason": "empty", "detail": "x", "bytes": None, "sha256": None}
REJECTED |= {"class": None, "key": "a"}
CHANGE = {"change": "rotated", "key": "a", "changes": ["reencoded", "rotated"], "before_bytes": 1, "after_bytes": 2}
REPORT = {"remarks": [{"text": "One.", "section": "sizes"}], "examples": [{**CHANGE, "before": "A", "after": "B"}]}


@pytest.mark.parametrize(
    ("kind", "line"),
    [(DuplicateGroup, SAME), (DuplicateGroup, ALIKE), (RejectedFile, REJECTED), (ReportData, REPORT)],
)
def test_lines_are_read_and_written_key_by_key(kind, line):
    assert json.dumps(to_json(from_json(kind, line))) == json.dumps(line)
