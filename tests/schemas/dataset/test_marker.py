import copy

import pytest
from recordmill.schemas.marker_shape import find_misfit

SHARD = {"name": "a", "records": 1, "bytes": 2, "sha256": "", "sidecar": "b", "sidecar_sha256": ""}
MARKER = {
    "recordmill": 1,
    "name": "",
    "plan": {"id": "p", "recipe": {"compression": "none", "images": {}}},
    "convention": "default",
    "unit": "image",
    "features": {"image": {"kind": "bytes", "shape": [-1], "field": "encoded", "meaning": ""}},
    "labels": {"cat": 0},
    "splits": {"train": {"records": 1, "bytes": 2, "classes": {"cat": 1}, "shards": [SHARD, dict(SHARD)]}},
    "ledger": {"listed": 1, "written": 1, "rejected": {}, "ignored": {}, "left_out": {}},
    "changes": {"rotated": 1},
    "duplicates": {"same_bytes": {}},
    "input_bytes": 3,
    "output_bytes": 2,
    "files": ["labels.txt"],
    "notes": [],
    "run": {"digests": {"labels.txt": "00"}, "id": "r"},
    "something": "new",
}


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


def test_a_marker_fits_and_may_hold_more():
    assert find_misfit(MARKER) == ""
    assert find_misfit(changed(["run", "digests"], ...)) == ""
    assert find_misfit(changed(["splits", "train", "instances"], {"cat": 2})) == ""


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["labels"], ..., "labels is missing"),
        (["features", "image", "field"], ..., "features.image.field is missing"),
        (["plan", "recipe", "compression"], ..., "plan.recipe.compression is missing"),
        (["plan", "recipe", "images"], [], "plan.recipe.images is not an object"),
        (["labels", "cat"], "0", "labels.cat is not a whole number"),
        (["labels", "cat"], True, "labels.cat is not a whole number"),
        (["splits", "train", "shards"], {}, "splits.train.shards is not a list"),
        (["splits", "train", "shards", 1, "bytes"], ..., "splits.train.shards[1].bytes is missing"),
        (["splits", "train", "instances"], {"cat": 0.5}, "splits.train.instances.cat is not a whole number"),
        (["files", 0], 7, "files[0] is not a text"),
        (["run", "digests", "labels.txt"], None, "run.digests.labels.txt is not a text"),
        (["recordmill"], "1", "recordmill is not a whole number"),
        (["recordmill"], 2, "it has format 2, which another version of Recordmill reads"),
    ],
)
def test_what_does_not_fit_is_named(path, value, problem):
    assert find_misfit(changed(path, value)) == problem


@pytest.mark.parametrize("value", [None, 1, "a", []])
def test_what_is_not_an_object_is_named(value):
    assert find_misfit(value) == "it is not an object"
