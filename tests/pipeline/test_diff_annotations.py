"""`recordmill diff` counts the images whose annotations changed, by the kind of annotations."""

import json

import numpy as np
import pytest
from animal_objects import objects_of, write_animals

from recordmill.imaging.masks.mask_file import encode_values
from recordmill.pipeline.diff import main
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source.kind": "coco",
    "convention": "tf_object_detection",
    "masks": "png",
    "splits.from_source": {"train": "train"},
    "report": False,
}


@pytest.fixture
def annotate(tmp_path):
    """`annotate(objects)`: writes a collection of eight images with their objects."""
    return lambda objects: write_animals(tmp_path / "animals", objects)


@pytest.fixture
def diff(capsys):
    """`diff(one, other)`: the line of JSON, and the lines for people."""

    def compare(one, other):
        capsys.readouterr()
        main([str(one.output), str(other.output), "--json"])
        line = json.loads(capsys.readouterr().out)
        main([str(one.output), str(other.output), "--no_json"])
        return line, capsys.readouterr().err.splitlines()

    return compare


def edit(objects):
    for number in (0, 1, 2):
        objects[number][1]["segmentation"][0][-1] = 15
    for number in (2, 3):
        objects[number][0]["keypoints"][0] = 9
    objects[4][0]["bbox"][2] = 5
    del objects[5][1]  # its box, mask and points


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_annotations_that_changed_are_counted_by_kind(
    annotate, convert, diff, compression, tmp_path
):
    settings = SETTINGS | {"compression": compression, "shards.count": 2}
    objects = [objects_of(number) for number in range(8)]
    before = convert(annotate(objects), settings=settings, output=tmp_path / "before")
    assert before.code == 0, before.stderr
    edit(objects)
    after = convert(annotate(objects), settings=settings, output=tmp_path / "after")
    line, said = diff(before, after)
    assert (line["annotations"], line["unchanged"], line["exit_code"]) == (6, 2, 1)
    assert line["annotation_kinds"] == {"boxes": 2, "keypoints": 3, "masks": 4}
    assert sorted(line["examples"]["annotations"]) == [
        "train/0.jpg: masks",
        "train/1.jpg: masks",
        "train/2.jpg: key points, masks",
        "train/3.jpg: key points",
        "train/4.jpg: boxes",
        "train/5.jpg: boxes, key points, masks",
    ]
    assert said[0] == ("other annotations or features: 6 images (masks 4, key points 3, boxes 2)")


def test_annotations_of_changed_and_renamed_images_are_counted(annotate, convert, diff, tmp_path):
    objects = [objects_of(number) for number in range(8)]
    root = annotate(objects)
    before = convert(root, settings=SETTINGS, output=tmp_path / "before")
    objects[1][0]["keypoints"][0] = 9
    annotate(objects)
    (root / "train/1.jpg").write_bytes(encode_picture("other", (24, 16)))
    after = convert(root, settings=SETTINGS, output=tmp_path / "after")
    line, _ = diff(before, after)
    assert line["annotation_kinds"] == {"keypoints": 1}
    assert line["other_bytes"] + line["other_pixels"] == 1


def test_other_settings_do_not_count_as_other_annotations(annotate, convert, diff, tmp_path):
    objects = [objects_of(number) for number in range(8)]
    before = convert(annotate(objects), settings=SETTINGS, output=tmp_path / "before")
    settings = SETTINGS | {"images.resize.exact": [8, 8]}
    del objects[0][0]
    after = convert(annotate(objects), settings=settings, output=tmp_path / "after")
    line, _ = diff(before, after)
    assert line["annotation_kinds"] == {"boxes": 1, "keypoints": 1, "masks": 1}


def test_attributes_are_compared_by_their_words(annotate, convert, diff, tmp_path):
    """A new word gives others new ids, and may take the id of the word that it replaces."""
    objects = [objects_of(number) for number in range(3)]
    for each, color in zip(objects, ("red", "red", "green"), strict=True):
        each[0]["attributes"] = {"color": color, "age": 7}
    before = convert(annotate(objects), settings=SETTINGS, output=tmp_path / "before")
    objects[0][0]["attributes"]["age"] = 8
    objects[2][0]["attributes"]["color"] = "blue"
    after = convert(annotate(objects), settings=SETTINGS, output=tmp_path / "after")
    line, _ = diff(before, after)
    assert line["annotation_kinds"] == {"attributes": 2}
    assert sorted(line["examples"]["annotations"]) == [
        "train/0.jpg: attributes",
        "train/2.jpg: attributes",
    ]
    assert line["settings"] == [
        "attributes.color.blue: not set -> 0",
        "attributes.color.green: 0 -> not set",
    ]


def test_other_semantic_masks_are_counted(convert, diff, tmp_path):
    settings = {
        "source": {"kind": "manifest", "columns": {"uri": "image", "mask": "mask"}},
        "convention": "deeplab",
        "splits.fractions": {"train": 1},
        "report": False,
    }
    root = tmp_path / "segmented"
    root.mkdir()
    rows = ["image,mask", *(f"{number}.jpg,{number}.png" for number in range(4))]
    (root / "list.csv").write_text("\n".join(rows), encoding="utf-8")
    ids = np.zeros((16, 24), np.uint8)
    for number in range(4):
        (root / f"{number}.jpg").write_bytes(encode_picture(number))
        (root / f"{number}.png").write_bytes(encode_values(ids + number))
    before = convert(root, settings=settings, output=tmp_path / "before")
    assert before.code == 0, before.stderr
    (root / "2.png").write_bytes(encode_values(ids + 9))
    after = convert(root, settings=settings, output=tmp_path / "after")
    line, said = diff(before, after)
    assert line["annotation_kinds"] == {"segmentation": 1}
    assert said[:2] == [
        "other annotations or features: 1 image (semantic masks 1)",
        "  2.jpg: semantic masks",
    ]


def test_other_second_images_are_counted_by_their_name(convert, diff, tmp_path):
    source = {"pairs_of": "{n}_a.png", "pairs": {"target": "{n}_b.png", "depth": "{n}_c.png"}}
    settings = {
        "source": {"kind": "class_folders", "class_from": "none", **source},
        "splits.fractions": {"train": 1},
        "report": False,
    }
    root = tmp_path / "pairs"
    root.mkdir()
    for number in range(3):
        for letter in "abc":
            path = root / f"{number}_{letter}.png"
            path.write_bytes(encode_picture((number, letter), kind="PNG"))
    before = convert(root, settings=settings, output=tmp_path / "before")
    assert before.code == 0, before.stderr
    (root / "2_b.png").write_bytes(encode_picture("other", kind="PNG"))
    after = convert(root, settings=settings, output=tmp_path / "after")
    line, said = diff(before, after)
    assert line["annotation_kinds"] == {"pairs/target": 1}
    assert said[:2] == [
        "other annotations or features: 1 image (second images (target) 1)",
        "  2_a.png: second images (target)",
    ]
