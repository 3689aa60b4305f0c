import copy

import pytest
from make_marker import EMPTY_RUN, make_marker, marker_json

from recordmill.schemas.dataset.json_values import MisfitError, to_json
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.outcome import DatasetNumbers, Outcome
from recordmill.schemas.errors import DONE

SHARD = {"name": "a", "records": 1, "bytes": 2}
MARKER = marker_json(
    {"images": {}},
    features={"image": {"kind": "bytes", "shape": [], "field": "encoded", "meaning": ""}},
    labels={"cat": 0},
    splits={"train": {"classes": {"cat": 1}, "shards": [SHARD, SHARD]}},
    files=["labels.txt"],
    run={"recordmill": "0.2.0", "id": "r", "digests": {"labels.txt": "00"}},
    something="new",
)


def changed(path, value):
    marker = copy.deepcopy(MARKER)
    *parents, last = path
    inner = marker
    for key in parents:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return marker


def problem_of(value):
    try:
        Marker.from_json(value)
    except MisfitError as misfit:
        return str(misfit)
    return ""


def test_a_marker_fits_and_may_hold_more():
    assert problem_of(MARKER) == ""
    assert problem_of(changed(["run", "digests"], ...)) == ""
    assert problem_of(changed(["splits", "train", "instances"], {"cat": 2})) == ""


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["labels"], ..., "labels is missing"),
        (["features", "image", "field"], ..., "features.image.field is missing"),
        (["plan", "recipe", "compression"], ..., "plan.recipe.compression is missing"),
        (["plan", "recipe", "images"], [], "plan.recipe.images is not of type dict"),
        (
            ["features", "image", "kind"],
            "text",
            "features.image.kind is not one of bytes, float, int64",
        ),
        (["duplicates", "look_alike"], ..., "duplicates.look_alike is missing"),
        (["run"], ..., "run is missing"),
        (["annotations"], None, "annotations is not of type dict"),
        (["annotations", "boxes"], {"written": 1}, "annotations.boxes.listed is missing"),
        (["labels", "cat"], "0", "labels.cat is not of type int"),
        (["labels", "cat"], True, "labels.cat is not of type int"),
        (["splits", "train", "shards"], {}, "splits.train.shards is not of type list"),
        (["splits", "train", "shards", 1, "bytes"], ..., "splits.train.shards[1].bytes is missing"),
        (
            ["splits", "train", "instances"],
            {"cat": 0.5},
            "splits.train.instances.cat is not of type int",
        ),
        (["files", 0], 7, "files[0] is not of type str"),
        (["run", "digests", "labels.txt"], None, "run.digests.labels.txt is not of type str"),
        (["recordmill"], "1", "recordmill is not of type int"),
        (["recordmill"], 1, "it has format 1, which another version of Recordmill reads"),
        (["recordmill"], 4, "it has format 4, which another version of Recordmill reads"),
    ],
)
def test_what_does_not_fit_is_named(path, value, problem):
    assert problem_of(changed(path, value)) == problem


def test_a_marker_is_written_as_it_was_read():
    stored = {
        **MARKER,
        "annotations": {
            "boxes": {
                "unit": "box",
                "listed": 3,
                "written": 1,
                "dropped": {"outside": 2},
                "noted": {"clipped": 1},
                "dropped_classes": {"outside": {"cat": 2}},
                "images_without": {"no_file": 1, "no_objects": 0, "all_dropped": 0, "dropped": {}},
            }
        },
        "counted": "boxes",
        "made_from": [{"kind": "coco"}],
        "named": {"images": 1, "files": 1},
        "remarks": ["a"],
    }
    stored["run"] = {
        "recordmill": "1",
        "beam": "2",
        "runner": "DirectRunner",
        "started": "now",
        **EMPTY_RUN,
    }
    del stored["something"]
    assert to_json(Marker.from_json(stored)) == stored


OF_FORMAT_2 = {
    "boxes": {"listed": 4, "written": 2, "clipped": 1, "empty": 2},
    "dropped_boxes": {"empty": {"cat": 2}},
    "images_without_boxes": {"no_file": 1, "no_objects": 0, "all_dropped": 0, "dropped": {}},
    "labels_of_images": {"listed": 3, "written": 2, "unknown_label": 1},
}


def test_a_marker_of_format_2_is_read_as_one_of_the_present_format():
    splits = {"train": {"instances": {"cat": 2}}}
    marker = make_marker(splits=splits, **OF_FORMAT_2)
    stored = to_json(marker)
    assert (marker.format, marker.counted, marker.counted_unit) == (3, "boxes", "box")
    assert stored["annotations"] == {
        "boxes": {
            "unit": "box",
            "listed": 4,
            "written": 2,
            "dropped": {"empty": 2},
            "noted": {"clipped": 1},
            "dropped_classes": {"empty": {"cat": 2}},
            "images_without": OF_FORMAT_2["images_without_boxes"],
        },
        "labels": {
            "unit": "label",
            "listed": 3,
            "written": 2,
            "dropped": {"unknown_label": 1},
            "noted": {},
        },
    }
    assert Marker.from_json(stored) == marker
    assert OF_FORMAT_2.items() <= plain_numbers_of(marker).items()


def test_kinds_and_keys_that_are_not_known_are_kept_or_ignored():
    entry = {"listed": 14, "written": 13, "dropped": {"empty": 1}, "further": {"x": 1}}
    made_from = [{"kind": "coco", "further": 1}, {"kind": "voc"}]
    marker = make_marker(annotations={"masks": entry}, made_from=made_from, further=[7])
    assert marker.annotations["masks"].name == "annotation"
    assert (marker.annotations["masks"].listed, marker.annotations["masks"].lost) == (14, 1)
    assert [each.kind for each in marker.made_from] == ["coco", "voc"]
    assert plain_numbers_of(marker)["annotations"]["masks"]["written"] == 13


def plain_numbers_of(marker):
    """What the outcome of a run that made the dataset has for it in JSON."""
    return Outcome("published", "", DONE, numbers=DatasetNumbers.of(marker)).plain_numbers()
