"""COCO's panoptic annotations: the segments of each image, whose pixels are in a PNG."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from annotated_types import Interval
from pydantic import BaseModel, FailFast, FiniteFloat

from recordmill.annotations.annotation import Label, Packable
from recordmill.annotations.masks import Masks
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging.masks.outline import FileIds, MaskFile
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.coco_annotations import (
    MAX_JSON_BYTES,
    SEGMENTS,
    Annotation,
    Category,
    CocoAnnotations,
    CocoFile,
    Id,
    Image,
    Number,
)
from recordmill.transforms.inputs.named_files import bad_annotations, read_json, read_sibling

SegmentId = Annotated[int, Interval(ge=1, lt=2**24)]
"""The value of a segment's pixels, as `decode_mask` gives a color; 0 is void."""


class Segment(BaseModel):
    """An entry of `segments_info`: the pixels of one object, or of all stuff of a class."""

    id: SegmentId
    category_id: Number
    area: FiniteFloat | None = None
    bbox: Any = None
    iscrowd: FiniteFloat | None = None


class PanopticAnnotation(BaseModel):
    """An entry of `annotations`: the PNG of one image, and its segments."""

    image_id: Id
    file_name: str
    segments_info: list[Segment]


class PanopticCategory(Category):
    """An entry of `categories`; without `isthing`, it is one of things."""

    isthing: int = 1


class PanopticFile(BaseModel):
    """The contents of one file."""

    images: Annotated[list[Image], FailFast()]
    categories: list[PanopticCategory]
    annotations: Annotated[list[PanopticAnnotation], FailFast()]


class PanopticAnnotations:
    """The segments of one file's images.

    Attributes:
        objects: the segments of things as COCO's objects, and the file's images and categories.
        things: the numbers of the categories of things.

    Raises:
        Rejected: as `CocoAnnotations`; or an image has two annotations, or two segments of one id.
    """

    def __init__(self, contents: PanopticFile) -> None:
        self.things = {each.id for each in contents.categories if each.isthing}
        self._by_image: dict[Id, PanopticAnnotation] = {}
        for each in contents.annotations:
            if each.image_id in self._by_image:
                raise bad_annotations(f"image {each.image_id!r:.60} has two annotations")
            self._by_image[each.image_id] = each
            ids = Counter(segment.id for segment in each.segments_info)
            if twice := [number for number, count in ids.items() if count > 1]:
                where = f"of image {each.image_id!r:.60}"
                raise bad_annotations(f"two segments {where} have the id {twice[0]}")
        objects: list[Annotation] = []
        for each in contents.annotations:
            things = (one for one in each.segments_info if one.category_id in self.things)
            values = ({**segment.model_dump(), "image_id": each.image_id} for segment in things)
            objects += map(Annotation.model_validate, values)
        categories: list[Category] = [*contents.categories]
        self.objects = CocoAnnotations(
            CocoFile.model_construct(
                images=contents.images, categories=categories, annotations=objects
            )
        )

    @property
    def thing_classes(self) -> dict[str, int]:
        """The numbers of the classes of things by name."""
        classes = self.objects.classes.items()
        return {name: number for name, number in classes if number in self.things}

    def find_png(self, image: Image) -> str:
        """Returns the name of the PNG with an image's segments.

        Raises:
            Rejected: `bad_annotations`: no annotation names the image.
        """
        found = self._by_image.get(image.id)
        if found is None:
            raise Rejected("list", "bad_annotations", "no annotation has the id of the image")
        return found.file_name.replace("\\", "/")

    def count_masks(self, image: Image) -> int:
        """Returns the number of things in an image."""
        return len(self._list_things(image))

    def semantic_mask(self, image: Image, key: str) -> Segmentation:
        """Returns the semantic mask of an image.

        Args:
            image: the image.
            key: of the PNG.
        """
        names: dict[int, Label] = {number: name for name, number in self.objects.classes.items()}
        classes = (
            (each.id, names.get(each.category_id, each.category_id))
            for each in sorted(self._by_image[image.id].segments_info, key=lambda each: each.id)
        )
        return Segmentation(key, classes=tuple(classes))

    def list_objects(self, image: Image, key: str | None) -> list[Packable]:
        """Returns the boxes of things in an image, and their masks if a PNG's key is given."""
        given: list[Packable] = [self.objects.boxes(image)]
        if key is not None:
            things = self._list_things(image)
            given.append(Masks([FileIds(MaskFile(key, ""), (each.id,)) for each in things]))
        return given

    def _list_things(self, image: Image) -> Sequence[Segment]:
        """Returns the segments of things in the order of their boxes."""
        found = self._by_image.get(image.id)
        segments = found.segments_info if found else []
        things = (each for each in segments if each.category_id in self.things)
        return sorted(things, key=lambda each: each.id)


def read_panoptic(uri: str) -> PanopticAnnotations:
    """Reads a file of panoptic annotations.

    Raises:
        Rejected: it cannot be read, or has another form, such as that of objects.
    """
    try:
        contents = read_json(uri, MAX_JSON_BYTES, PanopticFile, "annotations")
    except Rejected:
        if SEGMENTS in read_sibling(uri, MAX_JSON_BYTES):
            raise
        why = (
            "nothing in it has segments_info, as panoptic masks have: if it has objects, set "
            "source.kind to coco, and source.split to its name"
        )
        raise bad_annotations(why) from None
    return PanopticAnnotations(contents)
