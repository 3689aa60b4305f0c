"""Whether a finished dataset may be published: the ledger, and what a run may lose.

The ledger accounts for everything listed: it is written, rejected, ignored or left out. It also
accounts for annotations of each kind, and for images without any.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from recordmill.annotations.annotation import ListedAnnotations, LostAnnotations
from recordmill.annotations.kinds import KINDS, list_stored
from recordmill.annotations.labels import LABELS
from recordmill.schemas.corrections import Corrections
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import AnnotationEntry, Ledger
from recordmill.schemas.dataset.totals import (
    AnnotationCounts,
    AnnotationTotals,
    BareImages,
    FinishedShards,
    RowAnnotations,
)
from recordmill.schemas.formatting import agree, format_count, most_frequent, show_names
from recordmill.schemas.label_map import LabelMap, rename_classes
from recordmill.schemas.rejection import OF_WHOLE_FILES, WHILE_CONVERTED
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publishing.excess import LOST_CLASSES, Excess
from recordmill.transforms.publishing.lost_containers import find_lost_containers

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


def count_corrections(ledger: Ledger, finished: FinishedShards, corrections: Corrections) -> Ledger:
    """Adds to a ledger what happened to the lines of `corrections`, if there are any."""
    if not corrections:
        return ledger
    counts = sum((each.corrections for each in finished.reports), Counter[str]())
    found = {fate: counts[fate] for fate in ("corrected", "stale")}
    rest = len(corrections) - sum(found.values())
    return replace(ledger, corrections={**found, "no_match": rest})


def note_corrections(ledger: Ledger, path: str) -> Iterator[str]:
    """Yields notes on lines of `corrections` that corrected nothing."""
    counts = ledger.corrections or {}
    if stale := counts.get("stale"):
        yield f"lines of {path} for files that have changed, which keep their classes: {stale:,}"
    if unused := counts.get("no_match"):
        yield f"lines of {path} that fit no image of the dataset: {unused:,}"


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
    left_out = summary.left_out.copy()
    for label, count in summary.classes.items():
        if label_map.is_renamed_away(label):
            left_out["renamed_away"] += count
    unknown = {
        label
        for label in summary.classes
        if label and label_map.name_for(label) is None and not label_map.is_renamed_away(label)
    }
    if unknown:
        rejected["unknown_label"] = sum(summary.classes[label] for label in unknown)
        examples["unknown_label"] = f"the label {min(unknown)!r:.200}"
    written = summary.references - rejected.get("unknown_label", 0) - left_out["renamed_away"]
    return _ledger(summary, written, rejected, left_out), examples


def note_lost_labels(ledger: Ledger, examples: Mapping[str, str], unit: str) -> Iterator[str]:
    """Yields notes on images that a run would not write because of their labels.

    Args:
        ledger: the predicted one.
        examples: an image for each reason, in words.
        unit: what an image is called.
    """
    if unknown := ledger.rejected.get("unknown_label"):
        whose = "whose label is not in labels.classes would be rejected, such as"
        yield f"{format_count(unknown, unit)} {whose} {examples['unknown_label']}"
    if dropped := ledger.left_out.get("renamed_away"):
        yield f"{format_count(dropped, unit)} whose class labels.rename drops would be left out"


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
    rows = rename_classes(summary.lost_labels, label_map.renamed)
    rows -= summary.left_out_labels  # `limit` leaves out the others
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
    others = (listed.total for name, listed in summary.list_classified() if name != LABELS.name)
    if any(others) or list_stored(stored):
        return 0
    rows = finished.rows
    return max(0, rows.instances.total() - (rows.classes.total() - rows.classes[""]))


def find_excesses(
    ledger: Ledger,
    lost: Sequence[str],
    settings: DatasetSettings,
    examples: Mapping[str, str],
    emptied: Sequence[str] = (),
    containers: Mapping[str, int] = MappingProxyType({}),
) -> list[Excess]:
    """Returns the losses of images, classes, splits and containers that are too large.

    Args:
        ledger: the outcome of everything.
        lost: the classes without written images.
        settings: what the dataset is.
        examples: a rejected thing for each reason, in words.
        emptied: the splits without written images. They count only if `exclude` or `keep` left
            images out.
        containers: the rejected files of many images, by reason. They have a limit of their own,
            and are not images.
    """
    kept_out = {
        reason: count for reason, count in ledger.left_out.items() if reason in WHILE_CONVERTED
    }
    if ledger.written == 0:
        return [_describe_nothing_left(ledger.rejected, kept_out, settings)]
    found = [find_lost_containers(containers, settings.max_rejected, examples)]
    images = Counter(ledger.rejected) - Counter(containers)
    found.append(_find_lost_images(images, ledger.written, settings))
    fate = "rejected or left out" if kept_out else "rejected"
    found.append(_find_lost_groups("class", lost, fate, images, settings))
    if kept_out:
        found.append(_find_lost_groups("split", emptied, fate, images, settings))
    return [excess for excess in found if excess]


def _find_lost_images(
    rejected: Mapping[str, int], written: int, settings: DatasetSettings
) -> Excess | None:
    lost, limits = sum(rejected.values()), settings.max_rejected
    if lost <= limits.count or lost / (lost + written) <= limits.share:
        return None
    unit, remedy = _describe_rejected(rejected, settings)
    reasons = _show_counts(rejected)
    what = f"{lost:,} of {lost + written:,} {unit}s ({lost / (lost + written):.2%})"
    over = f"max_rejected.count ({limits.count:,}) and max_rejected.share ({limits.share:.2%})"
    problem = f"{what} {agree(lost, 'was')} rejected ({reasons}), which is over {over}"
    return Excess(problem, remedy or "correct what was rejected", {"max_rejected.count": lost})


def _find_lost_groups(
    kind: str,
    names: Sequence[str],
    fate: str,
    rejected: Mapping[str, int],
    settings: DatasetSettings,
) -> Excess | None:
    """Returns the loss of all images of classes or splits, which `kind` says."""
    most = settings.max_rejected.lost_classes
    if len(names) <= most:
        return None
    unit, remedy = _describe_rejected(rejected, settings)
    of = f"{unit}s of {format_count(len(names), kind)}"
    problem = f"all {of} were {fate} ({show_names(names)}), and {LOST_CLASSES} is {most}"
    return Excess(problem, remedy or _correct(rejected), {LOST_CLASSES: len(names)})


def _correct(rejected: Mapping[str, int]) -> str | None:
    """Returns what to do first about rejected images; None if there are none."""
    if not rejected:
        return None
    if most_frequent(rejected)[0] == "vanished":
        return "add the missing files or correct their names"
    return "correct what was rejected"


def _describe_rejected(
    rejected: Mapping[str, int], settings: DatasetSettings
) -> tuple[str, str | None]:
    """Returns the word for rejected things, and what to do about the most frequent reason."""
    ordered, unit = most_frequent(rejected), str(settings.unit)
    if ordered and OF_WHOLE_FILES.issuperset(ordered):
        unit = "file"
    if not ordered:
        return unit, None
    remedies = {**_REMEDIES, **settings.source.remedies}
    if settings.labels.ids != "names":
        remedies["unknown_label"] = "write such labels as integers, or set labels.ids=names"
    return unit, remedies.get(ordered[0])


def _show_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[reason]:,} {reason}" for reason in most_frequent(counts))


def _describe_nothing_left(
    rejected: Mapping[str, int], left_out: Mapping[str, int], settings: DatasetSettings
) -> Excess:
    """Returns the loss of everything, which no setting allows."""
    unit, remedy = _describe_rejected(rejected, settings)
    gone = {**rejected, **left_out}
    count, fate = sum(gone.values()), "rejected or left out" if left_out else "rejected"
    all_of_them = f"all {count:,} {unit}s were"
    if count == 1:
        all_of_them = f"the only {unit} was"
    problem = f"nothing is left: {all_of_them} {fate} ({_show_counts(gone)})"
    return Excess(problem, remedy)


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


def predict_losses(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> list[str]:
    """Returns why a run will lose too many annotations, one sentence per kind, if it is known."""
    found = []
    for kind in list_stored(ExampleLayout(settings, label_map.attributes).fields):
        if kind.name in summary.annotations:
            lost = kind.predict(summary.annotations[kind.name], settings, label_map)
            if lost and (problem := kind.check_limits(lost, settings)):
                found.append(problem)
    return found


def check_annotations(
    finished: FinishedShards, settings: DatasetSettings, examples: Mapping[str, str]
) -> list[str]:
    """Returns why too many annotations were lost, one sentence for each kind of them.

    What no feature stores is not lost here.

    Args:
        finished: the sum of all shards' reports.
        settings: what the dataset is.
        examples: a rejected thing for each reason, in words.
    """
    rows, found = finished.rows, []
    for kind in list_stored(ExampleLayout(settings).fields):
        counts = rows.annotations.get(kind.name, RowAnnotations()).counts
        totals = finished.annotations.get(kind.name, AnnotationTotals())
        lost = LostAnnotations(counts, totals, rows.instances, examples)
        if problem := kind.check_limits(lost, settings):
            found.append(problem)
    return found
