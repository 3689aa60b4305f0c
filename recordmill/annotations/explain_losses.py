"""Explains losses that are over the user's limits."""

import shlex
from collections.abc import Sequence

from recordmill.annotations.annotation import LostAnnotations
from recordmill.schemas.dataset.totals import show_dropped
from recordmill.schemas.formatting import agree
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.rejection_limits import LossLimits
from recordmill.schemas.yaml_core import write_yaml_line

MOST_KEPT = 20
"""The most classes that a command lists."""


def explain_excess(
    what: str, setting: str, limits: LossLimits, lost: int, kept: int, why: str, *remedies: str
) -> str | None:
    """Returns why the loss of `lost` things exceeds the limits; None if it does not.

    Args:
        what: what is lost, in the plural.
        setting: the setting with the limits.
        limits: the limits.
        lost: the number of things that are lost.
        kept: the number of things that are not.
        why: what happened to them, as the end of a sentence.
        remedies: what to do about it; empty texts are left out.
    """
    share = lost / max(lost + kept, 1)
    if lost <= limits.count or share <= limits.share:
        return None
    over = f"{setting}.count ({limits.count}) and {setting}.share ({limits.share:.2%})"
    gone = "it" if lost == 1 else "them"
    advice = join_advice(*remedies, f"add --set {setting}.count={lost} to do without {gone}")
    return (
        f"{lost:,} of {lost + kept:,} {what} ({share:.2%}) {agree(lost, 'was')} {why}, which is "
        f"over {over}; {advice}"
    )


def explain_faults(
    what: str, setting: str, limits: LossLimits, lost: LostAnnotations, remedy: str
) -> str | None:
    """Returns why too many annotations of a kind are faulty; None if they are not.

    Losing all of them fails whatever the limits.

    Args:
        what: what they are, in the plural.
        setting: the setting with the limits.
        limits: the limits.
        lost: what a run loses of them.
        remedy: what to do about it.
    """
    faulty = lost.totals.faulty
    if not faulty:
        return None
    sums = {reason: sum(counts.values()) for reason, counts in faulty.items()}
    first = max(sums, key=lambda reason: (sums[reason], reason))
    why = f"dropped ({show_dropped(faulty, counted=True)})"
    if first in lost.totals.examples:
        why = f"{why}, such as {lost.totals.examples[first].text}"
    total = sum(sums.values())
    if total == lost.counts.listed - lost.counts.dropped["no_mask"]:
        return f"all {what} ({total:,}) were {why}, which no limit allows: {remedy}"
    return explain_excess(what, setting, limits, total, lost.counts.written, why, remedy)


def join_advice(*advice: str | None) -> str:
    """Joins pieces of advice; the user may follow any. Empty ones and None are left out."""
    return ", or ".join(filter(None, advice))


def advise_to_keep(classes: Sequence[str], settings: DatasetSettings) -> str:
    """Returns how to leave out all classes but these."""
    by_name = ["labels.ids=names"]
    if settings.labels.ids == "names":
        by_name = []
    if not 0 < len(classes) <= MOST_KEPT:
        return " with ".join(["list the classes to keep in labels.classes", *by_name])
    values = [f"labels.classes={write_yaml_line(list(classes))}", *by_name]
    flags = " ".join(f"--set {shlex.quote(value)}" for value in values)
    return f"add {flags} to keep only the other classes"
