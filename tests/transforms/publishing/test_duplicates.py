import hashlib
import json
import os
from collections import Counter
from dataclasses import asdict, replace
from itertools import count

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from eager_beam import assert_that, new_pipeline
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings
from write_shard import columns_of

from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, SameBytes
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing import duplicates
from recordmill.transforms.publishing.duplicates import FindCopies, find_same_bytes, list_duplicates

NOTHING = {"groups": 0, "images": 0, "across_splits": 0, "conflicting": 0}


def image(key, content, label="cat", hashed=None):
    row = {
        "key": key,
        "bytes": 5,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
        "class": label,
        "label": 0,
    }
    more = {} if hashed is None else {"difference_hash": f"{hashed:016x}"}
    return {
        **row,
        "height": 1,
        "width": 1,
        "channels": 3,
        "moments": None,
        "changes": [],
        "offset": 0,
        "length": 9,
        **more,
    }


REJECTED = {
    "key": "x",
    "bytes": 5,
    "sha256": hashlib.sha256(b"one").hexdigest(),
    "rejected": "truncated",
    "class": "x",
}


def write(output, rows_by_split):
    """Writes shards in staging; gives their reports."""
    reports, numbers, staging = [], Counter(), output / ".staging-0"
    staging.mkdir()
    for split, rows in rows_by_split:
        index = numbers[split]
        numbers[split] += 1
        records = [row_from_json(row) for row in rows if "rejected" not in row]
        columns = columns_of(records)
        (staging / f"{split}-{index:05d}.jsonl").write_text(
            "".join(f"{json.dumps(row)}\n" for row in rows)
        )
        (staging / f"{split}-{index:05d}.columns").write_bytes(b"".join(columns.values()))
        report = ShardReport(split, index, len(rows), RowTotals(), {}, records=len(records))
        reports.append(replace(report, contents=bytes(columns["contents"])))
    return reports


def find_copies(output, reports):
    found = []
    with new_pipeline() as root:
        summary = Summary(splits={"train": SplitSummary(Counter({"": 10}))})
        decision = OutputDecision(output=str(output), staged_as="0")
        plan = RunPlan(DatasetPlan(summary=summary), decision)
        plan = AsSingleton(root | "Plan" >> beam.Create([plan]))
        assert_that(
            root | beam.Create(reports[::-1]) | FindCopies(plan, make_settings()),
            found.extend,
        )
    return found


@pytest.fixture
def listed(tmp_path):
    """`listed(("train", rows), ...)`: what was found, and the lines of the file."""

    def run(*rows_by_split, apart=False):
        reports, path = write(tmp_path, rows_by_split), tmp_path / ".staging-0" / "duplicates.jsonl"
        copies = find_copies(tmp_path, reports)
        found = list_duplicates(str(tmp_path / ".staging-0"), reports, copies, apart)
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
        return found, [json.loads(line) for line in path.read_text().splitlines()]

    return run


@pytest.mark.parametrize(
    ("labels", "conflicting"),
    [
        ((None, "cat"), 0),
        (("cat", None, "cat"), 0),
        ((None, None), 0),
        (("cat", "dog"), 1),
        (("cat", None, "dog"), 1),
    ],
)
def test_images_without_a_class_contradict_no_class(listed, labels, conflicting):
    rows = [image(f"{number}", "one", label) for number, label in enumerate(labels)]
    found, (line,) = listed(("train", rows))
    assert found.same_bytes.conflicting == conflicting
    assert line["classes"] == sorted({label or "" for label in labels})


def test_a_dataset_without_duplicates(listed):
    found, lines = listed(("test", [image("a", "one")]), ("train", [image("b", "two"), REJECTED]))
    assert (found, lines) == (DuplicateCounts(SameBytes(), None), [])


def test_same_bytes_across_splits_and_of_several_classes(listed):
    found, lines = listed(
        ("test", [image("a", "one"), image("b", "two", None)]),
        (
            "train",
            [image("c", "one"), image("d", "two", "dog"), image("e", "three"), image("f", "one")],
        ),
        ("train", [image("g", "three"), REJECTED]),
    )
    assert to_json(found.same_bytes) == {
        "groups": 3,
        "images": 4,
        "across_splits": 2,
        "conflicting": 0,  # one image of `two` has no class, which contradicts nothing
    }
    digests = {
        content: hashlib.sha256(content.encode()).hexdigest() for content in ("one", "two", "three")
    }
    expected = [
        {
            "kind": "same_bytes",
            "sha256": digests["one"],
            "count": 3,
            "splits": ["test", "train"],
            "classes": ["cat"],
            "images": [
                {"key": "a", "split": "test", "class": "cat"},
                {"key": "c", "split": "train", "class": "cat"},
                {"key": "f", "split": "train", "class": "cat"},
            ],
        },
        {
            "kind": "same_bytes",
            "sha256": digests["two"],
            "count": 2,
            "splits": ["test", "train"],
            "classes": ["", "dog"],
            "images": [
                {"key": "b", "split": "test", "class": None},
                {"key": "d", "split": "train", "class": "dog"},
            ],
        },
        {
            "kind": "same_bytes",
            "sha256": digests["three"],
            "count": 2,
            "splits": ["train"],
            "classes": ["cat"],
            "images": [
                {"key": "e", "split": "train", "class": "cat"},
                {"key": "g", "split": "train", "class": "cat"},
            ],
        },
    ]
    assert lines == sorted(expected, key=lambda line: line["sha256"])


def test_a_large_group_is_listed_in_part_and_counted_in_full(listed, monkeypatch):
    monkeypatch.setattr(duplicates, "MOST_LISTED", 3)
    found, (line,) = listed(
        ("train", [image(f"{number}", "same", f"{number % 2}") for number in range(10)])
    )
    assert (line["count"], [each["key"] for each in line["images"]]) == (10, ["0", "1", "2"])
    assert to_json(found.same_bytes) == {
        "groups": 1,
        "images": 9,
        "across_splits": 0,
        "conflicting": 1,
    }


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["train", "test"])), max_size=40),
    st.integers(1, 20),
)
def test_groups_are_all_images_of_the_same_bytes(tmp_path_factory, images, group_images):
    numbers = count()
    by_split = {split: [] for split in ("test", "train")}
    for content, split in images:
        by_split[split].append(image(f"{next(numbers)}", f"{content}"))
    output = tmp_path_factory.mktemp("output")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "GROUP_IMAGES", group_images)
        copies = find_copies(output, write(output, by_split.items()))
    groups = list(find_same_bytes(str(output), copies))
    expected = {}
    for split, rows in by_split.items():
        for row in rows:
            expected.setdefault(row["sha256"], []).append((split, row["key"]))
    found = [[(each.split, each.key) for each in group.images] for group in groups]
    assert found == [places for _, places in sorted(expected.items()) if len(places) > 1]


PATTERN = 0x0F0F_1234_5678_F0F0


def test_look_alikes_are_pairs_of_different_bytes(listed):
    found, lines = listed(
        ("test", [image("a", "one", hashed=PATTERN), image("far", "far", hashed=PATTERN ^ 0xFFFF)]),
        (
            "train",
            [image("b", "one", hashed=PATTERN), image("c", "two", "dog", hashed=PATTERN ^ 0b111)],
        ),
    )
    assert found.same_bytes.groups == 1
    assert asdict(found.look_alike) == {
        "pairs": 1, "across_splits": 1, "conflicting": 1, "bits": 5, "complete": True,
    }  # fmt: skip
    same, alike = lines
    assert same["kind"] == "same_bytes"
    images = sorted(alike.pop("images"), key=lambda each: each["key"])
    assert alike == {
        "kind": "look_alike",
        "distance": 3,
        "splits": ["test", "train"],
        "classes": ["cat", "dog"],
    }
    assert images == [
        {"key": "a", "split": "test", "class": "cat", "sha256": hashlib.sha256(b"one").hexdigest()},
        {
            "key": "c",
            "split": "train",
            "class": "dog",
            "sha256": hashlib.sha256(b"two").hexdigest(),
        },
    ]


@pytest.mark.parametrize("blank", [0, 2**64 - 1, 0b11111, 2**64 - 1 - (1 << 40)])
def test_pictures_without_a_pattern_look_like_nothing(listed, blank):
    found, lines = listed(
        ("train", [image("a", "one", hashed=blank), image("b", "two", hashed=blank)])
    )
    assert (lines, found.look_alike.pairs, found.look_alike.complete) == ([], 0, True)


def test_hashes_of_some_images_alone_are_not_compared(listed):
    found, _ = listed(("train", [image("a", "one", hashed=PATTERN), image("b", "two")]))
    assert found.look_alike is None


def test_images_of_one_shard_are_listed_in_its_order(listed):
    rows = [image(key, "one") for key in "bca"]
    _, lines = listed(
        ("train", [image("d", "two")]), ("train", rows), ("test", [image("e", "one")])
    )
    assert [each["key"] for each in lines[0]["images"]] == ["e", "b", "c", "a"]


def test_images_whose_digests_only_begin_alike_are_not_copies(listed):
    one, two = image("a", "one"), image("b", "one")
    two["sha256"] = two["sha256"][:16] + 48 * "0"
    assert listed(("train", [one]), ("test", [two])) == (DuplicateCounts(SameBytes(), None), [])


def test_only_the_shards_with_copies_are_read_again(tmp_path):
    reports = write(
        tmp_path, [("train", [image("a", "one"), image("b", "one")]), ("test", [image("c", "two")])]
    )
    (tmp_path / ".staging-0" / "test-00000.jsonl").unlink()
    ((place, rows),) = find_copies(tmp_path, reports)
    assert (place, len(rows)) == (("train", 0), 2)


def test_a_shard_that_another_run_has_published_meanwhile_is_an_error(tmp_path):
    reports = write(tmp_path, [("train", [image("a", "one"), image("b", "one")])])
    (tmp_path / ".staging-0" / "train-00000.jsonl").unlink()
    copies = find_copies(tmp_path, reports)
    with pytest.raises(FileNotFoundError, match=r"train-00000\.jsonl"):
        list(find_same_bytes(str(tmp_path), copies))
