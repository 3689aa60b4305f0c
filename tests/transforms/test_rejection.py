from recordmill.transforms.rejection import REASONS, RejectedImage, explain_reason


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
    assert explain_reason("bad_row") == "; or ".join(meanings)
    assert explain_reason("limit") == ""
