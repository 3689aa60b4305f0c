"""Settings that store both images of pairs, from folders and names."""

import pytest

from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.suggest_pairs import suggest_pairs

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
