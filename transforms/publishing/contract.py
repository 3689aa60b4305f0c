"""Compares a finished dataset with `expect`, before it is published."""

from collections import Counter
from collections.abc import Iterator, Mapping

from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.totals import count_dropped
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.settings.dataset import Contract, ImageLimits

MOST_BREACHES = 20
"""The most breaches that are listed; others are only counted."""


def find_breaches(marker: Marker, before: Marker | None, contract: Contract) -> list[str]:
    """One sentence for each breach of the contract.

    Args:
        marker: the marker of the dataset that is about to be published.
        before: the marker of the previous dataset; without it, nothing is compared.
        contract: what the dataset must be like.
    """
    found = [
        *_check_classes(marker, before, contract),
        *(each for name, limits in contract.images.items() for each in _check_images(name, limits, marker, before)),
        *_check_shares(marker, contract),
        *_check_drift(marker, before, contract),
    ]
    more = [f"{format_count(len(found) - MOST_BREACHES, 'further breach')} of expect"] if found[MOST_BREACHES:] else []
    return found[:MOST_BREACHES] + more


def _check_classes(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[str]:
    as_before = contract.classes == "as_before"
    if not contract.classes or (as_before and before is None):
        return
    expected, found = _filled_classes(before) if before and as_before else {*contract.classes}, _filled_classes(marker)
    setting = "expect.classes (as_before)" if as_before else "expect.classes"
    if missing := sorted(expected - found):
        yield f"no {marker.counted_unit} is of the {_show(missing)}, which {setting} requires"
    if new := sorted(found - expected):
        yield f"the {_show(new)} {'is' if len(new) == 1 else 'are'} not in {setting}"


def _show(classes: list[str]) -> str:
    return f"{'class' if len(classes) == 1 else 'classes'} {show_names(classes)}"


def _filled_classes(marker: Marker) -> set[str]:
    return {name for name, count in marker.class_counts.items() if name and count}


def _check_images(key: str, limits: ImageLimits, marker: Marker, before: Marker | None) -> Iterator[str]:
    """Checks the counts that a key of `expect.images` selects."""
    split_key, slash, class_key = key.partition("/")
    unit = marker.counted_unit if slash else marker.unit
    old_counts, counts = (_count(each, bool(slash)) for each in (before, marker))
    places = {(split, name) for split, name in counts.keys() | old_counts.keys() if split_key in ("*", split)}
    places = {(split, name) for split, name in places if class_key in ("*", name)} or {(split_key, class_key)}
    for split, name in sorted(places):
        count, old = counts[split, name], old_counts[split, name]
        has = f"{f'class {name} of ' if slash else ''}split {split} has {format_count(count, unit)}"
        if limits.at_least is not None and count < limits.at_least:
            yield f"{has}, and expect.images.{key}.at_least is {limits.at_least:,}"
        if limits.at_most is not None and count > limits.at_most:
            yield f"{has}, and expect.images.{key}.at_most is {limits.at_most:,}"
        if limits.change is not None and old and 100 * abs(count - old) > limits.change * old:
            yield f"{has}, the previous dataset has {old:,}, and expect.images.{key}.change is {limits.change:g} %"


def _count(marker: Marker | None, by_class: bool) -> Counter[tuple[str, str]]:
    """Counts by split, and by class or the empty string."""
    counts: Counter[tuple[str, str]] = Counter()
    for split, entry in marker.splits.items() if marker else ():
        own: Mapping[str, int] = entry.class_counts if by_class else {"": entry.records}
        counts.update({(split, name): count for name, count in own.items() if name or not by_class})
    return counts


def _check_shares(marker: Marker, contract: Contract) -> Iterator[str]:
    rejected, boxes = sum(marker.ledger.rejected.values()), marker.boxes or {}
    labels = Counter(marker.labels_of_images or {})
    lost_boxes = sum(count_dropped(boxes).values()) - boxes.get("with_left_out_images", 0)
    lost_labels = labels["unknown_label"] + labels["with_rejected_images"]
    for key, limit, lost, listed, what, why in (
        ("rejected", contract.rejected, rejected, rejected + marker.ledger.written, marker.unit, "rejected"),
        ("lost_boxes", contract.lost_boxes, lost_boxes, boxes.get("listed", 0), "box", "lost"),
        ("lost_labels", contract.lost_labels, lost_labels, labels["listed"], "label", "lost"),
    ):
        if limit is not None and lost > limit * listed:
            were = f"{'was' if lost == 1 else 'were'} {why} ({lost / listed:.2%})"
            yield f"{lost:,} of {format_count(listed, what)} {were}, and expect.{key} is {limit:.2%}"
    crossing, most = marker.duplicates.same_bytes.across_splits, contract.duplicates_across_splits
    if most is not None and crossing > most:
        what = f"{format_count(crossing, marker.unit)} {'has' if crossing == 1 else 'have'} copies in another split"
        yield f"{what}, and expect.duplicates_across_splits is {most:,}"


def _check_drift(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[str]:
    if contract.class_drift is None or before is None:
        return
    old, new = _shares(before), _shares(marker)
    drifts = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in sorted(old.keys() | new.keys())}
    drift = sum(map(abs, drifts.values())) / 2
    if drift > contract.class_drift:
        most = max(drifts, key=lambda name: abs(drifts[name]))
        such = f"the share of {most or 'no class'} is {new.get(most, 0.0):.2%} after {old.get(most, 0.0):.2%}"
        what = f"class shares differ from the previous dataset by {drift:.2%}"
        yield f"{what} ({such}), and expect.class_drift is {contract.class_drift:.2%}"


def _shares(marker: Marker) -> dict[str, float]:
    counts = marker.class_counts
    return {name: count / max(counts.total(), 1) for name, count in counts.items()}
