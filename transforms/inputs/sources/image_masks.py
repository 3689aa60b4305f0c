"""Images with semantic masks in files of their own: `images/1.jpg` and `masks/1.png`."""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

from recordmill.annotations.annotation import Packable, pack_annotations
from recordmill.annotations.segmentation import Segmentation
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import Annotations, ClassNames, ImageRef, Listed, SourceFile
from recordmill.schemas.setting_fields import AtLeastOne
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.instance_ids import MaskObjects, read_instance_ids
from recordmill.transforms.inputs.mask_classes import MaskClasses, read_mask_classes
from recordmill.transforms.inputs.named_files import (
    DataFile,
    bad_annotations,
    key_of,
    locate,
    read_sibling,
)
from recordmill.transforms.inputs.path_templates import (
    CLASS,
    FOLDERS_ABOVE,
    NAME,
    SPLIT,
    PathTemplate,
    fill_path,
    template_of,
)
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.split_lists import find_listed_word
from recordmill.transforms.inputs.unclaimed_files import find_sibling

_MAX_MASK_BYTES = 2**26

_OBJECT_MASKS = "masks of objects"

_SIBLINGS = {
    "*_polygons.json": "outlines of objects",
    "*_instanceIds.png": _OBJECT_MASKS,
    "*_instanceTrainIds.png": _OBJECT_MASKS,
    "*_color.png": "",
    "*_labelIds.png": "",
    "*_labelTrainIds.png": "",
    "annotations/xmls/*.xml": "boxes",
    "annotations/*.txt": "lists of images",
    "ImageSets/**.txt": "split lists",
    "Annotations/*.xml": "boxes",
    "SegmentationObject/**": _OBJECT_MASKS,
    "SegmentationObjectNpy/**": _OBJECT_MASKS,
    "SegmentationClassNpy/**": "",
    "SegmentationClass/*.npy": "",
    "Segmentation*Visualization/**": "",
}
"""Files of Cityscapes, of Oxford's pets, and of Pascal VOC as LabelMe writes it, too, with what is
not stored of them."""


@cache
def _next_to(masks: str) -> tuple[tuple[str, str], ...]:
    """Returns those of `_SIBLINGS` that are not the masks of a template."""
    mask = template_of(masks).fill({NAME: "1", SPLIT: "train", CLASS: "cat"})
    return tuple(
        (pattern, what)
        for pattern, what in _SIBLINGS.items()
        if all(find_sibling(path, {pattern: what}) is None for path in (mask, f"{mask}.png"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMasks(Source):
    """The source `image_masks`.

    Each image has one semantic mask, whose values are ids of classes. In paths below the input,
    `{name}` stands for what the image and the mask have in common, `{split}` for the word for
    `splits.from_source`, `{class}` for the class of the image, and `{above}/` at their beginning
    for any folders, or none. A path without an extension stands for any of an image. An image
    without a mask is rejected (`no_mask_file`), and so are a mask without an image (`no_image`) and
    an image that matches neither path (`name_mismatch`).

    Attributes:
        images: the path of an image: `{split}/images/{name}`.
        masks: the path of its mask: `{split}/masks/{name}_mask`. A file that matches both paths is
            what the longer one says.
        sets: the path of split lists, such as `ImageSets/Segmentation/{split}.txt`, with a name in
            each line; images on no list are ignored. Empty: there are none.
        class_names: the names of the classes with the ids 0, 1, ...; names need `labels.ids:
            integers`.
        class_names_file: a file below the input that names them: a name or `id:name` per line, or
            `data.yaml`.
        mask_colors: for masks of colors: a table below the input with a line `R G B name` per
            class, or a JSON object of a color per name. The first class has the id 0.
        masks_of: `classes` reads semantic masks. `objects` reads a box of each object, and its mask
            with `masks`, where the values are `1000 * id + n`, as in Cityscapes' `instanceIds`:
            lower ones are those of no object.
        mask_threshold: for masks of two levels, such as 0 and 255: the smallest value of the class
            1; others are 0. By default, values are ids.
    """

    images: str = "images/{name}"
    masks: str = "masks/{name}"
    sets: str = ""
    class_names: tuple[str, ...] = ()
    class_names_file: str = ""
    mask_colors: str = ""
    masks_of: Literal["classes", "objects"] = "classes"
    mask_threshold: AtLeastOne | None = None

    other_files: ClassVar[str] = "taken_only_by_name"
    classes_from: ClassVar[str] = "source.class_names"

    def __post_init__(self) -> None:
        """Raises SettingError if a template is invalid, or settings contradict each other."""
        self._check_templates()
        self._check_folders_above()
        if self.sets and SPLIT in self._image.parts:
            raise SettingError("source.sets", "gives splits, and so does {split}: remove one")
        named = ("class_names", "class_names_file", "mask_colors")
        given = [f"source.{key}" for key in named if getattr(self, key)]
        if len(given) > 1:
            raise SettingError(given[0], f"names classes, and so does {given[1]}: remove one")
        if given and self._gives_classes:
            raise SettingError(
                given[0], "names the classes of masks, and {class} those of images: remove one"
            )
        if self.mask_colors and self.mask_threshold is not None:
            raise SettingError(
                "source.mask_threshold",
                "is for masks of two levels, and source.mask_colors for masks of colors: remove "
                "one of them",
            )
        if self.masks_of == "objects":
            self._check_objects()
        self.classes()

    def _check_templates(self) -> None:
        """Raises SettingError if a template is invalid, or has a part that the other one needs."""
        for key, template in (("images", self._image), ("masks", self._mask)):
            template.check(f"source.{key}")
        if self.images == self.masks:
            raise SettingError("source.masks", "is that of the images: write where masks are")
        for part in (SPLIT, CLASS):
            if part in self._mask.parts and part not in self._image.parts:
                raise SettingError(
                    "source.masks", f"has {{{part}}}: write it in source.images, too"
                )
        if CLASS in self._image.parts and CLASS not in self._mask.parts:
            raise SettingError("source.images", "has {class}: write it in source.masks, too")

    def _check_folders_above(self) -> None:
        """Raises SettingError unless all paths or none begin with the folders above them."""
        paths = {"masks": self.masks, "sets": self.sets}
        begins = self._image.has_folders_above
        for key, path in paths.items():
            if path and path.startswith(FOLDERS_ABOVE) != begins:
                where = "and source.images begins" if begins else "and source.images does not begin"
                what = f"is {path!r}, {where} with {FOLDERS_ABOVE}: begin both with it, or none"
                raise SettingError(f"source.{key}", what)

    def _check_objects(self) -> None:
        """Raises SettingError if values cannot be those of objects, or have no classes."""
        if self.mask_colors or self.mask_threshold is not None:
            key = "mask_colors" if self.mask_colors else "mask_threshold"
            raise SettingError(f"source.{key}", "is for semantic masks: remove it, or masks_of")
        if not self._has_names:
            raise SettingError(
                "source.masks_of",
                "is objects, whose classes need names: list them in source.class_names in the "
                "order of their ids",
            )

    @property
    def _has_names(self) -> bool:
        """Whether the values of masks have names, or the classes in them."""
        return bool(self.class_names or self._names_file)

    @property
    def gives_labels(self) -> bool:
        """Whether images or objects have classes, or ids have names."""
        return self._gives_classes or self._has_names

    @property
    def names_pixel_ids(self) -> bool:  # type: ignore[override]  # depends on the settings
        """Whether ids in semantic masks have names."""
        return self._has_names and self.masks_of == "classes"

    @property
    def siblings(self) -> Mapping[str, str]:
        """Files of collections with semantic masks; not the lists and masks in use."""
        lists = {fill_path(self.sets, {SPLIT: "*"}): ""} if self.sets else {}
        if self.masks_of == "objects":
            lists[f"{self._mask_pattern}**"] = "masks"
            others = [each for each, what in _SIBLINGS.items() if what == _OBJECT_MASKS]
            lists |= dict.fromkeys(others, "")  # they are of the same objects
        return lists | {each: what for each, what in _next_to(self.masks) if each not in lists}

    @property
    def mask_files(self) -> tuple[str, ...]:
        """The masks of objects."""
        if self.masks_of == "classes":
            return ()
        return (f"{self._mask_pattern}*",)

    @property
    def _mask_pattern(self) -> str:
        """A pattern of the beginning of the paths of masks."""
        return self._mask.fill({NAME: "**", SPLIT: "*"})

    @property
    def shared_files(self) -> tuple[str, ...]:  # type: ignore[override]
        """The file that names the classes."""
        return (self._names_file,) if self._names_file else ()

    @property
    def remedies(self) -> Mapping[str, str]:
        """For images without a mask, masks without an image, and other images."""
        where = "is where masks are: correct it, or leave these images out with ignore"
        return {
            "no_mask_file": f"source.masks ({self.masks!r}) {where}",
            "no_image": f"source.images ({self.images!r}) is where images are: correct it, or "
            "leave these masks out with ignore",
            "name_mismatch": "correct source.images or source.masks, or leave these files out with "
            "ignore",
        }

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns which configuration stores the masks of the objects of a known collection."""
        if _OBJECT_MASKS not in not_stored:
            return None
        stores = "stores masks of objects"
        if "_gtFine_" in self.masks:
            return f"--config configs/cityscapes_objects.yaml {stores}"
        if "SegmentationClass/" in self.masks and "boxes" in not_stored:
            return f"--config configs/voc_masks.yaml {stores}"
        return None

    def annotations(self) -> Mapping[str, str]:
        """Returns that images have a semantic mask, or boxes and masks of objects."""
        if self.masks_of == "objects":
            return {"boxes": "source.masks_of", "masks": ""}
        return {"segmentation": "source.masks"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image with its mask; or notices on a mask, a table or another file."""
        return self._list(path, file, with_outlines=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the same, with the masks of objects."""
        return self._list(path, file, with_outlines=True)

    def _list(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        data = DataFile(path, file)
        if path == self._names_file:
            named = self._read_classes(data)
            if named.names:
                yield ClassNames.of(file, named.names)
            yield file.notice("ignored", "class_names")
            return
        roles = sorted((self._mask, self._image), key=lambda each: -each.letters)
        template = next((each for each in roles if each.match(path) is not None), None)
        if not is_image_name(path):
            yield file.notice("ignored", self.other_files)
        elif template is None:
            yield self._place_other(path, file)
        elif template is self._mask:
            yield self._find_image(data)
        else:
            yield self._find_mask(data, with_outlines)

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """Returns the image, its mask, and the lists that may have given its split."""
        return ref.uri, *(file.uri for file in ref.files)

    def _find_mask(self, image: DataFile, with_outlines: bool) -> ImageRef:
        """Returns an image with its mask; a notice if it has none, or is on no list."""
        words = self._match(self._image, image)
        label = (self._image.match(image.path) or words).get(CLASS, "")
        file = image.ref.replace(label=label, split=words.get(SPLIT) or image.ref.split)
        if self.sets:
            word = self._find_listed_word(image, words)
            if word is None:
                return file.notice("ignored", "in_no_set")
            file = file.replace(split=word)
        found = self._mask.find(image.root, words)
        expected = self._mask.fill(words)
        key = key_of(file.key, image.path, found[0] if found else expected)
        given: list[Packable] = []
        if self.masks_of == "classes":
            colors = self._read_classes(image).colors
            given.append(Segmentation(key, self.mask_threshold, colors))
        ref = file.replace(annotations=pack_annotations(given))
        if not found:
            return ref.notice("rejected", "no_mask_file", f"there is no mask {expected}")
        if len(found) > 1:
            detail = f"it has several masks: {', '.join(found)}: remove all but one"
            return ref.notice("rejected", "bad_annotations", detail)
        mask = SourceFile(key, *locate(image.root, found[0]))
        if self.masks_of == "classes":
            return ref.replace(files=(mask,))
        objects = self._read_objects(mask, found[0], image)
        if not with_outlines:
            return ref.replace(annotations=pack_annotations([objects.boxes]))
        annotations = pack_annotations([objects.boxes, objects.as_masks(key)])
        return ref.replace(annotations=annotations, files=(mask,))

    def _read_objects(self, mask: SourceFile, path: str, image: DataFile) -> MaskObjects:
        """Returns the objects in the mask of an image.

        Raises:
            Rejected: `bad_annotations`: the mask cannot be read, or a class has no name.
        """
        objects = read_instance_ids(read_sibling(mask.uri, _MAX_MASK_BYTES), path)
        names = self._read_classes(image).names or self.classes()
        unnamed = sorted({*objects.classes} - {*names.values()})
        if unnamed:
            detail = f"{path} has an object of the class {unnamed[0]}, and no class has this id"
            raise bad_annotations(detail)
        return objects

    def _find_image(self, mask: DataFile) -> ImageRef:
        """Returns a notice on a mask: it is read with its image, or has none."""
        words = self._match(self._mask, mask)
        if self.sets and self._find_listed_word(mask, words) is None:
            return mask.ref.notice("ignored", "in_no_set")
        if self._image.find(mask.root, words):
            return mask.ref.notice("ignored", self.other_files)
        lost: Annotations = ()
        if self.masks_of == "classes":
            lost = pack_annotations([Segmentation(mask.ref.key)])
        detail = f"there is no image {self._image.fill(words)} for this mask"
        return mask.ref.replace(annotations=lost).notice("rejected", "no_image", detail)

    def _find_listed_word(self, file: DataFile, words: Mapping[str, str]) -> str | None:
        """Returns the word of the list that names an image; None if no list does."""
        lists = fill_path(self.sets, {**words, SPLIT: f"{{{SPLIT}}}"})
        return find_listed_word(file.root, lists, words[NAME])

    def _place_other(self, path: str, file: ImageRef) -> ImageRef:
        """Returns a notice on an image that is neither one of these nor a mask."""
        known = find_sibling(path, self.siblings)
        if known is not None:
            return file.notice("ignored", self.other_files if known else "known_sibling")
        detail = f"it matches neither source.images ({self.images}) nor source.masks ({self.masks})"
        return file.notice("rejected", "name_mismatch", detail)

    @staticmethod
    def _match(template: PathTemplate, file: DataFile) -> Mapping[str, str]:
        """Returns the words in a path that matches, as the store spells them."""
        return template.match(file.spelled) or template.match(file.path) or {}

    def _read_classes(self, file: DataFile) -> MaskClasses:
        """Returns the classes that a file names, and their colors if it has them."""
        if not self._names_file:
            return MaskClasses({})
        return read_mask_classes(file.root, self._names_file, bool(self.mask_colors))

    @property
    def _names_file(self) -> str | None:
        """The path of the file that names the classes; None if there is none."""
        named = self.class_names_file or self.mask_colors
        return posixpath.normpath(named) if named else None

    @property
    def _gives_classes(self) -> bool:
        return CLASS in self._image.parts

    @property
    def _image(self) -> PathTemplate:
        return template_of(self.images)

    @property
    def _mask(self) -> PathTemplate:
        return template_of(self.masks)


SOURCE = ImageMasks
