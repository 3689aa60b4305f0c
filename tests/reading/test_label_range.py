from reading.dataset import Dataset
from reading.example_walk import ExampleWalk
from reading.expectations import expect
from reading.label_range import LabelRange


def judge(record, labels):
    data = memoryview(record)
    return LabelRange(expect(Dataset("/x", "files", (), labels=labels))).judge(data, ExampleWalk()(data))


def test_labels_are_among_the_ids(example):
    labels = {"cat": 1, "dog": 2}
    problem = "the label is 7, none of the 2 ids from 1 to 2 (image/class/label)"
    assert judge(example({"image/class/label": 2}), labels) == ""
    assert judge(example({"image/class/label": 7}), labels) == problem
    assert judge(example({"image/class/label": [1, 7]}), labels) == problem
    assert judge(example({"other": 7}), labels) == ""
    assert judge(example({"image/class/label": 7}), {}) == ""
