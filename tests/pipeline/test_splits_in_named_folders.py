"""Tables and COCO files whose images are in folders named like splits, which are asked about."""

import json

import pytest
from followed_ways import check_all_ways, digests, found_in, together
from paired_inputs import counted, photos
from printed_commands import write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SPLITS = {"train": "train", "training": "train", "val": "validation", "test": "test"}
CLASSES = ("cat", "dog")


def images(*folders):
    return together(*(photos(folder, counted(6)) for folder in folders))


def label_of(path):
    return CLASSES[int(path[-5]) % 2]


def table(paths):
    rows = [f"{path},{label_of(path)}" for path in paths]
    return "\n".join(["path,label", *rows]).encode()


def coco(paths):
    return json.dumps(
        {
            "images": [{"id": at, "file_name": path} for at, path in enumerate(paths)],
            "annotations": [
                {"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 5, 4]}
                for at, _ in enumerate(paths)
            ],
            "categories": [{"id": 1, "name": "cat"}],
        }
    ).encode()


def in_folder(path):
    return next(SPLITS[part] for part in path.split("/") if part in SPLITS), label_of(path)


def anywhere(path):
    return "", label_of(path)


@pytest.mark.parametrize(
    "folders",
    [("train", "val"), ("test", "training", "val"), ("images/train", "images/val/b")],
    ids=str,
)
def test_splits_of_a_tables_images_are_kept_or_drawn_again(folders, tmp_path, run_in):
    files = images(*folders)
    write_files(tmp_path / "in", {**files, "labels.csv": table(files)})
    check_all_ways(files, [in_folder, anywhere], run_in)


@pytest.mark.parametrize("path", ["annotations.json", "annotations/all.json"])
def test_splits_of_the_images_of_coco_are_kept_or_drawn_again(path, tmp_path, run_in):
    files = images("train", "val")
    write_files(tmp_path / "in", {**files, path: coco(files)})
    ways = [lambda path: (in_folder(path)[0], ""), lambda path: ("", "")]
    check_all_ways(files, ways, run_in)


@pytest.mark.parametrize(
    "named", [["train"], ["a", "b"], ["train", "a"]], ids=["one split", "no split", "another"]
)
def test_other_folders_of_named_images_are_not_asked_about(named, tmp_path, run_in):
    files = images(*named)
    others = images("test") if named == ["train"] else {}
    write_files(tmp_path / "in", {**files, **others, "labels.csv": table(files)})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(files, anywhere)


def test_an_image_that_a_table_names_outside_the_given_splits_is_rejected(tmp_path, run_in):
    files = images("train", "val", "a")
    write_files(tmp_path / "in", {**files, "labels.csv": table(files)})
    source = "source={kind: manifest, columns: {uri: path, label: label}}"
    flags = ["--set", source, "--set", "max_rejected.share=1"]
    splits = ["--set", "splits.from_folders={train: train, val: validation}"]
    code, out, err = run_in(["--input", "in", *flags, *splits])
    assert code == 0, err
    assert json.loads(out.strip().splitlines()[-1])["ledger"]["rejected"] == {"no_split": 6}
