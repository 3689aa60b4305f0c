import numpy as np
import pytest

from recordmill.transforms.describing import report_sections as sections
from recordmill.transforms.publishing.statistics import ASPECT_BINS, Statistics

LEDGER = {
    "listed": 30,
    "written": 20,
    "rejected": {"empty": 1, "truncated": 4},
    "ignored": {"hidden": 3},
    "left_out": {"limit": 2},
}


def split(**classes):
    return {"records": sum(classes.values()), "bytes": 9, "classes": classes, "shards": []}


def marker(**changed):
    basis = {
        "unit": "image",
        "splits": {"train": split(cat=10, dog=5), "test": split(cat=5)},
        "labels": {"cat": 0, "dog": 1},
        "ledger": LEDGER,
        "changes": {"rotated": 1, "reencoded": 3},
        "duplicates": {},
        "notes": [],
    }
    return {**basis, **changed}


def test_the_ledger_has_a_branch_for_everything_listed():
    told = sections.describe_ledger(marker())
    assert [(branch["kind"], branch["name"], branch["count"]) for branch in told["branches"]] == [
        ("written", "train", 15),
        ("written", "test", 5),
        ("rejected", "truncated", 4),
        ("rejected", "empty", 1),
        ("left_out", "limit", 2),
        ("ignored", "hidden", 3),
    ]
    assert sum(branch["count"] for branch in told["branches"]) == told["listed"] == 30
    assert told["totals"] == {"written": 20, "rejected": 5, "left_out": 2, "ignored": 3}
    assert len(told["flow"].branches) == 6


def test_many_splits_share_a_branch():
    told = sections.describe_ledger(marker(splits={f"fold{number:02}": split(cat=1 + number) for number in range(12)}))
    written = [(branch["name"], branch["count"]) for branch in told["branches"] if branch["kind"] == "written"]
    assert written == [*((f"fold{number:02}", 1 + number) for number in range(11, 3, -1)), ("4 more splits", 10)]


def test_classes_are_ordered_by_size_and_their_gaps_named():
    told = sections.describe_classes(marker(labels={"cat": 0, "dog": 1, "emu": 2}))
    assert [(row["name"], row["counts"]) for row in told["largest"]] == [
        ("cat", [10, 5]),
        ("dog", [5, 0]),
        ("emu", [0, 0]),
    ]
    assert (told["count"], told["empty"], told["most"], told["median"], told["least"]) == (3, 1, 15, 10.0, 5)
    assert told["lacking"] == [{"split": "test", "count": 1, "names": ["dog"]}]
    assert [(box.width, box.place) for box in told["largest"][0]["stack"]] == [(66.667, 0), (33.333, 1)]
    assert (told["smallest"], told["between"], told["histogram"]) == ([], 0, None)


def test_of_very_many_classes_some_are_shown_and_the_rest_counted():
    counts = {f"{number:05}": 1 + number for number in range(20_000)}
    told = sections.describe_classes(marker(splits={"train": split(**counts)}, labels=dict.fromkeys(counts, 0)))
    assert [row["name"] for row in (told["largest"][0], told["smallest"][-1])] == ["19999", "00000"]
    assert (len(told["largest"]), len(told["smallest"]), told["between"]) == (30, 10, 19_960)
    shown = sum(row["count"] for row in (*told["largest"], *told["smallest"]))
    assert told["between_instances"] + shown == sum(counts.values())
    assert sum(box.count for box in told["histogram"].columns) == 20_000
    even = sections.describe_classes(marker(splits={"train": split(**dict.fromkeys(counts, 3))}))
    assert even["histogram"] is None


@pytest.mark.parametrize(("boxes", "of"), [({"listed": 9, "written": 9}, "box"), (None, "label")])
def test_of_images_with_several_classes_these_are_counted(boxes, of):
    splits = {"train": {**split(**{"": 4}), "instances": {"cat": 20, "dog": 2}}, "test": {**split(), "instances": {}}}
    told = marker(splits=splits, **({"boxes": boxes} if boxes else {}))
    classes = sections.describe_classes(told)
    assert [(row["name"], row["counts"]) for row in classes["largest"]] == [("cat", [20, 0]), ("dog", [2, 0])]
    assert (classes["of"], classes["in_split"]) == (of, {"train": 2, "test": 0})


def test_images_without_a_label_are_no_class_that_lacks():
    splits = {"train": split(**{"": 4, "cat": 1}), "test": split(cat=1)}
    told = sections.describe_classes(marker(splits=splits, labels={"cat": 0}))
    assert (told["count"], told["in_split"]) == (1, {"train": 1, "test": 1})
    assert told["lacking"] == []


def statistics():
    found = Statistics(images=4, pixels=4 * 48, smallest=(8, 6, "a"), largest=(8, 6, "a"))
    found.sizes.update({(8, 6): 3, (6, 8): 1})
    found.channels.update({3: 4})
    found.sides[12, 10], found.sides[10, 12] = 3, 1
    found.aspects[ASPECT_BINS // 2 + 2], found.aspects[ASPECT_BINS // 2 - 2] = 3, 1
    found.file_bytes[20] = 4
    return found


def test_sizes_are_told_in_pixels_and_bytes():
    told = sections.describe_sizes(statistics())
    assert told["common"] == [{"width": 8, "height": 6, "count": 3}, {"width": 6, "height": 8, "count": 1}]
    assert (told["others"], told["different"], told["average"]) == (0, 2, "48 pixels")
    assert told["shapes"] == {"landscape": 3, "square": 0, "portrait": 1}
    assert [tick.text for tick in told["sides"].along] == ["5", "7", "10", "13"]
    assert [tick.text for tick in told["sides"].up] == ["5", "7", "10", "13"]
    assert [tick.text for tick in told["file_bytes"].along] == ["512 B", "1.0 KiB", "2.0 KiB", "4.0 KiB"]
    assert [tick.text for tick in told["aspects"].along] == ["1:1.41", "1:1.19", "1:1", "1.19:1", "1.41:1", "1.68:1"]


def test_sizes_beyond_the_most_frequent_are_counted():
    found = statistics()
    found.sizes.update({(9, number): 1 for number in range(1, 9)})
    found.images = 12
    told = sections.describe_sizes(found)
    assert len(told["common"]) == sections.MOST_SIZES_TOLD
    assert sum(size["count"] for size in told["common"]) + told["others"] == 12


def test_without_images_there_are_no_sizes():
    assert sections.describe_sizes(Statistics()) is None


def test_changes_and_reasons_have_their_meanings():
    assert [(each["name"], each["count"]) for each in sections.describe_changes(marker())] == [
        ("reencoded", 3),
        ("rotated", 1),
    ]
    row = {"key": "x", "stage": "decode", "detail": "cut", "bytes": 3}
    truncated, empty = sections.describe_rejected(marker(), Statistics(rejected={"truncated": [row], "empty": [row]}))
    assert (truncated["reason"], truncated["count"], truncated["examples"]) == ("truncated", 4, [row])
    assert truncated["meaning"] == "the data end before the image is complete"
    assert empty["meaning"] == "the file has no bytes"


@pytest.mark.parametrize("seconds", [{}, {"listing": 1.0, "converting": 4.0, "publishing": 0.5}])
def test_times_are_told_where_they_are_known(seconds):
    told = sections.describe_run(
        {"runner": "DirectRunner", "seconds": seconds, "inputs": {"": "in", "b": "x"}}, 8, 4000
    )
    assert told["facts"] == {"runner": "DirectRunner"}
    assert told["inputs"] == ["in", "b = x"]
    assert [(stage["name"], stage["seconds"]) for stage in told["stages"]] == list(seconds.items())
    expected = (5.5, 2.0, 1000.0) if seconds else (0, 0.0, 0.0)
    assert (told["total"], told["speed"], told["byte_speed"]) == pytest.approx(expected)
    assert np.isfinite(told["total"])
