"""Names of earlier versions: still read, or written next to new ones.

Some are in British spelling. In format 2 of a dataset's files, boxes and labels had keys of their
own.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

SETTINGS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("licence",): ("license",),
    ("source", "unlabelled"): ("source", "unlabeled"),
}
"""Paths of settings that may be given instead of their present ones."""

COMMENT = "# Recognised "
"""How a dataset's configuration begins if its layout was recognized."""

KEYS: Mapping[str, str] = {"recognized": "recognised", "relabeled": "relabelled"}
"""Keys of JSON lines, and the earlier ones, which have the same values."""


def with_earlier_keys(line: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the property names that earlier scripts read to the values of a JSON line."""
    earlier = {KEYS[key]: value for key, value in line.items() if key in KEYS}
    return {**line, **earlier}


def with_license(marker: Any) -> Any:
    """Returns the JSON of a marker in which `about` has the key `license`."""
    about = marker.get("about") if isinstance(marker, dict) else None
    if not isinstance(about, dict) or "licence" not in about:
        return marker
    return {**marker, "about": {"license": about["licence"], **about}}


def with_present_settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a recipe of an earlier version with the present names of its settings."""
    renamed = deepcopy(dict(recipe))
    for (*parents, old), (*_, new) in SETTINGS.items():
        place: Any = renamed
        for key in parents:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict) and old in place:
            place[new] = place.pop(old)
    return renamed


def drop_former_meanings(settings: dict[str, Any]) -> None:
    """Removes values of an earlier version that mean something else now.

    A configuration with `licence` is of a version in which `boxes.drawn_on: displayed` was the
    default and meant what `auto` does now.
    """
    boxes = settings.get("boxes")
    if "licence" in settings and isinstance(boxes, dict) and boxes.get("drawn_on") == "displayed":
        settings["boxes"] = {key: value for key, value in boxes.items() if key != "drawn_on"}


FORMER_DEFAULTS: Mapping[str, Any] = {
    "boxes.drawn_on": "displayed",
    "source.unlabeled": "reject",
}
"""The defaults in plan version 2 of settings whose default has changed since.

The keys are paths such as `boxes.drawn_on`. Without an entry here, a changed default would look
like a changed setting in datasets of that version.
"""

_EARLIER_ROW_KEY = "boxes"
"""The key of a sidecar's row in format 2 that is now in `annotations`."""

_NOTED = frozenset(
    {"clipped", "enclosed", "size_disagrees", "fits_only_displayed", "fits_only_stored"}
)
"""Counts of format 2 that are not reasons for which boxes were dropped."""


_SOURCES_WITH_BOXES = frozenset({"coco", "labelme", "voc", "yolo"})
_COLUMNS_OF_ANNOTATIONS = frozenset({"boxes", "labels", "objects", "xmin"})
_FIELDS_OF_ANNOTATIONS = frozenset({"bbox", "box_labels", "labels", "label_texts", "xmin"})


def may_have_annotations(recipe: Mapping[str, Any]) -> bool:
    """Tells if references of a plan of an earlier version may carry boxes or several labels."""
    source, schema = recipe.get("source") or {}, recipe.get("feature_schema") or {}
    fields = {each.get("field") for each in schema.values()}
    columns = {name for name, column in (source.get("columns") or {}).items() if column}
    return (
        source.get("kind") in _SOURCES_WITH_BOXES
        or bool(source.get("preset"))
        or not columns.isdisjoint(_COLUMNS_OF_ANNOTATIONS)
        or not fields.isdisjoint(_FIELDS_OF_ANNOTATIONS)
    )


def with_present_keys(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the row of a sidecar; one of format 2 with the key `annotations`."""
    if _EARLIER_ROW_KEY not in row:
        return row
    row = dict(row)
    counts = row.pop(_EARLIER_ROW_KEY)
    if isinstance(counts, dict):
        row["annotations"] = {"boxes": _divide(counts)}
    return row


def _divide(flat: Mapping[str, int]) -> dict[str, Any]:
    """Returns the counts of format 2, which are in one object, by what they count."""
    counts = dict(flat)
    listed, written = counts.pop("listed", 0), counts.pop("written", 0)
    noted = {name: counts.pop(name) for name in _NOTED & counts.keys()}
    return {"listed": listed, "written": written, "dropped": counts, "noted": noted}


def with_annotation_entries(marker: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of a marker of format 2 with the key `annotations`."""
    marker = dict(marker)
    boxes, dropped = marker.pop("boxes", None), marker.pop("dropped_boxes", None)
    bare, labels = marker.pop("images_without_boxes", None), marker.pop("labels_of_images", None)
    entries: dict[str, Any] = {}
    if boxes or bare is not None:
        entries["boxes"] = {"unit": "box", **_divide(boxes or {})}
        details = {"dropped_classes": dropped, "images_without": bare}
        entries["boxes"] |= {key: each for key, each in details.items() if each is not None}
    if labels:
        entries["labels"] = {"unit": "label", **_divide(labels)}
    counted = next(iter(entries), None)
    if any("instances" in split for split in _splits_of(marker)):
        marker["counted"] = counted
    return {**marker, "annotations": entries, "made_from": []}


def _splits_of(marker: Mapping[str, Any]) -> Iterable[Any]:
    splits = marker.get("splits")
    if isinstance(splits, dict):
        return [split for split in splits.values() if isinstance(split, dict)]
    return []


def with_earlier_counts(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an outcome's numbers, and again by the keys that earlier scripts read."""
    earlier: dict[str, Any] = {}
    entries = numbers.get("annotations", {})
    if boxes := entries.get("boxes"):
        if boxes["listed"]:
            earlier["boxes"] = _flatten(boxes)
        earlier["dropped_boxes"] = boxes.get("dropped_classes", {})
        earlier["images_without_boxes"] = boxes.get("images_without")
    if (labels := entries.get("labels")) and labels["listed"]:
        earlier["labels_of_images"] = _flatten(labels)
    return {**numbers, **{key: each for key, each in earlier.items() if each is not None}}


def _flatten(entry: Mapping[str, Any]) -> dict[str, int]:
    """Returns the counts of an entry in one object, without what is 0, sorted."""
    counts = {"listed": entry["listed"], "written": entry["written"]}
    counts |= {**entry["dropped"], **entry.get("noted", {})}
    return {name: count for name, count in sorted(counts.items()) if count}
