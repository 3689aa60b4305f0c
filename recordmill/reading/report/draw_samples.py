"""`samples.svg`: some images of a dataset with their annotations, which the data card shows.

It is one of the dataset's files, so it is drawn before the dataset is published. Like the report,
it needs no other file: pages that may load nothing show it, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Self

from recordmill.annotations.shapes import Shape, color_of_class
from recordmill.reading.dataset import StoredShard, describe_by_marker
from recordmill.reading.report.image_statistics import ImagePlace, add_samples, choose_evenly
from recordmill.reading.report.thumbnails import DrawnPicture, Thumbnail, make_thumbnails
from recordmill.reading.report.write_report import name_drawn, show_name
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.formatting import load_template, most_frequent

MOST_ROWS = 20_000
"""The rows of a dataset's sidecars among which images are chosen. They are in hash order, so the
first are as good as any others."""

COLUMNS = 4

MOST_PICTURES = 3 * COLUMNS
"""The most images shown, of all classes together."""

SIDE = 240
"""The longer side of a picture, in units of the drawing."""

CAPTION = 26
"""The height of the line below it."""

GAP = 10
"""The space around each."""

MOST_NAMES = 4
"""The most classes named below a picture; the others are counted."""


@dataclass(frozen=True, slots=True)
class CardPicture:
    """An image as it is shown. Lengths are in units of the drawing.

    Attributes:
        key: the key of the image.
        picture: the image, with its annotations.
        classes: the names of classes below it, each with the color of their annotations; None if
            none are drawn.
        width: the width of the picture.
        height: its height.
    """

    key: str
    picture: DrawnPicture
    classes: tuple[tuple[str, str | None], ...]
    width: int
    height: int

    @classmethod
    def of(cls, row: SidecarRow, thumbnail: Thumbnail) -> Self:
        """Describes the image of a row of a sidecar."""
        picture = DrawnPicture.of(thumbnail)
        scale = SIDE / max(picture.width, picture.height)
        return cls(
            row.key,
            picture,
            name_classes(picture.shapes, row.classes or [row.class_name or ""]),
            max(1, round(picture.width * scale)),
            max(1, round(picture.height * scale)),
        )


@dataclass(frozen=True, slots=True)
class CardRow:
    """Samples side by side.

    Attributes:
        samples: from the left.
        top: where their pictures begin, in units of the drawing.
    """

    samples: Sequence[CardPicture]
    top: int

    @property
    def bottom(self) -> int:
        """Where the lines below the pictures end."""
        return self.top + max(sample.height for sample in self.samples) + CAPTION


def lay_out(samples: Sequence[CardPicture]) -> list[CardRow]:
    """Places samples in rows of the same number."""
    rows: list[CardRow] = []
    for start in range(0, len(samples), COLUMNS):
        top = rows[-1].bottom + GAP if rows else GAP
        rows.append(CardRow(samples[start : start + COLUMNS], top))
    return rows


def draw_samples(folder: str, marker: Marker, stored_as: Mapping[str, str]) -> bytes | None:
    """Draws some images of every class; of some classes, if there are more than `MOST_PICTURES`.

    The same dataset has the same drawing.

    Args:
        folder: the folder with the dataset's files.
        marker: its marker.
        stored_as: the names of files in the folder by their names in the marker, if they differ.

    Returns:
        An SVG; None if no image can be shown.

    Raises:
        LoadError: a sidecar is damaged.
        OSError: a file cannot be read.
    """
    dataset = describe_by_marker(folder, marker, stored_as)
    places = choose_places(dataset.shards, +marker.class_counts)
    pictures = make_thumbnails(dataset, places, SIDE)
    samples = [
        CardPicture.of(row, picture)
        for (_, row), picture in zip(places, pictures, strict=True)
        if picture is not None
    ]
    if not samples:
        return None
    rows = lay_out(samples)
    template = load_template(__package__, "samples.svg.jinja", name=show_name, color=color_of_class)
    page = template.render(
        rows=rows,
        drawn=name_drawn(dataset),
        width=GAP + len(rows[0].samples) * (SIDE + GAP),
        height=rows[-1].bottom,
        SIDE=SIDE,
        CAPTION=CAPTION,
        GAP=GAP,
    )
    return page.encode()


def choose_places(shards: Iterable[StoredShard], classes: Mapping[str, int]) -> list[ImagePlace]:
    """Chooses images of classes, among the first `MOST_ROWS` rows of the shards' sidecars.

    Args:
        shards: the shards.
        classes: images, or annotations, by class name.

    Returns:
        Their places, each once, at most `MOST_PICTURES`, the largest class first.

    Raises:
        LoadError: a sidecar is damaged.
        OSError: a sidecar cannot be read.
    """
    chosen = choose_evenly(most_frequent(classes), MOST_PICTURES)
    wanted = {name: MOST_PICTURES // len(chosen) for name in chosen}
    samples: dict[str, list[ImagePlace]] = {name: [] for name in wanted}
    every = ((shard, row) for shard in shards for row in shard.rows())
    for shard, row in islice(every, MOST_ROWS):
        add_samples(samples, wanted, shard, [row])
        if all(len(samples[name]) == wanted[name] for name in wanted):
            break
    places = chain.from_iterable(samples.values())
    return [*{(shard.path, row.offset): (shard, row) for shard, row in places}.values()]


def name_classes(
    shapes: Iterable[Shape], classes: Iterable[str]
) -> tuple[tuple[str, str | None], ...]:
    """Returns the classes to name below a picture, each with the color of its annotations.

    Args:
        shapes: the annotations that are drawn.
        classes: the classes of the image, if no annotation of a class is drawn.
    """
    drawn = {each.class_name: color_of_class(each.class_id) for each in shapes if each.class_name}
    names = [*(drawn or dict.fromkeys(filter(None, classes))).items()]
    further = len(names) - MOST_NAMES
    rest = [(f"and {further:,} more", None)] if further > 0 else []
    return (*names[:MOST_NAMES], *rest)
