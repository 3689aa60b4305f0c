from dataclasses import replace

import pytest
from make_marker import NO_DUPLICATES, make_marker

from recordmill.schemas.settings.dataset import Contract, ImageLimits
from recordmill.transforms.publishing.contract import (
    MOST_BREACHES,
    MOST_CLASSES,
    accepting_settings,
    find_breaches,
    show_breaches,
)


def marker(train, test=None, **changed):
    written = sum(train.values()) + sum((test or {}).values())
    ledger = {"listed": written, "written": written, "rejected": {}, "ignored": {}, "left_out": {}}
    splits = {
        "train": {"classes": train},
        **({"test": {"classes": test}} if test is not None else {}),
    }
    return make_marker(
        **{"splits": splits, "labels": {"cat": 0, "dog": 1, "emu": 2}, "ledger": ledger, **changed}
    )


BEFORE = marker({"cat": 60, "dog": 40}, {"cat": 6, "dog": 4})


def images(**limits):
    return {name: ImageLimits(**each) for name, each in limits.items()}


def accepted(found, contract):
    """The contract with what would accept these breaches."""
    settings = accepting_settings(found, contract)
    values = {path.removeprefix("expect."): value for path, value in settings.items()}
    if "images" in values:
        values["images"] = images(**values["images"])
    return replace(contract, **values)


@pytest.mark.parametrize(
    ("now", "contract", "breaches"),
    [
        (BEFORE, Contract(classes="as_before", class_drift=0.0), []),
        (marker({"cat": 60, "dog": 40}), Contract(classes=("cat", "dog")), []),
        (
            marker({"cat": 60, "emu": 2, "": 3}),
            Contract(classes="as_before"),
            [
                "no image is of the class dog, which expect.classes (as_before) requires",
                "the class emu is not in expect.classes (as_before)",
            ],
        ),
        (
            marker({"cat": 60, "emu": 2}),
            Contract(classes=("ape", "dog", "emu")),
            [
                "no image is of the classes ape, dog, which expect.classes requires",
                "the class cat is not in expect.classes",
            ],
        ),
        (
            marker({"cat": 48, "dog": 31}, {"cat": 7, "dog": 5}),
            Contract(images={"*": ImageLimits(change=20)}),
            [
                "split train has 79 images, the previous dataset has 100, and "
                "expect.images.*.change is 20%"
            ],
        ),
        (
            marker({"cat": 48, "dog": 31}),
            Contract(images={"*": ImageLimits(at_least=80), "train": ImageLimits(at_most=78)}),
            [
                "split test has 0 images, and expect.images.*.at_least is 80",
                "split train has 79 images, and expect.images.*.at_least is 80",
                "split train has 79 images, and expect.images.train.at_most is 78",
            ],
        ),
        (
            marker({"cat": 1_048}, {"cat": 1, "dog": 4}),
            Contract(
                images={
                    "*/dog": ImageLimits(at_least=4),
                    "train/*": ImageLimits(at_most=1_000, change=99.9),
                }
            ),
            [
                "class dog of split train has 0 images, and expect.images.*/dog.at_least is 4",
                "class cat of split train has 1,048 images, and expect.images.train/*.at_most is "
                "1,000",
                "class cat of split train has 1,048 images, the previous dataset has 60, and "
                "expect.images.train/*.change is 99.9%",
                "class dog of split train has 0 images, the previous dataset has 40, and "
                "expect.images.train/*.change is 99.9%",
            ],
        ),
        (
            marker({"cat": 40, "dog": 60}, {"cat": 4, "dog": 6}),
            Contract(class_drift=0.19),
            [
                "class shares differ from the previous dataset by 20.00%, and expect.class_drift "
                "is 19.00%"
            ],
        ),
        (marker({"cat": 40, "dog": 60}, {"cat": 4, "dog": 6}), Contract(class_drift=0.2), []),
    ],
)
def test_classes_and_numbers_of_images(now, contract, breaches):
    found = find_breaches(now, BEFORE, contract)
    assert show_breaches(found) == breaches
    assert find_breaches(now, BEFORE, accepted(found, contract)) == []


def test_without_a_previous_dataset_nothing_is_compared():
    contract = Contract(classes="as_before", images={"*": ImageLimits(change=0)}, class_drift=0)
    assert find_breaches(marker({"cat": 1}), None, contract) == []


SHARES = Contract(rejected=0.01, lost_boxes=0.05, lost_labels=0.1, duplicates_across_splits=1)


def test_shares_at_their_limits_do_not_breach_it():
    crossing = {**NO_DUPLICATES, "same_bytes": {**NO_DUPLICATES["same_bytes"], "across_splits": 1}}
    now = marker(
        {"cat": 99},
        ledger={
            "listed": 102,
            "written": 99,
            "rejected": {"truncated": 1},
            "ignored": {"hidden": 2},
            "left_out": {},
        },
        boxes={"listed": 20, "written": 16, "clipped": 4, "empty": 1, "with_left_out_images": 3},
        labels_of_images={
            "listed": 12,
            "written": 5,
            "not_chosen": 4,
            "unknown_label": 1,
            "with_left_out_images": 2,
        },
        duplicates=crossing,
    )
    assert find_breaches(now, None, SHARES) == []


def test_shares_above_their_limits():
    crossing = {**NO_DUPLICATES, "same_bytes": {**NO_DUPLICATES["same_bytes"], "across_splits": 2}}
    now = marker(
        {"cat": 98},
        ledger={
            "listed": 100,
            "written": 98,
            "rejected": {"truncated": 1, "empty": 1},
            "ignored": {},
            "left_out": {},
        },
        boxes={"listed": 40, "written": 37, "clipped": 4, "empty": 1, "with_rejected_images": 2},
        labels_of_images={
            "listed": 10,
            "written": 8,
            "unknown_label": 1,
            "with_rejected_images": 1,
        },
        duplicates=crossing,
    )
    found = find_breaches(now, None, SHARES)
    assert find_breaches(now, None, accepted(found, SHARES)) == []
    assert show_breaches(found) == [
        "2 of 100 images were rejected (2.00%), and expect.rejected is 1.00%",
        "3 of 40 boxes were lost (7.50%), and expect.lost_boxes is 5.00%",
        "2 of 10 labels were lost (20.00%), and expect.lost_labels is 10.00%",
        "2 groups of identical images are in several splits, and expect.duplicates_across_splits "
        "is 1",
    ]


def test_lost_containers_are_not_rejected_images():
    now = marker(
        {"cat": 98},
        ledger={
            "listed": 101,
            "written": 98,
            "rejected": {"truncated": 1, "bad_tfrecord": 2},
            "ignored": {},
            "left_out": {},
        },
    )
    contract = Contract(rejected=0.0)
    assert show_breaches(find_breaches(now, None, contract, {"bad_tfrecord": 2})) == [
        "1 of 99 images was rejected (1.01%), and expect.rejected is 0.00%"
    ]
    assert find_breaches(now, None, Contract(rejected=0.02), {"bad_tfrecord": 2}) == []


def test_boxes_are_counted_by_class_where_there_are_any():
    splits = {"train": {"classes": {"": 3}, "instances": {"cat": 7, "dog": 2}}}
    now = make_marker(splits=splits, labels={"cat": 0, "dog": 1}, boxes={"listed": 9, "written": 9})
    contract = Contract(
        images={"train/dog": ImageLimits(at_least=3), "train": ImageLimits(at_most=2)}
    )
    assert show_breaches(find_breaches(now, None, contract)) == [
        "class dog of split train has 2 boxes, and expect.images.train/dog.at_least is 3",
        "split train has 3 images, and expect.images.train.at_most is 2",
    ]


def test_more_breaches_than_can_be_read_are_counted():
    now = marker({f"class {number}": 1 for number in range(MOST_BREACHES + 3)})
    contract = Contract(images={"*/*": ImageLimits(at_least=2)})
    found = show_breaches(find_breaches(now, None, contract))
    assert len(found) == MOST_BREACHES + 1
    assert found[-1] == "3 further breaches of expect"


@pytest.mark.parametrize("lost", range(1, 200, 7))
def test_an_accepting_share_accepts_whatever_is_rounded(lost):
    now = marker(
        {"cat": 199 - lost + 1},
        ledger={
            "listed": 200,
            "written": 200 - lost,
            "rejected": {"truncated": lost},
            "ignored": {},
            "left_out": {},
        },
    )
    found = find_breaches(now, None, Contract(rejected=0.0))
    assert find_breaches(now, None, accepted(found, Contract(rejected=0.0))) == []


def test_more_classes_than_a_flag_lists_are_not_compared():
    now = marker({f"class {number}": 1 for number in range(MOST_CLASSES + 1)})
    contract = Contract(classes=("cat",))
    found = find_breaches(now, None, contract)
    assert accepting_settings(found, contract) == {"expect.classes": ()}
