"""What the server answers, as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recordmill.viewing.image_table import UNKNOWN_NUMBER
from recordmill.viewing.viewed_dataset import ReadingProgress


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What the page says about the dataset.

    Attributes:
        title: its name.
        path: its folder.
        kind: what it is, in words.
        splits: the names of its splits.
        labels: the ids of its classes by name; empty if they are not known.
        has_sources: whether sources can be shown.
        changes: what each change of an image means, by its name.
        kinds: the kinds of annotations that are drawn.
    """

    title: str
    path: str
    kind: str
    splits: Sequence[str]
    labels: Mapping[str, int]
    has_sources: bool
    changes: Mapping[str, str]
    kinds: Sequence[str]


@dataclass(frozen=True, slots=True)
class ImageCell:
    """One image of the grid.

    Attributes:
        number: its number in the dataset.
        key: its key; empty if it has not been read yet.
        classes: its classes.
        width: in pixels; -1 if it is not known.
        height: in pixels; -1 if it is not known.
        objects: the number of its objects; -1 if it can have none.
        mark: what is to happen to it: `nothing`, `excluded` or `corrected`.
        new_class: the class that it is to get.
    """

    number: int
    key: str = ""
    classes: Sequence[str] = ()
    width: int = UNKNOWN_NUMBER
    height: int = UNKNOWN_NUMBER
    objects: int = UNKNOWN_NUMBER
    mark: str = "nothing"
    new_class: str | None = None


@dataclass(frozen=True, slots=True)
class GridPage:
    """A part of the selected images.

    Attributes:
        progress: how far the images have been read; only if all were read, some can be selected.
        total: the number of selected images; None if it is not known.
        first: the place of the first image among those selected.
        images: the images.
        counts: the number of images by value, for each name of `NAMED`, if the images met the
            conditions on other names.
        is_selected: whether the images are those selected: if not, they are all images.
    """

    progress: ReadingProgress
    total: int | None
    first: int
    images: Sequence[ImageCell]
    counts: Mapping[str, Mapping[str, int]]
    is_selected: bool


@dataclass(frozen=True, slots=True)
class ShownFeature:
    """One feature of a record.

    Attributes:
        key: its key.
        kind: `bytes`, `float`, `int64` or `empty`.
        length: the number of its values.
        text: its first values, for people.
    """

    key: str
    kind: str
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class ShownShape:
    """One annotation to draw; see `Shape`.

    Attributes:
        kind: its kind.
        class_name: its class; None without one.
        color: the color of its class, as `#rrggbb`.
        sides: left, top, right and bottom, as fractions of the image.
        layer: its region as a transparent picture over the image, as a `data:` URI.
        points: x, y and whether the point is visible, of each point.
        lines: the places of pairs of points that are joined.
        reason: why it is in no record, in a word; None if it is in the record.
    """

    kind: str
    class_name: str | None
    color: str
    sides: Sequence[float] | None
    layer: str | None
    points: Sequence[tuple[float, float, bool]]
    lines: Sequence[tuple[int, int]]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ShownImage:
    """One image with all that is known of it.

    Attributes:
        cell: as in the grid.
        split: its split.
        shard: its file.
        place: its number in its split, from 0.
        offset: the first byte of its frame in the unpacked file.
        bytes: of its record.
        image_bytes: of the encoded image in it.
        format: of that image; empty if it has none.
        sha256: hex digest of its source; empty if it is not known.
        changes: what was changed, by name.
        dropped: the number of its objects that are in no record.
        features: the features of its record.
        shapes: its annotations, and after them those that are in no record.
        python: the line of Python that opens it.
    """

    cell: ImageCell
    split: str
    shard: str
    place: int
    offset: int
    bytes: int
    image_bytes: int
    format: str
    sha256: str
    changes: Sequence[str]
    dropped: int
    features: Sequence[ShownFeature]
    shapes: Sequence[ShownShape]
    python: str
