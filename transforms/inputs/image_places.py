"""Where the images are that a file of annotations names, as a setting `source.images`."""

import posixpath
import shlex

from recordmill.transforms.inputs.folder_sketch import FolderSketch

BELOW = "{folder}/images"
"""A folder `images` next to the file of annotations; `{folder}` is the file's own folder."""

_MOST_WAYS = 4
"""Folders that a message offers."""


def find_image_place(sketch: FolderSketch, folder: str) -> str | None:
    """Returns `source.images` for a file of annotations in a folder.

    Returns None if no images were seen, or those of several folders may be meant.
    """
    if sketch.at(posixpath.join(folder, "images")).images:
        return BELOW
    if sketch.at(folder).images:
        return "{folder}"
    if len(sketch.image_folders) == 1:
        return sketch.image_folders[0]
    return None


def ask_for_images(sketch: FolderSketch) -> str:
    """Asks for the folder of the images, with flags."""
    ways = [
        f"if they are in {each}, add --set {shlex.quote(f'source.images={each}')}"
        for each in sketch.image_folders[:_MOST_WAYS]
    ]
    return "; ".join(["it is not clear where the images are", *ways])
