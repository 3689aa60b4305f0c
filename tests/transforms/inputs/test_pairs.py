"""Pairs by names and looks, without a file system."""

import pytest
from paired_inputs import counted, digit, mask, photo

from recordmill.transforms.inputs.image_looks import Appearance, look_at_image
from recordmill.transforms.inputs.pair_names import (
    are_counters,
    core_of,
    is_telling,
    sample_names,
    split_word_of,
)
from recordmill.transforms.inputs.pairs import find_pairs, patterns_of
from recordmill.transforms.inputs.patterns import escape_glob

PHOTO, MASK, GRAY = Appearance(3, 256), Appearance(1, 2), Appearance(1, 200)


def find(folders, looks=None):
    return find_pairs(folders, lambda path: (looks or {}).get(path.rpartition("/")[0], PHOTO))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("mask", "gt_image", "trainannot", "SegmentationClass")),
        ("gtFine", True),
        *((name, True) for name in ("labels", "targets", "ground_truth", "LR", "trainB", "depth")),
        *((name, True) for name in ("groundtruth", "train_B", "X_instance", "panoptic", "Labels2")),
        *((name, False) for name in ("cat", "image", "trainA", "labeled", "unlabeled", "HR", "B")),
        *((name, False) for name in ("gtr", "dog_seal", "segway", "instant", "deep", "strain")),
    ],
)  # fmt: skip
def test_words_that_tell(name, expected):
    assert is_telling(name) == expected


@pytest.mark.parametrize(
    ("stem", "core"),
    [
        ("1_mask", "1"),
        ("a_00_leftImg8bit", "a_00"),
        ("a_00_gtFine_labelIds", "a_00"),
        ("img_7", "7"),
        ("mask_7", "7"),
        ("0801x2", "0801"),
        ("1_L", "1"),
        ("1_l", "1_l"),
        ("L_1", "L_1"),
        ("cat", "cat"),
        ("with_mask_7", "with_mask_7"),
        ("photo_img_3", "img_3"),
    ],
)
def test_the_core_of_a_name_has_no_affixes(stem, core):
    assert core_of(stem) == core


@pytest.mark.parametrize(
    ("stems", "expected"),
    [
        (["0001", "0002", "0003"], True),
        (["img_1", "img_2", "img_9"], False),
        (["img_1", "img_2", "img_4"], True),
        (["b (1)", "b (2)", "b (3)"], True),
        (["frame10", "frame20", "frame30"], True),
        (["xaq", "bor", "zzu"], False),
        (["0001TP_006690", "0001TP_006720", "0006R0_f00930"], False),
    ],
)
def test_names_that_are_counters(stems, expected):
    assert are_counters(stems) == expected


def test_looks():
    assert look_at_image(photo(1)).channels == 3
    looks = [look_at_image(mask(1, **given)) for given in ({}, {"mode": "P"}, {"kind": "JPEG"})]
    assert [(each.channels, each.levels) for each in looks] == [(1, 2)] * 3
    assert all(each.is_mask for each in looks)
    drawn = look_at_image(mask(1, mode="RGB"))
    assert (drawn.channels, drawn.levels) == (3, 2)
    assert not drawn.is_mask
    assert not drawn.is_photograph
    assert look_at_image(photo(1)).is_photograph
    assert not look_at_image(digit(1)).is_mask
    assert look_at_image(b"no image") is None


def test_classes_are_not_pairs():
    names = [f"{number}.jpg" for number in counted(20)]
    assert find({"cat": names, "dog": names}) is None
    assert find({"cat": names, "dog": names, "emu": names}, {"dog": GRAY}) is None
    assert find({"with_mask": names, "without_mask": names}) is None
    words = ["xaq.jpg", "bor.jpg", "zzu.jpg"]
    assert find({"train/cat": words, "test/cat": words}) is None
    assert find({"a": words, "b": words, "c": words}).may_be_classes
    assert find({"a": words, "b": words}).is_even


def test_drawings_are_not_photographs():
    names = [f"{number}.png" for number in counted(20)]
    icons, icon = Appearance(3, 200, 0.7), Appearance(1, 12, 0.7)
    assert find({"plain": names, "colored": names}, {"plain": icon, "colored": icons}) is None
    circles, squares = Appearance(1, 90, 0.8), Appearance(1, 2, 0.8)
    assert find({"circle": names, "square": names}, {"circle": circles, "square": squares}) is None
    xray = Appearance(1, 250, 0.4)
    found = find({"a": names, "b": names}, {"a": xray, "b": squares})
    assert (found.kept, found.left_out) == (("a",), ("b",))


def test_folders_that_were_not_looked_at_are_known_by_their_names():
    names = [f"{number}.png" for number in counted(5)]
    folders = {f"c{number}/{kind}": names for number in counted(60) for kind in ("img", "lab")}
    found = find(folders, {path: MASK for path in folders if path.endswith("lab")})
    assert found.left_out == tuple(f"c{number}/lab" for number in counted(60))
    assert found.count == 300
    assert patterns_of(found.left_out, found.kept) == ["lab/"]


def test_many_folders_of_other_names_take_little_time():
    looked = []
    folders = {
        f"{folder:04}": [f"{folder}_{number}_x.jpg" for number in range(20)]
        for folder in range(400)
    }
    assert find_pairs(folders, looked.append) is None
    assert looked == []


def test_both_sides_of_splits():
    found = find({"a/trainA": ["x.jpg"], "a/testA": ["y.jpg"], "a/trainB": ["z.jpg"]})
    assert (found.kept, found.left_out) == (("a/testA", "a/trainA"), ("a/trainB",))
    assert found.are_sides
    assert find({"trainA": ["x.jpg"], "trainB": ["y.jpg"], "cat": ["z.jpg"]}) is None


def test_a_part_of_the_names_is_enough():
    names = [f"{number}.jpg" for number in counted(100)]
    found = find({"image": names, "mask": names[3:]})
    assert (found.kept, found.left_out) == (("image",), ("mask",))
    assert find({"a": names, "b": names[30:]}, {"b": MASK}) is None
    found = find({"a": names, "b": names[3:]}, {"b": MASK})
    assert (found.kept, found.left_out) == (("a",), ("b",))


def test_patterns_leave_out_exactly_the_second_images():
    jpegs, pngs = ([f"{n}.{ending}" for n in counted(4)] for ending in ("jpg", "png"))
    assert find({"a": [*jpegs, *pngs]}).patterns == ("*.png",)
    assert find({"a": [*jpegs, *pngs], "b": pngs}).patterns == ("/a/*.png",)
    assert find({"a": [*jpegs, *pngs, "x.png"]}).patterns == tuple(f"/a/{each}" for each in pngs)
    assert find({"": [*jpegs, *pngs]}).patterns == ("*.png",)
    assert find({"a": ["1.jpg", "1_mask.jpg", "2.jpg", "2_mask_1.jpg"]}).patterns == (
        "*_mask.jpg",
        "*_mask_*.jpg",
    )


def test_few_second_images_count_if_they_look_like_masks():
    images = ["1.jpg", "1.png", *(f"x{n}.jpg" for n in range(8))]
    names = {"a": images}
    assert find_pairs(names, lambda path: PHOTO) is None
    found = find_pairs(names, lambda path: MASK if path.endswith("png") else PHOTO)
    assert found.patterns == ("*.png",)


def test_patterns_for_folders():
    left_out = ["train/x/labels", "val/x/labels", "gt/a", "gt/b"]
    kept = ["train/x/images", "val/x/images", "a"]
    assert patterns_of(left_out, kept) == ["/gt/", "labels/"]
    assert patterns_of(["a [1]/Masks*"], ["a [1]/Imgs"]) == [r"/a \[1\]/Masks\*/"]


@pytest.mark.parametrize(
    ("path", "pattern"), [("a[1]", r"a\[1\]"), ("#a", r"\#a"), ("a ", "a\\ "), ("a?*", r"a\?\*")]
)
def test_names_as_patterns(path, pattern):
    assert escape_glob(path) == pattern


def test_a_sample_holds_whole_pairs():
    images = [f"{number}.jpg" for number in range(5000)]
    drawn = [f"{number}_mask.png" for number in range(5000)]
    one, other = sample_names(images, 100), sample_names(drawn, 100)
    assert {name.removesuffix(".jpg") for name in one} == {
        name.removesuffix("_mask.png") for name in other
    }
    assert len(one) == 100
    assert sample_names(["b", "a"], 2) == ["b", "a"]


@pytest.mark.parametrize(
    ("folder", "split"),
    [
        ("trainA", "train"), ("val_B", "validation"), ("test_images", "test"),
        ("seg_train", "train"), ("val2017", "validation"), ("cat", None), ("trainee", None),
    ],
)  # fmt: skip
def test_folders_for_splits(folder, split):
    assert split_word_of(folder) == split
