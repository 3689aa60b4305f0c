from collections import Counter

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings

from recordmill.schemas.digests import HASH_RANGE
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.find_split_cutoffs import FindSplitCutoffs
from recordmill.transforms.planning.splitting import (
    ImageSplitter,
    SplitCutoffs,
    bounds_by_rank,
    hash_key,
)

REFS = [
    *(
        ImageRef(f"{label}/{index}", "", label=label)
        for label, n in (("a", 57), ("b", 20), ("c", 3))
        for index in range(n)
    ),
    ImageRef("rejected", "").notice("rejected", "no_class"),
    ImageRef("ignored", "").notice("ignored", "hidden"),
]
IMAGES = [ref for ref in REFS if not ref.status]
STRATIFIED = SplitSettings(
    fractions={"train": 0.5, "validation": 0.25, "test": 0.25}, stratify=True
)


def find_cutoffs(splits, limit, limit_per_class=None):
    return FindSplitCutoffs(
        make_settings(seed=5, splits=splits, limit=limit, limit_per_class=limit_per_class)
    )


def check_selection(splits, limit, expected):
    with new_pipeline() as root:
        found = root | beam.Create([ReferenceBatch.of(REFS)]) | find_cutoffs(splits, limit)
        assert_that(found, equal_to([expected]))


def expected_selection(splits, limit):
    cutoff = sorted(hash_key(5, ref.key).take for ref in IMAGES)[limit] if limit else HASH_RANGE
    by_class = {}
    for ref in IMAGES:
        if hash_key(5, ref.key).take < cutoff:
            by_class.setdefault(ref.label, []).append(hash_key(5, ref.key).split)
    bounds = {label: bounds_by_rank(numbers, splits) for label, numbers in by_class.items()}
    return SplitCutoffs(cutoff, bounds if splits.stratify else {})


def places(splits, selection):
    splitter = ImageSplitter(5, splits, selection)
    return Counter((ref.label, *splitter.place(ref)[1:]) for ref in IMAGES)


def test_hash_splits_need_no_look_at_the_images():
    check_selection(SplitSettings(), None, SplitCutoffs())


@pytest.mark.parametrize("splits", [SplitSettings(), STRATIFIED], ids=["by hash", "stratified"])
@pytest.mark.parametrize("limit", [None, 33])
def test_the_selection_is_exactly_the_images(splits, limit):
    if limit or splits.stratify:
        check_selection(splits, limit, expected_selection(splits, limit))


@pytest.mark.parametrize("limit", [80, 81, 1000])
def test_a_limit_of_all_or_more_leaves_nothing_out(limit):
    check_selection(SplitSettings(), limit, SplitCutoffs())


def test_limit_is_exact():
    counts = places(SplitSettings(), expected_selection(SplitSettings(), 33))
    assert sum(count for (_, split, _), count in counts.items() if split) == 33


def test_stratified_shares_are_exact_to_one_image_of_each_class():
    counts = places(STRATIFIED, expected_selection(STRATIFIED, None))
    for label, size in (("a", 57), ("b", 20), ("c", 3)):
        for split, share in STRATIFIED.fractions.items():
            assert abs(counts[label, split, ""] - size * share) <= 1
    assert sum(counts.values()) == 80


def test_stratified_shares_are_exact_of_what_limit_leaves():
    counts = places(STRATIFIED, expected_selection(STRATIFIED, 33))
    taken = Counter()
    for (label, split, _), count in counts.items():
        taken[label] += count if split else 0
    assert taken.total() == 33
    for (label, split, _), count in counts.items():
        if split:
            assert abs(count - taken[label] * STRATIFIED.fractions[split]) <= 1


@pytest.mark.parametrize("batches", [1, 2, 7, 80])
def test_the_limit_is_the_same_however_images_are_dealt(batches):
    parts = [ReferenceBatch.of(REFS[start::batches]) for start in range(batches)]
    with new_pipeline() as root:
        found = root | beam.Create(parts) | find_cutoffs(SplitSettings(), 33)
        assert_that(found, equal_to([expected_selection(SplitSettings(), 33)]))


@pytest.mark.parametrize("batches", [1, 7])
@pytest.mark.parametrize("limit", [None, 25])
@pytest.mark.parametrize("splits", [SplitSettings(), STRATIFIED], ids=["by hash", "stratified"])
def test_a_limit_per_class_takes_the_lowest_hashes_of_each_class_before_the_limit(
    splits, limit, batches
):
    parts = [ReferenceBatch.of(REFS[start::batches]) for start in range(batches)]
    found = []
    with new_pipeline() as root:
        cutoffs = root | beam.Create(parts) | find_cutoffs(splits, limit, 10)
        assert_that(cutoffs, found.extend)
    splitter = ImageSplitter(5, splits, found[0])
    outcomes = {ref: splitter.place(ref)[1:] for ref in IMAGES}
    by_hash = sorted(IMAGES, key=lambda ref: hash_key(5, ref.key).take)
    kept = {
        ref for label in "abc" for ref in [each for each in by_hash if each.label == label][:10]
    }
    assert {ref for ref, (_, reason) in outcomes.items() if reason != "limit_per_class"} == kept
    taken = [ref for ref in by_hash if ref in kept][:limit]
    assert {ref for ref, (split, reason) in outcomes.items() if split and not reason} == set(taken)
    counts = Counter((ref.label, outcomes[ref][0]) for ref in taken)
    sizes = Counter(ref.label for ref in taken)
    for (label, split), count in counts.items() if splits.stratify else ():
        assert abs(count - sizes[label] * splits.fractions[split]) <= 1


def test_without_images_a_limit_leaves_nothing_out():
    with new_pipeline() as root:
        found = root | beam.Create([ReferenceBatch()]) | find_cutoffs(SplitSettings(), 33)
        assert_that(found, equal_to([SplitCutoffs()]))


MIXED = [
    ImageRef(f"{label}/{group}/{index}", "", label=label, group=f"g{group}")
    for group in range(12)
    for label, count in (("a", 3 + group % 3), ("b", group % 2))
    for index in range(count)
]


@pytest.mark.runner
def test_groups_stay_whole_whatever_classes_they_hold():
    with new_pipeline() as root:
        selections = root | beam.Create([ReferenceBatch.of(MIXED)]) | find_cutoffs(STRATIFIED, None)
        assert_that(selections, check_groups)


def check_groups(selections):
    (selection,) = selections
    splitter = ImageSplitter(5, STRATIFIED, selection)
    splits = {}
    for ref in MIXED:
        splits.setdefault(ref.group, set()).add(splitter.place(ref)[1])
    assert all(len(each) == 1 for each in splits.values())
    assert set().union(*splits.values()) == set(STRATIFIED.names)
    assert set(selection.class_bounds) == {"a"}, "b is in groups of a alone"
    counts = Counter(splitter.place(ref)[1] for ref in MIXED if ref.label == "a")
    whole = sum(counts.values())
    for name, share in STRATIFIED.fractions.items():
        assert abs(counts[name] - whole * share) <= 5
