"""Remarks on what of the images' files is not stored: pages, frames and bits."""

from collections.abc import Iterator

from recordmill.schemas.dataset.side_files import Remark
from recordmill.schemas.dataset.totals import LossTotals
from recordmill.schemas.formatting import agree, format_count, say_count

_HALF = 128
"""The least stored value of an image that uses all of 16 bits."""

_RANGES = {
    "as_0_to_1": "as 0 to 1",
    "as_0_to_255": "as 0 to 255",
    "as_0_to_65535": "as 0 to 65,535",
    "stretched": "from the smallest to the largest value of each image",
}


def find_losses(losses: LossTotals, bits: int | None) -> Iterator[Remark]:
    """Makes the remarks.

    Args:
        losses: what is not stored.
        bits: `images.bits`.
    """
    if losses.documents:
        what = f"{say_count(losses.documents, 'document', 'has')} further pages"
        count = say_count(losses.pages, "page", "is")
        yield Remark(f"{what}: {count} not stored. Save each page as a file of its own.", "changes")
    if losses.animations:
        what = say_count(losses.animations, "animation", "has")
        yield Remark(f"{what} further frames, which are not stored.", "changes")
    yield from _find_depths(losses, bits)
    yield from _find_ranges(losses)


def _find_depths(losses: LossTotals, bits: int | None) -> Iterator[Remark]:
    brightest = {int(value): count for value, count in losses.brightest.items()}
    dark = {value: count for value, count in brightest.items() if value < _HALF}
    count = sum(dark.values())
    if rest := losses.deep - count:
        kept = "the highest 8"
        if bits:
            kept = f"the highest 8 of the {bits} in images.bits"
        what = f"{say_count(rest, 'image', 'has')} more than 8 bits per channel"
        yield Remark(f"{what}: {kept} are stored.", "changes")
    if not dark:
        return
    most = max(dark)
    used = 8 + most.bit_length()
    what = f"{format_count(count, 'image')} of 16 bits per channel"
    how = f"{agree(count, 'uses')} at most {used} of them"
    shade = "dark" if most else "black"
    seen = f"they are stored {shade}"
    if count == 1:
        seen = f"it is stored {shade}"
    remedy = f"set images.bits={max(9, used)}"
    if len(dark) < len(brightest):
        remedy = f"convert {agree(count, 'it')} alone, with images.bits={max(9, used)}"
    yield Remark(
        f"{what} {how}, so {seen}, with values of at most {most} of 255: {remedy} to store the "
        "bits in use.",
        "changes",
    )


def _find_ranges(losses: LossTotals) -> Iterator[Remark]:
    ranges = {kind: losses.ranges[kind] for kind in _RANGES if losses.ranges[kind]}
    if len(ranges) < 2 and "stretched" not in ranges:
        return
    parts = [f"{_RANGES[kind]} ({format_count(count, 'image')})" for kind, count in ranges.items()]
    said = parts[0]
    if len(parts) > 1:
        said = f"{', '.join(parts[:-1])} and {parts[-1]}"
    yield Remark(
        f"32-bit or float values were taken {said}, so equal grays may stand for different "
        "values: scale the images alike, to 0 to 255, before you convert them.",
        "changes",
    )
