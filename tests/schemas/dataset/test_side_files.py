import json

import pytest

from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.side_files import (
    DuplicateGroup,
    RejectedFile,
    RejectedRow,
    ReportData,
    SidecarRow,
    row_from_json,
    row_to_json,
)

SAME = {
    "kind": "same_bytes",
    "sha256": "00",
    "count": 2,
    "splits": ["train"],
    "classes": ["", "cat"],
}
SAME |= {
    "images": [
        {"key": "a", "split": "train", "class": None},
        {"key": "b", "split": "train", "class": "cat"},
    ]
}
ALIKE = {"kind": "look_alike", "distance": 3, "splits": ["train"], "classes": ["cat"]}
ALIKE |= {"images": [{"key": "a", "split": "train", "class": "cat", "sha256": "00"}]}
REJECTED = {
    "uri": "in/a",
    "stage": "decode",
    "reason": "empty",
    "detail": "x",
    "bytes": None,
    "sha256": None,
}
REJECTED |= {"class": None, "key": "a"}
REPORT = {
    "remarks": [{"text": "One.", "section": "sizes"}],
    "rejected": [{"key": "a.jpg", "reason": "truncated", "picture": "AAAA"}],
}


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (DuplicateGroup, SAME),
        (DuplicateGroup, ALIKE),
        (RejectedFile, REJECTED),
        (ReportData, REPORT),
    ],
)
def test_lines_are_read_and_written_key_by_key(kind, line):
    assert json.dumps(to_json(from_json(kind, line))) == json.dumps(line)


RECORD = {"key": "a.jpg", "bytes": 9, "sha256": "ab", "class": None, "label": None}
IMAGE = {"height": 2, "width": 3, "channels": 1, "moments": None}
PLACE = {"changes": [], "offset": 16, "length": 7, "record": "cd"}
MORE = {
    "difference_hash": "00",
    "annotations": {"boxes": {"listed": 1, "written": 1}},
    "classes": ["cat"],
}
REJECTED = {"key": "a.jpg", "spelling": None, "bytes": None, "sha256": None, "class": "cat"}
REJECTED |= {"stage": "read", "rejected": "vanished", "detail": "it is gone"}


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        ({**RECORD, **PLACE}, SidecarRow),
        ({**RECORD, **IMAGE, **PLACE}, SidecarRow),
        ({**RECORD, **IMAGE, "moments": [[1, 2]], **PLACE, **MORE}, SidecarRow),
        (REJECTED, RejectedRow),
        ({**REJECTED, "annotations": MORE["annotations"]}, RejectedRow),
        ({**REJECTED, "rejected": None, "left_out": "too_small"}, RejectedRow),
    ],
)
def test_a_row_is_written_as_it_was_read(stored, kind):
    row = row_from_json(stored)
    assert type(row) is kind
    assert row_to_json(row) == stored


def test_rows_of_format_2_are_read_as_present_ones():
    boxes = {"clipped": 1, "listed": 3, "written": 2, "empty": 1}
    row = row_from_json({**RECORD, **IMAGE, **PLACE, "boxes": boxes})
    counts = {"listed": 3, "written": 2, "dropped": {"empty": 1}, "noted": {"clipped": 1}}
    assert row.annotations == {"boxes": counts}
    rejected = row_from_json({**REJECTED, "boxes": {"listed": 1, "with_rejected_images": 1}})
    assert rejected.annotations["boxes"]["dropped"] == {"with_rejected_images": 1}
    assert row_from_json({**RECORD, "boxes": None}).annotations is None


def test_keys_have_a_fixed_order():
    row = row_from_json({**RECORD, **IMAGE, **PLACE, **MORE})
    assert list(row_to_json(row)) == [
        *RECORD,
        *IMAGE,
        "changes",
        *MORE,
        "offset",
        "length",
        "record",
    ]
    assert list(row_to_json(row_from_json(REJECTED))) == list(REJECTED)


@pytest.mark.parametrize("value", [None, 3, [], "text"])
def test_what_is_not_an_object_is_an_error(value):
    with pytest.raises((AttributeError, TypeError)):
        row_from_json(value)


@pytest.mark.parametrize(
    "forged", [{"key": ["a"]}, {"key": None}, {"sha256": ["a"]}, {"sha256": 3}], ids=repr
)
@pytest.mark.parametrize("stored", [{**RECORD, **PLACE}, REJECTED], ids=["record", "rejected"])
def test_a_key_and_a_digest_are_text(stored, forged):
    with pytest.raises(ValueError, match=r"^key .+ or sha256 .+ is not text$"):
        row_from_json(stored | forged)
