from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import HASH_RANGE, hash_key
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.planning.splitting import (
    ImageSplitter,
    SplitCutoffs,
    bounds_by_rank,
    fill_empty_splits,
    split_bounds,
)

THREE = SplitSettings(fractions={"train": 0.8, "validation": 0.1, "test": 0.1})
KEYS = [f"cat/{index}.jpg" for index in range(4000)]


def split_of(key, settings=THREE, seed=0, group="", selection=None):
    return ImageSplitter(seed, settings, selection or SplitCutoffs()).place(
        ImageRef(key, key, group=group)
    )[1]


def test_fractions_are_kept_to_the_hashes_chance():
    counts = Counter(map(split_of, KEYS))
    assert counts["train"] == pytest.approx(3200, abs=100)
    assert counts["validation"] == pytest.approx(400, abs=75)
    assert counts["test"] == pytest.approx(400, abs=75)


def test_growth_moves_no_image():
    # The split is a function of the key alone: 10 % more images cannot matter to the old ones.
    before = {key: split_of(key) for key in KEYS[:100]}
    splitter = ImageSplitter(0, THREE, SplitCutoffs())
    after = {key: splitter.place(ImageRef(key, key))[1] for key in reversed(KEYS[:110])}
    assert {key: after[key] for key in before} == before


def test_seeds_give_other_splits():
    assert [split_of(key, seed=1) for key in KEYS[:50]] != [split_of(key) for key in KEYS[:50]]


def test_a_group_stays_together():
    groups = {
        f"p{number}": {split_of(key, group=f"p{number}") for key in KEYS[:20]}
        for number in range(50)
    }
    assert all(len(splits) == 1 for splits in groups.values())
    assert {"train", "validation", "test"} == set().union(*groups.values())


def test_what_the_fractions_leave_is_left_out():
    splitter = ImageSplitter(0, SplitSettings(fractions={"train": 0.5}), SplitCutoffs())
    places = [splitter.place(ImageRef(key, key))[1:] for key in KEYS]
    assert set(places) == {("train", ""), ("", "fraction")}
    assert places.count(("train", "")) == pytest.approx(2000, abs=130)


def test_a_given_split_wins_over_hash_and_move():
    hashes = hash_key(0, "a")
    splitter = ImageSplitter(0, THREE, SplitCutoffs(moved={hashes.split: "validation"}))
    assert splitter.place(ImageRef("a", "a", split="holdout"))[1] == "holdout"
    assert splitter.place(ImageRef("a", "a"))[1] == "validation"


def test_limit_takes_from_all_splits_alike():
    taken = sorted(hash_key(0, key).take for key in KEYS)[400]
    splitter = ImageSplitter(0, THREE, SplitCutoffs(cutoff=taken))
    places = Counter(splitter.place(ImageRef(key, key))[1:] for key in KEYS)
    assert places["", "limit"] == 3600
    assert places["train", ""] == pytest.approx(320, abs=35)
    assert places["validation", ""] == pytest.approx(40, abs=25)
    assert places["test", ""] == pytest.approx(40, abs=25)


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=6), st.integers(0, HASH_RANGE - 1))
def test_every_hash_is_in_one_range_when_the_shares_sum_to_one(shares, number):
    total = sum(shares)
    settings = SplitSettings(
        fractions={f"s{index}": share / total for index, share in enumerate(shares)}
    )
    bounds = split_bounds(settings)
    assert bounds == sorted(bounds)
    assert bounds[-1] > HASH_RANGE * (1 - 1e-12)
    index = bisect_right(bounds, number)
    assert index == len(shares) or (bounds[index - 1] if index else 0) <= number < bounds[index]


@given(
    st.sets(st.integers(0, HASH_RANGE - 1), max_size=60),
    st.lists(st.integers(1, 10), min_size=1, max_size=5),
    st.integers(0, 5),
)
def test_ranks_give_exact_shares(numbers, weights, left_out):
    total = sum(weights) + left_out
    settings = SplitSettings(
        fractions={f"s{i}": weight / total for i, weight in enumerate(weights)}, stratify=True
    )
    bounds = bounds_by_rank(sorted(numbers, reverse=True), settings)
    counts = Counter(bisect_right(bounds, number) for number in numbers)
    for index, weight in enumerate(weights):
        assert abs(counts[index] - len(numbers) * weight / total) <= 1


@given(
    st.dictionaries(st.integers(0, HASH_RANGE - 1), st.integers(1, 9), max_size=40),
    st.lists(st.integers(1, 10), min_size=1, max_size=5),
    st.integers(0, 5),
)
def test_ranks_of_groups_give_shares_to_the_largest_group(groups, weights, left_out):
    total = sum(weights) + left_out
    settings = SplitSettings(
        fractions={f"s{i}": weight / total for i, weight in enumerate(weights)}, stratify=True
    )
    numbers = [number for number, images in groups.items() for _ in range(images)]
    bounds = bounds_by_rank(numbers, settings)
    counts = Counter(bisect_right(bounds, number) for number in numbers)
    for index, weight in enumerate(weights):
        assert (
            abs(counts[index] - len(numbers) * weight / total)
            <= max(groups.values(), default=0) + 1
        )


@given(
    st.sets(st.integers(0, HASH_RANGE - 1), max_size=12),
    st.lists(st.integers(1, 100), min_size=1, max_size=6),
    st.integers(0, 100),
)
def test_no_split_stays_empty_where_there_are_as_many_groups_as_splits(numbers, weights, left_out):
    total = sum(weights) + left_out
    settings = SplitSettings(
        fractions={f"s{i}": weight / total for i, weight in enumerate(weights)}
    )
    splitter = ImageSplitter(0, settings, SplitCutoffs())
    home = {number: bisect_right(split_bounds(settings), number) for number in numbers}
    names = [*settings.names, ""]
    before = Counter(names[index] for index in home.values() if index < len(weights))
    nearest = {}
    for number in numbers:
        for name, middle in splitter.middles:
            nearest.setdefault(name, []).append((abs(number - middle), number))
    nearest = {name: sorted(near)[: len(weights) + 1] for name, near in nearest.items()}
    moved = fill_empty_splits(before, nearest, settings)
    after = Counter(moved.get(number) or names[home[number]] for number in numbers)
    assert all(after[name] for name in before), "a donor was emptied"
    assert all(not before[name] for name in moved.values()), (
        "a split that was not empty was given something"
    )
    if len(numbers) >= len(weights):
        assert all(after[name] for name in settings.names)


def test_an_empty_split_gets_the_nearest_hash_that_can_be_spared():
    settings = SplitSettings(fractions={"train": 0.5, "test": 0.5})
    splitter = ImageSplitter(0, settings, SplitCutoffs())
    middle = dict(splitter.middles)["test"]
    near = sorted((abs(number - middle), number) for number in (10, 20, HASH_RANGE // 4))
    assert fill_empty_splits({"train": 3}, {"test": near}, settings) == {HASH_RANGE // 4: "test"}


def test_hashes_decide_nothing_where_splits_are_given_or_ranked():
    for settings in (SplitSettings(from_folders={"a": "train"}), SplitSettings(stratify=True)):
        assert ImageSplitter(0, settings, SplitCutoffs()).middles == []
