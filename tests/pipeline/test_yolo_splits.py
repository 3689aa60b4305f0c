"""YOLO's folders that are not named after their splits: every printed command ends right."""

import pytest
from followed_ways import each_of, together
from paired_inputs import counted, photos
from peer import read_dataset
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)


def boxed(images, labels, name):
    """Images with a text file of one box each."""
    names = [f"{name}{n}" for n in N]
    texts = {f"{labels}/{each}.txt": b"0 .5 .5 .2 .2\n" for each in names}
    return together(photos(images, names), texts)


def beside(*folders):
    return each_of(folders, lambda at: boxed(f"images/{at}", f"labels/{at}", at))


def inside(*folders):
    return each_of(folders, lambda at: boxed(f"{at}/images", f"{at}/labels", at))


def data_yaml(train, val):
    text = f"train: {train}\nval: {val}\nnc: 1\nnames: [cat]\n"
    return {"data.yaml": text.encode()}


def lists(**folders):
    return {
        f"{split}.txt": "".join(f"./{at}/images/{at}{n}.jpg\n" for n in N).encode()
        for split, at in folders.items()
    }


CASES = {
    "a third folder": (
        together(beside("train", "val", "night"), data_yaml("images/train", "images/val")),
        [{"train": 6, "validation": 6}, {"train": 6, "validation": 6, "night": 6}],
    ),
    "a third folder around": (
        together(inside("train", "valid", "night"), data_yaml("train/images", "valid/images")),
        [{"train": 6, "validation": 6}, {"train": 6, "validation": 6, "night": 6}],
    ),
    "folders of other names": (
        together(inside("a", "b", "c"), data_yaml("[a/images, b/images]", "c/images")),
        [{"train": 12, "validation": 6}],
    ),
    "a block of folders": (
        together(inside("a", "b", "c"), data_yaml("\n  - a/images\n  - b/images", "c/images")),
        [{"train": 12, "validation": 6}],
    ),
    "lists": (
        together(inside("a", "b"), lists(train="a", val="b"), data_yaml("train.txt", "val.txt")),
        [{"train": 6, "validation": 6}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_printed_command_ends_right(name, tmp_path, run_in):
    files, ways = CASES[name]
    write_files(tmp_path / "in", files)
    found = []
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, (end.arguments, end.message)
        dataset = read_dataset(tmp_path / "out")
        assert {len(each.boxes) for each in dataset} == {1}
        splits = [each.split for each in dataset]
        found.append({split: splits.count(split) for split in dict.fromkeys(splits)})
    *given, by_fractions = found
    assert given == ways
    assert by_fractions.keys() == {"train", "test"}
