from dataclasses import replace

import pytest
from make_settings import make_settings

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelSettings, build_label_map
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.transforms.inputs.sources.source import load_source
from recordmill.transforms.inputs.tables.manifest_columns import Columns
from recordmill.transforms.planning.plan import note_classes
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

BASE = make_settings()


def summary_of(keys, depth=0):
    summary = Summary()
    for key in keys:
        ref = ImageRef(key, f"/x/{key}", 9, label=key.split("/")[depth])
        summary.add(ReferenceBatch([ref]), ImageSplitter(0, BASE.splits, SplitCutoffs()))
    return summary


def notes_of(keys, labels=None, source=BASE.source, depth=0):
    """The notes on images whose label is the folder at a depth."""
    settings, summary = (
        replace(BASE, source=source, labels=labels or LabelSettings()),
        summary_of(keys, depth),
    )
    return note_classes(summary, settings, build_label_map(summary.labels, settings.labels, 0, {}))


TWO = ["cat/1.jpg", "dog/1.jpg"]
NESTED = [f"fotos/{animal}/{number}.jpg" for animal in ("cat", "dog") for number in range(40)]


def test_folders_below_the_only_class_may_be_the_classes():
    assert notes_of(NESTED) == [
        "the images of class fotos are in folders of their own, cat, dog: "
        "if those are the classes, set source.class_from=last_folder"
    ]
    deeper = [f"new/{key}" for key in NESTED]
    assert notes_of(deeper, depth=1) == [
        "the images of class fotos are in folders of their own, cat, dog: "
        "if those are the classes, set source.class_from=last_folder"
    ]


def test_several_classes_get_no_warning():
    assert notes_of(TWO) == []


@pytest.mark.parametrize(
    "keys",
    [
        ["cat/1.jpg", "cat/2.jpg"],
        ["cat/a/1.jpg", "cat/a/2.jpg"],
        ["cat/1.jpg", *TWO[:1]],
    ],
    ids=["no folders", "one folder", "files"],
)
def test_a_single_class_may_be_a_folder_of_all_images(keys):
    assert notes_of(keys) == []


def test_folders_below_one_of_several_classes_get_a_warning():
    advice = "if those are the classes, set source.class_from=last_folder"
    assert notes_of([*NESTED, "other/1.jpg"]) == [
        f"the images of class fotos are in folders of their own, cat, dog: {advice}"
    ]
    more = [f"more/{animal}/{number}.jpg" for animal in ("cow", "emu") for number in range(40)]
    (note,) = notes_of([*NESTED, *more])
    assert note == (f"the images of class fotos are in folders of their own, cat, dog: {advice}")


def test_splits_below_classes_are_not_taken_for_classes():
    keys = [
        f"{animal}/{split}/{number}.jpg"
        for animal in ("cat", "dog")
        for split in ("train", "test")
        for number in range(40)
    ]
    assert notes_of(keys) == [
        "the images of class cat are in folders of their own, test, train: "
        "if those are splits, put their folders around those of the classes, as in test/cat"
    ]


def test_folders_below_the_only_class_of_an_archive_get_a_warning():
    members = [f"photos.zip/{key}" for key in NESTED]
    assert notes_of(members, source=load_source("archives")(), depth=1) == [
        "the images of class fotos are in folders of their own, cat, dog: "
        "if those are the classes, set source.class_from=last_folder"
    ]


def test_images_next_to_the_folders_are_of_their_class():
    beside = [f"fotos/{number}.jpg" for number in range(80)]
    assert notes_of([*NESTED, *beside]) == []


def test_folders_that_are_splits_and_give_none_are_named():
    keys = ["train/1.jpg", "train/2.jpg", "test/3.jpg"]
    note = "images are in folders named test, train, and their splits do not follow these folders"
    source = load_source("manifest")(columns=Columns(uri="a"))
    assert note in notes_of(keys, source=source)
    assert note not in notes_of([*keys, "more/4.jpg"], source=source)
    assert notes_of(keys[:2], source=source) == []  # as of Kaggle, whose other folder has no labels


def test_only_images_next_to_the_folders_count():
    others = [f"fotos/{name}" for name in ("README.md", "list.csv")]
    assert notes_of([*NESTED, *others]) == notes_of(NESTED) != []


def test_folders_that_do_not_give_the_class_get_no_warning():
    names = load_source("filename_labels")(pattern="(?P<label>[a-z]+)")
    assert notes_of(NESTED, source=names) == []
    assert notes_of(NESTED, source=replace(BASE.source, class_from="last_folder"), depth=1) == []


SORTED_AS_TEXTS = (
    "classes are numbers, and are sorted as texts; labels.ids=integers makes each number the id "
    "of its class"
)


@pytest.mark.parametrize(
    ("classes", "settings", "expected"),
    [
        ("1 10 2", {}, [SORTED_AS_TEXTS]),
        ("1 2 9", {}, []),
        ("01 02 10", {}, []),
        ("1 10 2 cat", {}, []),
        ("1 10 2", {"ids": "integers"}, []),
        ("1 10 2", {"classes": ("1", "10", "2")}, []),
    ],
)
def test_numbers_that_are_sorted_as_texts_are_noted(classes, settings, expected):
    assert (
        notes_of([f"{name}/1.jpg" for name in classes.split()], LabelSettings(**settings))
        == expected
    )
