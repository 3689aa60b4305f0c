import json

from recordmill.transforms.publishing.rejected_list import (
    MOST_NAMED,
    RejectedItem,
    RejectedList,
    read_rejected,
)


def write_list(folder, rows):
    lines = [json.dumps({"key": key, "reason": reason, "detail": "why"}) for key, reason in rows]
    (folder / "rejected.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")


def test_the_first_items_by_key_and_of_each_reason_are_kept(tmp_path):
    rows = [(f"{number:03}.jpg", "empty") for number in range(60, 0, -1)] + [("z.jpg", "bad_row")]
    write_list(tmp_path, rows)
    listed = read_rejected(str(tmp_path), {})
    assert listed.path == str(tmp_path / "rejected.jsonl")
    keys = [item.key for item in listed.first]
    assert keys == [f"{number:03}.jpg" for number in range(1, MOST_NAMED + 2)]
    assert listed.examples == {"empty": "001.jpg (why)", "bad_row": "z.jpg (why)"}
    assert listed.show_first({"empty": 60, "bad_row": 1}) == [
        "empty: 001.jpg (why)",
        "bad_row: z.jpg (why)",
        "empty: 002.jpg (why)",
        "empty: 003.jpg (why)",
        "empty: 004.jpg (why)",
    ]


def test_a_list_that_cannot_be_read_gives_the_examples(tmp_path):
    examples = {"empty": "a.jpg (why)"}
    assert read_rejected(str(tmp_path), examples) == RejectedList(examples=examples)
    for content in ("{", "[]", '{"key": "a"}'):
        (tmp_path / "rejected.jsonl").write_text(content, encoding="utf-8")
        assert read_rejected(str(tmp_path), examples) == RejectedList(examples=examples)


def test_an_item_is_one_line():
    assert RejectedItem("a\nb.jpg", "empty", "no\nbytes").text == "a b.jpg (no bytes)"
