import pytest
from make_marker import make_marker

from recordmill.reading.dataset import Dataset
from recordmill.reading.example import ParsedExample, expect
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.features import Feature

IDS = {"cat": 1, "dög": 2}
ONE = (Feature("id", "int64", "label", ""), Feature("text", "bytes", "label_text", ""))
BOXES = (
    Feature("ids", "int64", "box_labels", "", many=True),
    Feature("texts", "bytes", "box_label_texts", "", many=True),
)


def judge_all(features, records, labels=IDS, kind="recordmill"):
    marker = make_marker() if kind == "recordmill" else None
    expected = expect(Dataset("/x", kind, (), features, labels=labels, marker_or_none=marker))
    return [
        problem
        for record in records
        for problem in expected.judge_names(ParsedExample(record))
        if problem
    ]


def test_a_class_has_the_id_that_the_marker_gives_it(example):
    right = [example(id=1, text=b"cat"), example(id=2, text="dög".encode()), example(x=1)]
    assert judge_all(ONE, right) == []
    wrong = [
        *right,
        example(id=1, text="dög".encode()),
        example(id=2, text=b"cat"),
        example(id=2, text=b"cat"),
    ]
    assert judge_all(ONE, wrong) == [
        "class 'dög' has the id 1 here and 2 in recordmill.json",
        *["class 'cat' has the id 2 here and 1 in recordmill.json"] * 2,
    ]


def test_a_class_that_the_marker_does_not_know(example):
    assert judge_all(ONE, [example(id=1, text=b"yak")]) == ["class 'yak' is not in recordmill.json"]
    assert judge_all(ONE[1:], [example(text=b"yak")]) == ["class 'yak' is not in recordmill.json"]
    assert judge_all(ONE[1:], [example(text=b"cat")]) == []
    (line,) = judge_all(ONE, [example(id=1, text=b"\xff")])
    assert line == "class '\ufffd' is not in recordmill.json"


def test_an_unknown_id_is_reported_once(example):
    assert judge_all(ONE, [example(id=7, text=b"yak")]) == []


def test_every_box_is_checked(example):
    assert (
        judge_all(BOXES, [example(ids=[1, 2], texts=[b"cat", "dög".encode()]), example(x=1)]) == []
    )
    (line,) = judge_all(BOXES, [example(ids=[1, 1], texts=[b"cat", "dög".encode()])])
    assert line == "class 'dög' has the id 1 here and 2 in recordmill.json"
    (line,) = judge_all(BOXES, [example(ids=[1], texts=[b"cat", b"cat"])])
    assert line == "2 class names for 1 ids"


def test_of_strangers_nothing_is_known(example):
    assert judge_all(ONE, [example(id=1, text=b"yak")], kind="files") == []
    assert judge_all(ONE, [example(id=1, text=b"yak")], labels={}) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"class": "cat", "label": 1}, None),
        ({"class": None, "label": None}, None),
        ({"class": None, "label": None, "classes": ["cat", "dög", "cat"]}, None),
        ({"class": "cat", "label": 2}, "class 'cat' has the id 2 here and 1 in recordmill.json"),
        ({"class": "yak", "label": 3}, "class 'yak' is not in recordmill.json"),
        ({"class": None, "classes": ["cat", "yak"]}, "class 'yak' is not in recordmill.json"),
        ({"class": ["cat"], "label": {}}, "class ['cat'] is not in recordmill.json"),
        ({"classes": 3}, "class 3 is not in recordmill.json"),
    ],
)
def test_rows(row, problem):
    row = row_from_json({**row, "offset": 30, "key": "a"})
    for kind, said in (("recordmill", problem and f"in the sidecar {problem}"), ("files", None)):
        assert expect(Dataset("/x", kind, (), labels=IDS)).judge_row(row) == said


def judge(record, labels, features=()):
    return expect(Dataset("/x", "files", (), features, labels=labels)).judge_labels(
        ParsedExample(record)
    )


def test_labels_are_among_the_ids(example):
    labels = {"cat": 1, "dog": 2}
    problem = "the label is 7, not one of the 2 ids from 1 to 2 (image/class/label)"
    assert judge(example({"image/class/label": 2}), labels) is None
    assert judge(example({"image/class/label": 7}), labels) == problem
    assert judge(example({"image/class/label": [1, 7]}), labels) == problem
    assert judge(example({"image/class/label": b"cat"}), labels) is None
    assert judge(example({"other": 7}), labels) is None
    assert judge(example({"image/class/label": 7}), {}) is None


def test_all_labels_of_boxes_and_multi_label_images_are_checked(example):
    labels = {"cat": 1, "dog": 2}
    features = [
        Feature("one", "int64", "label", ""),
        Feature("some", "int64", "labels", "", many=True),
    ]
    features.append(Feature("boxes", "int64", "box_labels", "", many=True))
    assert judge(example(one=1, some=[2, 1], boxes=[1, 1]), labels, features) is None
    problem = "the label is {}, not one of the 2 ids from 1 to 2 ({})"
    assert judge(example(one=1, some=[2, 3]), labels, features) == problem.format(3, "some")
    assert judge(example(one=1, some=[2], boxes=[1, 9]), labels, features) == problem.format(
        9, "boxes"
    )
