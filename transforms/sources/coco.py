"""COCO's detection format: one JSON file of images, annotations and categories."""

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.converting.boxes import boxes_of
from recordmill.transforms.listing.named_image import refer_named_image
from recordmill.transforms.listing.patterns import compile_pattern
from recordmill.transforms.listing.read_beside import read_beside, rejected_ref
from recordmill.transforms.rejection import RejectedImage
from recordmill.transforms.sources.source import Source, announce_classes

MAX_JSON_BYTES = 2 * 2**30
"""COCO's own largest file has 0.45 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coco(Source):
    r"""The source `coco`.

    Attributes:
        split: a regular expression (RE2's syntax) that the annotation file's name must match as a whole; its group
            `split`, if any, is the word that `splits.from_source` and `images` may use. Other files are ignored.
        images: the folder of the images below the input; `{split}` stands for the word. Empty: the input itself.
    """

    split: str = r"instances_(?P<split>[a-z]+)[0-9]*\.json"
    images: str = "{split}"

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    other_files: ClassVar[str] = "taken_only_by_name"
    is_about_boxes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError where the pattern is none, or the folder's."""
        compile_pattern(self.split, "source.split")
        try:
            self.images.format(split="")
        except (KeyError, IndexError, ValueError):
            raise ValueError(f"source.images is {self.images!r}: nothing but {{split}} stands for something") from None

    def annotations(self) -> Mapping[str, str]:
        """Boxes."""
        return {"boxes": ""}

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """One image for each of the file's `images`, with its boxes."""
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield file.but(status="ignored", reason="not_annotations")
            return
        try:
            annotations = Annotations(orjson.loads(read_beside(file.uri, MAX_JSON_BYTES)))
        except RejectedImage as rejected:
            yield rejected_ref(file, rejected)
            return
        except ValueError as error:
            yield file.but(status="rejected", reason="bad_annotations", detail=f"no COCO annotations: {error}")
            return
        word = match.groupdict().get("split") or ""
        yield announce_classes(file, annotations.classes)
        if annotations.strays:
            detail = f"{annotations.strays} annotations are of images or categories that the file does not list"
            yield file.but(status="warning", reason="stray_annotations", detail=detail)
        folder = self.images.format(split=word).strip("/")
        for image in annotations.images:
            below = f"{folder}/{image['file_name']}" if folder else image["file_name"]
            ref = refer_named_image(file.but(split=word), path, below)
            if not ref.status:
                fields = {"source_id": str(image["id"]), **annotations.boxes(image)}
                ref = ref.but(features=orjson.dumps(fields).decode())
            yield ref


class Annotations:
    """What one file says, checked.

    Attributes:
        images: as the file has them: `id`, `file_name` and, mostly, `width` and `height`.
        classes: categories by name.
        strays: annotations of images or categories that are not listed.

    Raises:
        ValueError: something lacks a key or is of another kind than COCO's, or two categories or two images have one
            name or one id; the message says which.
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise ValueError("it is no JSON object with images, categories and annotations")
        self.images = sorted(_entries(data, "images", "id", "file_name"), key=lambda image: image["file_name"])
        categories = _entries(data, "categories", "id", "name")
        names = {category["id"]: category["name"] for category in categories}
        self.classes = {name: _category_number(number) for number, name in names.items()}
        if len(self.classes) < len(categories):
            raise ValueError("two categories have one name or one id")
        known = {image["id"] for image in self.images}
        if len(known) < len(self.images):
            raise ValueError("two images have one id")
        self._by_image: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self._sizes: dict[Any, tuple[int, int]] = {}
        self.strays = 0
        annotations = _entries(data, "annotations", "id", "image_id", "category_id") if "annotations" in data else []
        for each in sorted(annotations, key=lambda each: (isinstance(each["id"], str), each["id"])):
            if each["image_id"] in known and each["category_id"] in names:
                x, y, width, height = _numbers(each, "bbox", 4)
                (area,) = _numbers(each, "area", 1) if "area" in each else (width * height,)
                values = (names[each["category_id"]], int(bool(each.get("iscrowd"))), area)
                self._by_image[each["image_id"]].append({"box": (x, y, x + width, y + height), "values": values})
            else:
                self.strays += 1
        for image in self.images:
            self._sizes[image["id"]] = _size_of(image)

    def boxes(self, image: dict[str, Any]) -> dict[str, Any]:
        """An image's boxes, as `transforms.converting.boxes.boxes_of` gives them."""
        own = self._by_image.get(image["id"], [])
        labels, is_crowd, area = zip(*(each["values"] for each in own), strict=True) if own else ((), (), ())
        values = {"is_crowd": is_crowd, "area": area}
        return boxes_of([each["box"] for each in own], labels, values=values, drawn_on_size=self._sizes[image["id"]])


_KINDS: dict[str, tuple[type, ...]] = {"file_name": (str,), "name": (str, int, float)}
"""What a key's value may be; an id a number or a text."""


def _entries(data: dict[str, Any], key: str, *needed: str) -> list[dict[str, Any]]:
    """The objects under a key of the file, each of which has all that is needed; names are texts."""
    if key not in data:
        raise ValueError(f"no key {key!r}")
    if not isinstance(data[key], list):
        raise ValueError(f"{key} is no list: {data[key]!r:.60}")
    for place, each in enumerate(data[key]):
        if not isinstance(each, dict):
            raise ValueError(f"{key}[{place}] is no object: {each!r:.60}")
        for name in needed:
            if name not in each:
                raise ValueError(f"{key}[{place}] has no key {name!r}")
            if not isinstance(each[name], _KINDS.get(name, (int, str))):
                raise ValueError(f"{name} of {key}[{place}] cannot be {each[name]!r:.60}")
        if "name" in needed:
            each["name"] = str(each["name"])
    entries: list[dict[str, Any]] = data[key]
    return entries


def _category_number(number: int | str) -> int:
    try:
        return int(number)
    except ValueError:
        raise ValueError(f"the id of a category is no whole number: {number!r:.60}") from None


def _numbers(annotation: dict[str, Any], key: str, count: int) -> list[float]:
    """The numbers under a key of an annotation."""
    if key not in annotation:
        raise ValueError(f"annotation {annotation['id']} has no key {key!r}")
    given = annotation[key] if count > 1 else [annotation[key]]
    if not isinstance(given, list) or len(given) != count or any(type(each) not in (int, float) for each in given):
        wanted = f"no list of {count} numbers" if count > 1 else "no number"
        raise ValueError(f"{key} of annotation {annotation['id']} is {wanted}: {annotation[key]!r:.60}")
    return [float(each) for each in given]  # orjson's integers have 64 bits


def _size_of(image: dict[str, Any]) -> tuple[int, int]:
    """The width and height of an image, as the annotators saw it; 0 for what is not said."""
    stated = [image.get(side) or 0 for side in ("width", "height")]
    try:
        width, height = map(int, stated)
    except (ValueError, TypeError, OverflowError):
        width = height = -1
    if not 0 <= width < 2**31 or not 0 <= height < 2**31:
        raise ValueError(f"width and height of image {image['id']} are no whole numbers: {stated!r:.60}")
    return width, height


SOURCE = Coco
