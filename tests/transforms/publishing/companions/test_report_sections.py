from collections import Counter

import numpy as np
import pytest
from make_marker import make_marker

from recordmill.schemas.dataset.sidecar_row import RejectedRow
from recordmill.schemas.features import Feature
from recordmill.transforms.publishing.companions import report_sections as sections
from recordmill.transforms.publishing.companions.stored_values import Column, StoredValues
from recordmill.transforms.publishing.statistics import ASPECT_BINS, Statistics

LEDGER = {
    "listed": 30,
    "written": 20,
    "rejected": {"empty": 1, "truncated": 4},
    "ignored": {"hidden": 3},
    "left_out": {"limit": 2},
}


def split(**classes):
    return {"classes": classes}


def marker(**changed):
    basis = {
        "unit": "image",
        "splits": {"train": split(cat=10, dog=5), "test": split(cat=5)},
        "labels": {"cat": 0, "dog": 1},
        "ledger": LEDGER,
        "changes": {"rotated": 1, "reencoded": 3},
    }
    return make_marker(**{**basis, **changed})


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


def test_images_without_a_label_are_not_a_missing_class():
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


def test_sizes_are_given_in_pixels_and_bytes():
    told = sections.describe_sizes(statistics())
    assert told["common"] == [{"width": 8, "height": 6, "count": 3}, {"width": 6, "height": 8, "count": 1}]
    assert (told["others"], told["different"], told["average"]) == (0, 2, "48 pixels")
    assert told["shapes"] == {"landscape": 3, "square": 0, "portrait": 1}
    assert [tick.text for tick in told["sides"].along] == ["5", "7", "10", "13"]
    assert [tick.text for tick in told["sides"].up] == ["5", "7", "10", "13"]
    assert [tick.text for tick in told["file_bytes"].along] == ["512 B", "1.0 KiB", "2.0 KiB", "4.0 KiB"]
    assert [tick.text for tick in told["aspects"].along] == ["1:1.41", "1:1", "1.41:1"]


def test_sizes_beyond_the_most_frequent_are_counted():
    found = statistics()
    found.sizes.update({(9, number): 1 for number in range(1, 9)})
    found.images = 12
    told = sections.describe_sizes(found)
    assert len(told["common"]) == sections.MOST_SIZES_TOLD
    assert sum(size["count"] for size in told["common"]) + told["others"] == 12


def test_without_images_there_are_no_sizes():
    assert sections.describe_sizes(Statistics()) is None


def stored_areas(**bins):
    found = StoredValues(records=9, shards=2, **bins)
    found.areas[[5, 10, 19]] = 2, 1, 1
    return found


def test_boxes_have_a_ledger_and_two_histograms():
    boxes = {"listed": 20, "written": 13, "clipped": 1, "outside": 2, "unknown_class": 5}
    dropped = {"outside": {"cat": 2}, "unknown_class": {"7": 4, "8": 1}}
    told = marker(boxes=boxes, dropped_boxes=dropped, images_without_boxes={"no_file": 1, "all_dropped": 2})
    found = sections.describe_boxes(told, Statistics(boxes=Counter({0: 3, 1: 4, 3: 3})), stored_areas())
    assert (found["listed"], found["written"], found["clipped"]) == (20, 13, 1)
    assert found["dropped"] == [
        {"name": "unknown_class", "count": 5, "classes": "7, 8"},
        {"name": "outside", "count": 2, "classes": "cat"},
    ]
    assert (found["without"].no_file, found["without"].no_objects, found["without"].all_dropped) == (1, 0, 2)
    assert (found["average"], found["most"]) == (1.3, 3)
    assert [(box.place, box.count) for box in found["numbers"].columns] == [(0, 3), (1, 4), (3, 3)]
    assert [(box.place, box.count) for box in found["areas"].columns] == [(5, 2), (10, 1), (19, 1)]
    assert [tick.text for tick in found["areas"].along] == ["0.0031 %", "0.049 %", "0.78 %", "12 %", "100 %"]
    assert (found["small"], found["measured"], found["sample"]) == (2, 4, None)


def test_of_many_boxes_columns_reach_ever_farther():
    found = sections.describe_boxes(
        marker(boxes={"listed": 1, "written": 1}),
        Statistics(boxes=Counter({0: 1, 1: 2, 3: 4, 100: 5, 127: 1})),
        StoredValues(),
    )
    assert [(box.place, box.count) for box in found["numbers"].columns] == [(0, 1), (1, 2), (2, 4), (7, 6)]
    assert [tick.text for tick in found["numbers"].along] == ["0", "2-3", "8-15", "32-63"]
    assert found["areas"] is None


def test_a_sample_says_so():
    found = sections.describe_boxes(marker(boxes={"listed": 1}), Statistics(), stored_areas(whole=False))
    assert found["sample"] == {"records": 9, "shards": 2}
    assert sections.describe_boxes(marker(), Statistics(), StoredValues()) is None


def column(kind, values, missing=0, many=False):
    made = Column(Feature("a", kind, "a", "", many=many))
    for value in values:
        made.add(value if many else [value])
    made.missing = missing
    return made


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (column("int64", [3, 1_000, -5]), [("smallest", "-5"), ("largest", "1,000")]),
        (column("float", [0.5, 1234.25]), [("smallest", "0.5"), ("largest", "1,234.25")]),
        (column("float", [1.0, float("nan")]), [("smallest", "1"), ("largest", "1"), ("not finite", "1")]),
        (column("float", [float("inf")]), [("not finite", "1")]),
        (column("bytes", [b"x", b"y", b"x"]), [("different", "2")]),
        (
            column("float", [[1.0], [2.0, 4.0]], many=True),
            [("smallest", "1"), ("largest", "4"), ("values a list", "1 to 2")],
        ),
        (column("int64", [], missing=3), []),
    ],
)
def test_a_column_says_what_it_holds(made, facts):
    told = sections.describe_columns(StoredValues(records=3, columns=[made], further=2))
    (shown,) = told["columns"]
    assert (shown["facts"], shown["missing"]) == (facts, made.missing)
    assert (told["records"], told["further"], told["sample"]) == (3, 2, None)


def test_texts_that_are_there_several_times_are_shown():
    (shown,) = sections.describe_columns(StoredValues(columns=[column("bytes", [b"x", b"", b"x", b"\xff"])]))["columns"]
    assert [(each["name"], each["count"]) for each in shown["frequent"]] == [("x", 2), ("", 1), ("\ufffd", 1)]
    (shown,) = sections.describe_columns(StoredValues(columns=[column("bytes", [b"x", b"y"])]))["columns"]
    assert shown["frequent"] == []


def test_without_columns_there_is_no_section():
    assert sections.describe_columns(StoredValues(records=3)) is None


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (17_031_832_200, 6, "17,031,832,200"),
        (8_632.4, 3, "8,632"),
        (45.61, 6, "45.61"),
        (0.0, 3, "0"),
        (-0.00012, 3, "-0.00012"),
        (3.4e38, 3, "3.4e+38"),
        (1e-9, 6, "1e-09"),
        (100.0, 3, "100"),
    ],
)
def test_numbers_are_shown_in_full_unless_they_are_extreme(value, digits, shown):
    assert sections.show_value(value, digits) == shown


def test_changes_and_reasons_have_their_meanings():
    assert [(each["name"], each["count"]) for each in sections.describe_changes(marker())] == [
        ("reencoded", 3),
        ("rotated", 1),
    ]
    row = RejectedRow("x", None, 3, None, None, "decode", "truncated", "cut")
    truncated, empty = sections.describe_rejected(marker(), Statistics(rejected={"truncated": [row], "empty": [row]}))
    assert (truncated["reason"], truncated["count"], truncated["examples"]) == ("truncated", 4, [row])
    assert truncated["meaning"] == "the data end before the image is complete"
    assert empty["meaning"] == "the file is empty"


@pytest.mark.parametrize("seconds", [{}, {"listing": 1.0, "converting": 4.0, "publishing": 0.5}])
def test_times_are_given_where_they_are_known(seconds):
    told = sections.describe_run(
        {"runner": "DirectRunner", "seconds": seconds, "inputs": {"": "in", "b": "x"}}, 8, 4000
    )
    assert told["facts"] == {"runner": "DirectRunner"}
    assert told["inputs"] == ["in", "b = x"]
    assert [(stage["name"], stage["seconds"]) for stage in told["stages"]] == list(seconds.items())
    expected = (5.5, 2.0, 1000.0) if seconds else (0, 0.0, 0.0)
    assert (told["total"], told["speed"], told["byte_speed"]) == pytest.approx(expected)
    assert np.isfinite(told["total"])
