"""Pascal VOC: one XML file an image."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from xml.etree.ElementTree import Element, ParseError

import orjson
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.converting.boxes import boxes_of
from recordmill.transforms.listing.inside_root import spelled_path
from recordmill.transforms.listing.named_image import refer_named_image
from recordmill.transforms.listing.read_beside import read_beside, rejected_ref
from recordmill.transforms.rejection import RejectedImage
from recordmill.transforms.sources.source import Source, announce_classes

FLAGS = ("difficult", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voc(Source):
    """The source `voc`.

    Attributes:
        images: the folder of the images, relative to the folder that the XML files' folder lies in.
    """

    images: str = "JPEGImages"

    files: ClassVar[tuple[str, ...]] = ("*.xml",)
    other_files: ClassVar[str] = "taken_only_by_name"

    def annotations(self) -> Mapping[str, str]:
        """Boxes."""
        return {"boxes": ""}

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """The image that one file is about, with its boxes."""
        try:
            name, labels, fields = read_annotation(fromstring(read_beside(file.uri)))
        except RejectedImage as rejected:
            yield rejected_ref(file, rejected)
            return
        except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
            yield file.but(status="rejected", reason="bad_annotations", detail=f"no VOC annotation: {error}")
            return
        above = posixpath.dirname(posixpath.dirname(spelled_path(file.uri, path)))
        image = refer_named_image(file, path, posixpath.join(above, self.images, name))
        if image.status:
            yield image
            return
        if labels:
            yield announce_classes(file, labels)
        yield image.but(features=orjson.dumps(fields).decode())

    def features(self) -> tuple[Feature, ...]:
        """What VOC says of each box beside its class."""
        return (
            Feature("image/object/difficult", "int64", "difficult", "1 for a box marked as difficult", many=True),
            Feature("image/object/truncated", "int64", "truncated", "1 for an object that is cut off", many=True),
            Feature("image/object/view", "bytes", "view", "the pose: Left, Frontal, ...", many=True),
        )


def read_annotation(root: Element) -> tuple[str, list[str], dict[str, Any]]:
    """The image's file name, the classes of its boxes, and its boxes as `converting.boxes.boxes_of` gives them.

    Coordinates are taken as they stand, as TensorFlow's own converter takes them, though VOC counts pixels from 1.

    Raises:
        ValueError: something is missing or no number.
    """
    name = _text(root, "filename")
    boxes, labels = [], []
    values: dict[str, list[Any]] = {**{flag: [] for flag in FLAGS}, "view": []}
    for found in root.iterfind("object"):
        box = found.find("bndbox")
        if box is None:
            raise ValueError("an <object> has no <bndbox>")
        boxes.append([_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax")])
        labels.append(_text(found, "name"))
        for flag in FLAGS:
            values[flag].append(_whole(found, flag) if found.findtext(flag) else 0)
        values["view"].append(found.findtext("pose", "") or "")
    size = root.find("size")
    drawn_on = (0, 0) if size is None else (_whole(size, "width"), _whole(size, "height"))
    return name, labels, boxes_of(boxes, labels, values=values, drawn_on_size=drawn_on)


def _text(element: Element, tag: str) -> str:
    text = (element.findtext(tag) or "").strip()
    if not text:
        raise ValueError(f"<{element.tag}> has no <{tag}>")
    return text


def _number(element: Element, tag: str) -> float:
    try:
        return float(_text(element, tag))
    except ValueError:
        raise ValueError(f"<{tag}> in <{element.tag}> is no number") from None


def _whole(element: Element, tag: str) -> int:
    number = _number(element, tag)
    if not abs(number) < 2**31:
        raise ValueError(f"<{tag}> in <{element.tag}> is no number of a size that can be")
    return int(number)


SOURCE = Voc
