import numpy as np
import pytest

from recordmill.schemas.errors import UsageError
from recordmill.viewing.image_table import (
    AT_ONCE,
    ImageFacts,
    ImageTable,
    NumberedNames,
    pack_images,
)

FACTS = [
    ImageFacts("cat/a.jpg", ["cat"], width=4, height=3, changes=[], length=60, sha256="ab" * 32),
    ImageFacts("dog/\u00e9.jpg", ["dog", "cat", "dog"], 3, 1, 8, 8, ["rotated"], 76, 64, "", 1),
    ImageFacts("none.jpg", [], 0, 0, -1, -1, [], 200, 10, "00" * 31 + "01", 1),
]


@pytest.fixture
def table():
    growing = ImageTable()
    for each in FACTS:  # in three tables
        for packed in pack_images(growing.classes, [each]):
            growing.add(packed)
    return growing


def test_images_have_the_values_that_were_added(table):
    expected = [FACTS[0], ImageFacts(**{**_values(FACTS[1]), "classes": ["dog", "cat"]}), FACTS[2]]
    assert [table.facts(number) for number in range(3)] == expected
    assert table.facts(3) is None


def _values(facts):
    return {name: getattr(facts, name) for name in ImageFacts.__slots__}


def test_values_are_matched_and_counted(table):
    whole = table
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
    assert table.match_text(text).tolist() == matched


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
    assert table.order(by).tolist() == order


def test_nothing_else_can_be_sorted_by(table):
    with pytest.raises(UsageError, match="images cannot be sorted by 'color'"):
        table.order("color")


def test_a_row_takes_at_most_150_bytes():
    facts = (
        ImageFacts(f"a/folder/of/images/{n:08}.jpg", ["cat"], length=n, sha256=f"{n:064x}")
        for n in range(AT_ONCE + 1)
    )
    first, second = pack_images(NumberedNames(), facts)
    columns = [first.key_ends, first.class_numbers, first.class_ends, *first.numbers.values()]
    size = sum(each.nbytes for each in columns) + len(first.keys) + len(first.digests)
    assert (len(first), len(second)) == (AT_ONCE, 1)
    assert size / len(first) <= 150


def test_long_keys_are_sorted_whole():
    table = ImageTable()
    keys = ["a" * 80 + "2", "a" * 80 + "1", "b"]
    for packed in pack_images(table.classes, map(ImageFacts, keys)):
        table.add(packed)
    assert table.order("key").tolist() == [1, 0, 2]


def test_a_key_is_found_within_a_range(table):
    assert table.find_key("none.jpg", 0, 3) == 2
    assert table.find_key("none.jpg", 0, 2) is None
    assert table.find_key("a.jpg", 0, 3) is None


def test_a_digest_of_another_length_is_refused_and_moves_no_other():
    images = [ImageFacts("a.jpg", sha256="ab" * 31), ImageFacts("b.jpg", sha256="cd" * 32)]
    with pytest.raises(ValueError, match="does not have 64 digits"):
        list(pack_images(NumberedNames(), images))
