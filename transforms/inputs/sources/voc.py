"""Pascal VOC: one XML file per image."""

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import orjson
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from recordmill import storage
from recordmill.annotations.annotation import Packable
from recordmill.annotations.attributes import Attributes, read_attribute
from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef, Listed, Notice, NoticeStatus
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import refuse_fractions
from recordmill.transforms.inputs.class_names import why_unread
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    split_for_word,
    stems_of,
)
from recordmill.transforms.inputs.image_names import find_other_place, names_in
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS, without_image_ending
from recordmill.transforms.inputs.named_files import (
    DataFile,
    NoFileError,
    bad_annotations,
    read_sibling,
    size_and_version,
)
from recordmill.transforms.inputs.outlines import angle_of, rotate_box
from recordmill.transforms.inputs.pair_names import is_telling
from recordmill.transforms.inputs.patterns import check_template, escape_glob
from recordmill.transforms.inputs.shape_corners import corners_of_rectangle
from recordmill.transforms.inputs.sources.source import AnnotationSource
from recordmill.transforms.inputs.voc_masks import (
    OBJECT_MASKS,
    VocMasks,
    find_object_masks,
    find_semantic_mask,
    join_masks,
)

FLAGS = ("difficult", "truncated")
IMAGE_FOLDERS = ("jpegimages", "images", "imgs", "img", "image")
SETS = ("train", "val", "test", "trainval")
MASK_SETS = "ImageSets/Segmentation"
"""The folder of the split lists of images with masks."""

_MASK_LISTS = "lists of images with masks"
_COLOR_TABLES = "color tables"
_CLASS_LISTS = "lists of classes"
_EACH = "/*"
"""The end of the setting `images` if the images are in several folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voc(AnnotationSource):
    """The source `voc`.

    Attributes:
        images: the folder of the images, next to that of the XML files. `{folder}`: each image is
            next to its XML file. `images/*`: the folders in `images`, whose names are the words for
            `splits.from_source`.
        sets: the folder of the split lists, such as `ImageSets/Main`, with `train.txt`, `val.txt`,
            `test.txt` and `trainval.txt`, whose names are the words for `splits.from_source`. The
            first list that names an image counts; other images are ignored. Empty: none.
        segmentation: the folder of semantic masks, next to that of the XML files, such as
            `SegmentationClass`; it needs `class_names`, and `labels.ids: integers`. Values are
            indices of VOC's palette, or its colors. An image without a mask is rejected
            (`no_mask_file`). Empty: none are read.
        class_names: the names of the classes with the ids 0, 1, ...
    """

    images: str = "JPEGImages"
    sets: str = ""
    segmentation: str = ""
    class_names: tuple[str, ...] = ()

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes XML files of annotations next to images, or in a folder next to theirs."""
        heads = {
            folder: sketch.first_head(folder, ".xml", sign=b"<annotation")
            for folder in sketch.names
        }
        annotated = [
            folder for folder, head in heads.items() if head and b"<annotations" not in head
        ]
        for images, folders in _group_folders(sketch, annotated).items():
            source: dict[str, Any] = {"kind": "voc"}
            if images != cls().images:
                source["images"] = images
            words = _folders_below(sketch, min(folders), images)
            splits = {
                folder.split("/")[0]
                for folder in folders
                if folder.partition("/")[2] or images == "{folder}"
            }
            settings = given_splits("from_source", words) or sketch.splits_by_folder(splits)
            above = posixpath.dirname(min(folders))
            lists = stems_of(
                sketch.at(posixpath.join(above, "ImageSets/Main")).ending(".txt")
            ) & set(SETS)
            if lists:
                source["sets"] = "ImageSets/Main"
                lists -= {"trainval"} if lists & {"train", "val"} else set()
                words = [word for word in SETS if word in lists]
                settings = {
                    "splits": {
                        "from_source": {word: split_for_word(word) or "train" for word in words}
                    }
                }
            example = posixpath.join(min(folders), sketch.at(min(folders)).ending(".xml")[0])
            where = "next to images" if images == "{folder}" else f"with images in {images}"
            settings = {"source": source, **settings, "convention": "tf_object_detection"}
            why = f"Pascal VOC's XML files {where}, such as {example}"
            ask = None
            if images != "{folder}":
                ask = _ask_for_images(sketch, min(folders))
            yield Recognized(settings, why, needs=ask, needed_keys=("source.images",))

    def __post_init__(self) -> None:
        """Raises SettingError if a folder is invalid, or ids in semantic masks have no names."""
        check_template(self.images, "source.images", "folder")
        check_template(self.segmentation, "source.segmentation")
        if self.segmentation and not self.class_names:
            raise SettingError(
                "source.segmentation",
                "needs the names of the ids in masks: list them in source.class_names, as "
                "configs/voc_masks.yaml does for VOC's own",
            )
        self.classes()

    @property
    def names_pixel_ids(self) -> bool:  # type: ignore[override]  # depends on the settings
        """Whether the ids of classes are those in semantic masks."""
        return bool(self.segmentation)

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]  # depends on the settings
        """XML files, and the split lists, which are checked against the XML files."""
        return ("*.xml", *(f"**/{self.sets}/{word}.txt" for word in SETS if self.sets))

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images and masks."""
        where = (
            "the folder of the images, next to that of the XML files; '{folder}' stands for the "
            "latter"
        )
        return {
            "vanished": f"correct source.images, which is {self.images!r} ({where})",
            "no_mask_file": f"set source.sets={MASK_SETS}, with its lists in "
            "splits.from_source, to take images with masks alone, or remove "
            f"{'masks and source.segmentation' if self.segmentation else 'masks'}",
        }

    def remedy_for_masks(self, not_stored: Collection[str]) -> str:
        """Returns how to store masks; not every image on other lists has them."""
        ways = [super(Voc, self).remedy_for_masks(not_stored)]
        if _MASK_LISTS in not_stored:
            splits = "splits.from_source={train: train, val: validation}"
            flags = f"--set source.sets={MASK_SETS} --set {shlex.quote(splits)}"
            ways = [f"--set masks=png {flags} stores masks"]
        if of_classes := self.remedy_for(not_stored):
            ways.append(of_classes)
        return "; ".join(ways)

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns how to store semantic masks, whose classes are VOC's own without a list."""
        if "semantic masks" not in not_stored:
            return None
        if {_COLOR_TABLES, _CLASS_LISTS}.intersection(not_stored):
            return "source.segmentation and source.class_names store semantic masks, too"
        return "--config configs/voc_masks.yaml stores semantic masks, too"

    @property
    def siblings(self) -> Mapping[str, str]:
        """The masks and lists of VOC's downloads; not the lists in use."""
        in_use = {f"{self.sets}/{word}.txt": "" for word in SETS if self.sets}
        if self.segmentation:
            in_use[f"{self.segmentation}/*.png"] = ""
        return {
            **in_use,
            "Segmentation*Npy/**": "",  # LabelMe's copies of masks
            "Segmentation*Visualization/**": "",
            "SegmentationClass*/**": "semantic masks",
            "SegmentationObject*/**": "masks",
            f"{MASK_SETS}/*.txt": _MASK_LISTS,
            "ImageSets/**.txt": "split lists",
            "labelmap.txt": _COLOR_TABLES,
            # LabelMe's names of the ids in its masks.
            "class_names.txt": "" if self.class_names else _CLASS_LISTS,
        }

    @property
    def mask_files(self) -> tuple[str, ...]:
        """The masks of objects."""
        return (f"{OBJECT_MASKS}/*.png",)

    def annotations(self) -> Mapping[str, str]:
        """Returns that images may have boxes, and masks, attributes and corners of objects."""
        of_objects = {"boxes": "", "masks": "", "attributes": "", "corners": ""}
        if self.segmentation:
            return of_objects | {"segmentation": "source.segmentation"}
        return of_objects

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the image that one file describes, with its boxes; or notices on a split list."""
        return self._list(path, file, with_outlines=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the same; objects have the pixels of `SegmentationObject`.

        An image with objects and without a file there is rejected.
        """
        return self._list(path, file, with_outlines=True)

    def _list(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        if path.endswith(".txt"):
            above = file.uri.removesuffix(f"/{self.sets}/{posixpath.basename(path)}")
            yield from _check_set(path, file, above)
            return
        annotation = DataFile(path, file)
        above, folder = posixpath.split(annotation.folder)
        if self.sets:
            sets = f"{annotation.root}/{posixpath.join(above, self.sets)}"
            file = _with_set(file, sets, posixpath.splitext(posixpath.basename(file.uri))[0])
            if file.status:
                yield file
                return
            annotation = DataFile(path, file)
        try:
            root = fromstring(read_sibling(file.uri))
            name, boxes = read_annotation(root)
        except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
            raise bad_annotations(f"not a VOC annotation: {error!s:.200}") from None
        refuse_fractions(boxes.boxes)
        images = posixpath.join(above, self.images.format(folder=folder))
        if self.images.endswith(_EACH):
            images = posixpath.dirname(images)
            folders, name = _find_folders(annotation.root, images, name)
            if len(folders) > 1:
                both = " and ".join(posixpath.join(images, each) for each in folders[:2])
                detail = f"{both} hold {name}: remove the one that it does not describe"
                yield file.notice("fatal", "bad_annotations", detail)
                return
            images = posixpath.join(images, *folders)
            annotation = DataFile(path, file.replace(split=file.split or "".join(folders)))
        image = _complete_name(annotation, posixpath.join(images, name))
        if other := self._find_other_image(annotation, image):
            detail = (
                f"it names {posixpath.basename(image)}, but {other}, which has its name, is there, "
                "too: correct <filename>, or remove the image that it does not describe"
            )
            yield file.notice("fatal", "bad_annotations", detail)
            return
        for kind, count in _count_unstored(root).items():
            yield file.notice("not_stored", kind, count=count)
        masks = self._find_masks(annotation, len(boxes.labels), with_outlines)
        given = [boxes, *_read_details(root), *masks.given]
        find_other = partial(find_other_place, annotation.root, images, name)
        for each in annotation.list_annotated(
            image, given, classes=boxes.labels, find_other=find_other
        ):
            yield masks.complete(each) if type(each) is ImageRef else each

    def _find_masks(self, annotation: DataFile, objects: int, with_outlines: bool) -> VocMasks:
        """Returns the masks of an image that the settings ask for."""
        found = []
        if with_outlines:
            found.append(find_object_masks(annotation, objects))
        if self.segmentation:
            found.append(find_semantic_mask(annotation, self.segmentation))
        return join_masks(found)

    @staticmethod
    def _find_other_image(annotation: DataFile, image: str) -> str | None:
        """Returns another image with the XML file's own name; None if there is none.

        After images were renamed, XML files may name images that others describe.
        """
        own = posixpath.splitext(posixpath.basename(annotation.spelled))[0]
        folder, name = posixpath.split(image)
        stem, ending = posixpath.splitext(name)
        other = f"{own}{ending}"
        if own == stem or not annotation.has(image):
            return None
        if annotation.has(posixpath.join(folder, other)):
            return other
        return None

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """Returns the image, and the lists that may have given its split."""
        above, folder, _ = ref.uri.rpartition(f"/{self.images.removesuffix(_EACH)}/")
        lists = []
        if self.sets and folder:
            lists = [f"{above}/{self.sets}/{word}.txt" for word in SETS]
        return ref.uri, *(file.uri for file in ref.files), *lists

    def features(self) -> tuple[Feature, ...]:
        """Returns VOC's attributes of boxes, except the class."""
        return (
            Feature(
                "image/object/difficult",
                "int64",
                "difficult",
                "1 for a box marked as difficult",
                many=True,
            ),
            Feature(
                "image/object/truncated",
                "int64",
                "truncated",
                "1 for an object that is cut off",
                many=True,
            ),
            Feature(
                "image/object/view", "bytes", "view", "the pose: Left, Frontal, ...", many=True
            ),
        )


def _complete_name(annotation: DataFile, image: str) -> str:
    """Returns the path of an image with its extension, which some tools do not write."""
    if posixpath.splitext(image)[1].lower() in IMAGE_ENDINGS:
        return image
    places = (f"{image}{ending}" for ending in IMAGE_ENDINGS)
    return next(filter(annotation.has, places), image)


def _group_folders(sketch: FolderSketch, annotated: Iterable[str]) -> dict[str, list[str]]:
    """Groups folders of XML files by their `source.images`.

    Folders whose images were not seen are left out.
    """
    groups: dict[str, list[str]] = {}
    for folder in annotated:
        above, _, own = folder.rpartition("/")
        stems = stems_of(sketch.at(folder).ending(".xml"))
        others = {
            each: sketch.at(f"{above}/{each}".lstrip("/"))
            for each in sketch.at(above).folders
            if each != own
        }
        spread = [
            each
            for each in others
            if not others[each].images and stems & _stems_below(sketch, above, each)
        ]
        known = IMAGE_FOLDERS if above and not spread else ()
        near = [
            each
            for each in others
            if each.lower() in known or stems & stems_of(others[each].images)
        ]
        if sketch.at(folder).beside_images(".xml"):
            images = "{folder}"
        elif folder and near:
            # Copies may have the boxes drawn in.
            images = min(near, key=lambda each: each.lower() not in IMAGE_FOLDERS)
        elif folder and len(spread) == 1:
            images = f"{spread[0]}{_EACH}"
        else:
            continue
        groups.setdefault(images, []).append(folder)
    return groups


def _folders_below(sketch: FolderSketch, folder: str, images: str) -> Sequence[str]:
    """Returns the folders that `*` stands for in the setting `images` of XML files in a folder."""
    if not images.endswith(_EACH):
        return ()
    above = posixpath.dirname(folder)
    return sketch.at(posixpath.join(above, images.removesuffix(_EACH))).folders


def _stems_below(sketch: FolderSketch, above: str, folder: str) -> set[str]:
    """Returns the stems of the images in the folders in a folder."""
    path = posixpath.join(above, folder)
    inner = (sketch.at(f"{path}/{each}").images for each in sketch.at(path).folders)
    return {*chain.from_iterable(map(stems_of, inner))}


def _find_folders(root: str, above: str, name: str) -> tuple[list[str], str]:
    """The folders in a folder that hold the image that an XML file names, and its bare name.

    If the name has one of them before it, no other counts.
    """
    *around, name = name.replace("\\", "/").split("/")
    folders = sorted(
        each.rstrip("/") for each in storage.folder_entries(f"{root}/{above}") if each[-1:] == "/"
    )
    if around and around[-1] in folders:
        return [around[-1]], name
    stem = without_image_ending(name)
    is_whole = stem != name
    found = []
    for folder in folders:
        images = names_in(f"{root}/{above}/{folder}").images(stem)
        if name in images or (images and not is_whole):
            found.append(folder)
    return found, name


def _ask_for_images(sketch: FolderSketch, folder: str) -> str | None:
    """Asks for the folder of the images if several hold those that XML files are named after.

    None if a single one does, or a single one has a usual name: copies may have the boxes drawn
    in.
    """
    above, _, own = folder.rpartition("/")
    stems = stems_of(sketch.at(folder).ending(".xml"))
    holding = [
        each
        for each in sketch.at(above).folders
        if each != own and stems & stems_of(sketch.at(posixpath.join(above, each)).images)
    ]
    usual = [each for each in holding if each.lower() in IMAGE_FOLDERS]
    drawn = [each for each in holding if is_telling(each)]
    left = usual or [each for each in holding if each not in drawn]
    if len(left) < 2:
        return None
    ways = ", or ".join(f"--set {shlex.quote(f'source.images={each}')}" for each in left)
    return f"{', '.join(left)} hold images of the same names: add {ways}"


def _with_set(file: ImageRef, sets: str, name: str) -> ImageRef:
    """Returns the file; its split is the name of the first list that has its image.

    If no list has the image, the file is ignored.

    Raises:
        Rejected: a list cannot be read.
    """
    names = {word: _read_set(f"{sets}/{word}.txt") for word in SETS}
    if not any(names.values()):
        detail = (
            f"source.sets is {posixpath.basename(sets)!r}: no train.txt, val.txt, test.txt or "
            "trainval.txt there"
        )
        return file.notice("fatal", "bad_annotations", detail)
    word = next((word for word in SETS if name in names[word]), "")
    return file.replace(split=word) if word else file.notice("ignored", "in_no_set")


def _check_set(path: str, file: ImageRef, above: str) -> Iterator[Notice]:
    """Reports names on a list that match no XML file in the folders next to that of the lists.

    A list that matches none is that of another collection, unless it names images: those of VOC's
    test sets have no annotations.

    Raises:
        Rejected: the list cannot be read.
    """
    names, stems, others = _read_set(file.uri), set[str](), set[str]()
    for folder in ("", *(each for each in storage.folder_entries(above) if each.endswith("/"))):
        with suppress(PermissionError):  # the listing reports it
            found = storage.folder_names(f"{above}/{folder}")
            stems |= stems_of(each for each in found if each.endswith(".xml"))
            others |= stems_of(each for each in found if each.lower().endswith(IMAGE_ENDINGS))
    if wrong := sorted(set(names.values()) - {names[stem] for stem in names.keys() & stems}):
        what = (
            f"no XML file matches {format_count(len(wrong), 'name')} in it, such as "
            f"{wrong[0]!r:.100}"
        )
        status: NoticeStatus = "fatal" if names.keys().isdisjoint(stems | others) else "warning"
        leave_out = shlex.quote(f"ignore={orjson.dumps([f'/{escape_glob(path)}']).decode()}")
        detail = f"{what}: correct the list, or leave it out with --set {leave_out}"
        yield file.notice(status, "bad_annotations", detail)
    yield file.notice("ignored", Voc.other_files)  # used, if it gives the split of an image


def _read_set(uri: str) -> Mapping[str, str]:
    """Returns the names on a list, by the stems that their XML files may have.

    The result is empty if there is no such list. The list is read once, and again only if it
    changes.

    Raises:
        Rejected: it cannot be read.
    """
    try:
        version = size_and_version(uri)
    except Rejected:
        return {}
    return _parse_set(uri, *version)


@lru_cache(maxsize=64)
def _parse_set(uri: str, size: int, version: str) -> Mapping[str, str]:
    """Returns the lines of a list by the names that they may mean.

    The names are the line as it is, the line without a class's -1, 0 or 1 after it, and each of
    these without an image's extension.
    """
    stems: dict[str, str] = {}
    try:
        lines = read_sibling(uri).decode("utf-8-sig").splitlines()
    except NoFileError:
        return {}
    except UnicodeDecodeError as error:
        raise bad_annotations(f"{posixpath.basename(uri)}: {why_unread(error)}") from None
    for line in filter(None, map(str.strip, lines)):
        for name in (line, re.sub(r"\s+(-1|0|1)$", "", line)):
            stems |= {name: line, without_image_ending(name): line}
    return stems


def read_annotation(root: Element) -> tuple[str, Boxes]:
    """Returns the image's file name, and its boxes.

    Coordinates are used as written, as in TensorFlow's own converter, although VOC counts pixels
    from 1.

    Raises:
        ValueError: something is missing or not a number.
    """
    name = _text(root, "filename")
    boxes, labels, enclosed = [], [], 0
    values: dict[str, list[Any]] = {**{flag: [] for flag in FLAGS}, "view": []}
    for found in root.iterfind("object"):
        box = found.find("bndbox")
        if box is None:
            raise ValueError("an <object> has no <bndbox>")
        left, top, right, bottom = (_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax"))
        whole, is_rotated = rotate_box((left, top, right, bottom), _find_angle(found))
        boxes.append(whole)
        enclosed += is_rotated
        labels.append(_text(found, "name"))
        for flag in FLAGS:
            values[flag].append(_whole(found, flag) if found.findtext(flag) else 0)
        values["view"].append(found.findtext("pose", "") or "")
    size = root.find("size")
    drawn_on = (0, 0) if size is None else (_whole(size, "width"), _whole(size, "height"))
    shapes = {"enclosed": enclosed}
    return name, boxes_of(boxes, labels, values=values, drawn_on_size=drawn_on, shapes=shapes)


def _find_angle(found: Element) -> float:
    """Returns the rotation that CVAT writes among an object's attributes; 0 if there is none."""
    for attribute in found.iterfind("attributes/attribute"):
        if (attribute.findtext("name") or "").strip() == "rotation":
            return angle_of((attribute.findtext("value") or "").strip())
    return 0.0


def _read_details(root: Element) -> Iterator[Packable]:
    """Yields the attributes of an image's objects, and their corners, if one of them has some."""
    objects = root.findall("object")
    if any(values := list(map(_list_attributes, objects))):
        yield Attributes(values)
    if any(corners := list(map(_find_corners, objects))):
        yield OrientedBoxes(corners)


def _find_corners(found: Element) -> Sequence[float] | None:
    """Returns x and y of the corners of a rotated box; None if it is upright."""
    box, degrees = found.find("bndbox"), _find_angle(found)
    if box is None or degrees % 180 == 0:
        return None
    left, top, right, bottom = (_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax"))
    return corners_of_rectangle((left, top, right, bottom), degrees)


def _list_attributes(found: Element) -> Mapping[str, str]:
    """Returns whether an object is occluded, and what CVAT writes as its other attributes."""
    values = {"occluded": found.findtext("occluded")}
    for attribute in found.iterfind("attributes/attribute"):
        name = (attribute.findtext("name") or "").strip()
        if name and name != "rotation":
            values[name] = attribute.findtext("value")
    read = {name: read_attribute(value) for name, value in values.items()}
    return {name: text for name, text in read.items() if text is not None}


_READ = frozenset({"name", "bndbox", "pose", "attributes", "occluded", *FLAGS})
"""What is read of an object."""

_LONGEST_TAG = 40
_IN_PLURAL = {"polygon": "polygons", "part": "parts of objects"}
"""What notes call parts of VOC's layout dataset, and Roboflow's outlines."""


def _count_unstored(root: Element) -> Counter[str]:
    """Counts what else objects have, by the names of the elements."""
    found = Counter[str]()
    for each in root.iterfind("object/*"):
        if each.tag not in _READ and (len(each) or (each.text or "").strip()):
            found[_IN_PLURAL.get(each.tag, each.tag[:_LONGEST_TAG])] += 1
    return found


def _text(element: Element, tag: str) -> str:
    text = (element.findtext(tag) or "").strip()
    if not text:
        raise ValueError(f"<{element.tag}> has no <{tag}>")
    return text


def _number(element: Element, tag: str) -> float:
    try:
        return float(_text(element, tag))
    except ValueError:
        raise ValueError(f"<{tag}> in <{element.tag}> is not a number") from None


def _whole(element: Element, tag: str) -> int:
    number = _number(element, tag)
    if not abs(number) < 2**31:
        raise ValueError(f"<{tag}> in <{element.tag}> is not a possible number")
    return int(number)


SOURCE = Voc
