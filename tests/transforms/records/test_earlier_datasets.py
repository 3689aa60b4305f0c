"""Whole conversions that reuse images are in tests/pipeline/test_reuse.py."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest
from make_marker import EMPTY_RUN, make_marker, marker_json

from recordmill.imaging import imaging_versions
from recordmill.schemas.dataset.marker import PLAN_VERSION, PlanEntry
from recordmill.schemas.dataset.record_index import UNKNOWN, RowOrigin
from recordmill.schemas.digests import order_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.planning.earlier_dataset import (
    EarlierDataset,
    ReusableDataset,
    open_earlier,
)
from recordmill.transforms.records import earlier_datasets
from recordmill.transforms.records.earlier_datasets import (
    find_known_digest,
    find_reusable,
    join_earlier,
)

RECIPE = {"images": {"quality": 95}, "decode": "images", "features": {}, "source": {"kind": "x"}}
RECIPE |= {"versions": imaging_versions(), "plan_version": PLAN_VERSION, "compression": "none"}
ANOTHER_VERSION = (
    "it was made by another version of Recordmill, in which equal settings may give other bytes "
    f"(plan version 1, now {PLAN_VERSION})"
)
IMAGE = {"image": {"kind": "bytes", "shape": [], "field": "encoded", "meaning": ""}}


@pytest.fixture
def folder(tmp_path):
    """`folder(recipe, **changes)`: a folder with a marker."""

    def write(recipe=RECIPE, **changed):
        changed = {"features": IMAGE} | changed
        marker = marker_json(recipe, **changed)
        (tmp_path / "recordmill.json").write_text(json.dumps(marker))
        return open_earlier(str(tmp_path))

    return write


def join(datasets, refs):
    orders = sorted(order_of(0, ref.key) for ref, _ in refs)
    return list(join_earlier(datasets, refs, orders, 0))


def test_a_dataset_with_the_same_settings_for_images_is_reusable(folder):
    earlier = folder()
    assert find_reusable([earlier], PlanEntry("", RECIPE)) == (
        (ReusableDataset(earlier, True, True, same_files=True),),
        (),
    )


@pytest.mark.parametrize(
    ("recipe", "changed", "new", "why"),
    [
        (RECIPE, {}, {"features": {"f": 1}}, "the settings call functions"),
        (RECIPE, {}, {"images": {"quality": 9}}, "images.quality: 95 -> 9"),
        ({**RECIPE, "plan_version": 1}, {}, {}, ANOTHER_VERSION),
        (RECIPE, {"features": {}}, {"convention": "slim"}, "its records have no images"),
    ],
)
def test_any_other_one_is_not_and_a_note_says_why(folder, recipe, changed, new, why):
    earlier = folder(recipe, **changed)
    assert find_reusable([earlier], PlanEntry("", {**RECIPE, **new})) == (
        (),
        (f"no image of {earlier.folder} could be reused: {why}",),
    )


@pytest.mark.parametrize(
    ("old", "new", "same_files"),
    [
        ({"compression": "gzip", "versions": imaging_versions() | {"zlib": "1"}}, {}, False),
        (
            {"versions": imaging_versions() | {"zlib": "1"}},
            {"versions": imaging_versions() | {"zlib": "2"}},
            False,
        ),
        ({"limit": 7}, {"shards": {"count": 3}}, True),
        ({"source": {"kind": "y"}}, {"convention": "slim"}, True),
    ],
)
def test_datasets_with_other_images_or_shards_are_reusable(folder, old, new, same_files):
    earlier = folder(RECIPE | old)
    same_source = "source" not in old
    assert find_reusable([earlier], PlanEntry("", RECIPE | new)) == (
        (ReusableDataset(earlier, same_source, True, same_files),),
        (),
    )


def test_records_with_functions_can_be_copied_and_their_images_cannot_be_in_others(folder):
    recipe = RECIPE | {"features": {"f": 1}}
    earlier = folder(recipe)
    assert find_reusable([earlier], PlanEntry("", recipe)) == (
        (ReusableDataset(earlier, True, False, True),),
        (),
    )


def test_without_earlier_datasets_references_come_alone():
    refs = [(ImageRef("a", "/a"), RowOrigin(1)), (ImageRef("b", "/b"), UNKNOWN)]
    assert join((), refs) == [(*refs[0], None, ()), (*refs[1], None, ())]


def test_a_dataset_that_is_gone_has_no_records(folder, tmp_path):
    refs = [(ImageRef("a", "/a"), RowOrigin(1)), (ImageRef("b", "/b"), UNKNOWN)]
    earlier = folder()
    gone = tmp_path / "recordmill.json"
    gone.unlink()
    joined = [(*refs[0], None, (str(gone),)), (*refs[1], None, ())]
    assert join([ReusableDataset(earlier, True, True)], refs) == joined


def test_a_dataset_that_another_run_has_replaced_has_no_records(folder):
    ref = (ImageRef("a", "/a"), UNKNOWN)
    earlier = folder()
    folder(run={**EMPTY_RUN, "id": "another"})
    assert join([ReusableDataset(earlier, True, True)], [ref]) == [(*ref, None, ())]


def test_a_dataset_whose_index_is_damaged_has_no_records(folder, tmp_path):
    ref = (ImageRef("a", "/a"), UNKNOWN)
    reusable = ReusableDataset(folder(), True, True)
    assert join([reusable], [ref]) == [
        (*ref, None, (str(tmp_path / reusable.dataset.marker.index),))
    ]


def test_the_threads_of_a_process_read_the_digests_once(monkeypatch):
    both, opened = Barrier(2), []

    def open_slowly(dataset):
        opened.append(dataset)
        with suppress(BrokenBarrierError):  # a second thread may come here, and must not
            both.wait(timeout=0.3)
        return (), ()

    monkeypatch.setattr(earlier_datasets, "_open_dataset", open_slowly)
    datasets = (ReusableDataset(EarlierDataset("somewhere", make_marker()), True, True),)
    with ThreadPoolExecutor(2) as pool:
        found = list(
            pool.map(lambda key: find_known_digest(ImageRef(key, "/a"), datasets, 0), "ab")
        )
    assert found == [None, None]
    assert opened == [*datasets]
