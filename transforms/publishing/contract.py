"""Compares a finished dataset with the contract in `expect`."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from recordmill.annotations.kinds import KINDS
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.formatting import agree, format_count, show_names
from recordmill.schemas.settings.dataset import Contract, ImageLimits

MOST_BREACHES = 20
"""The most breaches that are listed; others are only counted."""

MOST_CLASSES = 50
"""The most classes that a flag lists."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One way in which a dataset is not as `expect` says.

    Attributes:
        problem: a sentence with what was found, and the limit.
        path: the keys below `expect` of the limit, such as `("images", "train", "at_least")`.
        accepting: the limit that would accept the dataset.
        by_rejection: whether rejected images may be the cause.
        unexpected: classes that should have no image.
    """

    problem: str
    path: tuple[str, ...]
    accepting: float | tuple[str, ...]
    by_rejection: bool = False
    unexpected: tuple[str, ...] = ()


def find_breaches(
    marker: Marker,
    before: Marker | None,
    contract: Contract,
    containers: Mapping[str, int] = MappingProxyType({}),
) -> list[Breach]:
    """Returns all breaches of the contract.

    Args:
        marker: the marker of the dataset that is about to be published.
        before: the marker of the previous dataset; without it, nothing is compared.
        contract: what the dataset must be like.
        containers: the rejected files of many images, by reason, which are not images.
    """
    found = [*_check_classes(marker, before, contract)]
    for name, limits in contract.images.items():
        found += _check_images(name, limits, marker, before)
    found += _check_shares(marker, contract, sum(containers.values()))
    found += _check_drift(marker, before, contract)
    return found


def show_breaches(breaches: list[Breach]) -> list[str]:
    """Returns a sentence for each of the first breaches, and one for the number of the others."""
    shown = [each.problem for each in breaches[:MOST_BREACHES]]
    further = len(breaches) - MOST_BREACHES
    if further > 0:
        shown.append(f"{format_count(further, 'further breach')} of expect")
    return shown


def accepting_settings(breaches: Iterable[Breach], contract: Contract) -> dict[str, Any]:
    """Returns the settings, by their paths, with which the contract accepts the dataset.

    Only settings that are broken are among them. `expect.images` has all its limits.
    """
    settings: dict[str, Any] = {}
    images = {key: _without_none(limits) for key, limits in contract.images.items()}
    for breach in breaches:
        if breach.path[0] != "images":
            settings[f"expect.{breach.path[0]}"] = breach.accepting
            continue
        _, key, limit = breach.path
        widest = min if limit == "at_least" else max
        images[key][limit] = widest(images[key][limit], breach.accepting)
        settings["expect.images"] = images
    return settings


def _without_none(limits: ImageLimits) -> dict[str, Any]:
    return {name: limit for name, limit in asdict(limits).items() if limit is not None}


def _check_classes(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[Breach]:
    setting, expected, found = "expect.classes", {*contract.classes}, _filled_classes(marker)
    if contract.classes == "as_before":
        if before is None:
            return
        setting, expected = "expect.classes (as_before)", _filled_classes(before)
    if not contract.classes:
        return
    accepting: tuple[str, ...] = ()  # no classes: they are not compared
    if len(found) <= MOST_CLASSES:
        accepting = tuple(sorted(found))
    if missing := sorted(expected - found):
        lacking = f"no {marker.counted_unit} is of the {_show(missing)}, which {setting} requires"
        yield Breach(lacking, ("classes",), accepting, by_rejection=True)
    if new := sorted(found - expected):
        unexpected = f"the {_show(new)} {agree(len(new), 'is')} not in {setting}"
        yield Breach(unexpected, ("classes",), accepting, unexpected=tuple(new))


def _show(classes: list[str]) -> str:
    return f"{agree(len(classes), 'class')} {show_names(classes)}"


def _filled_classes(marker: Marker) -> set[str]:
    return {name for name, count in marker.class_counts.items() if name and count}


def _check_images(
    key: str, limits: ImageLimits, marker: Marker, before: Marker | None
) -> Iterator[Breach]:
    """Checks the counts that a key of `expect.images` selects."""
    split_key, slash, class_key = key.partition("/")
    unit = marker.counted_unit if slash else marker.unit
    old_counts, counts = (_count(each, bool(slash)) for each in (before, marker))
    places = {
        (split, name)
        for split, name in counts.keys() | old_counts.keys()
        if split_key in ("*", split)
    }
    places = {(split, name) for split, name in places if class_key in ("*", name)} or {
        (split_key, class_key)
    }
    for split, name in sorted(places):
        count, old = counts[split, name], old_counts[split, name]
        has = f"split {split} has {format_count(count, unit)}"
        if slash:
            has = f"class {name} of {has}"
        if limits.at_least is not None and count < limits.at_least:
            few = f"{has}, and expect.images.{key}.at_least is {limits.at_least:,}"
            yield Breach(few, ("images", key, "at_least"), count, by_rejection=True)
        if limits.at_most is not None and count > limits.at_most:
            many = f"{has}, and expect.images.{key}.at_most is {limits.at_most:,}"
            yield Breach(many, ("images", key, "at_most"), count)
        if limits.change is not None and old and 100 * abs(count - old) > limits.change * old:
            changed = (
                f"{has}, the previous dataset has {old:,}, and expect.images.{key}.change is "
                f"{limits.change:g}%"
            )
            percent = math.ceil(100 * abs(count - old) / old)
            yield Breach(changed, ("images", key, "change"), percent, by_rejection=count < old)


def _count(marker: Marker | None, by_class: bool) -> Counter[tuple[str, str]]:
    """Counts by split, and by class or the empty string."""
    counts: Counter[tuple[str, str]] = Counter()
    if marker is None:
        return counts
    for split, entry in marker.splits.items():
        if by_class:
            own = {(split, name): count for name, count in entry.class_counts.items() if name}
            counts.update(own)
        else:
            counts[split, ""] += entry.records
    return counts


def _check_shares(marker: Marker, contract: Contract, containers: int) -> Iterator[Breach]:
    rejected = sum(marker.ledger.rejected.values()) - containers
    images = rejected + marker.ledger.written
    shares = [("rejected", contract.rejected, rejected, images, str(marker.unit))]
    for name, entry in marker.annotations.items():
        if name in KINDS:
            most = KINDS[name].most_lost(contract)
            shares.append((f"lost_{name}", most, entry.lost, entry.listed, entry.name))
    for key, limit, lost, listed, what in shares:
        if limit is not None and lost > limit * listed:
            why = key.partition("_")[0]
            were = f"{agree(lost, 'was')} {why} ({lost / listed:.2%})"
            of = f"{lost:,} of {format_count(listed, what)}"
            problem = f"{of} {were}, and expect.{key} is {limit:.2%}"
            yield Breach(problem, (key,), _accepting_share(lost / listed), by_rejection=True)
    crossing, most = marker.duplicates.same_bytes.across_splits, contract.duplicates_across_splits
    if most is not None and crossing > most:
        groups = f"{format_count(crossing, 'group')} of identical {marker.unit}s"
        what = f"{groups} {agree(crossing, 'is')} in several splits"
        problem = f"{what}, and expect.duplicates_across_splits is {most:,}"
        yield Breach(problem, ("duplicates_across_splits",), crossing)


def _accepting_share(share: float) -> float:
    """Returns a share of a few digits that is at least as large, whatever is rounded."""
    return min(1.0, (math.ceil(share * 10_000) + 1) / 10_000)


def _check_drift(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[Breach]:
    if contract.class_drift is None or before is None:
        return
    old, new = _shares(before), _shares(marker)
    drift = (
        sum(
            abs(new.get(name, 0.0) - old.get(name, 0.0)) for name in sorted(old.keys() | new.keys())
        )
        / 2
    )
    if drift > contract.class_drift:
        what = f"class shares differ from the previous dataset by {drift:.2%}"
        problem = f"{what}, and expect.class_drift is {contract.class_drift:.2%}"
        yield Breach(problem, ("class_drift",), _accepting_share(drift))


def _shares(marker: Marker) -> dict[str, float]:
    counts = marker.class_counts
    return {name: count / max(counts.total(), 1) for name, count in counts.items()}
