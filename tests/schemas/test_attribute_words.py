import itertools

import pytest

from recordmill.schemas.attribute_words import (
    MOST_ATTRIBUTES,
    MOST_WORDS,
    AttributeTallies,
    AttributeTally,
    AttributeText,
    describe_numbers,
    find_number,
)


def tally(*texts):
    found = AttributeTally()
    for text in texts:
        found.add(text)
    return found


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        (["true", "false"], {}),
        (["True", "0", "-7", "12"], {}),
        (["red", "blue", "red"], {"blue": 0, "red": 1}),
        (["true", "unknown", "false"], {"false": 0, "true": 1, "unknown": 2}),
        (["1", "07"], {"07": 0, "1": 1}),
        (["1.5", "2"], {"1.5": 0, "2": 1}),
        (["9" * 30], {"9" * 30: 0}),
    ],
)
def test_words_have_ids_and_whole_numbers_none(texts, ids):
    assert tally(*texts).number_words() == ids


@pytest.mark.parametrize(
    ("text", "words", "number"),
    [
        ("true", {}, 1),
        ("FALSE", {}, 0),
        ("-7", {}, -7),
        ("red", {"blue": 0, "red": 1}, 1),
        ("green", {"blue": 0, "red": 1}, None),
        ("green", {}, None),
        (None, {}, None),
    ],
)
def test_a_value_is_stored_as_a_number(text, words, number):
    assert find_number(text, words) == number


def test_long_texts_and_too_many_words_are_free_text():
    assert tally("a" * 201).is_free
    assert not tally("a" * 200).is_free
    assert not tally(*(f"w{n}" for n in range(MOST_WORDS))).is_free
    assert tally(*(f"w{n}" for n in range(MOST_WORDS + 1))).is_free
    assert not tally(*(str(n) for n in range(2 * MOST_WORDS))).is_free


def test_tallies_are_the_same_in_any_order():
    parts = [tally("red", "1"), tally(*(f"w{n}" for n in range(600))), tally("a" * 300, "true")]
    found = []
    for order in itertools.permutations(parts):
        total = AttributeTally()
        for part in order:
            total.merge(part)
        found.append(total)
    assert all(each == found[0] for each in found)
    assert (found[0].count, found[0].is_free) == (604, True)


def test_of_too_many_attributes_the_first_by_name_remain():
    names = [f"{n:03}" for n in range(2 * MOST_ATTRIBUTES)]
    one, two, merged = AttributeTallies(), AttributeTallies(), AttributeTallies()
    one.add(AttributeText(name, "1") for name in reversed(names))
    two.add(AttributeText(name, "2") for name in names)
    merged.merge(one)
    merged.merge(two)
    assert sorted(merged) == names[: MOST_ATTRIBUTES + 1]
    assert merged["000"] == tally("1", "2")


def test_features_say_what_the_ids_of_words_mean():
    assert describe_numbers("the color", {}) == "the color"
    assert (
        describe_numbers("the color", {"blue": 0, "red": 1}) == "the color: 0 for blue, 1 for red"
    )
    assert describe_numbers("x", {"a\nb": 0}) == r"x: 0 for a\nb"
    many = {f"{n:02}": n for n in range(30)}
    assert describe_numbers("x", many).endswith("18 for 18, 19 for 19, ...")
