"""Masks of objects: which pixels of an image belong to each object that has a box."""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    PlacedObjects,
    Values,
)
from recordmill.annotations.boxes import list_classes
from recordmill.annotations.count_details import (
    DetailCount,
    describe_dropped,
    drop_undecoded,
    lose_details,
)
from recordmill.annotations.explain_losses import explain_faults
from recordmill.annotations.mask_header import explain_header, read_image_size, read_mask_size
from recordmill.annotations.shapes import Shape
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.features import RecordField
from recordmill.schemas.formatting import say_count
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordmill.annotations.mask_files import MaskFiles
    from recordmill.imaging.geometry import Box, Geometry
    from recordmill.imaging.masks.outline import Outline
    from recordmill.imaging.masks.rasterize import Mask
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

MOST_OBJECTS = 100
"""The objects of an image that common readers of masks keep."""

_FIELDS = {
    "masks": RecordField(
        "bytes",
        "the mask of each box: a PNG of the image's size in 8 bits of gray, 1 inside and 0 outside",
        many=True,
    )
}

_COUNT = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Masks:
    """The outlines of an image's objects, as its source gives them.

    Attributes:
        outlines: that of each box, in their order; None for an object without one.
    """

    kind: ClassVar[str] = "masks"

    outlines: "Sequence[Outline | None]"

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries."""
        from recordmill.imaging.masks.packing import pack_outlines

        listed = sum(outline is not None for outline in self.outlines)
        return _COUNT.pack(listed) + pack_outlines(self.outlines)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the outlines that a reference carries."""
        from recordmill.imaging.masks.packing import unpack_outlines

        return cls(unpack_outlines(packed[_COUNT.size :]))


class MaskKind(AnnotationKind):
    """Masks of the objects in boxes."""

    name: ClassVar[str] = Masks.kind
    unit: ClassVar[str] = "mask"
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    compared: ClassVar[frozenset[str]] = frozenset({"height", "width", "xmin", "box_labels"})
    loaded: ClassVar[Sequence[frozenset[str]]] = (frozenset({"masks"}),)
    loaded_type: ClassVar[str] = "uint8"
    follows_pixels: ClassVar[bool] = True

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the number of outlines; their classes are those of the boxes."""
        return ListedLabels((), *_COUNT.unpack_from(packed))

    def find_versions(self) -> Mapping[str, str]:
        """Returns the versions of what draws masks, and of what compresses them."""
        return {
            "pycocotools": metadata.version("pycocotools"),
            "masks.zlib": zlib.ZLIB_RUNTIME_VERSION,
        }

    def rename_files(self, packed: bytes, names: Mapping[str, str]) -> bytes:
        """Returns the outlines as if their files had other names."""
        from recordmill.imaging.masks.outline import FileOutline, MaskFile

        outlines = list(Masks.unpack(packed).outlines)
        for at, outline in enumerate(outlines):
            if isinstance(outline, FileOutline) and outline.file.key in names:
                outlines[at] = replace(outline, file=MaskFile(names[outline.file.key], ""))
        return Masks(outlines).pack()

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Draws the masks of the objects that are stored, one at a time.

        An object without a mask gets one of zeros. If `masks_required` is set, it is unwanted.

        Raises:
            Rejected: as for `MaskFiles.draw`.
        """
        # Imported here: only places of masks need libraries that draw.
        from recordmill.annotations.mask_files import MaskFiles

        outlines = Masks.unpack(packed).outlines
        if on.objects is None:
            return drop_undecoded(self.list_labels(packed).total)
        given = {at: 1 for at, outline in enumerate(outlines) if outline is not None}
        count, faults = DetailCount(on.objects, on.unwanted, _FAULTS), dict[int, str]()
        pictures, written, files = list[bytes](), 0, MaskFiles(on)
        boxes = dict(zip(on.objects.stored, on.objects.sides, strict=False))
        for at in on.objects.stored:
            drawn = _draw(outlines[at], on.geometry, on.objects, files, boxes.get(at))
            pictures.append(drawn.picture)
            if drawn.fault is None:
                written += 1
                continue
            faults[at] = drawn.fault
            count.drop(at, drawn.fault, given.get(at, 0))
        count.drop_with_boxes(given)
        outcome = count.outcome(written)
        outcome.files = files.read
        if len(pictures) > MOST_OBJECTS:
            outcome.counts.noted["crowded"] = 1
        unwanted = faults if on.settings.masks_required else {}
        return PlacedAnnotations({"masks": pictures}, [], outcome, unwanted=unwanted)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the masks of an image that is not written."""
        return lose_details(self.list_labels(packed).total, rejected)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many masks are faulty; None if they are not."""
        limits = settings.max_rejected.masks
        return explain_faults("masks", "max_rejected.masks", limits, lost, "correct these outlines")

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of masks that may end up in no record."""
        return contract.lost_masks

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields remarks on dropped or missing masks, and on images with many objects."""
        if unusable := describe_dropped(entry):
            fate = "have masks of zeros"
            if settings.masks_required:
                fate = "were dropped, since masks_required is set"
            yield f"Unusable: {unusable}. Their objects {fate}."
        if not entry.listed and settings.masks != "none":
            yield f"No object has an outline: with masks: {settings.masks}, all masks are 0."
        if crowded := (entry.noted or {}).get("crowded", 0):
            yield (
                f"{say_count(crowded, record, 'has')} more than {MOST_OBJECTS} objects: common "
                f"readers of masks keep {MOST_OBJECTS} of an image, or fail."
            )

    def find_tfds_type(
        self, field: str, classes: int, parts: Sequence[str], recipe: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Returns the type of images with one channel."""
        return {
            "pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
            "image": {
                "shape": {"dimensions": ["-1", "-1", "1"]},
                "dtype": "uint8",
                "encodingFormat": "png",
            },
        }

    def check(self, values: Values) -> str | None:
        """Returns the problem with the masks in an Example: one for each box, of the image's size.

        Only the headers of the masks are read.
        """
        masks = values.get("masks", ())
        for name in ("xmin", "box_labels"):
            if name in values and len(values[name]) != len(masks):
                return f"it has {len(masks)} masks for {len(values[name])} boxes"
        wanted, whose = read_image_size(values), "the record says"
        for number, mask in enumerate(masks, 1):
            if problem := explain_header(mask, f"mask {number}", wanted, whose):
                return problem
            if wanted is None:
                wanted, whose = read_mask_size(mask), "mask 1 has"
        return None

    def check_pixels(self, values: Values) -> str | None:
        """Returns the problem with the pixels of the masks in an Example: each is 0 or 1."""
        from recordmill.imaging.masks.mask_file import decode_mask
        from recordmill.imaging.masks.outline import OutlineError

        for number, mask in enumerate(values.get("masks", ()), 1):
            if problem := explain_header(mask, f"mask {number}"):
                return problem
            try:
                size = read_mask_size(mask) or (0, 0)
                most = int(decode_mask(mask, size).values.max(initial=0))
            except OutlineError as error:
                return f"mask {number} cannot be decoded: {error.detail}"
            if most > 1:
                return f"mask {number} has a pixel of {most}, and should have only 0 and 1"
        return None

    def as_array(
        self, values: Values, size: tuple[int, int], resized: tuple[int, int] | None = None
    ) -> "NDArray[np.uint8]":
        """Returns masks as uint8 of shape (boxes, height, width), 1 inside and 0 outside.

        They are resized with their image, by nearest pixels.
        """
        import numpy as np

        from recordmill.imaging.masks.mask_file import decode_mask
        from recordmill.imaging.masks.rasterize import resize_values

        shape = resized or size
        masks = np.zeros((len(values["masks"]), *shape), np.uint8)
        for mask, encoded in zip(masks, values["masks"], strict=True):
            mask[:] = resize_values(decode_mask(encoded, size[::-1]).values, shape)
        return masks

    def trace(self, values: Values, names: Mapping[int, str]) -> list[Shape]:
        """Returns the masks in an Example as shapes."""
        masks = values.get("masks") or ()
        classes = list_classes(values, names, len(masks))
        return [
            Shape(class_id, class_name, region=mask)
            for mask, (class_id, class_name) in zip(masks, classes, strict=True)
        ]


MASKS = MaskKind()


class _DrawnMask(NamedTuple):
    """A mask as it is stored; `fault` says why it is of zeros, None if it is not."""

    picture: bytes
    fault: str | None = None


_FAULTS = frozenset(
    {
        *("bad_polygon", "bad_rle", "bad_mask", "mask_size", "empty_mask"),
        *("unknown_mask_value", "no_mask_file", "other_object"),
    }
)
"""Why masks are dropped, if no setting asks for it."""


def _draw(
    outline: "Outline | None",
    geometry: "Geometry",
    objects: PlacedObjects,
    files: "MaskFiles",
    box: "Box | None",
) -> _DrawnMask:
    """Draws the mask of an object on the stored image."""
    from recordmill.imaging.masks.outline import (
        FaultyOutline,
        FileOutline,
        NumberedObject,
        OutlineError,
    )
    from recordmill.imaging.masks.rasterize import is_in_box, place_outline

    if outline is None:
        return _DrawnMask(_draw_nothing(geometry.stored_size), "no_mask")
    if isinstance(outline, FaultyOutline):
        return _DrawnMask(_draw_nothing(geometry.stored_size), outline.reason)
    try:
        if isinstance(outline, FileOutline):
            mask = files.draw(outline, objects.drawn_on)
        else:
            mask = place_outline(outline, geometry, objects.drawn_on)
    except OutlineError as error:
        return _DrawnMask(_draw_nothing(geometry.stored_size), error.reason)
    if isinstance(outline, NumberedObject) and box and not is_in_box(mask, box):
        return _DrawnMask(_draw_nothing(geometry.stored_size), "other_object")
    if mask.any():
        return _DrawnMask(_encode(mask))
    fault = "empty_mask" if geometry.resize is None else "resized_away"
    return _DrawnMask(_draw_nothing(geometry.stored_size), fault)


def _encode(mask: "Mask") -> bytes:
    from recordmill.imaging.masks.mask_file import encode_values

    return encode_values(mask)


@lru_cache(8)
def _draw_nothing(size: tuple[int, int]) -> bytes:
    """Returns a mask of zeros; `size` is its width and height."""
    import numpy as np

    return _encode(np.zeros(size[::-1], np.uint8))
