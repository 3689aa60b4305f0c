"""The key points of Label Studio, and the regions to which they belong."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recordmill.imaging.geometry import Box
from recordmill.transforms.inputs.outlines import NamedPoint


class RelatedPoint(NamedTuple):
    """A key point, and the ids of the regions to which its file attaches it."""

    point: NamedPoint
    regions: Collection[str]


@dataclass(slots=True)
class RegionPoints:
    """A region, and the key points that belong to it.

    Attributes:
        id: the region's id; empty if it has none.
        box: the box around it in pixels.
        points: its key points by name.
        lost: why others are not stored: the reason for each.
    """

    id: str
    box: Box
    points: dict[str, NamedPoint] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def add(self, point: NamedPoint) -> None:
        """Adds a key point; of several with one name, the last counts."""
        if point.name in self.points:
            self.lost.append("repeated")
        self.points[point.name] = point

    def holds(self, point: NamedPoint) -> bool:
        """Returns whether a point is inside the box."""
        left, top, right, bottom = self.box
        return left <= point.x <= right and top <= point.y <= bottom


def attach_points(
    points: Iterable[RelatedPoint], regions: Sequence[RegionPoints], by_place: bool
) -> list[NamedPoint]:
    """Adds key points to their regions, and returns those that belong to none.

    Args:
        points: the key points of an image.
        regions: its regions.
        by_place: whether, if the file attaches no point to a region, a point belongs to the region
            that it is inside; a point inside several is not stored.
    """
    by_id = {each.id: each for each in regions if each.id}
    points = list(points)
    by_place = by_place and all(by_id.keys().isdisjoint(ids) for _, ids in points)
    free = list[NamedPoint]()
    for point, ids in points:
        owners = [by_id[each] for each in ids if each in by_id]
        if by_place:
            owners = [each for each in regions if each.holds(point)]
        match owners:
            case []:
                free.append(point)
            case [first, _, *_] if by_place:
                first.lost.append("several_regions")
            case [owner, *_]:
                owner.add(point)
    return free
