"""Explains losses that are over the user's limits."""

from recordmill.schemas.formatting import agree
from recordmill.schemas.settings.dataset import LossLimits


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
    if lost <= limits.count or lost / (lost + kept) <= limits.share:
        return None
    over = f"{setting}.count ({limits.count}) and {setting}.share ({limits.share:.2%})"
    advice = join_advice(*remedies, "raise one of the limits")
    return (
        f"{lost:,} of {lost + kept:,} {what} {agree(lost, 'was')} {why}, which is "
        f"over {over}; {advice}"
    )


def join_advice(*advice: str) -> str:
    """Joins pieces of advice; the user may follow any. Empty ones are left out."""
    return ", or ".join(filter(None, advice))
