import copy

import pytest
from make_marker import EMPTY_RUN, marker_json

from recordmill.schemas.dataset.json_values import MisfitError, to_json
from recordmill.schemas.dataset.marker import Marker

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
        (["boxes"], None, "boxes is not of type dict"),
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
        (["recordmill"], 3, "it has format 3, which another version of Recordmill reads"),
    ],
)
def test_what_does_not_fit_is_named(path, value, problem):
    assert problem_of(changed(path, value)) == problem


def test_a_marker_is_written_as_it_was_read():
    stored = {
        **MARKER,
        "boxes": {"listed": 1},
        "named": {"images": 1, "files": 1},
        "remarks": ["a"],
    }
    stored["images_without_boxes"] = {
        "no_file": 1,
        "no_objects": 0,
        "all_dropped": 0,
        "dropped": {},
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
