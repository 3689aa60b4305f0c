from transforms.rejection import RejectedImage


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
