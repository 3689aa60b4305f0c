"""Images in class folders: `class/image.jpg`, the folder's name is the label."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFolders(Source):
    """The source `class_folders`.

    Attributes:
        class_from: which folder of `a/b/image.jpg` names the class: `first_folder` (a), `last_folder` (b) or `path`
            (a/b); `none`: images have no labels, wherever they lie. The folder that gives the split, where
            `splits.from_folders` is set, is not part of the path.
    """

    class_from: Literal["first_folder", "last_folder", "path", "none"] = "first_folder"

    labels_from_folders: ClassVar[bool] = True

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """One image a file."""
        label = folder_label(path, self.class_from)
        if label or self.class_from == "none":
            yield file.but(label=label)
        else:
            yield file.but(status="rejected", reason="no_class", detail="the file lies in no class folder")


def folder_label(path: str, class_from: str) -> str:
    """The class of a path below the input; the empty string for a file in no folder, or where folders name none."""
    folders = "" if class_from == "none" else path.rpartition("/")[0]
    if class_from == "first_folder":
        return folders.partition("/")[0]
    if class_from == "last_folder":
        return folders.rpartition("/")[2]
    return folders


SOURCE = ClassFolders
