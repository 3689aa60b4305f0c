"""Images whose folder is named like another split than a table or annotations give them."""

import posixpath
from functools import lru_cache

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import splits_for_words

OTHER_THAN_FOLDER = (
    "{images have} a split in a table or annotations that contradicts the name of the folder: the "
    "folder does not count"
)
"""What is noted of images whose folder is named like another split."""


def contradicts_folder(ref: ImageRef) -> bool:
    """Returns whether an image's folder is named like another split than its own."""
    split = _split_of_folder(posixpath.dirname(ref.key)) if ref.split else None
    return split is not None and ref.split in SPLIT_NAMES.values() and split != ref.split


@lru_cache(4096)
def _split_of_folder(folder: str) -> str | None:
    """Returns the split that the folders of a path are named after.

    Returns None if there is not exactly one.
    """
    splits = {*splits_for_words(folder.split("/")).values()}
    return splits.pop() if len(splits) == 1 else None
