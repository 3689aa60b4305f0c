import numpy as np
import pytest

from recordmill.schemas.errors import UsageError
from recordmill.viewing.image_table import AT_ONCE, GrowingTable, ImageFacts, pack_images

FACTS = [
    ImageFacts("cat/a.jpg", ["cat"], width=4, height=3, changes=[], length=60, sha256="ab" * 32),
    ImageFacts("dog/\u00e9.jpg", ["dog", "cat", "dog"], 3, 1, 8, 8, ["rotated"], 76, 64, "", 1),
    ImageFacts("none.jpg", [], 0, 0, -1, -1, [], 200, 10, "00" * 31 + "01", 1),
]


@pytest.fixture
def table():
    growing = GrowingTable()
    for each in FACTS:  # in three tables
        for packed in pack_images(growing.classes, [each]):
            growing.add(packed)
    return growing


def test_images_can_be_read_before_and_after_all_are_there(table):
    expected = [FACTS[0], ImageFacts(**{**_values(FACTS[1]), "classes": ["dog", "cat"]}), FACTS[2]]
    assert [table.facts(number) for number in range(3)] == expected
    assert table.facts(3) is None
    whole = table.join()
    assert [whole.facts(number) for number in range(3)] == expected
    assert [table.facts(number) for number in range(3)] == expected


def _values(facts):
    return {name: getattr(facts, name) for name in ImageFacts.__slots__}


def test_values_are_matched_and_counted(table):
    whole = table.join()
    assert whole.match_class("cat").tolist() == [True, True, False]
    assert whole.match_class("").tolist() == [False, False, True]
    assert whole.match_class("bird").tolist() == [False, False, False]
    assert whole.match_change("rotated").tolist() == [False, True, False]
    assert whole.match_change("nothing").tolist() == [True, False, True]
    counts = whole.count_classes(np.array([True, True, False]))
    assert dict(zip(whole.classes.names, counts.tolist(), strict=True)) == {
        "cat": 2,
        "dog": 1,
        "": 0,
    }


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("cat", [True, False, False]),
        ("JPG", [True, True, True]),
        ("\u00e9", [False, True, False]),
        ("jpgdog", [False, False, False]),  # not across keys
        (".jpg\0", [False, False, False]),
        ("", [False, False, False]),
    ],
)
def test_parts_of_keys_are_found(table, text, matched):
    assert table.join().match_text(text).tolist() == matched


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("", [0, 1, 2]),
        ("key", [0, 1, 2]),
        ("-key", [2, 1, 0]),
        ("pixels", [2, 0, 1]),
        ("-bytes", [1, 0, 2]),
        ("bytes_per_pixel", [2, 1, 0]),
        ("-objects", [1, 2, 0]),
    ],
)
def test_images_are_sorted(table, by, order):
    assert table.join().order(by).tolist() == order


def test_nothing_else_can_be_sorted_by(table):
    with pytest.raises(UsageError, match="images cannot be sorted by 'color'"):
        table.join().order("color")


def test_a_row_takes_at_most_150_bytes():
    facts = (
        ImageFacts(f"a/folder/of/images/{n:08}.jpg", ["cat"], length=n, sha256=f"{n:064x}")
        for n in range(AT_ONCE + 1)
    )
    growing = GrowingTable()
    for each in pack_images(growing.classes, facts):
        growing.add(each)
    whole = growing.join()
    columns = [whole.key_ends, whole.class_numbers, whole.class_ends, *whole.numbers.values()]
    size = sum(each.nbytes for each in columns) + len(whole.keys) + len(whole.digests)
    assert len(whole) == AT_ONCE + 1
    assert size / len(whole) <= 150
