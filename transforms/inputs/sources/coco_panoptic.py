"""COCO's panoptic format: one JSON file of images and segments, and a PNG of ids for each image."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from recordmill.annotations.annotation import Packable
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, SourceFile
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.coco_annotations import Image
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.image_names import find_other_place
from recordmill.transforms.inputs.named_files import DataFile, find_named_file, key_of
from recordmill.transforms.inputs.panoptic_annotations import PanopticAnnotations, read_panoptic
from recordmill.transforms.inputs.patterns import check_template, compile_pattern
from recordmill.transforms.inputs.sources.coco import (
    advise_on_images,
    images_of,
    is_panoptic,
    pattern_of,
)
from recordmill.transforms.inputs.sources.source import AnnotationSource


@dataclass(frozen=True, slots=True, kw_only=True)
class CocoPanoptic(AnnotationSource):
    r"""The source `coco_panoptic`.

    Attributes:
        split: a regular expression (RE2) for the whole name of an annotation file; its group
            `split`, if any, is the word for `splits.from_source`. Other files are ignored.
        images: the folder of the images below the input, as for `coco`.
        pngs: the folder of the PNGs, with the same words in braces. Empty: the one that has the
            annotation file's name, next to it or in the input.
        masks_of: `classes` reads a semantic mask of each image, whose ids are those of the label
            map, and 255 for void; `objects` reads a box of each thing, and its mask with `masks`;
            `both` needs a convention of your own.
    """

    split: str = r"panoptic_(?P<split>[a-z]+)[0-9]*\.json"
    images: str = "{split}"
    pngs: str = ""
    masks_of: Literal["classes", "objects", "both"] = "classes"

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    gives_words: ClassVar[bool] = True
    classes_from: ClassVar[str] = "the categories of the annotations"

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern or the template of a folder is invalid."""
        compile_pattern(self.split, "source.split")
        check_template(self.images, "source.images", "split", "folder")
        check_template(self.pngs, "source.pngs", "split", "folder")

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes panoptic annotations in one folder, if there are no others of COCO's there."""
        for folder in sketch.names:
            names = sketch.at(folder).ending(".json")
            files = tuple(name for name in names if is_panoptic(sketch, folder, name))
            if not files or any(name.startswith("instances_") for name in names):
                continue
            pattern, words = pattern_of(files, cls().split)
            places = images_of(sketch, folder, words)
            source = {"split": pattern, "images": (places or [""])[0]}
            own = {key: value for key, value in source.items() if value != getattr(cls(), key)}
            yield Recognized(
                {
                    "source": {"kind": "coco_panoptic", **own},
                    **given_splits("from_source", words),
                    "convention": "deeplab",
                },
                f"COCO's panoptic files such as {posixpath.join(folder, files[0])}",
                needs="" if pattern and places else _ask_for_images(folder, files),
                needed_keys=("source.split", "source.images"),
            )
            return

    @property
    def is_about_boxes(self) -> bool:  # type: ignore[override]
        """Whether it reads objects."""
        return self.masks_of != "classes"

    @property
    def maps_pixel_ids(self) -> bool:  # type: ignore[override]  # depends on the settings
        """Whether it reads semantic masks, whose PNGs have ids of segments."""
        return self.masks_of != "objects"

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images."""
        return advise_on_images(self.images)

    @property
    def siblings(self) -> Mapping[str, str]:
        """The other files of COCO's downloads; PNGs are read only where masks are stored."""
        pngs = {f"{self._png_folders}/**": "PNGs of masks"}
        return {
            **(pngs if self.masks_of == "objects" else {}),
            "captions_*.json": "files of captions",
            "instances_*.json": "files of objects",
            "person_keypoints_*.json": "files of key points",
            "image_info_*.json": "files of images without annotations",
            "stuff_*.json": "files of stuff masks",
        }

    @property
    def mask_files(self) -> tuple[str, ...]:
        """The PNGs."""
        return (f"{self._png_folders}/**.png",)

    @property
    def _png_folders(self) -> str:
        """A pattern of the folders of PNGs."""
        return re.sub(r"\{[^}]*\}", "*", self.pngs) or "panoptic_*"

    def annotations(self) -> Mapping[str, str]:
        """Returns semantic masks, or boxes and the masks of objects, or both."""
        of_classes = {"segmentation": "source.masks_of"}
        of_objects = {"boxes": "", "masks": ""}
        match self.masks_of:
            case "classes":
                return of_classes
            case "objects":
                return of_objects
            case _:
                return of_objects | of_classes

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`, without the masks of objects."""
        return self._list(path, file, with_masks=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`."""
        return self._list(path, file, with_masks=True)

    def _list(self, path: str, file: ImageRef, with_masks: bool) -> Iterator[Listed]:
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield file.notice("ignored", "not_annotations")
            return
        try:
            annotations = read_panoptic(file.uri)
        except Rejected as rejected:  # it is not known how many images are lost
            raise Rejected("list", "bad_coco", rejected.detail) from None
        word = match.groupdict().get("split") or ""
        objects = annotations.objects
        classes = annotations.thing_classes if self.masks_of == "objects" else objects.classes
        yield ClassNames.of(file, classes)
        yield from objects.report_twins(file)
        yield from objects.report_same_files(file)
        if self.masks_of != "classes":
            yield from objects.report_boxes(file)
        named_by = DataFile(path, file.replace(split=word))
        pngs = self._find_pngs(named_by, annotations, word)
        unstored = 0
        for image in objects.images:
            yield from self._list_image(image, annotations, named_by, pngs, with_masks)
            if not with_masks and self.masks_of != "classes":
                unstored += annotations.count_masks(image)
        if unstored:
            yield file.notice("not_stored", "masks", count=unstored)

    def _list_image(
        self,
        image: Image,
        annotations: PanopticAnnotations,
        named_by: DataFile,
        pngs: str,
        with_masks: bool,
    ) -> Iterator[Listed]:
        """Yields one image, with the file of its segments if that is read with it."""
        word = named_by.ref.split
        folder = self.images.format(split=word, folder=named_by.folder).strip("/")
        name = image.file_name.replace("\\", "/")  # as written on Windows
        below = posixpath.join(folder, name)
        try:
            png = _find_file(named_by, posixpath.join(pngs, annotations.find_png(image)))
        except Rejected as rejected:
            unusable = _find_file(named_by, below)
            image_ref = named_by.ref.replace(key=unusable.key, spelling="", uri=unusable.uri)
            image_ref.size, image_ref.version = unusable.size, unusable.version
            yield image_ref.notice("rejected", rejected.reason, rejected.detail)
            return
        given, is_read = list[Packable](), with_masks or self.masks_of != "objects"
        if self.masks_of != "classes":
            given += annotations.list_objects(image, png.key if with_masks else None)
        if self.masks_of != "objects":
            given.append(annotations.semantic_mask(image, png.key))
        is_alone = annotations.objects.has_own_name(image)
        find_other = partial(find_other_place, named_by.root, folder, name) if is_alone else str
        fields = {"source_id": str(image.id)}
        for each in named_by.list_annotated(below, given, fields, find_other=find_other):
            if isinstance(each, ImageRef) and is_read:
                each.files = (png,)
            yield each

    def _find_pngs(self, named_by: DataFile, annotations: PanopticAnnotations, word: str) -> str:
        """Returns the folder of the PNGs."""
        if self.pngs:
            return self.pngs.format(split=word, folder=named_by.folder).strip("/")
        own = posixpath.splitext(posixpath.basename(named_by.path))[0]
        places = [posixpath.join(named_by.folder, own), own]
        for image in annotations.objects.images[:1]:
            try:
                name = annotations.find_png(image)
            except Rejected:
                break
            return next(
                (each for each in places if named_by.has(posixpath.join(each, name))), places[0]
            )
        return places[0]


def _ask_for_images(folder: str, files: tuple[str, ...]) -> str:
    paths = [posixpath.join(folder, name) for name in files]
    return (
        f"it is not clear where the images of {', '.join(paths[:3])} are: add --set "
        "source.kind=coco_panoptic --set layout=auto --set source.images=FOLDER, and --set "
        f"{shlex.quote(f'source.split={re.escape(files[0])}')} to read one file alone"
    )


def _find_file(named_by: DataFile, below: str) -> SourceFile:
    """Returns an image or a PNG as `find_named_file` does, which a PNG's image is rejected for."""
    key = key_of(named_by.ref.key, named_by.path, below)
    return find_named_file(named_by.root, below, key, posixpath.basename(named_by.path))


SOURCE = CocoPanoptic
