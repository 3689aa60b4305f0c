"""CVAT's XML for images: one file of many images, with boxes, polygons, masks, other shapes, tags.

The format is that of CVAT 1.1 (site/content/en/docs/dataset_management/formats/format-xml.md).
"""

import io
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar, Literal
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from recordmill.imaging.geometry import Size
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import refuse_fractions
from recordmill.transforms.inputs.cvat_shapes import (
    SHAPES,
    read_attributes_of_cvat,
    read_defaults_of_cvat,
    read_key_points_of_cvat,
    read_shape_of_cvat,
    read_skeleton_of_cvat,
    read_z_order_of_cvat,
)
from recordmill.transforms.inputs.described_objects import DescribedObjects, OtherShapes
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.image_names import find_other_place
from recordmill.transforms.inputs.image_places import BELOW, ask_for_images, find_image_place
from recordmill.transforms.inputs.named_files import (
    DataFile,
    bad_annotations,
    key_of,
    read_sibling,
)
from recordmill.transforms.inputs.sources.object_source import (
    DescribedImage,
    LabelChoices,
    ObjectSource,
)

MAX_XML_BYTES = 2**30
"""Masks of 100,000 objects have a tenth of it."""

_SIGN = re.compile(rb"<annotations[^>]*>\s*<(version>1\.|meta>|image )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cvat(ObjectSource):
    """The source `cvat`, for the format "CVAT for images 1.1".

    Attributes:
        images: the folder of the images, relative to the input; `{subset}` stands for an image's
            subset, `{folder}` for the XML file's own folder.
        labels: what gives labels: `shapes` gives boxes; `tag` gives one class per image, and
            rejects images with another number of tags; `tags` gives any number of classes.
        other_shapes: what to do with polygons, masks, rotated boxes and other shapes that are not
            upright rectangles: `enclose` uses the box around them, `drop` leaves them out, `reject`
            rejects the image.
    """

    images: str = BELOW
    labels: Literal["shapes", "tag", "tags"] = "shapes"
    other_shapes: OtherShapes = "enclose"

    files: ClassVar[tuple[str, ...]] = ("*.xml",)
    classes_from: ClassVar[str] = "CVAT"
    placeholders: ClassVar[Mapping[str, str]] = {
        "subset": "an image's subset",
        "folder": "the XML file's folder",
    }
    choices: ClassVar[LabelChoices] = LabelChoices("shapes", "tag", "tags")
    not_stored: ClassVar[tuple[str, ...]] = (
        "masks",
        "lines of skeletons",
        "repeated key points",
    )

    def features(self) -> tuple[Feature, ...]:
        """Returns whether an object is occluded."""
        if self.labels != "shapes":
            return ()
        meaning = "1 for an object that is marked as occluded"
        return (Feature("image/object/occluded", "int64", "occluded", meaning, many=True),)

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes XML files of CVAT, and the folder of their images."""
        found = [
            path
            for path, head in sketch.heads.items()
            if path.lower().endswith(".xml") and _SIGN.search(head)
        ]
        if not found or not sketch.has_images:
            return
        images, words = _find_images(sketch, posixpath.dirname(found[0]))
        source = {"kind": "cvat"}
        if images not in (None, cls().images):
            source["images"] = str(images)
        yield Recognized(
            {
                "source": source,
                **given_splits("from_source", words),
                "convention": "tf_object_detection",
            },
            f"CVAT's XML files such as {found[0]}",
            needs=None if images else ask_for_images(sketch),
            needed_keys=("source.images",),
        )

    def list_images(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        """Yields each image of the file; the arguments are those of `list_references`."""
        counts, data = Counter[str](), read_sibling(file.uri, MAX_XML_BYTES)
        point_names = _name_points(data) if self.labels == "shapes" else ()
        if point_names:
            lines = list(_read_skeletons(data))
            counts["lines of skeletons"] += lines.count(None)
            known = [line for line in lines if line and {*line} <= {*point_names}]
            if known:
                yield ClassNames.of(file, (), dict.fromkeys(known))
        for image in _read_images(data):
            counts.update(tags=len(image.tags), shapes=len(image.shapes))
            named_by = DataFile(path, file.replace(split=image.subset or file.split))
            folder = self.images.format(folder=named_by.folder, subset=image.subset)
            place = posixpath.normpath(posixpath.join(folder.strip("/"), image.name))
            find_other = partial(find_other_place, named_by.root, folder.strip("/"), image.name)
            try:
                described = self._describe(image, counts, with_outlines, point_names)
            except Rejected as rejected:
                key = key_of(file.key, path, place)
                lost = file.replace(key=key, spelling="")
                yield lost.notice("rejected", rejected.reason, rejected.detail)
                continue
            yield from described.list_in(named_by, place, find_other)
        yield from self.report_unstored(file, counts)

    def _describe(
        self,
        image: "CvatImage",
        counts: Counter[str],
        with_outlines: bool,
        point_names: Sequence[str],
    ) -> DescribedImage:
        """Returns what a file says about an image.

        Args:
            image: the image.
            counts: numbers of what is not stored, which grow.
            with_outlines: whether outlines are wanted.
            point_names: the names of the key points in the file.

        Raises:
            Rejected: `bad_annotations` or `refused_shape`.
        """
        if self.labels != "shapes":
            return self.describe_classes(image.tags)
        objects = DescribedObjects(self.other_shapes)
        # Who draws objects in their order gets CVAT's picture.
        numbered = enumerate(image.shapes, start=1)
        for number, element in sorted(numbered, key=lambda each: read_z_order_of_cvat(each[1])):
            label = (element.get("label") or "").strip()
            if not label:
                raise bad_annotations(f"shape {number}, a {element.tag}, has no label")
            shape = read_shape_of_cvat(element, image.size)
            names = {point.name for point in shape.points}
            counts["repeated key points"] += len(shape.points) - len(names)
            values = {"occluded": int(element.get("occluded") == "1")}
            title = f"shape {number} is a {element.tag}"
            attributes = read_attributes_of_cvat(element, image.defaults.get(label, {}))
            objects.add(shape, label, title, values=values, attributes=attributes)
        refuse_fractions([shape.box for shape in objects.shapes])
        if not with_outlines:
            counts["masks"] += objects.outlines
        given = objects.annotate(image.size, with_outlines, point_names)
        return DescribedImage(given, "", objects.labels)


@dataclass(frozen=True, slots=True)
class CvatImage:
    """An image in CVAT's XML.

    Attributes:
        name: its name, which may be a path.
        size: width and height as its annotators saw it; 0 if the file does not say them.
        subset: the subset of its task; empty for none.
        tags: its classes.
        shapes: its shapes, in the order of the file.
        defaults: the default of each attribute that has one, by the label of its shapes.
    """

    name: str
    size: Size
    subset: str
    tags: Sequence[str]
    shapes: Sequence[Element]
    defaults: Mapping[str, Mapping[str, str]]


def _read_images(data: bytes) -> Iterator[CvatImage]:
    """Yields the images of a file.

    Raises:
        Rejected: `bad_annotations`: the file, or the rest of it, has another form.
    """
    events, defaults = iterparse(io.BytesIO(data), ("start", "end")), dict[str, dict[str, str]]()
    try:
        _, root = next(events)
        if root.tag != "annotations":
            raise bad_annotations(f"not CVAT's XML: its root is <{root.tag}>, not <annotations>")
        for event, element in events:
            if event == "end" and element.tag == "track":
                raise bad_annotations(
                    'it has tracks of a video: export it from CVAT as "CVAT for images 1.1"'
                )
            if event == "end" and element.tag == "label":
                name = (element.findtext("name") or "").strip()
                defaults[name] = read_defaults_of_cvat(element)
            if event == "end" and element.tag == "image":
                yield _read_image(element, defaults)
                root.clear()  # or else the whole file stays in memory
    except (ParseError, DefusedXmlException) as error:
        raise bad_annotations(f"not CVAT's XML: {error!s:.200}") from None


def _name_points(data: bytes) -> Sequence[str]:
    """Returns the names of the key points in a file, in the order in which they first occur.

    If the file is damaged, these are the names before the damage.
    """
    if b"<points" not in data:
        return ()
    names: dict[str, None] = {}
    with suppress(Rejected):
        for image in _read_images(data):
            points = chain.from_iterable(map(read_key_points_of_cvat, image.shapes))
            names.update(dict.fromkeys(point.name for point in points))
    return list(names)


def _read_skeletons(data: bytes) -> Iterator[tuple[str, str] | None]:
    """Yields the lines of all skeletons in the head of a file, see `read_skeleton_of_cvat`."""
    with suppress(ParseError, DefusedXmlException):
        for event, element in iterparse(io.BytesIO(data), ("start", "end")):
            if element.tag == "image":
                return
            if event == "end" and element.tag == "label":
                yield from read_skeleton_of_cvat(element)


def _read_image(element: Element, defaults: Mapping[str, Mapping[str, str]]) -> CvatImage:
    name = (element.get("name") or "").replace("\\", "/")
    if not name.strip():
        raise bad_annotations(f"image {element.get('id')!r:.60} has no name")
    shapes = [each for each in element if each.tag in SHAPES]
    tags = [(each.get("label") or "").strip() for each in element.iterfind("tag")]
    size = _read_side(element, "width"), _read_side(element, "height")
    subset = element.get("subset") or ""
    return CvatImage(name, size, subset, list(filter(None, tags)), shapes, defaults)


def _read_side(element: Element, name: str) -> int:
    """Returns the length of a side of an image; 0 if the file does not say it."""
    text = element.get(name, "")
    if text.isdecimal() and len(text) < 10:
        return int(text)
    return 0


def _find_images(sketch: FolderSketch, folder: str) -> tuple[str | None, Sequence[str]]:
    """Returns `source.images` for an XML file in a folder, and the subsets of the images.

    The first is None if the images of several folders may be meant.
    """
    below = posixpath.join(folder, "images")
    subsets = [each for each in sketch.at(below).folders if sketch.at(f"{below}/{each}").images]
    if subsets and not sketch.at(below).images:
        return f"{BELOW}/{{subset}}", subsets
    return find_image_place(sketch, folder), ()


SOURCE = Cvat
