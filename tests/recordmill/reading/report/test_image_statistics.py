import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sidecar_lines import rejected, written

from recordmill.reading.dataset import FORGED, StoredShard
from recordmill.reading.report import image_statistics as statistics
from recordmill.reading.report.image_statistics import (
    ASPECT_BINS,
    BINS_PER_DOUBLING,
    count_aspects,
    gather_statistics,
)


@pytest.fixture
def sidecar(tmp_path):
    """`sidecar(rows, split)`: a sidecar that holds these rows."""
    names = iter("abcdefgh")

    def write(rows, split="train"):
        path = tmp_path / f"{next(names)}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return StoredShard(split, "", "", sidecar=str(path))

    return write


def in_bins(counts):
    return {int(at): int(counts[at]) for at in np.flatnonzero(counts)}


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_the_totals_are_exact(sidecar, monkeypatch, chunk):
    monkeypatch.setattr(statistics, "_CHUNK", chunk)
    rows = [
        written("a", width=8, height=6, size=100),
        rejected("x"),
        written("b", "dog", width=1, height=1, size=1, channels=1),
        written("c", None, width=4, height=12, size=2**20),
    ]
    train, test = (
        sidecar(rows),
        sidecar([written("d", width=8, height=6), rejected("y", "truncated")], "test"),
    )
    named = {("test", "d"), ("train", "d"), ("train", "b")}
    found = gather_statistics([train, test], {"cat": 2, "": 5, "dog": 0}, named)
    assert found.images == 4
    assert found.sizes == {(8, 6): 2, (1, 1): 1, (4, 12): 1}
    assert in_bins(found.widths) == {12: 2, 0: 1, 8: 1}
    assert in_bins(found.heights) == {10: 2, 0: 1, 14: 1}
    assert in_bins(found.file_bytes) == {26: 2, 0: 1, 80: 1}
    assert found.aspects.sum() == 4
    assert found.aspects[ASPECT_BINS // 2] == 1
    assert [(place.split, row.key) for place, row in found.samples["cat"]] == [
        ("train", "a"),
        ("test", "d"),
    ]
    assert [(place, row.key) for place, row in found.samples[""]] == [(train, "c")]
    assert found.samples["dog"] == []
    assert {name: (place.split, row.key) for name, (place, row) in found.named.items()} == {
        ("test", "d"): ("test", "d"),
        ("train", "b"): ("train", "b"),
    }


@pytest.mark.parametrize(
    "forged",
    [
        {"height": -3},
        {"width": 0.5},
        {"height": 2**63},
        {"bytes": None},
        {"bytes": 2**63},
        {"width": "w"},
    ],
)
def test_a_forged_row_is_an_error_instead_of_a_warning(sidecar, forged):
    with warnings.catch_warnings(action="error"), pytest.raises(FORGED):
        gather_statistics([sidecar([written("a", width=8, height=6) | forged])], {})


def test_images_are_counted_by_their_annotations_of_each_kind(sidecar):
    boxes = [
        {"listed": 2, "written": 2},
        {"listed": 3, "written": 0, "dropped": {"outside": 3}},
        {"listed": 2_000, "written": 2_000},
        {"listed": 0, "written": 0},
    ]
    rows = [written(f"{at}", annotations={"boxes": each}) for at, each in enumerate(boxes)]
    labels = {"labels": {"listed": 1, "written": 1}}
    rows += [rejected("x"), written("plain"), written("labeled", annotations=labels)]
    assert gather_statistics([sidecar(rows)], {}).annotated == {
        "boxes": {0: 2, 2: 1, statistics.MOST_COUNTED: 1},
        "labels": {1: 1},
    }


def test_sizes_and_samples_are_bounded(sidecar, monkeypatch):
    monkeypatch.setattr(statistics, "MOST_SIZES", 3)
    rows = [written(f"{number}", width=1 + number % 9, height=1) for number in range(90)]
    found = gather_statistics([sidecar(rows)], {"cat": 7})
    assert found.images == 90
    assert found.sizes == {(1, 1): 10, (2, 1): 10, (3, 1): 10}
    assert [row.key for _, row in found.samples["cat"]] == list("0123456")


def test_rows_without_pictures_have_no_sizes(sidecar):
    rows = [
        {
            key: value
            for key, value in written("a").items()
            if key not in ("height", "width", "channels")
        }
    ]
    found = gather_statistics([sidecar(rows)], {})
    assert (found.images, found.sizes) == (0, {})


def test_nothing_is_nothing(sidecar):
    found = gather_statistics([sidecar([])], {"cat": 3})
    assert (found.images, found.samples) == (0, {"cat": []})


@given(st.lists(st.tuples(st.integers(1, 65_500), st.integers(1, 65_500)), min_size=1, max_size=30))
def test_every_image_counts_once_and_turning_all_mirrors_the_shapes(sizes):
    widths, heights = np.array(sizes, float).T
    upright, turned = count_aspects(widths / heights), count_aspects(heights / widths)
    assert upright.sum() == len(sizes)
    assert upright.tolist() == turned.tolist()[::-1]


@pytest.mark.parametrize(
    ("width", "height", "place"),
    [(1, 1, 0), (2, 1, 1), (1, 2, -1), (65_500, 1, 4), (1, 65_500, -4), (100, 99, 0)],
)
def test_shapes_are_counted_in_doublings_from_square(width, height, place):
    assert in_bins(count_aspects(np.array([width / height]))) == {
        ASPECT_BINS // 2 + place * BINS_PER_DOUBLING: 1
    }


def test_an_image_of_several_classes_is_a_sample_of_the_one_with_the_fewest(sidecar):
    rows = [
        written("a", None, classes=["cat", "dog", "cat"]),
        written("b", None, classes=["cat", "dog"]),
        written("c", None, classes=["cat", "dog"]),
        written("d", None, classes=["cat", "dog"]),
        written("e", None, classes=[]),
    ]
    found = gather_statistics([sidecar(rows)], {"cat": 2, "dog": 2, "emu": 1})
    assert {name: [row.key for _, row in kept] for name, kept in found.samples.items()} == {
        "cat": ["a", "b"],
        "dog": ["a", "c"],
        "emu": [],
    }
