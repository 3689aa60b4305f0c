"""COCO's detection format: one JSON file of images, annotations and categories."""

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from schemas.image_ref import ImageRef
from transforms.converting.boxes import boxes_of
from transforms.listing.named_image import refer_named_image
from transforms.listing.patterns import compile_pattern
from transforms.listing.read_beside import read_beside, rejected_ref
from transforms.rejection import RejectedImage
from transforms.sources.source import Source, announce_classes

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

    def __post_init__(self) -> None:
        """Raises ValueError where the pattern is none."""
        compile_pattern(self.split, "source.split")

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
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            why = f"no key {error}" if isinstance(error, KeyError) else str(error)
            yield file.but(status="rejected", reason="bad_annotations", detail=f"no COCO annotations: {why}")
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
        KeyError: something lacks a key.
        TypeError: something is of another kind than COCO's.
        ValueError: two categories or two images have one name or one id, or a value is no number; the message names it.
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise ValueError("it is no JSON object with images, categories and annotations")
        self.images = sorted(data["images"], key=lambda image: str(image["file_name"]))
        names = {category["id"]: str(category["name"]) for category in data["categories"]}
        self.classes = {name: int(number) for number, name in names.items()}
        if len(self.classes) < len(data["categories"]):
            raise ValueError("two categories have one name or one id")
        known = {image["id"] for image in self.images}
        if len(known) < len(self.images):
            raise ValueError("two images have one id")
        self._by_image: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self._sizes: dict[Any, tuple[int, int]] = {}
        self.strays = 0
        for each in sorted(data.get("annotations", ()), key=lambda each: each["id"]):
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


def _numbers(annotation: dict[str, Any], key: str, count: int) -> list[float]:
    """The numbers under a key of an annotation."""
    given = annotation[key] if count > 1 else [annotation[key]]
    if not isinstance(given, list) or len(given) != count or any(type(each) not in (int, float) for each in given):
        wanted = f"no list of {count} numbers" if count > 1 else "no number"
        raise ValueError(f"{key} of annotation {annotation['id']} is {wanted}: {annotation[key]!r:.60}")
    return [float(each) for each in given]


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
