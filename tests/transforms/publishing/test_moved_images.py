import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_marker import make_marker

from recordmill.transforms.publishing import moved_images
from recordmill.transforms.publishing.moved_images import compare_splits, count_moved, describe_moved
from recordmill.transforms.publishing.statistics import Sidecar


def digest(number):
    return f"{number:016x}" + 48 * "0"


@pytest.fixture
def sidecars(tmp_path):
    """`sidecars(word, {split: contents})`: paths by split; a negative content is a rejected row."""

    def write(word, splits):
        paths = {}
        for split, contents in splits.items():
            rows = [
                {"key": "a", "sha256": digest(number)} if number >= 0 else {"key": "a", "sha256": None, "rejected": "x"}
                for number in contents
            ]
            path = tmp_path / f"{word}-{split}.jsonl"
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            paths[split] = [str(path)]
        return paths

    return write


def test_what_has_moved_is_counted_by_where_from_and_where_to(sidecars):
    old = sidecars("old", {"train": [1, 2, 3], "test": [4, 5, -1], "gone": [6]})
    new = sidecars("new", {"train": [1, 4, 5, 7], "test": [2, -1], "added": [3, 6]})
    assert count_moved(old, new) == {
        ("train", "test"): 1,
        ("train", "added"): 1,
        ("test", "train"): 2,
        ("gone", "added"): 1,
    }


def test_a_copy_that_was_in_both_splits_has_not_moved(sidecars):
    old = sidecars("old", {"train": [1, 2], "test": [1, 3, 3]})
    assert count_moved(old, sidecars("same", {"train": [1, 2], "test": [1, 3]})) == {}
    assert count_moved(old, sidecars("new", {"train": [1, 2, 3], "test": [1]})) == {("test", "train"): 1}


contents = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=9), max_size=3)


@given(contents, contents)
def test_it_is_the_difference_of_sets(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("moved")

    def write(word, splits):
        paths = {}
        for split, numbers in splits.items():
            path = folder / f"{word}{split}"
            path.write_text("".join(f"{json.dumps({'sha256': digest(number)})}\n" for number in numbers))
            paths[split] = [str(path)]
        return paths

    expected = {
        (left, entered): count
        for left, before in old.items()
        for entered, after in new.items()
        if left != entered and (count := len(set(before) & set(after) - set(old.get(entered, ()))))
    }
    assert count_moved(write("old", old), write("new", new)) == expected


def test_the_sentence_names_the_most_first():
    assert describe_moved({}, "image") == ""
    assert describe_moved({("test", "train"): 1}, "row") == (
        "1 row of the dataset that is replaced is in another split now: 1 from test to train"
    )
    assert describe_moved({("a", "b"): 2, ("test", "train"): 1200}, "image") == (
        "1,202 images of the dataset that is replaced are in another split now: 1,200 from test to train, 2 from a to b"
    )


def marker_of(paths, records=3):
    splits = {split: [{"sidecar": path, "records": records} for path in own] for split, own in paths.items()}
    return make_marker(splits={split: {"records": records, "shards": own} for split, own in splits.items()})


def test_the_sidecars_are_those_that_the_marker_names(sidecars, tmp_path):
    old = sidecars("old", {"train": [1, 2, 3], "test": [4, 5, 6]})
    new = [Sidecar(split, *paths) for split, paths in sidecars("new", {"train": [1, 2, 4], "test": [3, 5, 6]}).items()]
    assert compare_splits(str(tmp_path), marker_of(old), new, 6, "image") == (
        "2 images of the dataset that is replaced are in another split now: 1 from test to train, 1 from train to test"
    )
    assert compare_splits(str(tmp_path), marker_of({"train": [sidecar.path for sidecar in new]}), new, 6, "image") == (
        "3 images of the dataset that is replaced are in another split now: 3 from train to test"
    )


def test_splits_that_cannot_be_compared_are_reported(sidecars, tmp_path, monkeypatch):
    absent = marker_of({"train": ["absent.jsonl"]})
    assert compare_splits(str(tmp_path), absent, [], 0, "image") == (
        "whether images have moved between splits is not known: sidecars of the replaced dataset are missing"
    )
    monkeypatch.setattr(moved_images, "MOST_COMPARED", 8)
    assert compare_splits(str(tmp_path), marker_of({"train": [], "test": []}), [], 3, "row") == (
        "whether rows have moved between splits was not checked: they are more than 8"
    )
    assert compare_splits(str(tmp_path), marker_of({"train": [], "test": []}), [], 2, "row") == ""
