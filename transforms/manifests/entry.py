"""What one row of a manifest says of one image."""

from dataclasses import dataclass, field
from typing import Any


class BadCellError(ValueError):
    """A value is missing or not what its column is for; the message names the column, the value and its type."""


@dataclass(slots=True)
class Entry:
    """What a row says, in texts and numbers; what it does not say is empty.

    Attributes:
        uri: where the image is.
        key: its name in the dataset.
        label: its class.
        labels: its classes, where it may have several; None where that is not said.
        split: the word for its split.
        group: what stays in one split.
        sha256: the digest of its bytes, in hex.
        boxes: xmin, ymin, xmax, ymax of each; None where that is not said.
        box_labels: the class of each.
        fractions: whether boxes are in parts of the image instead of pixels.
        features: further fields, by feature.
    """

    uri: str = ""
    key: str = ""
    label: str = ""
    labels: list[str] | None = None
    split: str = ""
    group: str = ""
    sha256: str = ""
    boxes: list[list[float]] | None = None
    box_labels: list[str] = field(default_factory=list)
    fractions: bool = False
    features: dict[str, Any] = field(default_factory=dict)

    def join(self, other: "Entry") -> bool:
        """Adds the boxes of another row, where both are boxes of one image; says whether they are."""
        if self.boxes is None or other.boxes is None or (self.uri, self.split) != (other.uri, other.split):
            return False
        self.boxes += other.boxes
        self.box_labels += other.box_labels
        return True
