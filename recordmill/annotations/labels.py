"""Several labels of one image."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    DroppedAnnotation,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    name_loss,
)
from recordmill.annotations.explain_losses import explain_excess
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.features import RecordField
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.rejection import Rejected

if TYPE_CHECKING:
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

_FIELDS = {
    "labels": RecordField("int64", "class ids of an image with several", many=True),
    "label_texts": RecordField("bytes", "class names of an image with several, UTF-8", many=True),
}


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of an image that may have several: the names of its classes."""

    kind: ClassVar[str] = "labels"

    names: Sequence[str]

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries."""
        return as_kept_json(list(self.names))


class LabelKind(AnnotationKind):
    """Labels of images that may have several."""

    name: ClassVar[str] = Labels.kind
    unit: ClassVar[str] = "label"
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    named: ClassVar[Mapping[str, str]] = {"label_texts": "labels"}

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the labels of an image."""
        return ListedLabels(orjson.loads(packed))

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Gives labels the ids of their classes; of labels that are renamed alike, one is stored.

        Raises:
            Rejected: stage `encode`: a label has no id (`unknown_label`).
        """
        listed, label_map = orjson.loads(packed), on.label_map
        names: list[str] = []
        ids: list[int] = []
        dropped: list[DroppedAnnotation] = []
        for place, label in enumerate(listed, 1):
            if label_map.is_renamed_away(label):
                shown = label_map.shown(label)
                dropped.append(DroppedAnnotation("renamed_away", shown, place, is_faulty=False))
                continue
            name, class_id = find_class(label, label_map)
            if name is None or class_id is None:
                continue
            if label_map.renamed and name in names:  # two classes have become one
                dropped.append(DroppedAnnotation("renamed_alike", name, place, is_faulty=False))
                continue
            names.append(name)
            ids.append(class_id)
        fields = {"label_texts": [name.encode() for name in names], "labels": ids}
        counts = AnnotationCounts(listed=len(listed), written=len(names))
        counts.dropped.update(each.reason for each in dropped)
        return PlacedAnnotations(fields, names, AnnotationOutcome(counts, dropped))

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the labels of an image that was rejected or left out.

        If it was rejected because of a label, that label is counted as `unknown_label`.
        """
        labels = self.list_labels(packed).labels
        if not labels:
            return None
        unknown = [
            label
            for label in labels
            if rejected.reason == "unknown_label"
            and label_map.name_for(label) is None
            and not label_map.is_renamed_away(label)
        ]
        not_chosen = sum(map(label_map.leaves_out, unknown))
        counts = AnnotationCounts(listed=len(labels))
        counts.dropped.update(not_chosen=not_chosen, unknown_label=len(unknown) - not_chosen)
        counts.dropped[name_loss(rejected)] += len(labels) - len(unknown)
        counts.dropped = +counts.dropped
        return AnnotationOutcome(counts)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many labels have no id; None if they are not too many."""
        example = lost.examples.get("unknown_label", "")
        why = f"without an id (unknown_label){f', such as {example}' if example else ''}"
        remedy = "add such labels to the source's names of classes"
        if settings.labels.ids != "names":
            remedy = "set labels.ids=names"
        return explain_excess(
            "labels",
            "max_rejected.labels",
            settings.max_rejected.labels,
            lost.counts.dropped["unknown_label"],
            lost.counts.written,
            why,
            remedy,
        )

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of labels that may end up in no record."""
        return contract.lost_labels


LABELS = LabelKind()
