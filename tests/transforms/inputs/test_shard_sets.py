import json

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.shard_sets import (
    MOST_MISSING,
    ShardTally,
    find_missing,
    judge_sets,
)


def missing(*paths):
    return [path for path, _ in find_missing(paths)]


@pytest.mark.parametrize(
    ("paths", "lost"),
    [
        (["train-00000-of-00003", "train-00002-of-00003"], ["train-00001-of-00003"]),
        (["a/x-00001-of-00003.gz", "a/x-00002-of-00003.gz"], ["a/x-00000-of-00003.gz"]),
        (["x-00000-of-00001"], []),
        (["x.tfrecord-00001-of-00002"], ["x.tfrecord-00000-of-00002"]),
        (["x-1-of-3.tar", "x-3-of-3.tar"], ["x-2-of-3.tar"]),
        (["test_01of02"], ["test_02of02"]),
        (["test_02of02"], ["test_01of02"]),
        (["test_00of02"], ["test_01of02"]),
        (["d-00000-of-00002-1a2b.parquet"], ["d-00001-of-00002-1a2b.parquet"]),
        (["b-00000-of-00002", "a-00001-of-00002"], ["a-00000-of-00002", "b-00001-of-00002"]),
        (["train/d-00000-of-00001", "eval/d-00000-of-00001"], []),
        (["1/d-00000-of-00002", "2/d-00001-of-00002"], []),
        (["1/d-00000-of-00003", "2/d-00001-of-00003"], None),
        (["x-00000-of-00000", "all.tfrecord", "x-of-3.tar", "one-of-us.tar"], []),
        (["x-00005-of-00002"], ["x-00000-of-00002", "x-00001-of-00002"]),
    ],
)
def test_missing_files_are_found_by_the_names_of_the_others(paths, lost):
    if lost is None:  # the set is in both folders, and neither has all of it
        assert len(missing(*paths)) == 4
    else:
        assert missing(*paths) == lost


def test_a_detail_says_which_file_of_how_many_it_is():
    ((_, detail),) = find_missing(["x-00000-of-00002"])
    assert detail == "the others' names say that it is file 1 of 2, counted from 0"
    ((_, detail),) = find_missing(["x-01of02"])
    assert detail == "the others' names say that it is file 2 of 2, counted from 1"


def test_a_forged_count_names_a_thousand_files():
    assert len(missing("x-00000-of-99999999999")) == MOST_MISSING


@pytest.fixture
def judge(tmp_path):
    """Judges the counts of files of a folder with a description of TensorFlow Datasets."""

    def run(counts, info=None, held=(), is_selected=lambda path: True):
        folder = tmp_path / "in" / "d"
        folder.mkdir(parents=True)
        tally = ShardTally(records={f"d/{name}": count for name, count in counts.items()})
        whole = ImageRef(str(tmp_path / "in"), str(tmp_path / "in"))
        if info is not None:
            text = info if isinstance(info, str) else json.dumps(info)
            (folder / "dataset_info.json").write_text(text, encoding="utf-8")
            tally.descriptions.add("d/dataset_info.json")
        for name, status in held:
            tally.held.append((f"d/{name}", whole.notice("rejected", "bad_tfrecord", status)))
        return [
            (each.key, each.reason, each.detail)
            for each in judge_sets(whole, "n/", tally, is_selected)
        ]

    return run


def info_of(*lengths, **more):
    return {"name": "x", "splits": [{"name": "train", "shardLengths": [*lengths]}], **more}


ONE, TWO, THREE = (f"x-train.tfrecord-0000{number}-of-00003" for number in range(3))


def test_a_description_says_what_is_missing_and_what_was_cut(judge):
    assert judge({ONE: 5, TWO: 3}, info_of("5", "4", "6")) == [
        (f"n/d/{THREE}", "missing_shard", "dataset_info.json lists it, with 6 records"),
        (
            f"n/d/{TWO}",
            "bad_tfrecord",
            "it has lost 1 of the 4 records that dataset_info.json lists",
        ),
    ]


def test_what_is_not_selected_is_not_missing(judge):
    assert judge({ONE: 5}, info_of("5", "4", "6"), is_selected=lambda path: False) == []


def test_a_damaged_file_says_how_much_it_has_lost_if_that_is_known(judge):
    held = [(TWO, "cut"), ("y", "cut, too")]
    counts = {ONE: 5, TWO: 1, THREE: 6, "y": 9}
    (known, unknown) = judge(counts, info_of("5", "4", "6"), held)
    assert known[1:] == (
        "bad_tfrecord",
        "cut; it has lost 3 of the 4 records that dataset_info.json lists",
    )
    assert unknown[1:] == ("bad_tfrecord", "cut, too")


def test_an_empty_file_that_should_be_empty_is_not_damaged(judge):
    name = "x-train.tfrecord-00000-of-00001"
    ((_, reason, _),) = judge({name: 0}, info_of("0"), [(name, "the file is empty: 0 bytes")])
    assert reason == "no_records"


@pytest.mark.parametrize(
    "info", ["", "[1", "[]", '{"splits": 1}', '{"splits": [{"name": "a", "shardLengths": ["x"]}]}']
)
def test_a_malformed_description_leaves_the_names_of_the_files(judge, info):
    assert [key for key, _, _ in judge({ONE: 1, TWO: 1}, info)] == [f"n/d/{THREE}"]


def test_descriptions_of_other_formats_are_not_used(judge):
    assert judge({"a.tfrecord": 1}, info_of("5", fileFormat="array_record")) == []
