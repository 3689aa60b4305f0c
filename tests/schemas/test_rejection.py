import re
from pathlib import Path

import pytest

from recordmill.schemas.rejection import IGNORED, LEFT_OUT, REASONS, RejectedImage, explain_reason


def test_it_says_where_why_and_of_which_bytes():
    rejected = RejectedImage("decode", "truncated", "the data end early", "ab")
    assert (rejected.stage, rejected.reason, rejected.detail, rejected.sha256) == (
        "decode",
        "truncated",
        "the data end early",
        "ab",
    )
    assert str(rejected) == "truncated: the data end early"
    assert RejectedImage("list", "no_class", "none").sha256 == ""


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
    ignored = set(re.findall(r'status="ignored",\s+reason="(\w+)"|other_files: ClassVar\[str\] = "(\w+)"', code))
    assert {one or other for one, other in ignored} <= IGNORED.keys()
    assert set(re.findall(r'status="left_out",\s+reason="(\w+)"', code)) <= LEFT_OUT.keys()
