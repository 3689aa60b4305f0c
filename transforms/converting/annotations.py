"""What annotators say of an image beside its class: several labels, and boxes."""

from collections import Counter
from typing import Any

from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.build_examples import find_class
from recordmill.transforms.converting.boxes import BoxSettings, place_boxes
from recordmill.transforms.imaging import ImageSettings, PreparedImage
from recordmill.transforms.imaging.geometry import read_geometry


def resolve_annotations(
    fields: dict[str, Any],
    data: bytes,
    image: PreparedImage,
    images: ImageSettings,
    boxes: BoxSettings,
    label_map: LabelMap,
) -> Counter[str] | None:
    """Completes a record's fields in place.

    `label_texts` become class names, with `labels`, their ids, beside them. What
    `transforms.converting.boxes.boxes_of` gave becomes the fields of boxes, which have moved with the pixels.

    Args:
        fields: of the record, as its source gave them; texts as UTF-8.
        data: the source's bytes.
        image: what is stored of them.
        images: how that was made.
        boxes: what becomes of invalid boxes.
        label_map: class ids.

    Returns:
        What became of the boxes, see `PlacedBoxes.counts`; None where there were none to place.

    Raises:
        RejectedImage: stage `encode`: a label has no id (`unknown_label`), or the boxes are bad; see `place_boxes`.
    """
    if "label_texts" in fields:
        found = [find_class(text.decode(), label_map) for text in fields["label_texts"]]
        fields["label_texts"] = [name.encode() for name, _ in found if name is not None]
        fields["labels"] = [class_id for name, class_id in found if name is not None]
    if "boxes" not in fields:
        return None
    given = {key: fields.pop(key) for key in ("boxes", "boxes_values", "boxes_size", "boxes_fractions")}
    given["boxes_shapes"] = fields.pop("boxes_shapes", {})
    labels = [label.decode() if isinstance(label, bytes) else label for label in fields.pop("boxes_labels")]
    placed = place_boxes({**given, "boxes_labels": labels}, read_geometry(data, image, images), boxes, label_map)
    fields.update(placed.fields)
    return placed.counts
