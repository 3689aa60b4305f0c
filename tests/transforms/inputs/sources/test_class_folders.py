from dataclasses import replace

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.source import list_file

FILE = ImageRef("key", "uri", 7, "version", split="train")
PATHS = ["a/1.jpg", "a/b/1.jpg", "a/b/c/1.jpg", "ä b,[*]\n/1.jpg"]


@pytest.mark.parametrize(
    ("class_from", "labels"),
    [
        ("first_folder", ["a", "a", "a", "ä b,[*]\n"]),
        ("last_folder", ["a", "b", "c", "ä b,[*]\n"]),
        ("path", ["a", "a/b", "a/b/c", "ä b,[*]\n"]),
    ],
)
def test_the_folder_names_the_class(class_from, labels):
    source = ClassFolders(class_from=class_from)
    assert [list(list_file(source, path, FILE)) for path in PATHS] == [
        [replace(FILE, label=label)] for label in labels
    ]


@pytest.mark.parametrize("class_from", ["first_folder", "last_folder", "path"])
def test_a_file_in_no_folder_is_rejected(class_from):
    (ref,) = list_file(ClassFolders(class_from=class_from), "1.jpg", FILE)
    assert ref == FILE.notice("rejected", "no_class", "the file is not in a class folder")


def test_images_may_have_no_class_wherever_they_are():
    source = ClassFolders(class_from="none")
    assert [list(list_file(source, path, FILE)) for path in ["1.jpg", *PATHS]] == [[FILE]] * 5


@pytest.mark.parametrize(
    ("class_from", "label"), [("first_folder", "a"), ("last_folder", "b"), ("path", "a/b")]
)
@pytest.mark.parametrize("path", ["a/val/b/1.jpg", "a/b/val/1.jpg", "val/a/b/1.jpg"])
def test_the_folder_that_gives_the_split_is_not_part_of_the_class(path, class_from, label):
    source = ClassFolders(class_from=class_from, split="/(?P<split>train|val)/")
    assert list(list_file(source, path, FILE)) == [replace(FILE, label=label, split="val")]


def test_a_path_without_a_word_has_no_split():
    source = ClassFolders(split="/(?P<split>train|val)/")
    assert list(list_file(source, "a/1.jpg", FILE)) == [replace(FILE, label="a", split="")]
    with pytest.raises(ValueError, match=r"source\.split"):
        ClassFolders(split="train")


def test_it_adds_no_features():
    assert ClassFolders().features() == ()


def test_it_gives_one_class_an_image():
    assert ClassFolders().annotations() == {}
