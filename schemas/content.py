"""The content of a reference, once it is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""Decoded pixels: height, width, channels (1 or 3, red first)."""


@dataclass(slots=True)
class Content:
    """The content of one reference.

    Attributes:
        data: the bytes that were read, from which `sha256` and `bytes` of the sidecar are computed.
        image: an encoded image, decoded pixels, or None if there is no image to store.
        label: a label that is found only with the image: a class name, or its number in `ClassNames`; None if the
            reference has the label.
        fields: further fields of the record, besides the reference's own.
    """

    data: bytes
    image: bytes | Pixels | None
    label: str | int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
