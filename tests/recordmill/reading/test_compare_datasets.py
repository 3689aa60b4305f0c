import pytest
from make_marker import make_marker

from recordmill.reading.compare_datasets import compare_settings, judge_of, sort_entries
from recordmill.schemas.digests import order_of

IDS = {"cat": 0, "dog": 1}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ({"seed": 1}, {"seed": 1, "listing": {"digest": "x"}, "cuts": "y"}, []),
        ({"images": {"quality": 90}}, {"images": {"quality": 80}}, ["images.quality: 90 -> 80"]),
        ({"versions": {"pillow": "1"}}, {"versions": {"pillow": "2"}}, ["versions.pillow: 1 -> 2"]),
    ],
)
def test_settings_and_versions(one, other, found):
    assert compare_settings(make_marker(one), make_marker(other)) == found


def test_class_ids():
    before, after = make_marker(labels=IDS), make_marker(labels={"ape": 0, "cat": 1, "dog": 2})
    expected = ["labels.ape: not set -> 0", "labels.cat: 0 -> 1", "labels.dog: 1 -> 2"]
    assert compare_settings(before, after) == expected


@pytest.mark.parametrize(
    ("other", "labels", "comparable"),
    [
        ({"seed": 2, "shards": {"count": 3}, "splits": {}}, IDS, True),
        ({}, {**IDS, "emu": 2}, True),
        ({}, {"dog": 0, "emu": 1}, False),
        ({"images": {"quality": 80}}, IDS, False),
    ],
)
def test_whether_equal_sources_give_equal_examples(other, labels, comparable):
    recipe = {"seed": 1, "images": {"quality": 90}}
    before, after = make_marker(recipe, labels=IDS), make_marker({**recipe, **other}, labels=labels)
    assert judge_of(before, after).compares_rest is comparable


def test_whether_examples_have_their_split():
    split = {"kind": "bytes", "shape": [], "field": "split", "meaning": ""}
    assert judge_of(make_marker(), make_marker(features={"s": split})).stores_split
    assert not judge_of(make_marker(), make_marker()).stores_split


def test_entries_are_sorted_by_the_hashes_of_their_keys():
    keys = [f"é/{number}.jpg" for number in range(20)]
    found = list(sort_entries(((key, None, {"class": key}) for key in keys), 7))
    assert found == sorted((order_of(7, key), key, None, {"class": key}) for key in keys)
