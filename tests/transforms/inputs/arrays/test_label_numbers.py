from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.transforms.inputs.arrays.label_arrays import announce_numbers, name_labels

FILE = ImageRef("x", "x")


def test_numbers_become_names():
    assert name_labels([1, 0, 7], {"cat": 0, "dog": 1}) == (["dog", "cat", "7"], set())
    assert name_labels(b"\2\1\2", {}) == (["2", "1", "2"], {1, 2})
    assert name_labels(["dog", "cat"], {}) == (["dog", "cat"], set())
    assert name_labels([], {}) == ([], set())


def test_classes_without_names_have_the_order_of_their_numbers():
    assert list(announce_numbers(FILE, {10, 9, -1})) == [ClassNames.of(FILE, {"-1": -1, "9": 9, "10": 10})]
    assert list(announce_numbers(FILE, set())) == []


@given(st.lists(st.integers(-300, 300)))
def test_each_label_is_the_class_that_is_announced_for_it(labels):
    names, numbers = name_labels(labels, {})
    assert [int(name) for name in names] == labels
    assert numbers == set(labels)
