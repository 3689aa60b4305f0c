"""docs/migrate.md: its commands run, on what the other tools wrote."""

import json
import shutil

import pytest
from documented_inputs import draw_collections
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def read_marker(folder):
    return json.loads((folder / "recordmill.json").read_text(encoding="utf-8"))


@pytest.fixture
def collections(tmp_path, run_command):
    folder = draw_collections(tmp_path)
    rows = ["split,image_uri,label"]
    for split, number in (("TRAIN", 0), ("TRAIN", 1), ("VALIDATION", 2), ("TEST", 3)):
        rows += [f"{split},photos/{name}/{number:04d}.jpg,{name}" for name in ("cat", "dog")]
    (folder / "recorder.csv").write_text("\n".join((*rows, "")), encoding="utf-8")
    flags = "--input photos --output whole --set convention=tfds --set name=pets"
    assert run_command(f"recordmill run {flags}", folder).returncode == 0
    copy_files(folder, "old-dataset", ("*.tfrecord*",))
    copy_files(folder, "tfds-folder", ("*.tfrecord-*", "dataset_info.json", "*.labels.txt"))
    return folder


def copy_files(folder, name, patterns):
    """What another program wrote: a part of the files of a dataset."""
    (folder / name).mkdir()
    for pattern in patterns:
        for path in (folder / "whole").glob(pattern):
            shutil.copy(path, folder / name)


def test_the_commands_keep_labels_splits_and_names(collections, run_page):
    run_page("docs/migrate.md", collections)
    recorder = read_marker(collections / "from-recorder")
    counts = {name: split["records"] for name, split in recorder["splits"].items()}
    assert (recorder["convention"], counts) == (
        "tfrecorder",
        {"train": 4, "validation": 2, "test": 2},
    )
    assert read_marker(collections / "from-recorder-small")["labels"] == {"cat": 0, "dog": 1}
    tfds = read_marker(collections / "from-tfds")
    assert tfds["labels"] == {"cat": 0, "dog": 1}
    assert tfds["ledger"]["written"] == 40
    assert set(tfds["splits"]) == {"train", "test"}
    features = set(read_marker(collections / "as-tfds")["features"])
    assert {"image", "image/filename", "label"} <= features
    names = sorted(path.name for path in (collections / "flowers").glob("flowers_*"))
    assert names[0] == "flowers_train_00000-of-00001.tfrecord"
    loop = read_marker(collections / "from-loop")
    assert list(loop["features"]) == ["image_raw", "target"]
    assert sorted(path.name for path in (collections / "from-loop").glob("*.tfrecords")) == [
        "test.0.tfrecords",
        "train.0.tfrecords",
    ]


def test_an_image_of_another_size_becomes_64_pixels(collections, run_page):
    run_page("docs/migrate.md", collections)
    rows = (collections / "from-loop/sidecars").glob("train*.jsonl")
    sizes = {
        (row["height"], row["width"])
        for path in rows
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }
    with Image.open(collections / "photos/cat/0000.jpg") as image:
        assert image.size == (160, 120)
    assert sizes == {(64, 64)}
