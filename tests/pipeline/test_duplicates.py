"""No image is in two splits, and no patient: whatever was asked to stay together does."""

import hashlib
import json
from collections import Counter
from itertools import combinations

import pytest
from PIL import Image

from recordmill.pipeline.command import run_command
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

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
    together = convert(
        copies, settings={**settings, "duplicates": "together"}, output=tmp_path / "together"
    )
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
    settings = {
        "splits.fractions": HALVES,
        "duplicates": "together",
        "splits.group": "(?P<group>p[0-9])_",
    }
    done = convert(root, settings=settings)
    patients = {split: {key[:2] for key in done.keys(split)} for split in HALVES}
    assert patients["train"] | patients["test"] == {"p1", "p2", "p3", "p4"}
    assert not patients["train"] & patients["test"]
    assert any({"p1", "p2", "p3"} <= those for those in patients.values())


def test_stratified_groups_stay_whole_and_near_their_shares(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 60, "dog": 30})
    settings = {
        # Ten, or three, of each class.
        "splits": {
            "fractions": HALVES,
            "stratify": True,
            "group": "/(?P<group>[0-9])",
        },
    }
    done = convert(root, settings=settings)
    groups = {
        split: Counter(key.partition("/")[2][0] for key in done.keys(split)) for split in HALVES
    }
    assert not groups["train"].keys() & groups["test"].keys()
    classes = {
        split: Counter(key.partition("/")[0] for key in done.keys(split)) for split in HALVES
    }
    for label, whole in (("cat", 60), ("dog", 30)):
        assert abs(classes["train"][label] - whole / 2) <= 10


def test_kept_together_contradicts_splits_that_are_given(convert, copies):
    done = convert(
        copies,
        settings={"splits.from_folders": {"cat": "train", "dog": "test"}, "duplicates": "together"},
    )
    assert done.code == 2
    assert "duplicates: together contradicts splits that are given" in done.stderr


def crossing(done):
    """The distances of all pairs of images in different splits, least first."""
    hashes = [
        (split, int(row["difference_hash"], 16)) for split in HALVES for row in done.rows(split)
    ]
    hashes = [(split, look) for split, look in hashes if 5 < look.bit_count() < 59]
    return sorted(
        (a ^ b).bit_count() for (one, a), (other, b) in combinations(hashes, 2) if one != other
    )


VECTOR = {"features": {"feature": {"field": "feature", "type": "float", "shape": [None]}}}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"images.reencode": "always", "images.grayscale": "expand"},
        {"images.resize.longest": 90, "images.store": "png"},
        {"images.store": "raw", "duplicates": "drop"},
        {
            "features.feature": "mean_std",
            "convention": VECTOR,
            "duplicates": "together",
            "splits.stratify": True,
        },
    ],
    ids=str,
)
def test_no_pair_that_looks_alike_is_in_two_splits(convert, look_alikes, tmp_path, settings):
    settings = {**settings, "splits.fractions": HALVES}
    done = convert(look_alikes, settings={**settings, "images.near_duplicates": "together"})
    least = crossing(done)[0]
    assert least > 5
    found = done.marker["duplicates"]["look_alike"]
    assert (found["across_splits"], found["bits"], found["complete"], found["pairs"] >= 20) == (
        0,
        5,
        True,
        True,
    )
    assert done.marker["ledger"]["written"] == 48
    *_, closest = map(json.loads, (done.output / "duplicates.jsonl").read_text().splitlines())
    assert (closest["kind"], closest["distance"], closest["splits"]) == (
        "closest_apart",
        least,
        ["test", "train"],
    )
    hashes = {row["key"]: int(row["difference_hash"], 16) for row in done.rows()}
    one, other = (hashes[image["key"]] for image in closest["images"])
    assert (one ^ other).bit_count() == least
    assert (
        f"the closest pair left across splits, {least} bits apart"
        in (done.output / "report.html").read_text()
    )
    assert run_command(["verify", str(done.output)], build) == 0


def test_look_alikes_leak_unless_they_are_kept_together(convert, look_alikes, tmp_path):
    settings = {"splits.fractions": HALVES, "images.near_duplicates": True}
    leaking = convert(look_alikes, settings=settings, output=tmp_path / "leaking")
    assert sum(distance <= 5 for distance in crossing(leaking)) >= 8
    kept = convert(look_alikes, settings={**settings, "images.near_duplicates": "together"})
    assert {row["key"]: row["difference_hash"] for row in kept.rows()} == {
        row["key"]: row["difference_hash"] for row in leaking.rows()
    }


def test_a_chain_of_look_alikes_fails_the_run(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30})
    image = Image.open(root / "cat/00.jpg")
    for number in range(12):
        image.save(root / f"cat/again{number:02}.jpg", quality=95 - number)
    settings = {"splits.fractions": HALVES, "images.near_duplicates": "together"}
    assert convert(root, settings=settings).answer == (
        1,
        f"{root}/cat/00.jpg: images.near_duplicates: together would put 13 of 42 images into one "
        "split, because each "
        "looks like the next (cat/00.jpg, cat/again00.jpg, cat/again01.jpg, ...), and more than 1% "
        "is too many: set it "
        "to true and look at duplicates.jsonl; if they belong together, name such groups with "
        "splits.group",
    )
    grouped = convert(root, settings={**settings, "splits.group": "(?P<group>00|again|[0-9]+)"})
    assert grouped.code == 0
    assert crossing(grouped)[0] > 5


def test_look_alikes_are_not_kept_together_where_splits_are_given(convert, look_alikes):
    given = {
        "splits.from_folders": {"cat": "train", "dog": "test"},
        "images.near_duplicates": "together",
    }
    assert convert(look_alikes, settings=given).answer == (
        2,
        "--set: images.near_duplicates: together contradicts splits that are given: remove it",
    )
