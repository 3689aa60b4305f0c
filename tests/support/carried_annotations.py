"""What references carry, for tests that compare it."""

from typing import Any

import orjson

from recordmill.annotations.annotation import Packable, pack_annotations
from recordmill.annotations.boxes import Boxes
from recordmill.schemas.image_ref import ImageRef


def boxes_in(ref: ImageRef) -> Boxes | None:
    """The boxes that a reference carries; None if it does not say that it may have any."""
    packed = dict(ref.annotations).get("boxes")
    return None if packed is None else Boxes.unpack(packed)


def labels_in(ref: ImageRef) -> list[str] | None:
    """The labels that a reference carries, if its image may have several."""
    packed: Any = dict(ref.annotations).get("labels")
    return None if packed is None else orjson.loads(packed)


def carry(ref: ImageRef, *given: Packable) -> ImageRef:
    """A reference that carries annotations."""
    return ref.replace(annotations=pack_annotations(given))
