"""Datasets of commit 728cb4bb are read, replaced, updated and reused, or refused in one sentence.

Since plan version 3, a recipe lists only the settings that differ from their defaults, so every
plan has another id. Tests with the comment "from plan version 3 on" fail at 728cb4bb itself.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordmill
from recordmill.pipeline.diff import main as diff
from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.verify import main as verify
from recordmill.schemas.errors import LoadError
from tests.earlier.conftest import (
    CLONED,
    COMMANDS,
    DATASETS,
    OLD,
    contents_of,
    differences_in,
    each_command,
    each_dataset,
    edit_photos,
    marker_of,
    notes_on_plan_version,
)

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

# Reading


@each_dataset
def test_a_dataset_opens(place, name):
    folder, counts, labels, fingerprint = DATASETS[name]
    place(name.partition("/")[0])
    dataset = recordmill.open_dataset(name)
    assert (dataset.folder, dataset.counts, dataset.labels) == (folder, counts, labels)
    assert dataset.marker.fingerprint.dataset == fingerprint
    assert dataset.marker.plan.id == marker_of(folder)["plan"]["id"]


@each_dataset
def test_a_dataset_verifies_down_to_its_pixels(place, ask, name):
    folder, counts, _, _ = DATASETS[name]
    place(name.partition("/")[0])
    code, line = ask(verify, name, "--level", "pixels")
    assert (code, line["path"], line["findings"]) == (0, folder, [])
    assert (line["kind"], line["level"]) == ("recordmill", "pixels")
    assert line["records"] == sum(counts.values())


@each_dataset
def test_a_dataset_is_inspected(place, ask, name):
    folder, counts, labels, fingerprint = DATASETS[name]
    place(name.partition("/")[0])
    code, line = ask(inspect, name)
    assert (code, line["path"], line["scanned"]) == (0, folder, False)
    assert (line["labels"], line["fingerprint"]) == (labels, fingerprint)
    assert {split: each["records"] for split, each in line["splits"].items()} == counts
    assert line["convention"] == ("tf_object_detection" if name == "boxes" else "default")


def test_records_and_rejected_files_are_found_by_their_names(place, ask):
    place("boxes", "classes")
    code, line = ask(inspect, "boxes", "--record", "train/turned.jpg")
    (found,) = line["records"]
    assert (code, found["split"], found["number"]) == (0, "train", 3)
    assert found["source"]["changes"] == ["reencoded", "resized", "rotated"]
    assert found["features"]["image/object/class/text"]["values"] == ["cat"]
    code, line = ask(inspect, "classes", "--where", "photos/dog/cut.jpg")
    why = "dog/cut.jpg was rejected: truncated (JPEG: Premature end of JPEG file)"
    assert (code, line["message"]) == (1, why)


def test_the_report_is_made_again(place, ask):
    place("classes")
    Path("classes/report.html").unlink()
    code, line = ask(inspect, "classes", "--report")
    assert (code, line["report"]) == (0, "report.html")
    assert Path("classes/report.html").stat().st_size > 20_000


@each_dataset
def test_each_record_is_found_by_its_key(place, name):
    folder, counts, _, _ = DATASETS[name]
    place(name.partition("/")[0])
    opened = recordmill.open(name, form="raw")
    for split, count in counts.items():
        paths = sorted(Path(folder, "sidecars").glob(f"{split}-*.jsonl"))
        lines = [line for path in paths for line in path.read_text().splitlines()]
        rows = [row for row in map(json.loads, lines) if "rejected" not in row]
        features = recordmill.describe_split(name, split).features
        assert len(opened[split]) == len(rows) == count
        for number, row in enumerate(rows):
            record = opened[split].by_key(row["key"])
            assert record == opened[split][number]
            values = recordmill.parse_example(features, record)
            digest = hashlib.sha256(values["image/encoded"]).hexdigest().encode()
            assert values["image/key/sha256"] == digest
    with pytest.raises(LoadError, match=r"comes from 'cat/none\.jpg': name a key of its sidecars"):
        opened["train"].by_key("cat/none.jpg")


def test_images_and_boxes_are_read_at_random(place):
    place("classes", "boxes")
    classes = recordmill.open("classes")
    image, label = classes["test"].by_key("cat/turned.jpg")
    assert (image.shape, int(label)) == ((40, 30, 3), 0)
    image, label = classes["train"].by_key("dog/gray.png")
    assert (image.shape, int(label)) == ((16, 24, 3), 1)
    values = recordmill.open("boxes", form="numpy")["train"].by_key("train/b.jpg")
    assert values["image/object/class/label"].tolist() == [3, 2]
    sides = ("xmin", "ymin", "xmax", "ymax")
    boxes = np.stack([values[f"image/object/bbox/{side}"] for side in sides], axis=1)
    assert boxes == pytest.approx(
        np.array([[1 / 8, 1 / 6, 3 / 8, 17 / 30], [3 / 4, 1 / 3, 1, 2 / 3]])
    )


@each_command
def test_tensorflow_loads_the_records_of_random_access(place, name):
    pytest.importorskip("tensorflow")
    place(name.partition("/")[0])
    keys = ("image/key/sha256", "image/encoded")
    opened = recordmill.open(name, form="raw")
    for split in DATASETS[name][1]:
        loaded = recordmill.load(name, split, features=keys, decode=False)
        features = recordmill.describe_split(name, split).features
        examples = [recordmill.parse_example(features, record) for record in opened[split]]
        wanted = [tuple(example[key] for key in keys) for example in examples]
        assert sorted(loaded.as_numpy_iterator()) == sorted(wanted)  # shards are interleaved


def test_tensorflow_loads_images_with_their_labels(place):
    pytest.importorskip("tensorflow")
    place("classes")
    loaded = recordmill.load("classes", "train").as_numpy_iterator()
    shapes = sorted((*image.shape, int(label)) for image, label in loaded)
    drawn, photos = 2 * [(16, 24, 3, 1)], [*5 * [(30, 40, 3, 0)], *2 * [(30, 40, 3, 1)]]
    assert shapes == sorted([*drawn, *photos])


# Comparing


def kinds_of(line: Mapping[str, Any]) -> dict[str, int]:
    """The kinds of differences that were found, with their numbers."""
    kinds = ("added", "removed", "renamed", "same_pixels", "other_pixels", "other_bytes")
    kinds += ("annotations", "relabelled", "moved")
    return {kind: line[kind] for kind in kinds if line[kind]}


def test_two_datasets_are_compared(place, ask):
    place("nightly", "classes")
    code, line = ask(diff, f"nightly/{OLD}", "nightly")
    assert (code, line["unchanged"], line["settings"], line["notes"]) == (1, 10, [], [])
    assert kinds_of(line) == {"added": 1, "removed": 1, "other_bytes": 1}
    assert line["examples"] == {
        "added": ["dog/drawn.png"], "removed": ["dog/gone.jpg"], "other_bytes": ["cat/3.jpg"]
    }  # fmt: skip
    code, line = ask(diff, "classes", "nightly")
    assert (code, line["unchanged"], kinds_of(line)) == (1, 12, {})
    assert line["settings"] == ["shards.count: not set -> 2", "shards.cuts: not set -> fixed"]


def test_a_dataset_is_compared_with_its_input(place, ask):
    place("classes", "photos", "boxes", "pets", "removed.txt")
    code, line = ask(diff, "classes", "photos")
    assert (code, line["unchanged"], kinds_of(line)) == (0, 12, {})
    code, line = ask(diff, "boxes", "pets")  # which does not know of `duplicates: drop`
    assert (code, line["unchanged"], kinds_of(line)) == (1, 7, {"added": 1})
    assert line["examples"] == {"added": ["train/copy.jpg"]}


@each_command
def test_the_same_dataset_made_now_has_the_same_records(place_output, again, ask, name):
    place_output(name)
    made = again(name, output="made")
    assert (made.code, made.line["status"]) == (0, "published")
    code, line = ask(diff, name, "made")
    assert (code == 0, kinds_of(line)) == (line["settings"] == [], {})
    assert marker_of("made")["fingerprint"] == marker_of(name)["fingerprint"]
    for key in ("labels", "ledger", "duplicates", "changes"):
        assert marker_of("made").get(key) == marker_of(name).get(key), key
    features, before = marker_of("made")["features"], marker_of(name)["features"]
    added = {key for key in features if "/keypoint/" in key}  # from plan version 4 on
    assert {key: each for key, each in features.items() if key not in added} == before
    assert records_of("made") == records_of(name)
    earlier = recordmill.open_dataset(name).marker
    made = recordmill.open_dataset("made").marker
    assert made.annotations.keys() == earlier.annotations.keys()
    for kind, entry in made.annotations.items():
        before = earlier.annotations[kind]
        assert (entry.listed, entry.written, entry.dropped) == (
            before.listed,
            before.written,
            before.dropped,
        )


def records_of(name: str) -> dict[str, Any]:
    """The splits in a marker, without the digests of sidecars, whose rows have another format."""
    splits: dict[str, Any] = marker_of(name)["splits"]
    for split in splits.values():
        for shard in split["shards"]:
            del shard["sidecar_sha256"]
    return splits


@each_command
def test_the_same_dataset_made_now_differs_only_in_its_plan(place_output, again, ask, name):
    # from plan version 3 on
    place_output(name)
    assert again(name, output="made").code == 0
    code, line = ask(diff, name, "made")
    assert (code, line["settings"]) == (1, ["plan_version: 2 -> 4"])


# Running the same command again


@each_command
def test_the_same_command_replaces_the_dataset(place_output, again, ask, name):
    # from plan version 3 on
    place_output(name, CLONED)
    old = marker_of(name)
    done = again(name)
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    assert len(notes_on_plan_version(done)) == 1
    assert done.marker["plan"]["recipe"]["plan_version"] == 4
    assert done.marker["plan"]["id"] != old["plan"]["id"]
    assert done.marker["fingerprint"] == old["fingerprint"]
    assert (done.marker["run"]["images_reused"], done.marker["run"]["shards_reused"]) == (0, 0)
    assert contents_of(name) == contents_of(again(name, output="made").output)
    assert ask(verify, name, "--level", "pixels")[1]["findings"] == []
    assert (again(name).line["status"], again(name, "--update").line["status"]) == ("kept", "kept")


@each_command
def test_the_old_config_yaml_is_the_same_command(place_output, convert, name):
    # from plan version 3 on
    place_output(name)
    shutil.copy(f"{name}/config.yaml", "config.yaml")
    done = convert(COMMANDS[name][0], "--config=config.yaml", output=Path(name))
    assert (done.code, done.line["status"]) == (0, "published")
    assert len(notes_on_plan_version(done)) == 1
    assert done.marker["fingerprint"]["dataset"] == DATASETS[name][3]


@each_command
def test_the_old_config_yaml_makes_the_same_dataset(place_output, again, convert, name):
    place_output(name)
    made = again(name, output="made")
    configuration = f"--config={name}/config.yaml"
    same = convert(COMMANDS[name][0], configuration, output=Path("same"))
    assert (same.code, same.line["plan_id"]) == (0, made.line["plan_id"])
    assert contents_of("same") == contents_of("made")
    assert same.marker["fingerprint"]["dataset"] == DATASETS[name][3]


def test_a_plan_of_the_same_command_writes_nothing(place_output, again, tree):
    place_output("classes")
    before = tree("classes")
    planned = again("classes", "--plan")
    assert planned.code == 0
    assert tree("classes") == before


def test_a_plan_of_the_same_command_says_that_the_dataset_would_be_replaced(place_output, again):
    # from plan version 3 on
    place_output("classes")
    planned = again("classes", "--plan")
    sentence = "nothing was written; without --plan the dataset would be in classes"
    assert (planned.code, planned.line["status"]) == (0, "planned")
    assert planned.line["message"] == f"{sentence}, in place of the one that is there"


OTHER_SETTINGS = [
    ("classes", {"images.grayscale": "expand"}, ["images.grayscale: keep -> expand"]),
    ("classes", {"seed": 8}, ["seed: 0 -> 8"]),
    (
        "classes",
        {"splits.fractions": {"train": 0.5, "test": 0.5}},
        ["splits.fractions.test: 0.1 -> 0.5", "splits.fractions.train: 0.9 -> 0.5"],
    ),
    ("boxes", {"images.resize.longest": 24}, ["images.resize.longest: 32 -> 24"]),
    ("boxes", {"boxes.invalid": "drop"}, ["boxes.invalid: clip -> drop"]),
    ("boxes", {"seed": 0}, ["seed: 7 -> 0"]),
    ("boxes", {"shards.count": 4}, ["shards.count: 2 -> 4"]),
]


@pytest.mark.parametrize(("name", "settings", "differences"), OTHER_SETTINGS)
def test_other_settings_are_refused(place_output, again, tree, name, settings, differences):
    place_output(name)
    before = tree(name)
    assert differences_in(again(name, settings=settings)) == differences
    assert tree(name) == before


@pytest.mark.parametrize(
    ("name", "settings", "key"),
    [("classes", {"keep.min_side": 10}, "keep"), ("boxes", {"exclude": ""}, "exclude")],
)
def test_other_settings_whose_default_the_old_recipe_leaves_out_are_refused(
    place_output, again, name, settings, key
):
    place_output(name)
    (difference,) = differences_in(again(name, settings=settings))[:1]
    assert re.match(rf"{key}\b", difference)


def test_other_images_are_refused(place_output, again, tree):
    place_output("classes")
    edit_photos()
    before = tree("classes")
    refused = again("classes")
    assert differences_in(refused) == ["other images", "14 of them instead of 13"]
    assert tree("classes") == before


def test_boxes_of_other_classes_are_refused(place_output, again, tree):
    place_output("boxes")
    for path in Path("pets/annotations").iterdir():
        path.write_text(path.read_text().replace('"bird"', '"parrot"'))
    before = tree("boxes")
    assert differences_in(again("boxes")) == ["other images"]
    assert tree("boxes") == before


def test_another_dataset_is_replaced_with_overwrite(place_output, again, ask):
    place_output("boxes")
    done = again("boxes", "--overwrite", settings={"images.resize.longest": 24, "shards.count": 4})
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    assert done.marker["run"]["images_reused"] == 0
    made = again("boxes", output="made", settings={"images.resize.longest": 24, "shards.count": 4})
    assert contents_of("boxes") == contents_of(made.output)
    assert ask(verify, "boxes", "--level", "pixels")[0] == 0


# Updating and reusing


def test_an_update_of_changed_photos_is_a_full_conversion(place_output, again, ask):
    place_output("classes", CLONED)
    edit_photos()
    done = again("classes", "--update")
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    assert sum(each["records"] for each in done.marker["splits"].values()) == 13
    assert contents_of("classes") == contents_of(again("classes", output="made").output)
    assert ask(verify, "classes", "--level", "pixels")[1]["findings"] == []


@each_command
def test_an_update_makes_all_records_again_and_says_why(place_output, again, name):
    # from plan version 3 on
    place_output(name)
    done = again(name, "--update")
    assert (done.code, done.line["status"]) == (0, "published")
    assert done.marker["run"]["images_reused"] == 0
    assert len(notes_on_plan_version(done)) == 1
    assert contents_of(name) == contents_of(again(name, output="made").output)
    assert again(name, "--update").line["status"] == "kept"


def test_the_second_update_copies_records_again(place_output, again):
    # from plan version 3 on
    place_output("classes")
    edit_photos()
    first = again("classes", "--update")
    assert (first.marker["run"]["images_reused"], len(notes_on_plan_version(first))) == (0, 1)
    Path("photos/dog/3.jpg").unlink()
    second = again("classes", "--update")
    assert (second.marker["run"]["images_reused"], notes_on_plan_version(second)) == (12, [])


@each_command
def test_a_dataset_made_with_an_old_one_to_reuse_is_a_full_conversion(
    place_output, again, ask, tree, name
):
    place_output(name)
    before = tree(name)
    done = again(name, f"--reuse={name}", output="new")
    assert (done.code, done.line["status"]) == (0, "published")
    assert contents_of("new") == contents_of(again(name, output="made").output)
    assert done.marker["fingerprint"]["dataset"] == DATASETS[name][3]
    assert ask(verify, "new", "--level", "pixels")[1]["findings"] == []
    assert tree(name) == before


@each_command
def test_a_dataset_to_reuse_is_refused_in_one_note(place_output, again, name):
    # from plan version 3 on
    place_output(name)
    done = again(name, f"--reuse={name}", output="new")
    assert (done.code, done.marker["run"]["images_reused"]) == (0, 0)
    why = (
        "it was made by another version of Recordmill, in which equal settings may give other "
        "bytes (plan version 2, now 4)"
    )
    assert notes_on_plan_version(done) == [f"no image of {name} could be reused: {why}"]


def test_a_dataset_with_another_seed_is_refused_for_reuse(place_output, again, place):
    place_output("classes")
    place("boxes")
    done = again("classes", "--reuse=boxes", output="new")
    why = "unit and seed of boxes are ('image', 7), not ('image', 0)"
    assert done.answer == (2, f"--reuse: {why}: set seed, or remove --reuse")


def test_an_old_dataset_is_the_previous_one_of_a_contract(place_output, again):
    place_output("classes")
    edit_photos()
    settings = {"expect.images": {"*": {"change": 0}}, "expect.classes": "as_before"}
    done = again("classes", "--against=classes", output="new", settings=settings)
    limit = "expect.images.*.change is 0%"
    assert done.code == 4
    breach = f"split train has 10 images, the previous dataset has 9, and {limit}"
    assert done.errors[0] == breach
    settings = {"expect.images": {"*": {"change": 20}}, "expect.classes": "as_before"}
    done = again("classes", "--against=classes", output="new", settings=settings)
    assert (done.code, done.line["status"]) == (0, "published")
