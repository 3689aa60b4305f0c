"""Notes on what a run has found or used besides its input."""

from collections.abc import Iterator

from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.totals import FinishedShards
from recordmill.schemas.formatting import agree, format_count, show_names
from recordmill.transforms.planning.run_plan import RunPlan


def note_damaged(finished: FinishedShards) -> Iterator[str]:
    """Yields a note if workers found files of earlier datasets missing or damaged."""
    files = {path for report in finished.reports for path in report.damaged}
    if files:
        what = f"{show_names(sorted(files), 3)} {agree(len(files), 'is')} missing or damaged"
        yield f"{what}: images that would be copied from there are read again"


def note_reuse(finished: FinishedShards, plan: RunPlan) -> Iterator[str]:
    """Notes on shards and images from earlier runs and datasets."""
    reports, records = finished.reports, format_count(finished.rows.records, "record")
    if resumed := sum(report.reused for report in reports):
        yield f"{resumed} of {len(reports)} shards had been finished by an earlier run"
    if plan.reuse:
        images = sum(report.images_reused for report in reports)
        yield f"the images of {images:,} of {records} were taken from earlier datasets"
    if disputed := sum(report.images_disputed for report in reports):
        what = f"the datasets to reuse disagree on {format_count(disputed, 'image')}"
        yield f"{what}: the first one that fits was used"


def note_renamed(old: Marker | None, new: Marker) -> Iterator[str]:
    """Yields a note if `cuts: fixed` renames shards.

    The reason is that there are more ranges of hashes, or that others are empty.
    """
    plans = [each.plan for each in (old, new) if each is not None]
    is_fixed = all(plan.settings_in_use["shards"].get("cuts") == "fixed" for plan in plans)
    if is_fixed and len({plan.recipe["cuts"] for plan in plans}) > 1:
        yield (
            "shards have other names than before: there are more ranges of hashes, or others are "
            "empty"
        )
