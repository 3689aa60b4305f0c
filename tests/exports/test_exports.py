"""Other people's public collections, each converted in one try and compared by code that shares
nothing with ours."""

import csv
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import peer_outlines
import pytest
from find_clone import find_clone
from peer import LAYOUTS, compare_pixels, differences, images_below, read_dataset
from PIL import Image
from stored_records import read_records

from recordmill.schemas.features import Example


@dataclass(frozen=True)
class Collection:
    """A row of SOURCES.tsv or OUTLINES.tsv: somebody's public collection, and the layout that its
    author gave it.

    Attributes:
        paths: what is taken of the repository, `PATH` or `PATH=PLACE`; PLACE is `.` for the
            contents of a folder.
    """

    collection: str
    repository: str
    commit: str
    paths: str
    layout: str
    images: str
    license: str


def collections(table: str) -> list[Collection]:
    with Path(__file__).with_name(table).open() as file:
        return [Collection(**row) for row in csv.DictReader(file, delimiter="\t")]


SOURCES, OUTLINES = collections("SOURCES.tsv"), collections("OUTLINES.tsv")


@pytest.fixture(scope="session")
def take_out(tmp_path_factory) -> Callable[[Collection], Path]:
    """Gives a folder with what a collection's row names, as a user would have it."""
    cache = tmp_path_factory.mktemp("clones")

    def take(collection: Collection) -> Path:
        clone = find_clone(collection.repository, collection.commit, cache)
        folder = tmp_path_factory.mktemp(collection.collection) / collection.collection
        folder.mkdir()
        for each in collection.paths.split(" "):
            path, _, place = each.partition("=")
            archive = ["git", "-C", str(clone), "archive", collection.commit, path]
            packed = subprocess.run(archive, capture_output=True)
            if packed.returncode:
                pytest.skip(
                    f"the clone of {collection.repository} lacks files: "
                    f"{packed.stderr.decode():.200}"
                )
            with tarfile.open(fileobj=BytesIO(packed.stdout)) as tar:
                tar.extractall(folder, filter="data")
            if place:
                move_up(folder, folder / path, folder / place)
        return folder

    return take


def move_up(folder: Path, found: Path, place: Path) -> None:
    """Puts a file, or the contents of a folder, where the row says, and removes the folders that
    were around it."""
    aside = folder.with_name(f"{folder.name}-aside")
    found.rename(aside)
    for parent in found.parents:
        if parent == folder:
            break
        if not any(parent.iterdir()):
            parent.rmdir()
    if place != folder:
        aside.rename(place)
        return
    for each in aside.iterdir():
        each.rename(folder / each.name)
    aside.rmdir()


# What no file says, and a person has to.
FLAGS = {
    "darknet-yolo": ["--set=splits.fractions={train: 1.0}"],  # one image
    # Folders by kind of fruit, and lists with the author's 81 classes: the refusal names both.
    "grocery": ["--config=configs/lists.yaml", "--set=source.names=[path, label, coarse]"],
    **{each.collection: ["--set=masks=png"] for each in OUTLINES if each.layout == "coco"},
    "labelformat-yolo": ["--set=masks=png", "--set=ignore=[/instances.json]"],
    "panoptic-things": [
        *("--config=configs/coco_panoptic.yaml", "--set=convention=tf_object_detection"),
        *("--set=source.masks_of=objects", "--set=source.images=input_images"),
        *("--set=labels.ids=integers", "--set=masks=png", "--set=splits={}"),
        r"--set=source.split=panoptic_examples\.json",
    ],
}
# What a collection's own mistakes make of it: its reasons in the ledger.
REJECTED: dict[str, dict[str, int]] = {}
MOST_DIFFERENCE = (
    3.0  # of 255, on average over an image: what quality 95 does to a noisy photograph
)


only_if_asked = pytest.mark.skipif(
    "RECORDMILL_EXPORTS" not in os.environ, reason="make test-exports runs it"
)


def convert(folder: Path, output: Path, *flags: str) -> dict:
    """Converts a folder in one try, and returns the ledger."""
    places = ["--input", str(folder), "--output", str(output)]
    command = [sys.executable, "-m", "pipeline.run", *places, *flags]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return json.loads((output / "recordmill.json").read_text())["ledger"]


@only_if_asked
@pytest.mark.parametrize("collection", SOURCES, ids=lambda each: each.collection)
def test_a_public_collection_is_converted_in_one_try(collection, take_out, tmp_path):
    folder, output = take_out(collection), tmp_path / "dataset"
    ledger = convert(folder, output, *FLAGS.get(collection.collection, []))
    expected, found = list(LAYOUTS[collection.layout](folder)), read_dataset(output)
    assert len(expected) == int(collection.images)
    if not any(each.split for each in expected):  # ours to decide
        found = [replace(each, split="") for each in found]
    assert differences(found, expected)[:3] == []
    assert ledger["rejected"] == REJECTED.get(collection.collection, {})

    if images := images_below(folder):
        sources = {
            sha256(data).hexdigest(): data for data in (path.read_bytes() for path in images)
        }
        assert compare_pixels(output, sources) < MOST_DIFFERENCE


LABELME_MASKS = Collection(
    "labelme2voc-masks",
    "wkentaro/labelme",
    "51e50e43067e4963627513f8334d91f15b11ac48",
    "examples/instance_segmentation/data_dataset_voc=.",
    "",
    "3",
    "GPL-3.0",
)


@only_if_asked
def test_semantic_masks_are_those_of_labelmes_arrays(take_out, tmp_path):
    """LabelMe exports VOC's masks also as arrays, in which -1 is void."""
    folder, output = take_out(LABELME_MASKS), tmp_path / "dataset"
    convert(folder, output)
    found = read_masks(output, "image/segmentation/class/encoded")
    assert len(found) == 3
    for name, (ids,) in found.items():
        expected = np.load(folder / f"SegmentationClassNpy/{name}.npy")
        assert np.array_equal(ids, np.where(expected == -1, 255, expected))


@only_if_asked
def test_masks_of_objects_are_those_of_labelmes_arrays(take_out, tmp_path):
    """LabelMe writes no XML with its masks: it is made of the arrays."""
    folder, output = take_out(LABELME_MASKS), tmp_path / "dataset"
    (folder / "Annotations").mkdir()
    arrays = {path.stem: np.load(path) for path in folder.glob("SegmentationObjectNpy/*.npy")}
    names = (folder / "class_names.txt").read_text().splitlines()
    for name, numbers in arrays.items():
        classes = np.load(folder / f"SegmentationClassNpy/{name}.npy")
        text = f"<filename>{name}.jpg</filename>"
        for number in range(1, numbers.max() + 1):
            rows, columns = np.nonzero(numbers == number)
            label, sides = names[1], [1, 1, 9, 9]  # of an object that others cover
            if len(rows):
                label = names[classes[rows[0], columns[0]]]
                sides = [columns.min() + 1, rows.min() + 1, columns.max() + 1, rows.max() + 1]
            box = "<xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax>".format(*sides)
            text += f"<object><name>{label}</name><bndbox>{box}</bndbox></object>"
        (folder / f"Annotations/{name}.xml").write_text(f"<annotation>{text}</annotation>")
    convert(folder, output, "--set=masks=png")
    found = read_masks(output, "image/object/mask")
    assert found.keys() == arrays.keys()
    for name, masks in found.items():
        expected = [arrays[name] == number for number in range(1, arrays[name].max() + 1)]
        assert np.array_equal(masks, expected)


def read_masks(dataset: Path, key: str) -> dict[str, list[np.ndarray]]:
    """The pixels of the images under a key, by the name of the record's image."""
    found = {}
    for path in dataset.glob("*.tfrecord"):
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            (name,) = features["image/filename"].bytes_list.value
            encoded = features[key].bytes_list.value
            masks = [np.asarray(Image.open(BytesIO(each))) for each in encoded]
            found[Path(name.decode()).stem] = masks
    return found


@only_if_asked
@pytest.mark.filterwarnings("ignore:Found annotation id 0")
@pytest.mark.parametrize("collection", OUTLINES, ids=lambda each: each.collection)
def test_masks_and_key_points_are_those_of_an_independent_reader(collection, take_out, tmp_path):
    folder, output = take_out(collection), tmp_path / "dataset"
    ledger = convert(folder, output, *FLAGS.get(collection.collection, []))
    assert (ledger["written"], ledger["rejected"]) == (int(collection.images), {})
    expected = peer_outlines.LAYOUTS[collection.layout](folder)
    assert peer_outlines.differ(peer_outlines.read_outlines(output), expected)[:3] == []


def test_the_lists_name_every_collection_once_with_its_commit_and_license():
    rows = [*SOURCES, *OUTLINES]
    assert len({each.collection for each in rows}) == len(rows) >= 12
    assert all(len(each.commit) == 40 and each.license for each in rows)
    assert {each.layout for each in SOURCES} <= LAYOUTS.keys()
    assert {each.layout for each in OUTLINES} <= peer_outlines.LAYOUTS.keys()
