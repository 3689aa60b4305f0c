"""The masks of Pascal VOC: PNGs in folders next to that of the XML files.

In `SegmentationObject`, a pixel has the number of its object, from 1 in the order of the XML file;
in a folder such as `SegmentationClass`, the id of its class. 255 is void.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from recordmill.annotations.annotation import Packable
from recordmill.annotations.masks import Masks
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging.masks.outline import MaskFile, NumberedObject
from recordmill.schemas.image_ref import ImageRef, SourceFile
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.named_files import DataFile, key_of, locate

OBJECT_MASKS = "SegmentationObject"
"""The folder of the masks of objects."""


@dataclass(frozen=True, slots=True)
class VocMasks:
    """The mask files of an XML file's image, and what they say.

    Attributes:
        given: the masks of its objects, and its semantic mask.
        files: the files that exist.
        missing: which file does not, as a sentence; None if all do.
    """

    given: Sequence[Packable] = ()
    files: tuple[SourceFile, ...] = ()
    missing: str | None = None

    def complete(self, image: ImageRef) -> ImageRef:
        """Returns the image with its mask files; a rejection if one is missing."""
        if self.missing is not None:
            return image.notice("rejected", "no_mask_file", self.missing)
        return image.replace(files=self.files)


def find_object_masks(annotation: DataFile, objects: int) -> VocMasks:
    """Returns the masks of an image's objects, whose number in the XML file is given.

    An image without objects needs no file.
    """
    file, path = _find_file(annotation, OBJECT_MASKS)
    if file is not None:
        mask, numbers = MaskFile(file.key, ""), range(1, objects + 1)
        outlines = [NumberedObject(mask, number, objects) for number in numbers]
        return VocMasks([Masks(outlines)], (file,))
    missing = f"there is no {path} with the masks of its objects" if objects else None
    return VocMasks([Masks([None] * objects)], missing=missing)


def find_semantic_mask(annotation: DataFile, folder: str) -> VocMasks:
    """Returns the semantic mask of an image in a folder."""
    file, path = _find_file(annotation, folder)
    if file is not None:
        return VocMasks([Segmentation(file.key, has_palette=True)], (file,))
    lost = Segmentation(key_of(annotation.ref.key, annotation.path, path), has_palette=True)
    return VocMasks([lost], missing=f"there is no {path} with its semantic mask")


def join_masks(masks: Sequence[VocMasks]) -> VocMasks:
    """Returns the masks of one image together."""
    missing = next((each.missing for each in masks if each.missing is not None), None)
    given = [kind for each in masks for kind in each.given]
    return VocMasks(given, tuple(file for each in masks for file in each.files), missing)


def _find_file(annotation: DataFile, folder: str) -> tuple[SourceFile | None, str]:
    """Returns the PNG of an image in a folder, None if there is none, and its path."""
    stem = posixpath.splitext(posixpath.basename(annotation.spelled))[0]
    path = posixpath.join(posixpath.dirname(annotation.folder), folder, f"{stem}.png")
    if not annotation.has(path):
        return None, path
    key = key_of(annotation.ref.key, annotation.path, path)
    try:
        return SourceFile(key, *locate(annotation.root, path)), path
    except Rejected:  # it is a folder, or vanished just now
        return None, path
