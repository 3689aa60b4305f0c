"""Whether a finished dataset may be published: the ledger, what a run may lose, and `expect`.

The ledger accounts for everything listed: it is written, rejected, ignored or left out. It also
accounts for annotations of each kind, and for images without any.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from recordmill.annotations.annotation import ListedAnnotations, LostAnnotations
from recordmill.annotations.explain_losses import explain_excess, join_advice
from recordmill.annotations.kinds import KINDS, list_stored
from recordmill.annotations.labels import LABELS
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import AnnotationEntry, Ledger, Marker
from recordmill.schemas.dataset.totals import (
    AnnotationCounts,
    AnnotationTotals,
    BareImages,
    FinishedShards,
    RowAnnotations,
)
from recordmill.schemas.formatting import agree, format_count, most_frequent, show_names
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import OF_WHOLE_FILES, WHILE_CONVERTED
from recordmill.schemas.settings.dataset import (
    Contract,
    DatasetSettings,
    ExampleLayout,
    ImageLimits,
)
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publishing.lost_containers import check_containers

_REMEDIES = {
    "format_not_allowed": "convert such files first",
    "unknown_label": "add such labels to labels.classes, or let labels.catch_all take them",
}


class LedgerError(Exception):
    """The ledger does not add up: something was lost or written twice.

    A bug or an outage causes that, never a bad image.
    """


def balance_ledger(summary: Summary, finished: FinishedShards) -> Ledger:
    """Makes the ledger from the listing and the finished files, and checks one against the other.

    They must agree in the number of references and in their order-free digest: with one lost and
    another written twice, the number would be the same.

    Raises:
        LedgerError: they differ.
    """
    rows = finished.rows
    ledger = _ledger(summary, rows.records, rows.rejected, summary.left_out + rows.left_out)
    if ledger.accounted != summary.listed:
        problem = (
            f"{summary.listed} references were listed and {ledger.accounted} are accounted for"
        )
        raise LedgerError(f"{problem}: {to_json(ledger)}")
    if int(finished.digest, 16) != summary.planned_digest:
        raise LedgerError(
            "the references that were written are not those that were listed, though they are as "
            "many"
        )
    return ledger


def _ledger(
    summary: Summary, written: int, rejected: Mapping[str, int], left_out: Mapping[str, int]
) -> Ledger:
    """Makes a ledger with sorted reasons."""
    fates = (dict(sorted(counts.items())) for counts in (rejected, summary.ignored, left_out))
    return Ledger(summary.listed, written, *fates)


def predict_ledger(summary: Summary, label_map: LabelMap) -> tuple[Ledger, dict[str, str]]:
    """Returns the ledger of a run that has not begun, as far as it is known.

    Also returns an example for each reason. Rejections by the listing, and labels without a class,
    are known by then.
    """
    rejected, examples = dict(summary.rejected), dict(summary.rejected_examples)
    unknown = {label for label in summary.classes if label and label_map.name_for(label) is None}
    if unknown:
        rejected["unknown_label"] = sum(summary.classes[label] for label in unknown)
        examples["unknown_label"] = f"the label {min(unknown)!r:.200}"
    written = summary.references - rejected.get("unknown_label", 0)
    return _ledger(summary, written, rejected, summary.left_out), examples


def balance_annotations(summary: Summary, finished: FinishedShards) -> dict[str, AnnotationCounts]:
    """Counts annotations by kind and outcome: listed = written + dropped.

    Kinds without anything listed are left out.

    Raises:
        LedgerError: they do not add up.
    """
    balanced = {}
    for name, kind in KINDS.items():
        listed = summary.annotations.get(name, ListedAnnotations()).total
        counts = finished.rows.annotations.get(name, RowAnnotations()).counts
        if listed != counts.listed or not counts.adds_up:
            what = f"{format_count(listed, kind.unit)} were listed"
            raise LedgerError(f"{what}, and their outcomes are {counts.as_row()}")
        if listed:
            balanced[name] = counts
    return balanced


def lost_classes(summary: Summary, written: Collection[str], label_map: LabelMap) -> list[str]:
    """Returns the classes with listed images and without written ones, sorted.

    Rows of tables whose images are missing count as listed. `written` are the classes that have
    written images.
    """
    rows = summary.lost_labels.keys() - summary.left_out_labels  # `limit` leaves out the others
    labels = {*summary.classes, *rows} - {""}  # images without a label have no class
    listed = {name for label in labels if (name := label_map.name_for(label)) is not None}
    return sorted(listed.difference(written))


def predict_lost_classes(summary: Summary, label_map: LabelMap) -> list[str]:
    """Returns the classes of rows whose images are all missing, sorted."""
    names = {label_map.name_for(label) for label in summary.classes}
    return lost_classes(summary, {name for name in names if name is not None}, label_map)


def lost_splits(summary: Summary, finished: FinishedShards) -> list[str]:
    """Returns the splits with listed images and without written ones, sorted."""
    written = {name for name, rows in finished.splits.items() if rows.records}
    return sorted(
        name for name, split in summary.splits.items() if split.references and name not in written
    )


def lost_labels(finished: FinishedShards, summary: Summary, stored: Collection[str]) -> int:
    """Returns the number of labels in no Example.

    Their images have several labels, and the convention stores one.

    Args:
        finished: the outcomes of the images.
        summary: what was listed; other annotations are noted when planning, not here.
        stored: the fields that Examples are filled from.
    """
    others = (listed.total for name, listed in summary.annotations.items() if name != LABELS.name)
    if any(others) or list_stored(stored):
        return 0
    rows = finished.rows
    return max(0, rows.instances.total() - (rows.classes.total() - rows.classes[""]))


def check_limits(
    ledger: Ledger,
    lost: list[str],
    settings: DatasetSettings,
    examples: Mapping[str, str],
    emptied: Sequence[str] = (),
    containers: Mapping[str, int] = MappingProxyType({}),
) -> str | None:
    """Says why too much was rejected; returns None if it was not.

    Args:
        ledger: the outcome of everything.
        lost: the classes without written images.
        settings: what the dataset is.
        examples: a rejected thing for each reason, in words; the one for the most frequent reason
            is reported.
        emptied: the splits without written images. They count only if `exclude` or `keep` left
            images out.
        containers: the rejected files of many images, by reason. They have a limit of their own,
            and are not images.
    """
    limits, source = settings.max_rejected, settings.source
    kept_out = {
        reason: count for reason, count in ledger.left_out.items() if reason in WHILE_CONVERTED
    }
    if ledger.written == 0:
        return _explain_nothing_left(ledger.rejected, kept_out, settings, examples)
    if problem := check_containers(containers, limits, examples):
        return problem
    ignore = "name such files in ignore"
    if source.files:  # each holds more than one image
        ignore = ""
    images = Counter(ledger.rejected) - Counter(containers)
    unit, example, remedy = _describe_rejected(images, settings, examples)
    reasons = ", ".join(f"{images[reason]} {reason}" for reason in most_frequent(images))
    why, fate = f"rejected ({reasons}){example}", "rejected or left out" if kept_out else "rejected"
    excess = explain_excess(
        f"{unit}s", "max_rejected", limits, images.total(), ledger.written, why, remedy, ignore
    )
    if excess is not None:
        return excess
    for kind, names in (("class", lost), ("split", emptied if kept_out else ())):
        if len(names) > limits.lost_classes:
            what = (
                f"all {unit}s of {format_count(len(names), kind)} were {fate} ({show_names(names)})"
            )
            gone = "it" if len(names) == 1 else "them"
            give_up = f"add --set max_rejected.lost_classes={len(names)} to do without {gone}"
            first = remedy or _correct(images)
            advice = join_advice(first and f"{first}{example}", ignore, give_up)
            return f"{what}, and max_rejected.lost_classes is {limits.lost_classes}; {advice}"
    return None


def _correct(rejected: Mapping[str, int]) -> str | None:
    """Returns what to do first about rejected images; None if there are none."""
    if not rejected:
        return None
    if most_frequent(rejected)[0] == "vanished":
        return "add the missing files or correct their names"
    return "correct what was rejected"


def _describe_rejected(
    rejected: Mapping[str, int], settings: DatasetSettings, examples: Mapping[str, str]
) -> tuple[str, str, str]:
    """Returns the word for rejected things, an example of them, and what to do about it.

    The example is the end of a clause. It is of the most frequent reason.
    """
    ordered, unit = most_frequent(rejected), str(settings.unit)
    if ordered and OF_WHOLE_FILES.issuperset(ordered):
        unit = "file"
    if not ordered:
        return unit, "", ""
    first = ordered[0]
    remedies = {**_REMEDIES, **settings.source.remedies}
    if settings.labels.ids != "names":
        remedies["unknown_label"] = "write such labels as integers, or set labels.ids=names"
    example = ""
    if examples.get(first):
        such_as = "such as " if sum(rejected.values()) > 1 else ""
        example = f", {such_as}{examples[first]}"
    return unit, example, remedies.get(first, "")


def _explain_nothing_left(
    rejected: Mapping[str, int],
    left_out: Mapping[str, int],
    settings: DatasetSettings,
    examples: Mapping[str, str],
) -> str:
    """Returns the sentence about a run that leaves no image."""
    unit, example, remedy = _describe_rejected(rejected, settings, examples)
    gone = {**rejected, **left_out}
    count, fate = sum(gone.values()), "rejected or left out" if left_out else "rejected"
    reasons = ", ".join(f"{gone[reason]} {reason}" for reason in most_frequent(gone))
    all_of_them = f"all {count:,} {unit}s were"
    if count == 1:
        all_of_them = f"the only {unit} was"
    problem = f"nothing is left: {all_of_them} {fate} ({reasons}){example}"
    if remedy:
        problem += f": {remedy}"
    return problem


def describe_annotations(summary: Summary, finished: FinishedShards) -> dict[str, AnnotationEntry]:
    """Makes the ledgers of annotations, by kind, for the marker; empty ones are left out.

    Raises:
        LedgerError: they do not add up.
    """
    balanced, described = balance_annotations(summary, finished), {}
    for name, kind in KINDS.items():
        totals = finished.annotations.get(name, AnnotationTotals())
        if name not in balanced and not totals.bare:
            continue
        bare = None
        if totals.bare:
            bare = BareImages(**totals.bare, dropped=_sort(totals.emptied))
        counts = balanced.get(name, AnnotationCounts())
        described[name] = AnnotationEntry.of(
            kind.unit, counts, dropped_classes=_sort(totals.dropped), images_without=bare
        )
    return described


def _sort(by_reason: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {reason: dict(sorted(counts.items())) for reason, counts in sorted(by_reason.items())}


def predict_losses(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> str | None:
    """Returns why a run will lose too many annotations, as far as it is known; else None."""
    for kind in list_stored(ExampleLayout(settings).fields):
        if kind.name in summary.annotations:
            lost = kind.predict(summary.annotations[kind.name], settings, label_map)
            if lost and (problem := kind.check_limits(lost, settings)):
                return problem
    return None


def check_annotations(
    finished: FinishedShards, settings: DatasetSettings, examples: Mapping[str, str]
) -> str | None:
    """Returns why too many annotations were lost, or None. What no feature stores is not lost here.

    Args:
        finished: the sum of all shards' reports.
        settings: what the dataset is.
        examples: a rejected thing for each reason, in words.
    """
    rows = finished.rows
    for kind in list_stored(ExampleLayout(settings).fields):
        counts = rows.annotations.get(kind.name, RowAnnotations()).counts
        totals = finished.annotations.get(kind.name, AnnotationTotals())
        lost = LostAnnotations(counts, totals, rows.instances, examples)
        if problem := kind.check_limits(lost, settings):
            return problem
    return None


MOST_BREACHES = 20
"""The most breaches that are listed; others are only counted."""


def find_breaches(
    marker: Marker,
    before: Marker | None,
    contract: Contract,
    containers: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Returns one sentence for each breach of the contract.

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
    further = len(found) - MOST_BREACHES
    if further <= 0:
        return found
    return [*found[:MOST_BREACHES], f"{format_count(further, 'further breach')} of expect"]


def _check_classes(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[str]:
    setting, expected, found = "expect.classes", {*contract.classes}, _filled_classes(marker)
    if contract.classes == "as_before":
        if before is None:
            return
        setting, expected = "expect.classes (as_before)", _filled_classes(before)
    if not contract.classes:
        return
    if missing := sorted(expected - found):
        yield f"no {marker.counted_unit} is of the {_show(missing)}, which {setting} requires"
    if new := sorted(found - expected):
        yield f"the {_show(new)} {agree(len(new), 'is')} not in {setting}"


def _show(classes: list[str]) -> str:
    return f"{agree(len(classes), 'class')} {show_names(classes)}"


def _filled_classes(marker: Marker) -> set[str]:
    return {name for name, count in marker.class_counts.items() if name and count}


def _check_images(
    key: str, limits: ImageLimits, marker: Marker, before: Marker | None
) -> Iterator[str]:
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
            yield f"{has}, and expect.images.{key}.at_least is {limits.at_least:,}"
        if limits.at_most is not None and count > limits.at_most:
            yield f"{has}, and expect.images.{key}.at_most is {limits.at_most:,}"
        if limits.change is not None and old and 100 * abs(count - old) > limits.change * old:
            yield (
                f"{has}, the previous dataset has {old:,}, and expect.images.{key}.change is "
                f"{limits.change:g} %"
            )


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


def _check_shares(marker: Marker, contract: Contract, containers: int) -> Iterator[str]:
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
            yield (
                f"{lost:,} of {format_count(listed, what)} {were}, and expect.{key} is {limit:.2%}"
            )
    crossing, most = marker.duplicates.same_bytes.across_splits, contract.duplicates_across_splits
    if most is not None and crossing > most:
        groups = f"{format_count(crossing, 'group')} of identical {marker.unit}s"
        what = f"{groups} {agree(crossing, 'is')} in several splits"
        yield f"{what}, and expect.duplicates_across_splits is {most:,}"


def _check_drift(marker: Marker, before: Marker | None, contract: Contract) -> Iterator[str]:
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
        yield f"{what}, and expect.class_drift is {contract.class_drift:.2%}"


def _shares(marker: Marker) -> dict[str, float]:
    counts = marker.class_counts
    return {name: count / max(counts.total(), 1) for name, count in counts.items()}
