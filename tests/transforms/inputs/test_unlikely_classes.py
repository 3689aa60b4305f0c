import pytest

from recordmill.transforms.inputs.unlikely_classes import (
    are_hex_digits,
    are_numbered,
    are_unlikely_classes,
)


@pytest.mark.parametrize(
    "names",
    [
        ["train", "val"],
        ["part1", "part2"],
        ["patient_01", "patient_02"],
        ["P1", "P22"],
        ["sub-01", "sub-02"],
        ["10253", "10254"],
        ["layer1", "layer2"],
        ["3fa9c1d2", "77e0aa01"],
        list("0123456789abcdef"),
        [],
    ],
    ids=str,
)
def test_splits_parts_people_layers_and_hashes_are_not_classes(names):
    assert are_unlikely_classes(names)


@pytest.mark.parametrize(
    "names", [["cat", "dog"], ["0", "1"], ["train", "bus"], ["part1", "cat"], list("ABC")], ids=str
)
def test_other_names_may_be_classes(names):
    assert not are_unlikely_classes(names)


def test_digits_of_hashes():
    assert are_hex_digits([f"{number:02x}" for number in range(256)])
    assert not are_hex_digits(list("0123456789"))
    assert not are_hex_digits(list("ABCDEF"))
    assert not are_hex_digits(list("0123456789abcdefg"))


def test_folders_that_are_counted():
    assert are_numbered(["character01", "character2"])
    assert not are_numbered(["normal", "tumor"])
    assert not are_numbered(["a1", "b1"])
