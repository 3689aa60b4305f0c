"""Markers made by hand: the one place in the tests that knows which keys a marker needs."""

from typing import Any

from recordmill.schemas.dataset.marker import Marker

NO_DUPLICATES = {
    "same_bytes": {"groups": 0, "images": 0, "across_splits": 0, "conflicting": 0},
    "look_alike": None,
}

EMPTY_RUN = {
    "id": "",
    "inputs": {},
    "versions": "",
    "finished": "",
    "shards_reused": 0,
    "images_reused": 0,
    "file_versions": "records.versions",
    "digests": {},
}
"""The key `run` of a marker, before anything is known of the run."""


OF_FORMAT_2 = {"boxes", "dropped_boxes", "images_without_boxes", "labels_of_images"}


def marker_json(recipe: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """What `recordmill.json` holds, for a dataset without images; `changed` are the keys that are
    otherwise.

    Splits and shards need only the keys that matter to a test. With a key of format 2, the marker
    has that format.
    """
    changed["splits"] = {
        name: split_json(**split) for name, split in changed.get("splits", {}).items()
    }
    is_present = changed.keys().isdisjoint(OF_FORMAT_2)
    present: dict[str, Any] = {"annotations": {}, "made_from": []} if is_present else {}
    return {
        "recordmill": 3 if is_present else 2,
        "name": "",
        "plan": {
            "id": changed.pop("plan_id", "p"),
            "recipe": {"compression": "none", **(recipe or {})},
            "settings": {},
        },
        "convention": "default",
        "unit": "image",
        "features": {},
        "labels": {},
        "splits": {},
        **present,
        "ledger": {"listed": 0, "written": 0, "rejected": {}, "ignored": {}, "left_out": {}},
        "changes": {},
        "duplicates": NO_DUPLICATES,
        "input_bytes": 0,
        "output_bytes": 0,
        "files": [],
        "index": "records.index",
        "fingerprint": {"dataset": "0", "splits": {}, "classes": {}},
        "notes": [],
        "remarks": [],
        "run": {},
        **changed,
    }


def split_json(**changed: Any) -> dict[str, Any]:
    """A split of a marker; its records are those of its classes."""
    classes = changed.get("classes", {})
    shards = [
        {
            "name": "a",
            "records": 0,
            "bytes": 0,
            "sha256": "",
            "sidecar": "b",
            "sidecar_sha256": "",
            **shard,
        }
        for shard in changed.pop("shards", ())
    ]
    return {
        "records": sum(classes.values()),
        "bytes": 0,
        "classes": classes,
        "shards": shards,
        **changed,
    }


def make_marker(recipe: dict[str, Any] | None = None, **changed: Any) -> Marker:
    """The marker that `marker_json` describes."""
    return Marker.from_json(marker_json(recipe, **changed))
