from types import SimpleNamespace

import pytest

from recordmill.transforms.publishing.excess import Excess
from recordmill.transforms.publishing.explain_excess import (
    RejectedInRun,
    explain_excesses,
)
from recordmill.transforms.publishing.rejected_list import RejectedItem, RejectedList

IMAGES = Excess("2 of 9 images were lost", "correct them", {"max_rejected.count": 2})
CLASSES = Excess("1 class was lost", "correct them", {"max_rejected.lost_classes": 1})
SPLITS = Excess("3 splits were lost", None, {"max_rejected.lost_classes": 3})
EVERYTHING = Excess("nothing is left")


def rejected(path="out/rejected.jsonl", keys=("a.jpg", "b.jpg"), files=(), exclude="", **more):
    items = tuple(RejectedItem(key, "empty", "no bytes") for key in keys)
    examples = {"empty": items[0].text} if items else {}
    source = SimpleNamespace(files=files, gives_pixels=False)
    settings = SimpleNamespace(source=source, ignore=(), exclude=exclude)
    counts = {"empty": len(items)} if items else {}
    listed = RejectedList(path, items, examples)
    return RejectedInRun(counts, listed, settings, "fix_rejected.md", **more)


def explain(excesses, listed, further=()):
    *lines, page = explain_excesses(excesses, further, listed).splitlines()
    assert page == "fix_rejected.md has a remedy for each reason"
    return lines


def test_all_losses_are_accepted_together():
    assert explain([IMAGES, CLASSES, SPLITS], rejected()) == [
        "2 of 9 images were lost",
        "1 class was lost",
        "3 splits were lost",
        "empty: a.jpg (no bytes)",
        "empty: b.jpg (no bytes)",
        "out/rejected.jsonl lists all 2 of them",
        "correct them, or leave it out with --set 'ignore=[/a.jpg, /b.jpg]', or accept the loss "
        "with --set max_rejected.count=2 --set max_rejected.lost_classes=3",
    ]


def test_a_loss_that_no_setting_allows_leaves_only_the_remedy():
    lines = explain([IMAGES, EVERYTHING], rejected(), ["1 of 3 boxes was lost"])
    assert lines[2] == "1 of 3 boxes was lost"
    assert lines[-1] == "correct them"


def test_rows_are_excluded_and_their_class_is_given_up():
    table = rejected(files=("*.csv",))
    assert explain([CLASSES], table)[-1].startswith(
        "correct them, or leave it out with --set exclude=rejected.jsonl --set "
        "max_rejected.lost_classes=1 after `cp out/rejected.jsonl rejected.jsonl`, or accept"
    )


def test_a_list_is_added_to_what_is_excluded_already():
    table = rejected(exclude="rejected.jsonl", names_inputs=True)
    assert explain([IMAGES], table)[-1].startswith(
        "correct them, or leave it out with --set exclude=rejected.jsonl after "
        "`{ echo; cat out/rejected.jsonl; } >> rejected.jsonl`, or accept"
    )


@pytest.mark.parametrize("before", ["", "removed.txt"])
def test_lists_in_stores_are_copied_by_hand(before):
    table = rejected("s3://b/out/rejected.jsonl", exclude=before, names_inputs=True)
    name = before or "rejected.jsonl"
    assert (
        f"--set exclude={name} after adding the lines of s3://b/out/rejected.jsonl to {name}, or "
        "accept"
    ) in explain([IMAGES], table)[-1]


def test_without_a_list_nothing_is_left_out():
    for unlisted in (
        rejected(path=None, files=("*.csv",)),
        rejected(files=("*.csv",), excludes=False),
        rejected(keys=()),
    ):
        assert explain([IMAGES], unlisted)[-1] == (
            "correct them, or accept the loss with --set max_rejected.count=2"
        )


def test_containers_are_accepted_or_restored_and_never_left_out():
    lost = Excess("1 container is missing", "restore it", {"max_rejected.containers": 1})
    for listed in (rejected(), rejected(files=("*.tfrecord",))):
        assert explain([lost], listed)[-1] == (
            "restore it, or accept the loss with --set max_rejected.containers=1"
        )
