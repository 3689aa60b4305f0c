"""The ledger of annotations: dropped boxes, images without a box, labels, and how many of them a run may lose."""

import shlex
from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

import orjson

from recordmill.schemas.dataset.annotation_counts import ImagesWithoutBoxes, most_frequent
from recordmill.schemas.dataset.shard_report import FinishedShards
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample, RowTotals
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.record_fields import BOX_FIELDS, MANY_LABELS_FIELDS
from recordmill.schemas.settings.dataset import DatasetSettings, LossLimits
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.transforms.planning.summary import MOST_NUMBERED, Summary

MOST_CLASSES = 100
"""Classes that the marker lists under one reason; `more` counts the boxes of all others."""

MOST_TO_KEEP = 20
"""Classes that a flag to paste lists."""


def describe_annotations(totals: AnnotationTotals, has_boxes: bool) -> dict[str, Any]:
    """The marker's keys on annotations; none for datasets without any.

    Args:
        totals: of all shards.
        has_boxes: whether any boxes were listed.
    """
    described: dict[str, Any] = {}
    if has_boxes or totals.without_boxes:
        without = ImagesWithoutBoxes(**totals.without_boxes, dropped=_cut(totals.emptied))
        described |= {"dropped_boxes": _cut(totals.dropped), "images_without_boxes": without}
    if labels := +totals.labels:
        described["labels_of_images"] = dict(sorted(labels.items()))
    return described


def _cut(by_reason: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """The counts, sorted, of as many classes as a marker can list."""
    cut = {}
    for reason, counts in sorted(by_reason.items()):
        kept = sorted(most_frequent(counts)[:MOST_CLASSES])
        more = sum(counts.values()) - sum(counts[name] for name in kept)
        cut[reason] = {name: counts[name] for name in kept} | ({"more": more} if more else {})
    return cut


def foresee_boxes(summary: Summary, label_map: LabelMap) -> FinishedShards:
    """What a run would do with its boxes, as far as that is known before it: it drops those of unknown classes."""
    written, dropped, faulty = Counter[str](), Counter[str](), Counter[str]()
    examples = []
    for label, count in summary.box_labels.items():
        name = label_map.name_for(label)
        if name is not None:
            written[name] += count
        elif label != MOST_NUMBERED:
            dropped[label_map.shown(label)] += count
            if not label_map.leaves_out(label):
                faulty[label_map.shown(label)] += count
                examples.append(summary.first_boxes[label])
    totals = AnnotationTotals(
        dropped={"unknown_class": dropped} if dropped else {},
        faulty={"unknown_class": faulty} if faulty else {},
        examples={"unknown_class": BoxExample(*min(examples))} if examples else {},
    )
    return FinishedShards(splits={"": RowTotals(instances=written)}, annotations=totals)


def check_boxes(finished: FinishedShards, settings: DatasetSettings, label_map: LabelMap) -> str:
    """Why too many boxes were lost; the empty string if they were not.

    Whatever the limits, not all boxes may be, nor all boxes of a class. A convention that stores none loses none.

    Args:
        finished: what all shards add up to.
        settings: what the dataset is.
        label_map: class ids.
    """
    totals, written = finished.annotations, finished.rows.instances
    faulty, dropped = (sum(map(Counter, each.values()), Counter()) for each in (totals.faulty, totals.dropped))
    lost, kept = faulty.total(), written.total()
    if not lost or not _stores(BOX_FIELDS, settings):
        return ""
    first = max(totals.faulty, key=lambda reason: (sum(totals.faulty[reason].values()), reason))
    why = f"({_show_faulty(totals.faulty)}), such as {totals.examples[first].text}"
    unnamed = [name for name in totals.faulty.get("unknown_class", ()) if name.isdecimal()]
    add = f"name such classes in {settings.source.classes_from}" if unnamed else "correct such boxes"
    keep = _keep_others([name for name in label_map.ids if written.get(name)], settings)
    if not kept and lost == dropped.total():
        all_of_them = f"all {lost:,} were" if lost > 1 else "the only one was"
        return f"no box is left: {all_of_them} dropped {why}: {add}"
    classes = [name for name in faulty if not written.get(name) and faulty[name] == dropped[name]]
    if classes:
        of = f"all boxes of {format_count(len(classes), 'class')} ({show_names(sorted(classes))})"
        return f"{of} were dropped {why}, which no limit allows: {add}{keep}"
    return _find_passed("boxes", settings.max_rejected.boxes, lost, kept, f"dropped {why}", "correct such boxes")


def check_labels(totals: AnnotationTotals, settings: DatasetSettings, example: str = "") -> str:
    """Why too many labels of images that may have several were lost; the empty string if they were not.

    Args:
        totals: of all shards.
        settings: what the dataset is.
        example: an image that was rejected for it, in words.
    """
    if not _stores(MANY_LABELS_FIELDS, settings):
        return ""
    lost, kept = (totals.labels.get(what, 0) for what in ("unknown_label", "written"))
    why = f"without an id (unknown_label){f', such as {example}' if example else ''}"
    integers = settings.labels.ids != "names"
    remedy = "set labels.ids=names" if integers else "add such labels to the source's names of classes"
    return _find_passed("labels", settings.max_rejected.labels, lost, kept, why, remedy)


def _stores(fields: Set[str], settings: DatasetSettings) -> bool:
    return not fields.isdisjoint(ExampleLayout(settings).fields)


def _find_passed(what: str, limits: LossLimits, lost: int, kept: int, why: str, remedy: str) -> str:
    if not limits.are_passed(lost, kept):
        return ""
    over = f"max_rejected.{what}.count ({limits.count}) and max_rejected.{what}.share ({limits.share:.2%})"
    return f"{lost:,} of {lost + kept:,} {what} were {why}, which is over {over}; {remedy}, or raise one of the limits"


def _show_faulty(faulty: Mapping[str, Mapping[str, int]]) -> str:
    reasons = sorted(faulty.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return "; ".join(
        f"{sum(counts.values()):,} {reason}: {show_names(most_frequent(counts))}" for reason, counts in reasons
    )


def _keep_others(names: list[str], settings: DatasetSettings) -> str:
    """The flags that leave out all other classes on purpose."""
    if not 0 < len(names) <= MOST_TO_KEEP:
        return ", or list the classes to keep in labels.classes"
    values = [f"labels.classes={orjson.dumps(names).decode()}"]
    values += ["labels.ids=names"] if settings.labels.ids != "names" else []
    return f", or leave them out by {' '.join(f'--set {shlex.quote(value)}' for value in values)}"
