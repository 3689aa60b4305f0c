import hashlib
import json
import pickle
import re
from pathlib import Path

import pytest

from recordmill.schemas.rejection import (
    IGNORED,
    LEFT_OUT,
    NOT_KEPT,
    REASONS,
    Exclusions,
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
    assert (copy.stage, copy.reason, copy.detail, copy.sha256) == (
        "decode",
        "truncated",
        "ends early",
        "ab",
    )


def test_what_is_left_out_crosses_them_too():
    copy = pickle.loads(pickle.dumps(LeftOut("too_small", "9 x 9 pixels")))
    assert (copy.stage, copy.reason, copy.detail, copy.sha256) == (
        "encode",
        "too_small",
        "9 x 9 pixels",
        "",
    )
    assert set(NOT_KEPT) < set(LEFT_OUT)


def test_a_description_is_one_short_line_without_addresses():
    error = OSError(
        "cannot identify image file <_io.BytesIO object at 0x7f00deadbeef>\n  in " + "x" * 300
    )
    assert (
        describe_error(error)
        == ("OSError: cannot identify image file <_io.BytesIO> in " + "x" * 300)[:200]
    )


def test_a_meaning_that_two_stages_share_is_given_once():
    assert (
        explain_reason("rejected", "too_many_bytes") == "the file is larger than `images.max_bytes`"
    )


def test_a_reason_of_several_stages_has_all_its_meanings():
    meanings = [reasons["bad_row"] for reasons in REASONS.values() if "bad_row" in reasons]
    assert len(meanings) == 2
    assert explain_reason("rejected", "bad_row") == "; or ".join(meanings)


@pytest.mark.parametrize(
    ("fate", "code", "other"),
    [
        ("left_out", "limit", "ignored"),
        ("ignored", "hidden", "left_out"),
        ("rejected", "truncated", "ignored"),
    ],
)
def test_a_reason_has_a_meaning_for_its_own_fate(fate, code, other):
    assert explain_reason(fate, code)
    assert explain_reason(other, code) is None


def test_the_code_knows_no_other_reason_to_ignore_or_leave_out():
    code = "".join(
        path.read_text() for path in (Path(__file__).parents[2] / "transforms").rglob("*.py")
    )
    ignored = set(
        re.findall(r'notice\("ignored", "(\w+)"|other_files: ClassVar\[str\] = "(\w+)"', code)
    )
    assert {one or other for one, other in ignored} <= IGNORED.keys()
    assert set(re.findall(r'notice\("left_out", "(\w+)"', code)) <= LEFT_OUT.keys()


DIGEST = "ab" * 32
LINES = [
    "# removed on request\n",
    "\n",
    "key:cat/é.jpg\r\n",
    f"sha256: {DIGEST.upper()} \n",
    "key:a:b# c\n",
    "key:a:b# c\n",
]
FOUND = Exclusions(frozenset({"cat/é.jpg", "a:b# c"}), frozenset({DIGEST}))


def test_lines_are_keys_and_digests():
    assert Exclusions.parse(LINES) == FOUND
    assert len(FOUND) == 3


def test_keys_are_in_unicodes_composed_form():
    assert Exclusions.parse(["key:cat/e\u0301.jpg"]).keys == {"cat/é.jpg"}


def test_the_digest_is_of_the_sorted_lines():
    text = f"key:a:b# c\nkey:cat/é.jpg\nsha256:{DIGEST}\n"
    assert (
        FOUND.digest
        == Exclusions.parse(LINES[::-1]).digest
        == hashlib.sha256(text.encode()).hexdigest()
    )


@pytest.mark.parametrize(
    "line", ["cat/é.jpg", "key:", "sha256:abc", f"sha256:{'x' * 64}", "keys:a", " key:a", "sha256"]
)
def test_a_malformed_line_is_named(line):
    with pytest.raises(ValueError, match=r"^line 2 is ") as caught:
        Exclusions.parse(["# one\n", f"{line}\n"])
    assert (
        str(caught.value)
        == f"line 2 is {line.strip()!r}: write key:KEY, or sha256: and 64 hex digits"
    )


@pytest.mark.parametrize(
    ("key", "sha256", "found"),
    [
        ("cat/é.jpg", None, ["key:cat/é.jpg"]),
        ("a:b# c", DIGEST, ["key:a:b# c", f"sha256:{DIGEST}"]),
        ("other", DIGEST, [f"sha256:{DIGEST}"]),
        ("other", "cd", []),
        ("other", None, []),
    ],
)
def test_the_lines_that_an_image_fits(key, sha256, found):
    names = tuple(hashlib.sha256(line.encode()).hexdigest()[:16] for line in found)
    assert FOUND.find(key, sha256) == names


def test_lines_of_the_list_of_rejected_things_exclude_their_keys():
    row = {"uri": "/in/cat/a.jpg", "reason": "empty", "key": "cat/a\u0301.jpg", "sha256": None}
    found = Exclusions.parse(["key:b.jpg", json.dumps(row) + "\n", ""])
    assert found == Exclusions(frozenset({"b.jpg", "cat/\u00e1.jpg"}))


@pytest.mark.parametrize("line", ["{", '{"key": 3}', '{"uri": "x"}', '{"key": ""}'])
def test_other_json_excludes_nothing(line):
    with pytest.raises(ValueError, match=r"^line 1 is .*: write key:KEY, or sha256: and 64 hex"):
        Exclusions.parse([line])
