import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_marker import make_marker
from sidecar_lines import written
from write_shard import columns_of

from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.transforms.publishing import duplicates
from recordmill.transforms.publishing.duplicates import compare_splits, count_moved


def digest(number):
    return f"{number:016x}" + 48 * "0"


@pytest.fixture
def sidecars(tmp_path):
    """`sidecars(word, {split: contents})`: paths by split; a negative content is a rejected row."""

    def write(word, splits):
        paths = {}
        for split, contents in splits.items():
            rows = [
                {"key": "a", "sha256": digest(number)}
                if number >= 0
                else {"key": "a", "sha256": None, "rejected": "x"}
                for number in contents
            ]
            path = tmp_path / f"{word}-{split}.jsonl"
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            paths[split] = [str(path)]
        return paths

    return write


def arrays(splits):
    return {split: np.array(numbers, np.uint64) for split, numbers in splits.items()}


def moved(old, new):
    return count_moved(arrays(old), arrays(new))


def test_what_has_moved_is_counted_by_where_from_and_where_to():
    old = {"train": [1, 2, 3], "test": [4, 5], "gone": [6]}
    assert moved(old, {"train": [1, 4, 5, 7], "test": [2], "added": [3, 6]}) == {
        ("train", "test"): 1,
        ("train", "added"): 1,
        ("test", "train"): 2,
        ("gone", "added"): 1,
    }


def test_a_copy_that_was_in_both_splits_has_not_moved():
    old = {"train": [1, 2], "test": [1, 3, 3]}
    assert moved(old, {"train": [1, 2], "test": [1, 3]}) == {}
    assert moved(old, {"train": [1, 2, 3], "test": [1]}) == {("test", "train"): 1}


contents = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=9), max_size=3
)


@given(contents, contents)
def test_it_is_the_difference_of_sets(old, new):
    expected = {
        (left, entered): count
        for left, before in old.items()
        for entered, after in new.items()
        if left != entered and (count := len(set(before) & set(after) - set(old.get(entered, ()))))
    }
    assert moved(old, new) == expected


def stage(folder, splits):
    """Writes the columns of one shard a split; gives their reports."""
    reports = []
    for split, numbers in splits.items():
        columns = columns_of(
            row_from_json(written("a", sha256=digest(number))) for number in numbers
        )
        (folder / f"{split}-00000.columns").write_bytes(b"".join(columns.values()))
        counts = len(numbers), RowTotals(), {}
        reports.append(ShardReport(split, 0, *counts, records=len(numbers)))
    return reports


def marker_of(paths, records=3):
    splits = {
        split: [{"sidecar": path, "records": records} for path in own]
        for split, own in paths.items()
    }
    return make_marker(
        splits={split: {"records": records, "shards": own} for split, own in splits.items()}
    )


def test_the_sidecars_are_those_that_the_marker_names(sidecars, tmp_path):
    old = sidecars("old", {"train": [1, 2, -1, 3], "test": [4, 5, 6]})
    new = stage(tmp_path, {"test": [3, 5, 6], "train": [1, 2, 4]})
    assert list(compare_splits(str(tmp_path), marker_of(old), str(tmp_path), new, "image")) == [
        "2 images are in another split than in the dataset that is replaced: 1 from train to test, "
        "1 from test to train"
    ]
    both = marker_of({"train": [*old["train"], *old["test"]]})
    assert list(compare_splits(str(tmp_path), both, str(tmp_path), new, "image")) == [
        "3 images are in another split than in the dataset that is replaced: 3 from train to test"
    ]


def test_splits_that_cannot_be_compared_are_reported(sidecars, tmp_path, monkeypatch):
    for name, content in (("no_json", b"{"), ("no_row", b"[]\n"), ("no_digest", b'{"key": "a"}\n')):
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    for name in ("absent", "no_json", "no_row", "no_digest"):
        assert list(
            compare_splits(
                str(tmp_path), marker_of({"train": [f"{name}.jsonl"]}), str(tmp_path), [], "image"
            )
        ) == [
            "whether images have moved between splits is not known: sidecars of the replaced "
            "dataset are damaged"
        ]
    monkeypatch.setattr(duplicates, "MOST_COMPARED", 8)
    empty = marker_of({"train": [], "test": []})
    assert list(
        compare_splits(
            str(tmp_path), empty, str(tmp_path), stage(tmp_path, {"train": [1, 2, 3]}), "row"
        )
    ) == ["whether rows have moved between splits was not checked: they are more than 8"]
    assert (
        list(
            compare_splits(
                str(tmp_path), empty, str(tmp_path), stage(tmp_path, {"train": [1, 2]}), "row"
            )
        )
        == []
    )
