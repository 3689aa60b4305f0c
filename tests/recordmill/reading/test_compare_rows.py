import pytest

from recordmill.reading.compare_datasets import KINDS, MOST_EXAMPLES, RowJudge, compare_rows

JUDGE = RowJudge(compares_rest=True, stores_split=False)


def row(sha256="a", label="cat", **more):
    return {
        "sha256": sha256,
        "class": label,
        "label": 0,
        "record": "r",
        "rest": "s",
        "pixels": "p",
        **more,
    }


def compare(one, other, judge=JUDGE, splits=("train", "train")):
    found = compare_rows([(7, "k", splits[0], one)], [(7, "k", splits[1], other)], judge)
    assert found.rows == [1, 1]
    assert found.unchanged == (not found.counts)
    return dict(found.examples)


def test_equal_rows():
    assert compare(row(), row()) == {}
    assert compare(row(), row(offset=9, length=3)) == {}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (row("b", record="x"), {"same_pixels": ["k"]}),
        (row("b", record="x", pixels="q"), {"other_pixels": ["k"]}),
        (row("b", record="x", pixels=None), {"other_bytes": ["k"]}),
        (row(record="x", rest="t"), {"annotations": ["k"]}),
        (row(record="x", classes=["cat"]), {"annotations": ["k"]}),
        # What a row of format 2 says of boxes, and no other row says.
        (row(record="x", boxes={"listed": 2}), {}),
        (row(record="x", label="dog", rest="t"), {"relabeled": ["k: cat -> dog"]}),
        (row(record="x", label=None, rest="t"), {"relabeled": ["k: cat -> none"]}),
        (
            row("b", record="x", label="dog", pixels="q"),
            {"other_pixels": ["k"], "relabeled": ["k: cat -> dog"]},
        ),
        # Other pixels may change what is stored of an image's size: that is not an annotation.
        (row("b", record="x", pixels="q", rest="t"), {"other_pixels": ["k"]}),
        # What a folder's files tell: neither Examples nor boxes.
        ({"sha256": "a", "class": "cat"}, {}),
        ({"sha256": "b", "class": "dog"}, {"other_bytes": ["k"], "relabeled": ["k: cat -> dog"]}),
    ],
)
def test_each_kind(other, expected):
    assert compare(row(), other) == expected


def test_numbers_of_annotations_are_compared_by_kind_in_any_format():
    def annotated(number, kind="boxes", record="y"):
        counts = {kind: {"listed": number, "written": 0}}
        return row(record=record, annotations=counts)

    differ = {"annotations": ["k: boxes"]}
    assert compare(annotated(2, record="x"), annotated(3)) == differ
    assert compare(annotated(2, record="x"), annotated(2)) == {}
    assert compare(row(record="x", boxes={"listed": 2}), annotated(3)) == differ
    assert compare(row(record="x", boxes={"listed": 2}), annotated(2)) == {}
    masks = compare(annotated(2, "masks", "x"), annotated(3, "masks"))
    assert masks == {"annotations": ["k: masks"]}
    assert compare(annotated(2, "masks", "x"), annotated(2)) == {}


def test_examples_are_compared_only_as_far_as_they_can_be():
    other = row(record="x", rest="t")
    assert compare(row(), other, RowJudge(compares_rest=False, stores_split=False)) == {}
    moved = {"moved": ["k: train -> test"]}
    assert compare(row(), other, RowJudge(True, stores_split=True), ("train", "test")) == moved
    assert compare(row(), other, JUDGE, ("train", "test")) == {"annotations": ["k"], **moved}
    assert compare(row(), row(), JUDGE, ("train", None)) == {}
    old = {key: each for key, each in row().items() if key not in ("record", "rest", "pixels")}
    assert compare(old, other) == {}  # of format 1


def test_rows_without_a_digest_of_the_rest_are_compared_whole():
    one, other = row(record="x"), row(record="y")
    del one["rest"], other["rest"]
    assert compare(one, other) == {"annotations": ["k"]}


def test_rows_without_a_partner():
    before = [
        (1, "a", "train", row("1")),
        (3, "c", "train", row("3")),
        (5, "e", "test", row("5", "dog")),
    ]
    after = [
        (2, "b", "train", row("2")),
        (3, "c", "train", row("3")),
        (4, "d", "train", row("5")),
        (6, "f", "x", row()),
    ]
    found = compare_rows(before, after, JUDGE)
    assert (found.rows, found.unchanged, found.is_same) == ([3, 4], 1, False)
    assert found.examples == {
        "added": ["b", "f"],
        "removed": ["a"],
        "renamed": ["e -> d"],
        "relabeled": ["d: dog -> cat"],
        "moved": ["d: test -> train"],
    }


def test_keys_of_one_hash_are_ordered_by_text():
    before = [(1, "a", "train", row("1")), (1, "b", "train", row("2"))]
    after = [(1, "b", "train", row("2")), (1, "c", "train", row("3"))]
    assert compare_rows(before, after, JUDGE).examples == {"added": ["c"], "removed": ["a"]}


def test_copies_are_not_renamed_files():
    before = [(number, f"old-{number}", "train", row("1")) for number in range(30)]
    after = [(number, f"new-{number}", "train", row("1")) for number in range(20)]
    found = compare_rows(before, after, JUDGE)
    assert found.counts == {"removed": 30, "added": 20}
    assert {kind: len(each) for kind, each in found.examples.items()} == dict.fromkeys(
        found.counts, MOST_EXAMPLES
    )


def test_every_kind_has_words():
    assert set(KINDS) >= {"added", "renamed", "moved"}


def test_more_rows_without_a_partner_than_are_kept_in_memory_at_once():
    before = ((number, f"{number}", "train", row(f"{number}")) for number in range(25_000))
    found = compare_rows(before, [], JUDGE)
    assert (found.counts, found.rows) == ({"removed": 25_000}, [25_000, 0])
