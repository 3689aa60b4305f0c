"""Compares the plans of two datasets: which settings differ, or only the plan version."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from recordmill.schemas.dataset.json_values import differences
from recordmill.schemas.dataset.marker import PlanEntry
from recordmill.schemas.earlier_names import (
    FORMER_DEFAULTS,
    may_have_annotations,
    with_present_settings,
)

DERIVED = frozenset(
    (
        "attribute_ids",
        "cuts",
        "feature_schema",
        "file_names",
        "format_names",
        "label_ids",
        "label_offset",
        "part_names",
        "split_order",
    )
)
"""Parts of a recipe that follow from its settings and from what was listed."""

_OF_RECORDMILL = frozenset(("plan_version", "versions"))
"""Parts of a recipe that follow from the installed Recordmill and its libraries."""

LISTED_ALL_SETTINGS = 2
"""The last plan version whose recipes list all settings, also those at their defaults."""

_WITH_DEFAULT_KEYS = frozenset(("splits.fractions",))
"""The mappings whose default has keys of its own: a recipe lists all of their keys or none."""


def list_differences(old: PlanEntry, new: PlanEntry, left_out: Collection[str] = ()) -> list[str]:
    """Lists the differences between two plans as `key: old -> new`, sorted by key.

    Settings that neither recipe lists have their defaults in both plans. So a setting that only one
    of the versions of Recordmill knows is a difference only if it was set. The digest of a listing
    with annotations was another one in plan version `LISTED_ALL_SETTINGS`: then only the numbers of
    references and the ids of the classes are compared. If these ids differ, so do the images.

    Args:
        old: one plan.
        new: the other.
        left_out: parts of recipes that are not compared.
    """
    old, new = _with_present_names(old), _with_present_names(new)
    ours = _complete(old.recipe, old.settings_in_use, new.recipe)
    theirs = _complete(new.recipe, new.settings_in_use, ours)
    if old.version <= LISTED_ALL_SETTINGS < new.version:
        for path, default in FORMER_DEFAULTS.items():
            if _value_at(ours, path) == default and _value_at(new.recipe, path) is None:
                _remove(ours, path)
                _remove(theirs, path)
        same_ids = old.recipe.get("label_ids") == new.recipe.get("label_ids")
        if may_have_annotations(old.recipe) and same_ids:
            _remove(ours, "listing.digest")
            _remove(theirs, "listing.digest")
    for key in left_out:
        ours.pop(key, None)
        theirs.pop(key, None)
    return differences(ours, theirs)


def is_superseded(old: PlanEntry, new: PlanEntry) -> bool:
    """Returns whether a plan differs from a later one only by what Recordmill itself does.

    The settings and the listing are equal, but the later plan version may give other bytes.
    """
    return old.version < new.version and not list_differences(old, new, DERIVED | _OF_RECORDMILL)


def explain_version(old: PlanEntry, new: PlanEntry) -> str:
    """Says why nothing of a dataset with another plan version fits, as the end of a sentence."""
    return (
        "it was made by another version of Recordmill, in which equal settings may give other "
        f"bytes (plan version {old.version}, now {new.version})"
    )


def _with_present_names(plan: PlanEntry) -> PlanEntry:
    """Returns a copy of a plan with the present names of settings."""
    if plan.version <= LISTED_ALL_SETTINGS:
        return replace(plan, recipe=with_present_settings(plan.recipe))
    return deepcopy(plan)


def _complete(
    recipe: Mapping[str, Any], in_use: Mapping[str, Any], other: Mapping[str, Any], path: str = ""
) -> dict[str, Any]:
    """Adds to a recipe the settings in use that only another recipe lists."""
    completed = dict(recipe)
    for key, theirs in other.items():
        ours, value, place = recipe.get(key, {}), in_use.get(key), f"{path}{key}"
        are_sections = all(isinstance(each, dict) for each in (ours, value, theirs))
        if are_sections and place not in _WITH_DEFAULT_KEYS:
            completed[key] = _complete(ours, value or {}, theirs, f"{place}.")
        elif key not in recipe and key in in_use:
            completed[key] = value
    return completed


def _value_at(values: Mapping[str, Any], path: str) -> Any:
    """Returns the value at a path of keys, or None if it is not there."""
    value: Any = values
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _remove(values: dict[str, Any], path: str) -> None:
    parent, _, key = path.rpartition(".")
    place = _value_at(values, parent) if parent else values
    if isinstance(place, dict):
        place.pop(key, None)
