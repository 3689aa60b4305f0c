"""Tables that name images outside their input, by absolute paths or by URLs of stores."""

import posixpath
import re
from collections.abc import Collection, Sequence
from itertools import chain

from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.tables.column_contents import names_images
from recordmill.transforms.inputs.tables.table_heads import TableHead

_PLACE = re.compile(r"((?:gs|s3)://[^/{}]+)?((?:/[^{}]*)?)")
"""A URL's bucket, which an absolute path lacks, and the path."""


def find_outside(name: str, head: TableHead, sketch: FolderSketch) -> dict[str, str]:
    """Finds the folder that holds the images of a column, if all are outside the input.

    Folders such as `train/cat`, which other cells name, are not it, but the one around them: the
    next rows name others. Next to images of the input, absolute paths are taken for old ones.

    Args:
        name: the column.
        head: the table.
        sketch: the input.

    Returns:
        The folder, and the extension that the cells lack: none. Empty if there is no such folder.
    """
    cells = [cell for cell in head.cells(name) if cell]
    if not cells or not names_images(name, head):
        return {}
    if sketch.root and any(cell.startswith(f"{sketch.root}/") for cell in cells):
        return {}
    root = common_root([posixpath.dirname(cell) for cell in cells])
    if root is None or (sketch.has_images and not (sketch.only and "://" in root)):
        return {}
    words = {cell.lower() for cell in chain.from_iterable(head.rows[1:])}
    return {_leave_named_folders(root, words): ""}


def is_outside(root: str) -> bool:
    """Returns whether a table's root is what `find_outside` finds: others are relative."""
    return root.startswith("/") or "://" in root


def common_root(folders: Sequence[str]) -> str | None:
    """Returns the folder around absolute ones, which may be their own; None if there is none."""
    places = [found.groups("") for each in folders if each and (found := _PLACE.fullmatch(each))]
    buckets = {bucket for bucket, _ in places}
    if len(places) < len(folders) or len(buckets) != 1:
        return None
    (bucket,) = buckets
    path = posixpath.commonpath([path or "/" for _, path in places])
    return (bucket + path).rstrip("/") or "/"


def _leave_named_folders(root: str, words: Collection[str]) -> str:
    """Returns the folder around those that are named by `words`, which are in lower case."""
    while posixpath.basename(root).lower() in words:
        around = posixpath.dirname(root)
        if around.endswith(":"):  # the root is a bucket
            return root
        root = around
    return root
