"""What `recordmill.json` must hold for readers to understand it, and the digests that it states of its own parts."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

MARKER_FORMAT = 1
"""Raised when readers of the format before it would misunderstand the file."""

_COUNTS = {"*": int}
_SHARD = {"name": str, "records": int, "bytes": int, "sha256": str, "sidecar": str, "sidecar_sha256": str}
_SPLIT = {"records": int, "bytes": int, "classes": _COUNTS, "instances?": _COUNTS, "shards": [_SHARD]}
_RECIPE = {
    "compression": str,
    "images?": {"max_pixels?": int},
    "labels?": {},
    "split_order?": [str],
    "listing?": {"references?": int},
}
_SHAPE: Mapping[str, Any] = {
    "recordmill": int,
    "name": str,
    "plan": {"id": str, "recipe": _RECIPE},
    "convention": str,
    "unit": str,
    "features": {"*": {"kind": str, "shape": [object], "field": str, "meaning": str}},
    "labels": _COUNTS,
    "splits": {"*": _SPLIT},
    "ledger": {"listed": int, "written": int, "rejected": _COUNTS, "ignored": _COUNTS, "left_out": _COUNTS},
    "named?": {"images": int, "files": int},
    "boxes?": _COUNTS,
    "dropped_boxes?": {"*": _COUNTS},
    "images_without_boxes?": {"no_file": int, "no_objects": int, "all_dropped": int, "dropped": {"*": _COUNTS}},
    "labels_of_images?": _COUNTS,
    "changes": _COUNTS,
    "duplicates": {},
    "input_bytes": int,
    "output_bytes": int,
    "files": [str],
    "notes": [str],
    "run": {"digests?": {"*": str}},
}
"""Kinds of values by key; `*` is any key, and one with a question mark may be absent."""

_WORDS: Mapping[type, str] = {int: "a whole number", str: "a text", dict: "an object", list: "a list"}


def plan_id_of(recipe: Mapping[str, Any]) -> str:
    """The name of a dataset's contents: equal recipes, equal bytes."""
    return hash_json(recipe)[:16]


def hash_json(value: Any) -> str:
    """The SHA-256 of plain JSON values, in hex; the order of keys has no say."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def find_misfit(marker: Any) -> str:
    """Where a marker is not as readers need it, in a few words; the empty string if it is."""
    if isinstance(marker, dict) and isinstance(form := marker.get("recordmill"), int) and form != MARKER_FORMAT:
        return f"it has format {form}, which another version of Recordmill reads"
    return _compare(marker, _SHAPE, "")


def _compare(value: Any, shape: Any, path: str) -> str:
    kind: type = shape if isinstance(shape, type) else dict if isinstance(shape, Mapping) else list
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{path or 'it'} is not {_WORDS[kind]}"
    if isinstance(value, list):
        return next(filter(None, (_compare(each, shape[0], f"{path}[{at}]") for at, each in enumerate(value))), "")
    if not isinstance(value, dict):
        return ""
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if name != key and name not in value:
            continue
        if name != "*" and name not in value:
            return f"{f'{path}.' if path else ''}{name} is missing"
        for each in value if name == "*" else [name]:
            if problem := _compare(value[each], inner, f"{path}.{each}" if path else each):
                return problem
    return ""
