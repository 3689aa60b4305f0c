"""What one reference turns out to hold once it is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""Decoded pixels: height, width, channels (1 or 3, red first)."""


@dataclass(slots=True)
class Content:
    """What one reference holds.

    Attributes:
        data: the very bytes that were read, or their digest's input: what `sha256` and `bytes` of the sidecar are of.
        image: an encoded image, decoded pixels, or None where there is no image to store.
        label: what is found only with the image: a class name, or the number by which `ClassNames` gave it; None
            where the reference has the label.
        fields: further fields of the record, beside the reference's own.
    """

    data: bytes
    image: bytes | Pixels | None
    label: str | int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
