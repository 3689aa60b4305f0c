"""Reads from a dataset's sidecars all that an analysis needs, in 64 bytes per image."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.marker import PLAN_VERSION, Marker, Recipe, ShardEntry
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import parse_rows

COLUMNS = ("height", "width", "sum_r", "sum_g", "sum_b", "squares_r", "squares_g", "squares_b")
"""Sides in pixels; sums and sums of squares of red, green and blue (0 to 255) over the image's pixels."""


def choose_split(marker: Marker, asked: str | None, path: str) -> str:
    """The split to analyse: the given one, otherwise `train`.

    Raises:
        LoadError: the dataset has no such split, or it has no images.
    """
    splits = marker.splits
    name = asked or "train"
    if name not in splits:
        raise LoadError(f"{path} has no split {name}: name one of {', '.join(splits)} with --split")
    if not splits[name].records:
        raise LoadError(f"split {name} of {path} has no images: name another with --split")
    return name


def read_moments(path: str, marker: Marker, split: str) -> NDArray[np.int64]:
    """The numbers of every image of a split, in the order of its shards and records.

    Args:
        path: the dataset's folder.
        marker: its marker.
        split: the split's name.

    Returns:
        int64 of shape (images, 8): `COLUMNS`. The channel of a gray image counts as all three, as
        `tf.io.decode_jpeg(channels=3)` returns it.

    Raises:
        LoadError: the sidecars have no moments, or do not match the marker.
    """
    _check_recipe(path, marker.plan.settings)
    numbers = array("q")
    for shard in marker.splits[split].shards:
        for row in _read_rows(path, shard):
            numbers.extend(_numbers_of(row, path))
    return np.frombuffer(numbers, np.int64).reshape(-1, len(COLUMNS))


def _check_recipe(path: str, recipe: Recipe) -> None:
    images = recipe.images
    if images.check == "header":
        raise LoadError(
            f"{path} was made with images.check: header, without its pixels being seen: "
            "convert it again with images.check: decode and analyze: true, and --overwrite"
        )
    if recipe.is_raw:
        raise LoadError(
            f"{path} holds raw pixels, and the model decodes images: convert it with images.store: png or jpeg"
        )
    if not images.moments:
        raise LoadError(f"the sidecars of {path} have no moments: convert it again with --set analyze=true --overwrite")
    if recipe.plan_version < PLAN_VERSION:
        raise LoadError(
            f"{path} was made by an older version, whose moments are of other pixels: convert it again with --overwrite"
        )


def _read_rows(path: str, shard: ShardEntry) -> Iterator[SidecarRow]:
    try:
        content = storage.read_range(storage.join(path, shard.sidecar))
    except FileNotFoundError:
        raise LoadError(f"{path} lacks {shard.sidecar}: convert the images again with --overwrite") from None
    if hashlib.sha256(content).hexdigest() != shard.sidecar_sha256:
        raise LoadError(
            f"{path}/{shard.sidecar} is not the file that {MARKER} lists: convert the images again with --overwrite"
        )
    return (row for row in parse_rows(content.splitlines()) if isinstance(row, SidecarRow))


def _numbers_of(row: SidecarRow, path: str) -> Sequence[int]:
    moments, height, width = row.moments, row.height, row.width
    if moments is None or height is None or width is None:
        raise LoadError(
            f"{row.key} is stored in {path} as TensorFlow does not read it, or not alike: "
            "convert it again with images.reencode: when_needed, and --overwrite"
        )
    channels = [*moments] * 3 if len(moments) == 1 else moments
    return [height, width, *(channel[0] for channel in channels), *(channel[1] for channel in channels)]
