from recordmill.reading.analyze.label_range import LabelRange
from recordmill.reading.dataset import Dataset
from recordmill.reading.example_walk import ExampleWalk
from recordmill.reading.expectations import expect
from recordmill.schemas.features import Feature


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


def test_every_label_of_boxes_and_of_images_with_several_is_looked_at(example):
    features = [Feature("one", "int64", "label", ""), Feature("some", "int64", "labels", "", many=True)]
    features.append(Feature("boxes", "int64", "box_labels", "", many=True))
    expected = expect(Dataset("/x", "files", (), tuple(features), labels={"cat": 1, "dog": 2}))

    def judged(**values):
        data = memoryview(example(values))
        return LabelRange(expected).judge(data, ExampleWalk()(data))

    assert judged(one=1, some=[2, 1], boxes=[1, 1]) == ""
    assert judged(one=1, some=[2, 3]) == "the label is 3, none of the 2 ids from 1 to 2 (some)"
    assert judged(one=1, some=[2], boxes=[1, 9]) == "the label is 9, none of the 2 ids from 1 to 2 (boxes)"
