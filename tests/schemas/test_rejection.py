import pickle
import re
from pathlib import Path

import pytest

from recordmill.schemas.rejection import (
    IGNORED,
    LEFT_OUT,
    NOT_KEPT,
    REASONS,
    LeftOut,
    Rejected,
    describe_error,
    explain_reason,
)


def test_a_rejection_has_stage_reason_detail_and_digest():
    rejected = Rejected("decode", "truncated", "the data end early", "ab")
    assert (rejected.stage, rejected.reason, rejected.detail, rejected.sha256) == (
        "decode",
        "truncated",
        "the data end early",
        "ab",
    )
    assert str(rejected) == "truncated: the data end early"
    assert Rejected("list", "no_class", "none").sha256 == ""


def test_it_crosses_process_borders():
    copy = pickle.loads(pickle.dumps(Rejected("decode", "truncated", "ends early", "ab")))
    assert (copy.stage, copy.reason, copy.detail, copy.sha256) == ("decode", "truncated", "ends early", "ab")


def test_what_is_left_out_crosses_them_too():
    copy = pickle.loads(pickle.dumps(LeftOut("too_small", "9 x 9 pixels")))
    assert (copy.stage, copy.reason, copy.detail, copy.sha256) == ("encode", "too_small", "9 x 9 pixels", "")
    assert set(NOT_KEPT) < set(LEFT_OUT)


def test_a_description_is_one_short_line_without_addresses():
    error = OSError("cannot identify image file <_io.BytesIO object at 0x7f00deadbeef>\n  in " + "x" * 300)
    assert describe_error(error) == ("OSError: cannot identify image file <_io.BytesIO> in " + "x" * 300)[:200]


def test_a_meaning_that_two_stages_share_is_given_once():
    assert explain_reason("rejected", "too_many_bytes") == "the file is larger than `images.max_bytes`"


def test_a_reason_of_several_stages_has_all_its_meanings():
    meanings = [reasons["bad_row"] for reasons in REASONS.values() if "bad_row" in reasons]
    assert len(meanings) == 2
    assert explain_reason("rejected", "bad_row") == "; or ".join(meanings)


@pytest.mark.parametrize(
    ("fate", "code", "other"),
    [("left_out", "limit", "ignored"), ("ignored", "hidden", "left_out"), ("rejected", "truncated", "ignored")],
)
def test_a_reason_has_a_meaning_for_its_own_fate(fate, code, other):
    assert explain_reason(fate, code)
    assert explain_reason(other, code) == ""


def test_the_code_knows_no_other_reason_to_ignore_or_leave_out():
    code = "".join(path.read_text() for path in (Path(__file__).parents[2] / "transforms").rglob("*.py"))
    ignored = set(re.findall(r'notice\("ignored", "(\w+)"|other_files: ClassVar\[str\] = "(\w+)"', code))
    assert {one or other for one, other in ignored} <= IGNORED.keys()
    assert set(re.findall(r'notice\("left_out", "(\w+)"', code)) <= LEFT_OUT.keys()
