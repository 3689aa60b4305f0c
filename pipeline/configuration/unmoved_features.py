"""A note about coordinates that stay as they are written while pixels move."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recordmill.schemas.formatting import show_first
from recordmill.schemas.settings.dataset import DatasetSettings

_COORDINATE = re.compile(r"(?i)(^|[^a-z])[cp]?[xy]([^a-z]|$|_?min|_?max)|left|top|right|bottom")
"""What the name of a column of coordinates has in it: `x1`, `nose_y`, `bbox_left`."""


def find_unmoved(settings: DatasetSettings) -> Iterator[str]:
    """Notes features from columns that may be coordinates, if images are resized.

    Boxes follow the pixels; features never do. A list of numbers, or a number whose column is
    named like a coordinate, may be one.
    """
    features: Mapping[str, Any] = getattr(settings.source, "features_from", {})
    if settings.images.resize is None or settings.source.contents != "images":
        return
    unmoved = [key for key, feature in features.items() if _may_be_coordinates(feature)]
    if unmoved:
        yield (
            f"images.resize does not change features ({show_first(unmoved)}): coordinates in "
            "pixels stay as they are written, and only boxes follow the image"
        )


def _may_be_coordinates(feature: Any) -> bool:
    if getattr(feature, "type", "bytes") == "bytes":
        return False
    names = getattr(feature, "names", ())
    return feature.many or len(names) > 1 or any(map(_COORDINATE.search, names))
