"""Totals of all shards' reports, in the process that publishes."""

from collections import Counter
from dataclasses import dataclass, field, replace

from recordmill.schemas.annotation_totals import AnnotationTotals
from recordmill.schemas.shard_report import ShardReport


@dataclass(slots=True)
class FinishedShards:
    """The reports of all shards, with their counts of classes added up.

    A report of a thousand images may have hundreds of classes. Per shard, these counts would grow with the images;
    added up, there are as many as there are classes.

    Attributes:
        reports: in no order; their own `classes`, `instances` and `annotations` are empty.
        classes: Examples by class name, by split.
        instances: boxes, or else labels of Examples with several, by class name, by split; empty if no split has any.
        annotations: totals of annotations over all splits.
    """

    reports: list[ShardReport] = field(default_factory=list)
    classes: dict[str, Counter[str]] = field(default_factory=dict)
    instances: dict[str, Counter[str]] = field(default_factory=dict)
    annotations: AnnotationTotals = field(default_factory=AnnotationTotals)

    @property
    def class_totals(self) -> Counter[str]:
        """Examples by class name, over all splits."""
        return sum(self.classes.values(), Counter())

    @property
    def class_counts(self) -> Counter[str]:
        """By class name, over all splits: boxes or labels if Examples may have several, otherwise Examples."""
        return sum(self.instances.values(), Counter()) or self.class_totals

    def add(self, report: ShardReport) -> None:
        """Adds one report."""
        self.classes.setdefault(report.split, Counter()).update(report.classes)
        if report.instances:
            self.instances.setdefault(report.split, Counter()).update(report.instances)
        self.annotations += report.annotations
        self.reports.append(replace(report, classes={}, instances={}, annotations=AnnotationTotals()))

    def merge(self, other: "FinishedShards") -> None:
        """Adds the reports of others; commutative except for the order of reports."""
        for split, classes in other.classes.items():
            self.classes.setdefault(split, Counter()).update(classes)
        for split, instances in other.instances.items():
            self.instances.setdefault(split, Counter()).update(instances)
        self.annotations += other.annotations
        self.reports += other.reports
