import pytest
from make_marker import make_marker
from make_settings import make_settings

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.dataset.outcome import DatasetNumbers, Outcome
from recordmill.schemas.dataset.totals import ImageTotals, Reencoded
from recordmill.schemas.settings.dataset import (
    BoxSettings,
    SplitSettings,
)
from recordmill.schemas.settings.images import ImageSettings, Resize
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.transforms.publishing.remarks import Remark, find_remarks, note_idle

SAME = {"groups": 1, "images": 2, "across_splits": 1, "conflicting": 1}


def split(**classes):
    return {"classes": classes}


def marker(**changed):
    basis = {
        "unit": "image",
        "splits": {"train": split(cat=10, dog=5), "test": split(cat=5, dog=2)},
        "labels": {"cat": 0, "dog": 1},
        "ledger": {"listed": 22, "written": 22, "rejected": {}, "ignored": {}, "left_out": {}},
    }
    return make_marker(**{**basis, **changed})


def texts(dataset, statistics=None, **images):
    settings = make_settings(images=ImageSettings(**images))
    return [remark.text for remark in find_remarks(dataset, statistics or ImageTotals(), settings)]


def test_a_sound_dataset_has_no_remarks():
    assert texts(marker()) == []


def rejecting(written, limits=None, **rejected):
    ledger = {"listed": 0, "written": written, "rejected": rejected, "ignored": {}, "left_out": {}}
    settings = make_settings(max_rejected=limits or RejectionLimits())
    dataset = marker(ledger=ledger)
    return [remark.text for remark in find_remarks(dataset, ImageTotals(), settings)]


def test_a_large_part_that_was_rejected_comes_first_with_the_limit_that_allowed_it():
    said = "2 of 4 images were rejected, since max_rejected.count (10) allows it: set "
    assert rejecting(2, not_an_image=1, empty=1) == [
        f"{said}max_rejected.count=0 to fail such a run."
    ]
    assert rejecting(2, RejectionLimits(count=1, share=0.75), empty=2) == [
        "2 of 4 images were rejected, since max_rejected.share (75%) allows it."
    ]
    assert rejecting(3, empty=1)[0].startswith("1 of 4 images was rejected, since max_rejected.c")
    assert rejecting(28, empty=9) == ["9 files were rejected."]


def boxed(clipped, written):
    counts = {"clipped": clipped, "listed": written, "written": written}
    splits = {"train": {**split(cat=9), "instances": {"cat": written}}}
    return marker(splits=splits, labels={"cat": 0}, boxes=counts)


def test_boxes_that_mostly_leave_their_images_may_be_in_another_form():
    assert texts(boxed(9, 16)) == [
        "9 of 16 boxes reached beyond their images, and were clipped: check that they are in the "
        "form that is read, such as width and height, not corners."
    ]
    assert texts(boxed(8, 16)) == []
    assert texts(boxed(9, 16), resize=Resize(exact=(8, 8))) == []


def test_the_worst_comes_first_with_the_place_of_more():
    alike = {"pairs": 3, "across_splits": 3, "conflicting": 0, "bits": 5, "complete": True}
    dataset = marker(
        duplicates={"same_bytes": SAME, "look_alike": alike},
        splits={"train": split(cat=100, dog=5), "test": split(cat=5)},
        labels={"cat": 0, "dog": 1, "emu": 2},
        ledger={
            "listed": 115,
            "written": 110,
            "rejected": {"empty": 1, "truncated": 4},
            "ignored": {},
            "left_out": {},
        },
    )
    assert find_remarks(dataset, ImageTotals(), make_settings()) == [
        Remark("1 image is in more than one class.", "duplicates"),
        Remark("1 image is in more than one split: scores will look too good.", "duplicates"),
        Remark(
            "3 pairs of images that look alike are in more than one split: scores will look too "
            "good.",
            "duplicates",
        ),
        Remark("Split test lacks 1 of 2 classes.", "classes"),
        Remark("1 of 3 classes has no image at all: emu.", "classes"),
        Remark(
            "The largest class has 105 images, the smallest 5: "
            "weigh the classes, or the small ones will not be learned.",
            "classes",
        ),
        Remark("5 files were rejected.", "rejected"),
    ]


def test_one_class_is_one():
    assert texts(marker(splits={"train": split(cat=9), "test": split()}, labels={"cat": 0})) == [
        "All labels are one class, cat.",
        "Split test lacks 1 of 1 classes.",
    ]


def lacking(cats, dogs, **settings):
    """The remark about a split of a tenth, which has only cats."""
    dataset = marker(
        splits={"train": split(cat=cats, dog=dogs), "test": split(cat=1)},
        labels={"cat": 0, "dog": 1},
    )
    found = find_remarks(dataset, ImageTotals(), make_settings(**settings))
    return next(each.text for each in found if each.text.startswith("Split test lacks"))


def test_a_split_that_lacks_a_class_gets_it_by_stratifying_where_that_can_help():
    what = "Split test lacks 1 of 2 classes"
    remedy = f"{what}: set splits.stratify=true to give each split its share of every class."
    assert lacking(9, 10) == remedy
    assert lacking(9, 9) == f"{what}."
    assert lacking(9, 10, splits=SplitSettings(stratify=True)) == f"{what}."
    assert lacking(9, 10, splits=SplitSettings(from_folders={"a": "test"})) == f"{what}."


def test_images_without_a_label_are_reported_where_others_have_one():
    dataset = marker(
        splits={"train": split(**{"": 4, "cat": 1}), "test": split(cat=1)}, labels={"cat": 0}
    )
    assert texts(dataset) == ["All labels are one class, cat.", "4 of 6 images have no label."]
    unlabeled = marker(splits={"train": split(**{"": 4})}, labels={})
    assert texts(unlabeled) == ["No image has a label."]


@pytest.mark.parametrize(
    ("classes", "is_said"),
    [
        ({"-1": 3, "0": 4, "1": 5}, True),
        ({"-1": 1, "1": 5}, True),
        ({"-1": 3}, False),
        ({"-1": 3, "cat": 4}, False),
        ({"0": 3, "1": 4}, False),
    ],
)
def test_a_class_of_the_number_that_stands_for_none_is_reported(classes, is_said):
    dataset = marker(splits={"train": split(**classes)}, labels=dict.fromkeys(classes, 0))
    count = "1 image" if classes.get("-1") == 1 else "3 images"
    sentence = f"Class -1 has {count}: this number often stands for no label."
    assert (sentence in texts(dataset)) == is_said


@pytest.mark.parametrize(("kind", "of"), [("boxes", "box"), ("labels", "label")])
def test_of_images_with_several_classes_these_are_counted(kind, of):
    splits = {
        "train": {**split(**{"": 4}), "instances": {"cat": 20, "dog": 2}},
        "test": {**split(), "instances": {}},
    }
    entry = {"unit": of, "listed": 22, "written": 22, "dropped": {}}
    dataset = marker(splits=splits, annotations={kind: entry}, counted=kind)
    assert dataset.class_counts == {"cat": 20, "dog": 2}
    lacking, imbalance = texts(dataset)
    assert lacking == "Split test lacks 2 of 2 classes."
    assert imbalance.startswith(f"The largest class has 20 {kind}, ")


def test_dropped_boxes_and_images_without_any_are_reported():
    without = {
        "no_file": 88,
        "no_objects": 0,
        "all_dropped": 33,
        "dropped": {"unknown_class": {"1": 40}},
    }
    dataset = marker(
        boxes={"clipped": 3, "listed": 558, "outside": 1, "unknown_class": 41, "written": 516},
        dropped_boxes={"outside": {"cat": 1}, "unknown_class": {"1": 30, "2": 11}},
        images_without_boxes=without,
    )
    assert find_remarks(dataset, ImageTotals(), make_settings()) == [
        Remark("42 of 558 boxes were dropped (unknown_class: 1, 2; outside: cat).", "boxes"),
        Remark(
            "121 images have no box: 88 have no annotation file, 33 lost all boxes (unknown_class: "
            "1).",
            "boxes",
        ),
    ]


def test_files_that_are_not_annotations_are_not_counted_as_such():
    ledger = {
        "listed": 22,
        "written": 22,
        "rejected": {},
        "ignored": {"read_only_with_images": 3},
        "left_out": {},
    }
    dataset = marker(
        ledger=ledger, boxes={"listed": 1, "written": 1}, images_without_boxes={"no_file": 10}
    )
    assert texts(dataset) == ["10 images have no box: 10 have no annotation file."]


@pytest.mark.parametrize(
    ("drawn_on", "text"),
    [
        (
            "auto",
            "2 boxes are on images that are annotated with the size of their bytes, and displayed "
            "turned by their EXIF orientation: they were read as drawn on the image as stored; if "
            "the tool displayed it upright, set boxes.drawn_on=displayed.",
        ),
        (
            "displayed",
            "2 boxes are on images whose annotated size is not that of the displayed image: "
            "boxes.drawn_on=displayed was followed.",
        ),
        (
            "stored",
            "2 boxes are on images whose annotated size is not that of the stored image: "
            "boxes.drawn_on=stored was followed.",
        ),
    ],
)
def test_sizes_that_disagree_with_the_orientation_are_reported(drawn_on, text):
    dataset = marker(boxes={"listed": 4, "written": 4, "size_disagrees": 2})
    settings = make_settings(boxes=BoxSettings(drawn_on=drawn_on))
    assert [each.text for each in find_remarks(dataset, ImageTotals(), settings)] == [text]


def test_boxes_that_decided_about_the_orientation_are_reported():
    boxes = {"listed": 9, "written": 9, "fits_only_displayed": 1, "fits_only_stored": 3}
    assert texts(marker(boxes=boxes)) == [
        "1 box is on images whose boxes fit only the upright image, and were read as drawn on it: "
        "if all boxes were drawn so, set boxes.drawn_on=displayed.",
        "3 boxes are on images whose boxes fit only the image as stored, and were read as drawn on "
        "it: if all boxes were drawn so, set boxes.drawn_on=stored.",
    ]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("Cat", "cat"), "The classes 'Cat' and 'cat' differ"),
        (("dog ", "dog", "d og"), "The classes 'd og' and 'dog' and 'dog ' differ"),
        (("hot dog", "hot\u00a0dog"), "The classes 'hot dog' and 'hot\\xa0dog' differ"),
        (("e\u0301", "\u00c9"), "The classes 'e\u0301' and '\u00c9' differ"),
        (("Straße", "STRASSE"), "The classes 'STRASSE' and 'Straße' differ"),
    ],
)
def test_classes_that_differ_in_case_or_blanks_only_are_reported(names, text):
    labels = {name: number for number, name in enumerate(names)}
    dataset = marker(labels=labels, splits={"train": split(**dict.fromkeys(names, 5))})
    assert texts(dataset) == [f"{text} in case or blanks only: they may be meant as one."]


def test_other_classes_are_not_alike():
    names = ["cat", "cats", "cat-1", "cat_1", "cat 2", "1", "01"]
    labels = {name: number for number, name in enumerate(names)}
    dataset = marker(labels=labels, splits={"train": split(**dict.fromkeys(names, 5))})
    assert texts(dataset) == []


@pytest.mark.parametrize(("count", "images"), [(1, "1 image"), (20, "20 images")])
def test_lost_exact_pixels_are_reported(count, images):
    lossless = Reencoded(count, 100, 120)
    text = f"{images} with a lossless extension, such as .png, became JPEG, which is lossy: "
    found = ImageTotals(reencoded=lossless, lossless=lossless)
    assert texts(marker(), found) == [f"{text}set images.store=png to keep every pixel."]
    assert texts(marker(), found, store="png") == []


def test_images_that_grew_are_reported():
    statistics = ImageTotals(reencoded=Reencoded(7, 300, 700), lossless=Reencoded(0, 0, 0))
    assert texts(marker(), statistics) == [
        "7 images were encoded again and 2.3 times as large as before."
    ]
    assert texts(marker(), ImageTotals(reencoded=Reencoded(7, 300, 400))) == []


def test_rejected_files_of_many_images_are_counted():
    ledger = {
        "listed": 9,
        "written": 5,
        "rejected": {"bad_archive": 2, "bad_array": 1, "empty": 1},
        "ignored": {},
    }
    assert texts(marker(ledger={**ledger, "left_out": {}})) == [
        "2 files were rejected (bad_archive): an unknown number of the images in such files is "
        "lost.",
        "1 file was rejected (bad_array): all of the images in such files are lost.",
        "1 file was rejected.",
    ]


@pytest.mark.parametrize(
    ("changes", "left_out", "idle"),
    [
        ({"reencoded": 3, "resized": 2}, {"duplicate": 4}, ["limit"]),
        ({}, {"limit": 5}, ["images.quality", "images.background", "images.resize", "duplicates"]),
    ],
)
def test_a_finished_dataset_says_what_acted_on_nothing(changes, left_out, idle):
    settings = load_settings(
        None,
        [
            "images={quality: 50, reencode: when_needed, resize: {exact: [8, 8], fit: pad}, "
            "background: [1, 2, 3]}",
            "limit=9",
            "duplicates=drop",
        ],
    ).settings
    fates = {"listed": 400, "written": 301, "rejected": {}, "ignored": {}, "left_out": left_out}
    numbers = DatasetNumbers.of(marker(ledger=fates, changes=changes))
    noted = note_idle(Outcome("kept", "", 0, numbers=numbers, notes=("a",)), settings)
    assert noted.notes == ("a", *(f"{key} had no effect on any of 301 images" for key in idle))
    assert note_idle(Outcome("published", "", 0, numbers=numbers), make_settings()).notes == ()
    failed = Outcome("failed", "", 1)
    assert note_idle(failed, settings) is failed
