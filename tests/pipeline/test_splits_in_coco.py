"""COCO files whose images have words for their splits: kept, or asked about."""

import json

import pytest
from paired_inputs import photo
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def collection(key, words):
    """A COCO file, whose images come last and have words, and its images."""
    names = [f"{number}.jpg" for number in range(len(words))]
    data = {
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 5, 4]}
            for at in range(len(words))
        ],
        "images": [{"id": at, "file_name": name, key: words[at]} for at, name in enumerate(names)],
    }
    photos = {f"images/{name}": photo(at) for at, name in enumerate(names)}
    return {"annotations.json": json.dumps(data).encode(), **photos}


@pytest.mark.parametrize(
    ("key", "words", "expected"),
    [
        (
            "split",
            ("train", "val", "test", "train"),
            {"train": 2, "validation": 1, "test": 1},
        ),
        ("set", ("Training", "Testing", "Training"), {"train": 2, "test": 1}),
        ("fold", (0, 1, 2, 1), {"validation": 1, "train": 3}),
        ("subset", ("in door", "out"), {"in_door": 1, "out": 1}),
    ],
)
def test_splits_of_images_are_asked_about_and_kept(key, words, expected, tmp_path, run_in):
    write_files(tmp_path / "in", collection(key, words))
    code, _, err = run_in(["--input", "in"])
    assert (code, f"by the key {key} (" in err) == (2, True)
    assert f"note: not stored: {key} of images ({len(words)})" in err
    kept, otherwise = follow(["--input", "in"], run_in)
    assert (kept.code, otherwise.code) == (0, 0)
    assert {name: each["images"] for name, each in kept.marker["splits"].items()} == expected
    assert f"source.split_key={key}" in kept.arguments
    assert set(otherwise.marker["splits"]) == {"train", "test"}


def test_chosen_splits_are_not_asked_about(tmp_path, run_in):
    write_files(tmp_path / "in", collection("split", ("train", "val", "train", "val")))
    source = "source={kind: coco, split: .*, images: images}"
    for settings in (["splits.fractions={train: 1}"], ["source.split_key="], [source]):
        flags = [word for each in settings for word in ("--set", each)]
        code, _, err = run_in(["--input", "in", "--set", "convention=tf_object_detection", *flags])
        assert (code, "note: not stored: split of images (4)" in err) == (0, True), err
