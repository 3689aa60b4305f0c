"""Names of earlier versions, in British spelling: still read, or written next to new ones."""

from collections.abc import Mapping
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
    """The values of a JSON line by its keys, and again by those that earlier scripts read."""
    earlier = {KEYS[key]: value for key, value in line.items() if key in KEYS}
    return {**line, **earlier}


def with_license(marker: Any) -> Any:
    """The JSON of a marker in which `about` has the key `license`."""
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
