"""COCO's detection format: one JSON file of images, annotations and categories."""

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import orjson

from schemas.image_ref import ImageRef
from transforms.converting.boxes import boxes_of
from transforms.listing.inside_root import OutsideRootError, key_of, resolve_inside, root_of, size_and_version
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

    def __post_init__(self) -> None:
        """Raises ValueError where the pattern is none."""
        compile_pattern(self.split, "source.split")

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """One image for each of the file's `images`, with its boxes."""
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield replace(file, status="ignored", reason="not_annotations")
            return
        try:
            annotations = Annotations(orjson.loads(read_beside(file.uri, MAX_JSON_BYTES)))
        except RejectedImage as rejected:
            yield rejected_ref(file, rejected)
            return
        except (ValueError, KeyError, TypeError) as error:
            why = f"no key {error}" if isinstance(error, KeyError) else str(error)
            yield replace(file, status="rejected", reason="bad_annotations", detail=f"no COCO annotations: {why}")
            return
        word = match.groupdict().get("split") or ""
        yield announce_classes(file, annotations.classes)
        if annotations.strays:
            detail = f"{annotations.strays} annotations are of images or categories that the file does not list"
            yield replace(file, status="warning", reason="stray_annotations", detail=detail)
        root, folder = root_of(file.uri, path), self.images.format(split=word).strip("/")
        for image in annotations.images:
            yield self._image(replace(file, split=word), root, folder, path, image, annotations)

    def _image(
        self, file: ImageRef, root: str, folder: str, path: str, image: dict[str, Any], annotations: "Annotations"
    ) -> ImageRef:
        below = f"{folder}/{image['file_name']}" if folder else image["file_name"]
        ref = replace(file, key=key_of(file.key, path, below), uri=root, spelling="")
        try:
            uri = resolve_inside(root, below)
            size, version = size_and_version(uri)
        except OutsideRootError as error:
            return replace(ref, status="rejected", reason="outside_root", detail=str(error))
        except OSError as error:
            detail = f"listed by {posixpath.basename(path)}: {(error.strerror or type(error).__name__).lower()}"
            return replace(ref, status="rejected", reason="vanished", detail=detail)
        fields = {"source_id": str(image["id"]), **annotations.boxes(image)}
        return replace(ref, uri=uri, size=size, version=version, features=orjson.dumps(fields).decode())


class Annotations:
    """What one file says, checked.

    Attributes:
        images: as the file has them: `id`, `file_name` and, mostly, `width` and `height`.
        classes: categories by name.
        strays: annotations of images or categories that are not listed.

    Raises:
        KeyError: something lacks a key.
        TypeError: something is of another kind than COCO's.
        ValueError: two categories have one name or one id.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.images = sorted(data["images"], key=lambda image: str(image["file_name"]))
        names = {category["id"]: str(category["name"]) for category in data["categories"]}
        self.classes = {name: int(number) for number, name in names.items()}
        if len(self.classes) < len(data["categories"]):
            raise ValueError("two categories have one name or one id")
        known = {image["id"] for image in self.images}
        if len(known) < len(self.images):
            raise ValueError("two images have one id")
        self._by_image: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self.strays = 0
        for each in sorted(data.get("annotations", ()), key=lambda each: each["id"]):
            if each["image_id"] in known and each["category_id"] in names:
                x, y, width, height = map(float, each["bbox"])
                box = (x, y, x + width, y + height)
                values = (
                    names[each["category_id"]],
                    int(each.get("iscrowd", 0)),
                    float(each.get("area", width * height)),
                )
                self._by_image[each["image_id"]].append({"box": box, "values": values})
            else:
                self.strays += 1

    def boxes(self, image: dict[str, Any]) -> dict[str, Any]:
        """An image's boxes, as `transforms.converting.boxes.boxes_of` gives them."""
        own = self._by_image.get(image["id"], [])
        labels, is_crowd, area = zip(*(each["values"] for each in own), strict=True) if own else ((), (), ())
        size = (int(image.get("width") or 0), int(image.get("height") or 0))
        values = {"is_crowd": is_crowd, "area": area}
        return boxes_of([each["box"] for each in own], labels, values=values, drawn_on_size=size)


SOURCE = Coco
