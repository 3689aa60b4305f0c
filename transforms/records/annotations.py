"""What annotators say of an image besides its class: several labels, and boxes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.imaging.geometry import read_geometry
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_boxes import CARRIED
from recordmill.schemas.settings.dataset import BoxSettings
from recordmill.transforms.records.boxes import DroppedBox, place_boxes
from recordmill.transforms.records.image_record import find_class

MOST_UNKNOWN = 100
"""Unknown classes that one shard counts by name; a broken file could number millions."""

OTHERS = "others"
"""The name under which further unknown classes are counted."""


@dataclass(slots=True)
class AnnotationCounts:
    """How many of one image's annotations were written, dropped or rejected.

    Attributes:
        boxes: see `place_boxes`; None where the image was not to have any.
        dropped: the boxes that were dropped.
        lacks_file: whether its file of boxes is missing.
        labels: see `AnnotationTotals.labels`.
    """

    boxes: Counter[str] | None = None
    dropped: list[DroppedBox] = field(default_factory=list)
    lacks_file: bool = False
    labels: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        dropped = [tuple(box) for box in self.dropped]
        return {"boxes": self.boxes, "dropped": dropped, "lacks_file": self.lacks_file, "labels": self.labels}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The counts that `as_json` gave."""
        boxes = None if values["boxes"] is None else Counter(values["boxes"])
        dropped = [DroppedBox(*each) for each in values["dropped"]]
        return cls(boxes, dropped, values["lacks_file"], Counter(values["labels"]))


def resolve_annotations(
    fields: dict[str, Any],
    data: bytes,
    image: PreparedImage,
    images: ImageSettings,
    boxes: BoxSettings,
    label_map: LabelMap,
) -> AnnotationCounts | None:
    """Completes a record's fields in place.

    `label_texts` become class names, with `labels`, their ids, next to them. What
    `schemas.reference_boxes.boxes_of` gave becomes the fields of boxes, which have moved with the pixels.

    Args:
        fields: of the record, as its source gave them; texts as UTF-8.
        data: the source's bytes.
        image: what is stored of them.
        images: how that was made.
        boxes: what to do with invalid boxes.
        label_map: class ids.

    Returns:
        The counts; None where the image was to have neither.

    Raises:
        Rejected: stage `encode`: a label has no id (`unknown_label`), or the boxes are bad; see `place_boxes`.
    """
    if "label_texts" not in fields and "boxes" not in fields:
        return None
    counts = AnnotationCounts()
    if "label_texts" in fields:
        found = [find_class(text.decode(), label_map) for text in fields["label_texts"]]
        fields["label_texts"] = [name.encode() for name, _ in found if name is not None]
        fields["labels"] = [class_id for name, class_id in found if name is not None]
        counts.labels.update(listed=len(found), written=len(fields["labels"]))
    if "boxes" not in fields:
        return counts
    given = {key: fields.pop(key) for key in CARRIED & fields.keys()}
    given["boxes_labels"] = [each.decode() if isinstance(each, bytes) else each for each in given["boxes_labels"]]
    geometry = read_geometry(data, image, images)
    placed, counts.boxes, counts.dropped = place_boxes(given, geometry, boxes, label_map)
    fields.update(placed)
    return counts


def count_rejected_labels(
    ref: ImageRef, reason: str, label_map: LabelMap, outcome: str = "with_rejected_images"
) -> Counter[str]:
    """Counts the labels of a rejected image that may have several, or of one that was left out.

    Args:
        ref: the image.
        reason: why it was rejected.
        label_map: class ids.
        outcome: how labels are counted that have an id.
    """
    texts = orjson.loads(ref.features).get("label_texts", ()) if '"label_texts"' in ref.features else ()
    unknown = [text for text in texts if reason == "unknown_label" and label_map.name_for(text) is None]
    left_out = sum(map(label_map.leaves_out, unknown))
    counts = Counter(listed=len(texts), not_chosen=left_out, unknown_label=len(unknown) - left_out)
    counts[outcome] = len(texts) - len(unknown)
    return +counts


def add_image(totals: AnnotationTotals, key: str, counts: AnnotationCounts) -> None:
    """Adds the counts of one image, written or rejected, with that key."""
    totals.labels.update(counts.labels)
    if counts.boxes is None:
        return
    listed, is_empty = counts.boxes["listed"], not counts.boxes["written"]
    ledgers = [totals.dropped]
    if is_empty:
        totals.without_boxes["all_dropped" if listed else "no_file" if counts.lacks_file else "no_objects"] += 1
        ledgers.append(totals.emptied)
    if shapes := counts.boxes["other_shape"]:  # of whatever class: the source dropped them
        for ledger in ledgers:
            ledger.setdefault("other_shape", Counter())[""] += shapes
    for box in counts.dropped:
        name, reason = box.class_name, box.reason
        if reason == "unknown_class" and name not in (known := totals.dropped.get(reason, ())):
            name = name if len(known) < MOST_UNKNOWN else OTHERS
        for ledger in [*ledgers, totals.faulty] if box.is_faulty else ledgers:
            ledger.setdefault(reason, Counter())[name] += 1
        if box.is_faulty:
            such = BoxExample(key, box.place, f"box {box.place} of {listed} of {key} (class {name})")
            totals.examples[reason] = min(such, totals.examples.get(reason, such))
