import pytest

from recordmill.transforms.inputs.manifests.entry import Entry


def test_rows_of_boxes_of_one_image_become_one():
    first = Entry(uri="p", boxes=[[0, 0, 1, 1]], box_labels=["a"], size=(4, 3))
    assert not first.join(Entry(uri="p", boxes=[[0, 0, 0.5, 1]], box_labels=["b"], size=(4, 3)))
    assert (first.boxes, first.box_labels) == ([[0, 0, 1, 1], [0, 0, 0.5, 1]], ["a", "b"])


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (Entry(uri="p", boxes=[], split="TEST"), "its split is 'TEST', and an earlier row of 'p' has ''"),
        (Entry(uri="p", boxes=[], size=(4, 3)), "its size is (4, 3), and an earlier row of 'p' has None"),
        (Entry(uri="p", boxes=[], features={"n": 1}), "its features is {'n': 1}, and an earlier row of 'p' has {}"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(other, sentence):
    assert Entry(uri="p", boxes=[]).join(other) == sentence
