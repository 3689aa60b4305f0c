"""The boxes of an Example that exists already, as references carry them."""

from collections.abc import Callable, Mapping
from typing import Any

from recordmill.schemas.reference_boxes import boxes_of
from recordmill.transforms.inputs.tfrecord_input.example_fields import bad_example, text_of

_SIDES = ("xmin", "ymin", "xmax", "ymax")


def read_boxes(fields: Mapping[str, Any], name_of: Callable[[str, int | None], str]) -> dict[str, Any]:
    """What `schemas.reference_boxes.boxes_of` gives for the boxes of an Example; nothing where it has none.

    Args:
        fields: of the Example, by the convention's fields: sides in parts of the image.
        name_of: the class of a name and a number.

    Raises:
        Rejected: the lists do not belong together.
    """
    boxes = _boxes(fields)
    if boxes is None:
        return {}
    texts = [text_of(text, "the class of a box") for text in fields.get("box_label_texts", ())]
    numbers = list(fields.get("box_labels", ()))
    for what, each in (("classes' names", texts), ("labels", numbers)):
        if each and len(each) != len(boxes):
            raise bad_example(f"it has {len(boxes)} boxes and {len(each)} {what} of boxes")
    if boxes and not texts and not numbers:
        raise bad_example(f"it has {len(boxes)} boxes without labels")
    labels = [
        name_of(texts[index] if texts else "", numbers[index] if numbers else None) for index in range(len(boxes))
    ]
    values = {key: fields[key] for key in ("is_crowd", "area") if key in fields and len(fields[key]) == len(boxes)}
    return boxes_of(boxes, labels, values=values, fractions=True)


def _boxes(fields: Mapping[str, Any]) -> list[list[float]] | None:
    if "bbox" in fields:
        flat = fields["bbox"]
        if len(flat) % 4:
            raise bad_example(f"its boxes have {len(flat)} sides, which is not a multiple of 4")
        return [[flat[at + 1], flat[at], flat[at + 3], flat[at + 2]] for at in range(0, len(flat), 4)]
    sides = [fields.get(side) for side in _SIDES]
    if all(side is None for side in sides):
        return None
    lengths = {0 if side is None else len(side) for side in sides}
    if len(lengths) > 1:
        raise bad_example("its lists of boxes' sides differ in length")
    return [list(box) for box in zip(*(side or () for side in sides), strict=True)]
