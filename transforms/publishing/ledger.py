"""The ledger: everything listed is written, rejected, ignored or left out, exactly."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from recordmill.schemas.dataset.annotation_counts import count_dropped, most_frequent
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import Ledger
from recordmill.schemas.dataset.shard_report import FinishedShards
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.record_fields import BOX_FIELDS, MANY_LABELS_FIELDS
from recordmill.schemas.rejection import OF_WHOLE_FILES, WHILE_CONVERTED
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.planning.summary import Summary

_REMEDIES = {
    "format_not_allowed": "convert such files first",
    "unknown_label": "add such labels to labels.classes, or let labels.catch_all take them",
}


class LedgerError(Exception):
    """The ledger does not add up: something was lost or written twice. It is a bug or an outage, never a bad image."""


def balance_ledger(summary: Summary, finished: FinishedShards) -> Ledger:
    """Adds the ledger up from the listing on one side and the finished files on the other.

    The two sides must agree in number, and in the order-free digest of the references themselves: one lost and another
    written twice would have the same number.

    Raises:
        LedgerError: the two sides differ.
    """
    for one, other in pairwise(sorted(report.place for report in finished.reports)):
        if one == other:
            raise LedgerError(f"shard {one[1]} of split {one[0]} was reported twice")
    rows = finished.rows
    ledger = _ledger(summary, rows.records, rows.rejected, summary.left_out + rows.left_out)
    if ledger.accounted != summary.listed:
        raise LedgerError(
            f"{summary.listed} references were listed and {ledger.accounted} are accounted for: {to_json(ledger)}"
        )
    if int(finished.digest, 16) != summary.planned_digest:
        raise LedgerError("the references that were written are not those that were listed, though they are as many")
    return ledger


def _ledger(summary: Summary, written: int, rejected: Mapping[str, int], left_out: Mapping[str, int]) -> Ledger:
    """A ledger with its reasons sorted."""
    fates = (dict(sorted(counts.items())) for counts in (rejected, summary.ignored, left_out))
    return Ledger(summary.listed, written, *fates)


def foresee_ledger(summary: Summary, label_map: LabelMap) -> tuple[Ledger, dict[str, str]]:
    """The ledger of a run that has not begun, as far as it is known, and an example for each reason.

    Known are what was rejected while it was listed, and the labels that have no class.
    """
    rejected, examples = dict(summary.rejected), dict(summary.rejected_such)
    unknown = {label for label in summary.classes if label and label_map.name_for(label) is None}
    if unknown:
        rejected["unknown_label"] = sum(summary.classes[label] for label in unknown)
        examples["unknown_label"] = f"the label {min(unknown)!r:.200}"
    written = summary.references - rejected.get("unknown_label", 0)
    return _ledger(summary, written, rejected, summary.left_out), examples


def balance_boxes(summary: Summary, finished: FinishedShards) -> dict[str, int]:
    """Boxes by outcome, sorted: listed = written + dropped, by reason; see `count_dropped`.

    Raises:
        LedgerError: they do not add up.
    """
    boxes = finished.rows.boxes
    if not summary.boxes == boxes["listed"] == boxes["written"] + sum(count_dropped(boxes).values()):
        raise LedgerError(f"{summary.boxes} boxes were listed, and their outcomes are {dict(sorted(boxes.items()))}")
    return dict(sorted(boxes.items()))


def lost_classes(summary: Summary, written: Collection[str], label_map: LabelMap) -> list[str]:
    """The classes that had images listed and are not among those that have some written, sorted."""
    labels = (label for label in summary.classes if label)  # an image without one has no class to lose
    listed = {name for label in labels if (name := label_map.name_for(label)) is not None}
    return sorted(listed.difference(written))


def lost_splits(summary: Summary, finished: FinishedShards) -> list[str]:
    """The splits that had images listed and have none written, sorted."""
    written = {name for name, rows in finished.splits.items() if rows.records}
    return sorted(name for name, split in summary.splits.items() if split.references and name not in written)


def lost_labels(finished: FinishedShards, summary: Summary, stored: Collection[str]) -> int:
    """How many labels are in no Example, since their images have several and there is a place for one.

    Args:
        finished: the outcomes of the images.
        summary: what was listed; boxes are reported when it is planned, not here.
        stored: the fields that Examples are filled from.
    """
    if summary.boxes or not (MANY_LABELS_FIELDS | BOX_FIELDS).isdisjoint(stored):
        return 0
    rows = finished.rows
    return max(0, rows.instances.total() - (rows.classes.total() - rows.classes[""]))


def check_limits(
    ledger: Ledger,
    lost: list[str],
    settings: DatasetSettings,
    examples: Mapping[str, str],
    emptied: Sequence[str] = (),
) -> str:
    """Why too much was rejected; the empty string if it was not.

    Args:
        ledger: the outcome of everything.
        lost: the classes without anything written.
        settings: what the dataset is.
        examples: something rejected for each reason, in words; that of the most frequent reason is reported.
        emptied: the splits without anything written. They count where images were left out while they were converted.
    """
    limits, unit, source = settings.max_rejected, settings.unit, settings.source
    rejected, ordered = sum(ledger.rejected.values()), most_frequent(ledger.rejected)
    reasons = ", ".join(f"{ledger.rejected[reason]} {reason}" for reason in ordered)
    first = ordered[0] if ordered else ""
    if first and OF_WHOLE_FILES.issuperset(ordered):
        unit = "file"
    example, remedy = examples.get(first), {**_REMEDIES, **source.remedies}.get(first, "")
    such_as = f", {'such as ' if rejected > 1 else ''}{example}" if example else ""
    kept_out = {reason: count for reason, count in ledger.left_out.items() if reason in WHILE_CONVERTED}
    setting = "exclude" if kept_out.keys() == {"excluded"} else "keep"
    if ledger.written == 0 and kept_out:
        reasons = ", ".join(f"{kept_out[reason]} {reason}" for reason in most_frequent(kept_out))
        others = f", and {rejected} were rejected" if rejected else ""
        what = f"{setting} leaves out {sum(kept_out.values()):,} {unit}s ({reasons}){others}"
        return f"nothing is left: {what}: relax {setting}"
    if ledger.written == 0:
        all_of_them = f"all {rejected:,} {unit}s were" if rejected != 1 else f"the only {unit} was"
        return f"nothing is left: {all_of_them} rejected ({reasons}){such_as}" + (f": {remedy}" if remedy else "")
    ignore = "" if source.files else "name such files in ignore"  # else each is a file of its own
    if limits.are_passed(rejected, ledger.written):
        of = f"{rejected:,} of {rejected + ledger.written:,} {unit}s {'was' if rejected == 1 else 'were'} rejected"
        over = f"max_rejected.count ({limits.count}) and max_rejected.share ({limits.share:.2%})"
        advice = _either(remedy, ignore, "raise one of the limits")
        return f"{of} ({reasons}){such_as}, which is over {over}; {advice}"
    for kind, names in (("class", lost), ("split", emptied if kept_out else ())):
        if len(names) <= limits.lost_classes:
            continue
        fate = "rejected or left out" if kept_out else "rejected"
        what = f"all {unit}s of {format_count(len(names), kind)} were {fate} ({show_names(names)})"
        advice = _either(ignore, f"relax {setting}" if kept_out else "", "raise it")
        return f"{what}, and max_rejected.lost_classes is {limits.lost_classes}; {advice}"
    return ""


def _either(*advice: str) -> str:
    *first, last = filter(None, advice)
    return ", ".join(first) + (", or " if len(first) > 1 else " or " if first else "") + last
