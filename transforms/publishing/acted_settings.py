"""Counts the images on which settings acted, for settings that leave a trace."""

from collections.abc import Mapping
from dataclasses import replace

from recordmill.schemas.errors import Outcome
from recordmill.schemas.formatting import format_count
from recordmill.schemas.rejection import NOT_KEPT
from recordmill.schemas.settings.dataset import DatasetSettings


def add_acted(outcome: Outcome, settings: DatasetSettings) -> Outcome:
    """Adds `acted` to the numbers of a finished dataset's outcome, and a note on each setting that acted on no image.

    Args:
        outcome: how the run ended.
        settings: what the dataset is.
    """
    if outcome.status not in ("published", "kept"):
        return outcome
    numbers, written = outcome.numbers, outcome.numbers["ledger"]["written"]
    acted = count_acted(settings, numbers["changes"], numbers["ledger"]["left_out"])
    notes = tuple(say_idle(key, written, settings.unit) for key, count in acted.items() if not count)
    return replace(outcome, numbers={**numbers, "acted": acted}, notes=(*outcome.notes, *notes)) if acted else outcome


def say_idle(key: str, images: int, unit: str) -> str:
    """The note that a setting acted on no image."""
    return f"{key} acted on 0 of {format_count(images, unit)}"


def count_acted(settings: DatasetSettings, changes: Mapping[str, int], left_out: Mapping[str, int]) -> dict[str, int]:
    """Counts the images on which each setting acted, for settings that leave a trace and differ from their default.

    Args:
        settings: what the dataset is.
        changes: images by what was changed, as in the marker.
        left_out: images by the reason for leaving them out.
    """
    resize, acted = settings.images.resize, dict[str, int]()
    if settings.holds_images:
        reencoded, resized = changes.get("reencoded", 0), changes.get("resized", 0)
        padded = resized if resize is not None and resize.pads else 0
        acted = {
            "images.quality": reencoded,
            "images.subsampling": reencoded,
            "images.grayscale": changes.get("grayscale_expanded", 0),
            "images.background": max(changes.get("flattened", 0), padded),
            "images.resize": resized,
            "images.function": changes.get("prepared", 0),
            "keep": sum(left_out.get(reason, 0) for reason in NOT_KEPT),
            "images.metadata": reencoded + changes.get("metadata_stripped", 0),
        }
    acted |= {key: left_out.get(key, 0) for key in ("limit", "limit_per_class")}
    if settings.duplicates == "drop":
        acted["duplicates"] = left_out.get("duplicate", 0)
    return {key: count for key, count in acted.items() if settings.differs(key)}
