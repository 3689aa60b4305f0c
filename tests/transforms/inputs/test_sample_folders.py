"""Folders of one sample each, by names and looks, without a file system."""

import pytest

from recordmill.transforms.inputs.image_looks import Appearance
from recordmill.transforms.inputs.sample_folders import find_samples

PHOTO, MASK, COLORED = Appearance(3, 256), Appearance(1, 2), Appearance(3, 5, 0.7)


def look(path):
    if "contour" in path or path.endswith("1.png"):
        return MASK
    return COLORED if "colors" in path else PHOTO


def samples(*folders, names=("image.png", "contour.png")):
    return {
        folder: [name.replace("*", folder.split("/")[-1]) for name in names] for folder in folders
    }


S = ("s00", "s01", "s02")


@pytest.mark.parametrize(
    ("folders", "why", "patterns", "class_from"),
    [
        (
            samples(*S),
            "s00/contour.png looks like a mask of image.png",
            ["contour.png"],
            "none",
        ),
        (
            samples("x/s00", "x/s01", "y/s00"),
            "x/s00/contour.png looks like a mask of image.png",
            ["contour.png"],
            "first_folder",
        ),
        (
            samples("train/s00", "train/s01", "val/s00"),
            "train/s00/contour.png looks like a mask of image.png",
            ["contour.png"],
            "none",
        ),
        (
            samples(*S, names=("*.jpg", "*_colors.png")),
            "s00/s00_colors.png looks like a mask of s00.jpg",
            ["*_colors.png"],
            "none",
        ),
        (
            samples(*S, names=("0.png", "1.png")),
            "s00/1.png looks like a mask of 0.png",
            ["1.png"],
            "none",
        ),
        (
            {f"{at}/{kind}": [f"{at}.bmp"] for at in S for kind in ("picture", "contour")},
            "s00/contour/s00.bmp looks like a mask of picture/s00.bmp",
            ["contour/"],
            "none",
        ),
        (
            {at: ["photo.png", *(f"contour_{n}.png" for n in range(2 + len(at) % 2))]
             for at in (*S, "s3")},
            "s00/contour_0.png looks like a mask of photo.png",
            ["contour_[0-9]*.png"],
            "none",
        ),
        (
            samples(*S, names=("image.png", "other.png")),
            "s00/other.png looks like a second image of image.png",
            ["other.png"],
            "none",
        ),
        (
            samples("a/x/s00", "a/x/s01", "b/x/s00"),
            "a/x/s00/contour.png looks like a mask of image.png",
            ["contour.png"],
            None,
        ),
    ],
)  # fmt: skip
def test_one_image_of_each_sample_is_kept(folders, why, patterns, class_from):
    found = find_samples(folders, look)
    assert (found.why, list(found.patterns), found.class_from) == (why, patterns, class_from)
    assert found.count == sum(map(len, folders.values())) - len(
        {at.split("/contour")[0].removesuffix("/picture") for at in folders}
    )


@pytest.mark.parametrize(("folders", "may_be_classes"), [(S, False), (("ann", "bob", "eve"), True)])
def test_any_image_of_a_sample_may_be_kept_if_nothing_tells(folders, may_be_classes):
    found = find_samples(samples(*folders, names=("left.jpg", "right.jpg")), look)
    assert found.choices == (("left.jpg", ("right.jpg",)), ("right.jpg", ("left.jpg",)))
    assert (
        found.why == f"{folders[0]} and all other folders hold the same files (left.jpg, right.jpg)"
    )
    assert (found.is_even, found.may_be_classes) == (True, may_be_classes)


@pytest.mark.parametrize(
    "folders",
    [
        samples("s1", "s2", "s3", names=[f"{n}.jpg" for n in range(6)]),
        samples("cat", "dog", names=("0.jpg", "1.png")),
        samples("cat", "dog", names=("left.jpg", "right.jpg")),
        samples("s1", "s2", names=[f"{n}{kind}" for n in range(6) for kind in (".jpg", "_1.png")]),
        samples("train/cat", "val/cat", names=("7.jpg", "7_contour.png")),
        samples("train", "val"),
        samples("1", "2", names=("7.jpg", "7_contour.png")),
        {**samples(*S), "more": [f"{n}.jpg" for n in range(60)]},
        samples("a", "b", "c", names=("a.jpg", "b.jpg")),
        {"": ["a.jpg", "b.jpg"]},
        {},
    ],
)
def test_classes_are_not_samples(folders):
    assert find_samples(folders, look) is None
