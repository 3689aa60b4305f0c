"""Splits and parts in names of images and folders: they are kept, or asked about."""

import pytest
from followed_ways import check_all_ways, digests, found_in, of_class, together
from packed_inputs import packed
from paired_inputs import counted, photo, photos
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(4)
WORDS = {"train": "train", "test": "test", "val": "validation"}


def images(*forms, splits=("train", "test")):
    return {
        each.format(split, n): photo((each, split, n))
        for each in forms
        for split in splits
        for n in N
    }


def word_of(path):
    name = path.rpartition("/")[2]
    return next(split for word, split in WORDS.items() if word in name)


def unlabeled(path):
    return "", ""


def kept(path):
    return word_of(path), path.split("/")[0]


def kept_unlabeled(path):
    return word_of(path), ""


NAMES = {
    "before numbers": (images("cat/{}_{}.jpg", "dog/{}_{}.jpg"), kept, of_class),
    "after the class": (
        images("cat/cat_{}_{}.jpg", "dog/dog_{}_{}.jpg", splits=("train", "val")), kept, of_class,
    ),
    "after numbers": (images("cat/{1}-{0}.jpg", "dog/{1}-{0}.jpg"), kept, of_class),
    "without classes": (images("{}_{}.jpg"), kept_unlabeled, unlabeled),
    "in a folder of images": (images("images/{}_{}.jpg"), kept_unlabeled, unlabeled),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_splits_in_the_names_of_images_are_asked_about(name, tmp_path, run_in):
    files, *ways = NAMES[name]
    write_files(tmp_path / "in", files)
    check_all_ways(files, ways, run_in)


@pytest.mark.parametrize(
    "files",
    [
        images("cat/{}_{}.jpg", "dog/{}_{}.jpg", splits=("val",)),
        together(*(photos(c, [f"{c}_latest_{n}" for n in N]) for c in ("contest", "trainer"))),
        together(images("cat/{}_{}.jpg"), photos("dog", counted(20))),
    ],
    ids=["one split", "other words", "few names"],
)
def test_other_words_in_names_are_not(files, tmp_path, run_in):
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(files, of_class)


FOLDERS = {
    "parts of classes": (
        together(*(photos(f"{c}_part{p}", N) for c in ("cat", "dog") for p in (1, 2))),
        [of_class],
        "are parts of cat, dog: if these are the classes, move the images of each into one folder",
    ),
    "classes and splits": (
        together(*(photos(f"{c}_{s}", N) for c in ("cat", "dog") for s in ("train", "test"))),
        [lambda path: (path.split("/")[0].partition("_")[2], "")],
        "rename cat_test to test/cat, and the others in the same way",
    ),
    "two bands in splits": (
        together(*(photos(f"{s}/{b}", N) for s in ("train", "test") for b in ("rgb", "nir"))),
        [
            lambda path: (path.split("/")[0], "") if "/rgb/" in path else None,
            lambda path: (path.split("/")[0], "") if "/nir/" in path else None,
            lambda path: tuple(path.split("/")[:2]),
        ],
        "test/rgb and test/nir hold images of the same names",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_parts_and_splits_in_the_names_of_folders_are_asked_about(name, tmp_path, run_in):
    files, ways, said = FOLDERS[name]
    write_files(tmp_path / "in", files)
    assert said in run_in(["--input", "in"])[2]
    check_all_ways(files, ways, run_in)


def of_photographs(path):
    return ("", "") if path.startswith("images") else None


def test_parts_of_photographs_next_to_masks_are_not_classes(tmp_path, run_in):
    files = together(
        *(photos(f"images_part{at}", counted(4, 10 * at)) for at in (1, 2)),
        *(photos(f"masks_part{at}", counted(4, 10 * at)) for at in (1, 2)),
    )
    write_files(tmp_path / "in", files)
    check_all_ways(files, [of_photographs], run_in)


def test_splits_in_the_names_of_members_are_asked_about(tmp_path, run_in):
    files = images("cat/{}_{}.jpg", "dog/{}_{}.jpg")
    write_files(tmp_path / "in", {"pets.zip": packed(files, ".zip")})
    found = []
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end
        found.append(found_in(tmp_path / "out", True))
    assert found[0] == digests(files, kept)
    assert [label for *_, label in found[1]] == [label for *_, label in found[0]]
