"""No image is in two splits, and no patient: whatever was asked to stay together does."""

import hashlib
from collections import Counter

import pytest

HALVES = {"train": 0.5, "test": 0.5}


@pytest.fixture
def copies(class_folders, tmp_path):
    """Twenty images and a copy of each in the other class."""
    root = class_folders(tmp_path / "photos", {"cat": 10, "dog": 10})
    for image in [*root.glob("*/*.jpg")]:
        other = {"cat": "dog", "dog": "cat"}[image.parent.name]
        (root / other / f"copy_{image.name}").write_bytes(image.read_bytes())
    return root


def splits_by_content(done):
    found = {}
    for split in HALVES:
        for example in done.examples(split):
            found.setdefault(hashlib.sha256(example["image/encoded"]).hexdigest(), set()).add(split)
    return found


def test_copies_leak_unless_they_are_kept_together(convert, copies, tmp_path):
    settings = {"splits.fractions": HALVES}
    leaking = convert(copies, settings=settings, output=tmp_path / "leaking")
    assert max(map(len, splits_by_content(leaking).values())) == 2
    together = convert(copies, settings={**settings, "duplicates": "together"}, output=tmp_path / "together")
    found = splits_by_content(together)
    assert (len(found), {len(splits) for splits in found.values()}) == (20, {1})
    assert together.marker["ledger"]["written"] == 40


def test_dropped_copies_are_left_out_and_in_the_ledger(convert, copies):
    done = convert(copies, settings={"splits.fractions": HALVES, "duplicates": "drop"})
    ledger = done.marker["ledger"]
    assert (ledger["listed"], ledger["written"], ledger["left_out"]) == (40, 20, {"duplicate": 20})
    names = [f"{kind}{number:02d}.jpg" for kind in ("", "copy_") for number in range(10)]
    assert sorted(done.keys()) == sorted(f"cat/{name}" for name in names)


def test_copies_join_the_groups_that_hold_them(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"p1_cat": 4, "p2_cat": 4, "p3_cat": 4, "p4_cat": 4})
    (root / "p2_cat" / "99.jpg").write_bytes((root / "p1_cat" / "00.jpg").read_bytes())
    (root / "p3_cat" / "99.jpg").write_bytes((root / "p2_cat" / "00.jpg").read_bytes())
    settings = {"splits.fractions": HALVES, "duplicates": "together", "splits.group": "(?P<group>p[0-9])_"}
    done = convert(root, settings=settings)
    patients = {split: {key[:2] for key in done.keys(split)} for split in HALVES}
    assert patients["train"] | patients["test"] == {"p1", "p2", "p3", "p4"}
    assert not patients["train"] & patients["test"]
    assert any({"p1", "p2", "p3"} <= those for those in patients.values())


def test_stratified_groups_stay_whole_and_near_their_shares(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 60, "dog": 30})
    settings = {
        "splits": {"fractions": HALVES, "stratify": True, "group": "/(?P<group>[0-9])"},  # ten, or three, of each class
    }
    done = convert(root, settings=settings)
    groups = {split: Counter(key.partition("/")[2][0] for key in done.keys(split)) for split in HALVES}
    assert not groups["train"].keys() & groups["test"].keys()
    classes = {split: Counter(key.partition("/")[0] for key in done.keys(split)) for split in HALVES}
    for label, whole in (("cat", 60), ("dog", 30)):
        assert abs(classes["train"][label] - whole / 2) <= 10


def test_kept_together_contradicts_splits_that_are_given(convert, copies):
    done = convert(copies, settings={"splits.from_folders": {"cat": "train", "dog": "test"}, "duplicates": "together"})
    assert done.code == 2
    assert "duplicates: together contradicts splits that are given" in done.stderr
