"""What one row of a manifest says of one image."""

from dataclasses import dataclass, field, fields
from typing import Any


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
        size: width and height of the image as the annotators saw it, where they say so.
        fractions: whether boxes are in parts of the image instead of pixels.
        features: further fields, by feature.
        fault: what is wrong with a row that names its image: other rows of that image may be sound.
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
    size: tuple[int, int] | None = None
    fractions: bool = False
    features: dict[str, Any] = field(default_factory=dict)
    fault: str = ""

    def join(self, other: "Entry") -> str:
        """Adds the boxes of another row of the same image.

        Returns:
            How the rows contradict each other in what they say of the image; the empty string if they do not.
        """
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            if each.name not in ("boxes", "box_labels") and one != two:
                return f"its {each.name} is {two!r:.60}, and an earlier row of {self.uri!r:.100} has {one!r:.60}"
        self.boxes = self.boxes or []
        self.boxes += other.boxes or []
        self.box_labels += other.box_labels
        return ""
