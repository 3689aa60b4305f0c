"""Settings that store both images of pairs, from folders and names."""

import pytest

from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.suggest_pairs import suggest_pairs, suggest_pairs_beside

NAMES = [f"{number:04}" for number in range(20)]


def files(*folders, form="{}.jpg"):
    return {folder: [form.format(name) for name in NAMES] for folder in folders}


def even(kept, left_out, **given):
    return Pairs("", tuple(kept), tuple(left_out), is_even=True, **given)


def source(pairs_of, pairs, **given):
    return {
        "kind": "class_folders",
        "class_from": "none",
        "pairs_of": pairs_of,
        "pairs": pairs,
        **given,
    }


@pytest.mark.parametrize(
    ("pairs", "names", "splits", "expected"),
    [
        (
            even("A", "B"),
            files("A") | files("B", form="{}.png"),
            (),
            {"source": source("A/{name}.jpg", {"B": "B/{name}.png"})},
        ),
        (
            Pairs("", ("HR",), ("LR/X2",)),
            files("HR", form="{}.png") | files("LR/X2", form="{}x2.png"),
            (),
            {"source": source("HR/{name}.png", {"LR_X2": "LR/X2/{name}x2.png"})},
        ),
        (
            Pairs("", ("HR",), ("LR",)),
            files("HR", form="{}.png") | files("LR", form="{}x2.png"),
            (),
            {"source": source("HR/{name}.png", {"LR": "LR/{name}x2.png"})},
        ),
        (
            even(["train/input", "val/input"], ["train/target", "val/target"]),
            files("train/input", "val/input", "train/target", "val/target"),
            ("train", "val"),
            {
                "source": source("input/{name}.jpg", {"target": "target/{name}.jpg"}),
                "splits": {"from_folders": {"train": "train", "val": "validation"}},
            },
        ),
        (
            even(["hazy/train", "hazy/val"], ["clear/train", "clear/val"]),
            files("hazy/train", "hazy/val", "clear/train", "clear/val"),
            (),
            {
                "source": source(
                    "hazy/{split}/{name}.jpg",
                    {"clear": "clear/{split}/{name}.jpg"},
                    split="/(?P<split>train|val)/",
                ),
                "splits": {"from_source": {"train": "train", "val": "validation"}},
            },
        ),
        (
            even(["s1/low", "s2/low"], ["s1/high", "s2/high"]),
            files("s1/low", "s2/low", "s1/high", "s2/high"),
            (),
            {"source": source("{folder_0}/low/{name}.jpg", {"high": "{folder_0}/high/{name}.jpg"})},
        ),
        (
            even(["trainA", "testA"], ["trainB", "testB"], are_sides=True),
            files("trainA", "testA", "trainB", "testB"),
            (),
            {
                "source": source(
                    "{split}A/{name}.jpg",
                    {"B": "{split}B/{name}.jpg"},
                    split="^/(?P<split>test|train)[ _-]?[AB]/",
                ),
                "splits": {"from_source": {"test": "test", "train": "train"}},
            },
        ),
        (
            Pairs("", ("rgb",), ("depth",)),
            files("rgb") | files("depth", form="{}.png"),
            (),
            {
                "source": source("rgb/{name}.jpg", {"depth": "depth/{name}.png"}),
                "images": {"store": "png", "depth": 16},
            },
        ),
        (Pairs("", ("images",), ("masks",)), files("images", "masks"), (), None),
        (even("A", "B"), files("A") | {"B": [f"{name}x.jpg" for name in "abcd"]}, (), None),
        (even("A", "B"), {}, (), None),
        (Pairs("", patterns=("*_mask.png",)), files(""), (), None),
    ],
)
def test_both_images_are_stored_where_names_say_which_belong_together(
    pairs, names, splits, expected
):
    assert suggest_pairs(pairs, names, splits) == expected


OF_DIV2K = {
    **files("DIV2K_train_HR", "DIV2K_valid_HR", form="{}.png"),
    **files("DIV2K_train_LR/X2", "DIV2K_valid_LR/X2", form="{}x2.png"),
    **files("DIV2K_train_LR/X4", "DIV2K_valid_LR/X4", form="{}x4.png"),
}


def test_words_for_splits_in_names_of_folders_and_several_second_images():
    kept, left_out = ([path for path in OF_DIV2K if each in path] for each in ("_HR", "_LR"))
    assert suggest_pairs(Pairs("", tuple(kept), tuple(left_out)), OF_DIV2K) == {
        "source": source(
            "DIV2K_{split}_HR/{name}.png",
            {
                "DIV2K_LR_X2": "DIV2K_{split}_LR/X2/{name}x2.png",
                "DIV2K_LR_X4": "DIV2K_{split}_LR/X4/{name}x4.png",
            },
            split="^/DIV2K_(?P<split>train|valid)_HR/",
        ),
        "splits": {"from_source": {"train": "train", "valid": "validation"}},
    }
    fewer = OF_DIV2K | {"DIV2K_valid_LR/X4": []}
    assert suggest_pairs(Pairs("", tuple(kept), tuple(left_out)), fewer) is None


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("{name}_noisy.png", "{name}_clean.png", "clean"),
        ("noisy_{name}.png", "clean_{name}.jpg", "clean"),
        ("{name}-before.jpg", "{name}-after.jpg", "after"),
        ("{name}.png", "{name}_LR.png", "LR"),
    ],
)
def test_second_images_next_to_first_ones(first, second, name):
    names = [form.format(name=each) for each in NAMES for form in (first, second)]
    expected = source(first, {name: second})
    assert suggest_pairs_beside({"": names}) == {"source": expected}
    found = suggest_pairs_beside({"train": names, "val": names}, ("train", "val"))
    splits = {"from_folders": {"train": "train", "val": "validation"}}
    assert found == {"source": expected, "splits": splits}
    assert suggest_pairs_beside({"cat": names, "dog": names}) is None


def test_depth_next_to_images_keeps_its_values():
    names = [form.format(each) for each in NAMES for form in ("{}.jpg", "{}_depth.png")]
    assert suggest_pairs_beside({"": names}) == {
        "source": source("{name}.jpg", {"depth": "{name}_depth.png"}),
        "images": {"store": "png", "depth": 16},
    }


@pytest.mark.parametrize(
    "forms",
    [
        ("{}.jpg",),
        ("{}_a.jpg", "{}_b.jpg"),
        ("{}.jpg", "{}_mask.png"),
        ("{}_noisy.png", "{}_clean.png", "{}_other.png"),
        ("noisy{}.png", "clean_x{}.png"),
    ],
)
def test_names_that_do_not_say_which_images_are_second_ones(forms):
    names = [form.format(each) for each in NAMES for form in forms]
    assert suggest_pairs_beside({"": names}) is None


def test_images_of_one_thing_are_pairs_if_the_user_may_say_so():
    names = [form.format(each) for each in NAMES for form in ("{}_V.jpg", "{}_T.jpg")]
    found = suggest_pairs_beside({"": names}, are_sides=False)
    assert found == {"source": source("{name}_T.jpg", {"V": "{name}_V.jpg"})}
