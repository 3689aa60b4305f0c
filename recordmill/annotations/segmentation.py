"""Semantic masks: one map of class ids for each image, from a file of its own."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    Label,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    Values,
)
from recordmill.annotations.count_details import drop_undecoded, lose_details
from recordmill.annotations.explain_losses import explain_excess
from recordmill.annotations.mask_header import (
    MOST_BITS,
    explain_header,
    read_image_size,
    read_mask_header,
)
from recordmill.annotations.shapes import Shape
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.features import RecordField
from recordmill.schemas.formatting import say_count
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.rejection import LeftOut, Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordmill.annotations.mask_files import MaskFiles
    from recordmill.imaging.geometry import Frame, Geometry
    from recordmill.imaging.masks.mask_file import MaskValues
    from recordmill.imaging.masks.mask_values import Ids
    from recordmill.imaging.masks.outline import OutlineError
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

IGNORED_ID = 255
"""The id of pixels that belong to no class, and of those where an image is padded."""

IGNORED_ID_16 = 65_535
"""The same where masks have 16 bits, in which 255 may be a class."""

_BACKGROUND_ID = 0

_BACKGROUNDS = frozenset(
    {"background", "bg", "none", "other", "unknown", "unlabeled", "unlabelled", "unused", "void"}
)
"""Names of the id 0 where it stands for no class."""

_FIELDS = {
    "segmentation": RecordField(
        "bytes",
        "the semantic mask: a PNG of the image's size in 8 bits of gray, or in 16 with `masks: "
        "png16`, whose values are ids",
    ),
    "segmentation_format": RecordField("bytes", "the format of the semantic mask: `png`"),
}

_LOSSY = (".jpg", ".jpeg")
"""Extensions of masks whose ids are not those that were written."""

_FEW_IDS = 8
"""Masks with smooth borders have more values."""

_FAULTS = ("bad_mask", "mask_size", "no_mask_file", "unknown_mask_value")
"""The reasons for which an image is rejected because of its semantic mask."""


@dataclass(frozen=True, slots=True)
class Segmentation:
    """The semantic mask of an image, as its source gives it.

    Attributes:
        file: the key of the mask's file, which is one of the reference's files.
        threshold: the smallest value that becomes 1 if the mask has two levels, and others 0; None
            if values are ids.
        colors: the colors of the ids from 0, as `decode_mask` gives them; empty if values are ids.
        classes: the class of each value, whose id is that of the label map; other values than 0,
            which is ignored, are unknown. Empty if the file has ids or colors.
        has_palette: whether ids are indices of Pascal VOC's palette, which the file may have as
            colors.
    """

    kind: ClassVar[str] = "segmentation"

    file: str
    threshold: int | None = None
    colors: tuple[int, ...] = ()
    classes: tuple[tuple[int, Label], ...] = ()
    has_palette: bool = False

    @property
    def takes_colors(self) -> bool:
        """Whether its values may be colors."""
        return bool(self.colors or self.classes)

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries."""
        packed: list[Any] = [self.file, self.threshold, list(self.colors)]
        if self.classes or self.has_palette:
            packed.append(self.classes)
        if self.has_palette:
            packed.append(True)
        return as_kept_json(packed)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the semantic mask that a reference carries."""
        file, threshold, colors, *rest = orjson.loads(packed)
        pairs = tuple(map(tuple, chain.from_iterable(rest[:1])))
        return cls(file, threshold, tuple(colors), pairs, has_palette=len(rest) > 1)

    def find_class_ids(self, values: "MaskValues", label_map: LabelMap, ignored: int) -> "Ids":
        """Returns the id of the class of each pixel.

        Args:
            values: the pixels of the file.
            label_map: class ids.
            ignored: the id of pixels of no class, or of one that `labels` leaves out.

        Raises:
            OutlineError: `unknown_mask_value`: a value has no class, or a class no id that fits.
        """
        from recordmill.imaging.masks.mask_values import apply_table

        table = {0: ignored}
        for value, label in self.classes:
            try:
                _, number = find_class(label, label_map)
            except LeftOut:
                continue
            except Rejected as rejected:
                if isinstance(label, str) and label_map.leaves_out(label):
                    continue
                raise _bad_segment(value, rejected.detail) from None
            if number is None or number >= ignored:
                more = "; --set masks=png16 stores larger ones" if ignored == IGNORED_ID else ""
                raise _bad_segment(value, f"the id of its class is {number}{more}")
            table[value] = number
        table.update({value: ignored for value, _ in self.classes if value not in table})
        return apply_table(values, table)

    def find_ids(self, values: "MaskValues", most: int = IGNORED_ID) -> "Ids":
        """Returns the id of each pixel of the mask.

        Args:
            values: the pixels of the file.
            most: the largest id.

        Raises:
            OutlineError: `unknown_mask_value`: a value is over `most`, or is a color that is not in
                the table or whose id is `most`, which pixels of no class have.
        """
        from recordmill.imaging.masks.mask_values import (
            apply_table,
            check_ids,
            read_gray,
            split_levels,
        )

        if self.colors:
            ids = apply_table(values, {color: at for at, color in enumerate(self.colors)})
            return check_ids(ids, most - 1)
        gray = read_gray(values)
        if self.threshold is not None:
            return split_levels(gray, self.threshold)
        return check_ids(gray, most)


class SegmentationKind(AnnotationKind):
    """Semantic masks: an image has one. If it is faulty, the image is rejected."""

    name: ClassVar[str] = Segmentation.kind
    unit: ClassVar[str] = "semantic mask"
    stored_by: ClassVar[Sequence[str]] = ("deeplab", "tfds")
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    id_images: ClassVar[frozenset[str]] = frozenset({"segmentation"})
    compared: ClassVar[frozenset[str]] = frozenset({"height", "width"})
    loaded: ClassVar[Sequence[frozenset[str]]] = (frozenset({"segmentation"}),)
    loaded_type: ClassVar[str] = "uint8"
    loaded_rank: ClassVar[Literal[2, 3]] = 2
    is_always_loaded: ClassVar[bool] = True
    follows_pixels: ClassVar[bool] = True

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns that there is one mask; its file says which classes it has."""
        return ListedLabels((), 1)

    def find_versions(self) -> Mapping[str, str]:
        """Returns the version of the library that compresses the masks."""
        return {"masks.zlib": zlib.ZLIB_RUNTIME_VERSION}

    def rename_files(self, packed: bytes, names: Mapping[str, str]) -> bytes:
        """Returns the mask as if its file had another name."""
        given = Segmentation.unpack(packed)
        return replace(given, file=names.get(given.file, given.file)).pack()

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Moves the ids to the stored image; padding gets the id 255, or 65,535 in 16 bits.

        Raises:
            Rejected: stage `encode`: `no_mask_file`, `bad_mask`, `mask_size`, or
                `unknown_mask_value`; or as for `MaskFiles.draw`.
        """
        if on.image is None:
            return drop_undecoded(1)
        # Imported here: only places of masks need libraries that draw.
        from recordmill.annotations.mask_files import MaskFiles
        from recordmill.imaging.masks.mask_file import encode_values
        from recordmill.imaging.masks.outline import OutlineError

        given, files = Segmentation.unpack(packed), MaskFiles(on)
        try:
            ids = _place_ids(given, files, on)
        except OutlineError as error:
            raise Rejected("encode", error.reason, f"{given.file}: {error.detail}") from None
        fields = {"segmentation": encode_values(ids), "segmentation_format": b"png"}
        outcome = AnnotationOutcome(AnnotationCounts(listed=1, written=1), files=files.read)
        outcome.counts.noted.update(_find_oddities(ids, given, on))
        may_be_levels = given.threshold is None and not given.takes_colors
        if may_be_levels and _has_two_levels(ids, on.geometry):
            outcome.counts.noted["two_levels"] = 1
        return PlacedAnnotations(fields, [], outcome)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the mask of an image that is not written, by its own fault if it has one."""
        if rejected.reason not in _FAULTS:
            return lose_details(1, rejected)
        counts = AnnotationCounts(listed=1)
        counts.dropped[rejected.reason] = 1
        return AnnotationOutcome(counts)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many semantic masks are faulty; None if they are not."""
        faulty = {why: lost.counts.dropped[why] for why in _FAULTS if lost.counts.dropped[why]}
        shown = ", ".join(f"{why}: {count:,}" for why, count in faulty.items())
        examples = [lost.examples[why] for why in faulty if why in lost.examples]
        such = "".join(f", such as {example}" for example in examples[:1])
        return explain_excess(
            "semantic masks",
            "max_rejected.segmentation",
            settings.max_rejected.segmentation,
            sum(faulty.values()),
            lost.counts.written,
            f"faulty ({shown}){such}",
            "correct these masks",
        )

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of semantic masks that may end up in no record."""
        return contract.lost_segmentation

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields remarks on ids without a name or from JPEG, and on masks without a class."""
        noted = entry.noted or {}
        if unnamed := noted.get("unnamed_ids", 0):
            yield (
                f"{say_count(unnamed, self.unit, 'has')} ids of classes without a name: name them "
                f"in {settings.source.classes_from}, or they are not in the label map."
            )
        if lossy := noted.get("lossy_ids", 0):
            yield (
                f"{say_count(lossy, self.unit, 'is')} in JPEG, which changes ids: store masks as "
                "PNG, or set source.mask_threshold if they have two levels."
            )
        if void := noted.get("without_class", 0):
            yield (
                f"{say_count(void, self.unit, 'has')} no pixel of a class in labels.classes: all "
                "pixels have the ignored id."
            )
        if entry.written and noted.get("all_zero", 0) == entry.written:
            yield (
                f"{say_count(entry.written, self.unit, 'is')} 0 everywhere, and there are no "
                "others: lower source.mask_threshold, or remove it if values are ids."
            )
        levels = noted.get("two_levels", 0)
        if 2 * levels > entry.written:  # few may have one object of void pixels
            written = say_count(entry.written, self.unit, "has")
            yield (
                f"{levels:,} of {written} two levels, 0 and 255: readers ignore 255, so set "
                "source.mask_threshold=128 to store 0 and 1."
            )

    def find_tfds_type(
        self, field: str, classes: int, parts: Sequence[str], recipe: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Returns the type of masks whose ids may have names; their format is a text."""
        if field != "segmentation":
            return None
        return {
            "pythonClassName": "tensorflow_datasets.core.features.labeled_image.LabeledImage",
            "image": {
                "shape": {"dimensions": ["-1", "-1", "1"]},
                "dtype": self.find_loaded_type(recipe),
                "encodingFormat": "png",
                "useColormap": True,
                "label": {"numClasses": str(classes)} if classes else {},
            },
        }

    def check(self, values: Values) -> str | None:
        """Returns the problem with the semantic mask in an Example: it has the image's size.

        Only its header is read.
        """
        (mask,) = values.get("segmentation") or (b"",)
        size = read_image_size(values)
        return explain_header(mask, "its semantic mask", size, most_bits=MOST_BITS)

    def check_pixels(self, values: Values) -> str | None:
        """Returns the problem with the pixels of the semantic mask: they can be decoded."""
        from recordmill.imaging.masks.outline import OutlineError

        try:
            _decode(values)
        except OutlineError as error:
            return f"its semantic mask cannot be decoded: {error.detail}"
        return None

    def find_loaded_type(self, recipe: Mapping[str, Any]) -> str:
        """Returns uint16 if masks have 16 bits."""
        return "uint16" if recipe.get("masks") == "png16" else self.loaded_type

    def as_array(
        self, values: Values, size: tuple[int, int], resized: tuple[int, int] | None = None
    ) -> "NDArray[Any]":
        """Returns the id of each pixel as uint8 of shape (height, width).

        Masks of 16 bits become uint16. Ids are resized with their image, by nearest pixels.
        """
        import numpy as np

        from recordmill.imaging.masks.mask_file import decode_mask
        from recordmill.imaging.masks.rasterize import resize_values

        (mask,) = values["segmentation"]
        header = read_mask_header(mask)
        is_wide = header is not None and header.bits == MOST_BITS
        ids = decode_mask(mask, size[::-1]).values.astype(np.uint16 if is_wide else np.uint8)
        return resize_values(ids, resized or size)

    def trace(self, values: Values, names: Mapping[int, str]) -> list[Shape]:
        """Returns one shape for each id in the semantic mask.

        The id 255, or 65,535 in 16 bits, has none, and neither has 0 unless it has the name of a
        class, since it is the background in most collections.
        """
        import numpy as np

        from recordmill.imaging.masks.mask_file import encode_values

        if not values.get("segmentation"):
            return []
        ids = _decode(values)
        header = read_mask_header(values["segmentation"][0])
        ignored = _ignored_id(header is not None and header.bits > 8)
        found = {*np.unique(ids).tolist()} - {ignored}
        if names.get(_BACKGROUND_ID, "void").lower().strip("_ ") in _BACKGROUNDS:
            found.discard(_BACKGROUND_ID)
        regions = ((each, (ids == each).astype(np.uint8)) for each in sorted(found))
        return [
            Shape(each, names.get(each), region=encode_values(region)) for each, region in regions
        ]


SEGMENTATION = SegmentationKind()


def _place_ids(
    given: Segmentation, files: "MaskFiles", on: AnnotatedImage
) -> "NDArray[np.uint8] | NDArray[np.uint16]":
    """Returns the ids of the stored image's pixels: an array of shape (height, width).

    Raises:
        OutlineError: the file, or a value in it, is faulty.
    """
    import numpy as np

    from recordmill.imaging.masks.outline import OutlineError
    from recordmill.imaging.masks.rasterize import place_values

    drawn_on: Frame = "displayed"
    if on.settings.boxes.drawn_on == "stored":
        drawn_on = "stored"
    if on.objects is not None:
        drawn_on = on.objects.drawn_on
    values, frame = files.find_values(given.file, drawn_on, given.has_palette)
    is_wide = on.settings.masks == "png16"
    # Ids of 16 bits may be spread over red and green.
    if files.has_colors(given.file) and not (given.takes_colors or is_wide):
        detail = "the mask has colors: name a table of them in source.mask_colors"
        raise OutlineError("unknown_mask_value", detail)
    ignored = _ignored_id(is_wide)
    if given.classes:
        ids = given.find_class_ids(values, on.label_map, ignored)
    else:
        ids = given.find_ids(values, ignored)
        if given.has_palette:  # 255 is void, also where masks of 16 bits are stored
            ids = np.where(ids == IGNORED_ID, ignored, ids)
        if on.settings.source.names_pixel_ids and on.label_map.renamed:
            ids = _rename_ids(ids, on.label_map, ignored)
    placed = place_values(ids, on.geometry, frame, padding=ignored)
    if is_wide:
        return placed.astype(np.uint16)
    return placed.astype(np.uint8)


def _find_oddities(
    ids: "NDArray[np.uint8] | NDArray[np.uint16]", given: Segmentation, on: AnnotatedImage
) -> Iterator[str]:
    """Yields `all_zero` for a threshold that no value reaches, and other notes on the ids.

    They are `without_class` if `labels.classes` leaves no pixel, `lossy_ids` and `unnamed_ids`.
    """
    import numpy as np

    if given.threshold is not None and not ids.any():
        yield "all_zero"
    if given.threshold is None and given.file.lower().endswith(_LOSSY):
        yield "lossy_ids"
    ignored = _ignored_id(on.settings.masks == "png16")
    if given.classes and on.label_map.is_chosen and (ids == ignored).all():
        yield "without_class"
    named = on.label_map.ids.values()
    if on.settings.source.names_pixel_ids and named:
        found = np.flatnonzero(np.bincount(ids.ravel()))
        if {*found.tolist()} - {*named, ignored}:
            yield "unnamed_ids"


def _has_two_levels(ids: "NDArray[np.uint8] | NDArray[np.uint16]", geometry: "Geometry") -> bool:
    """Tells if ids look like the two levels of a mask of one object: readers ignore 255."""
    import numpy as np

    from recordmill.imaging.masks.mask_values import find_levels

    if geometry.resize is not None:
        left, top, right, bottom = geometry.find_shown()[1]
        ids = ids[top:bottom, left:right]
    if ids.max(initial=0) != IGNORED_ID:
        return False
    levels = find_levels(ids.astype(np.int32))
    if levels is None or (levels.low, levels.high) != (0, IGNORED_ID):
        return False
    counts = np.bincount(ids.ravel())
    # Few values between them may be those of thin objects.
    has_borders = len(np.flatnonzero(counts)) > _FEW_IDS
    return levels.is_exact or (has_borders and 2 * int(counts[0] + counts[-1]) > ids.size)


def _rename_ids(ids: "Ids", label_map: LabelMap, ignored: int) -> "Ids":
    """Returns the ids after `labels.rename`; pixels of a class that it drops are ignored."""
    import numpy as np

    table = np.arange(ignored + 1, dtype=ids.dtype)
    for old, number in label_map.numbers.items():
        new = label_map.renamed.get(old, old)
        if number < ignored:
            table[number] = ignored if new is None else label_map.ids[new]
    renamed: Ids = table[ids]
    return renamed


def _bad_segment(value: int, detail: str) -> "OutlineError":
    from recordmill.imaging.masks.outline import OutlineError

    return OutlineError("unknown_mask_value", f"segment {value}: {detail}")


def _ignored_id(is_wide: bool) -> int:
    """Returns the id that readers ignore, in masks of 16 bits if `is_wide`."""
    return IGNORED_ID_16 if is_wide else IGNORED_ID


def _decode(values: Values) -> "MaskValues":
    """Returns the ids in an Example.

    Raises:
        OutlineError: its semantic mask cannot be decoded.
    """
    from recordmill.imaging.masks.mask_file import decode_mask

    (mask,) = values["segmentation"]
    header = read_mask_header(mask)
    return decode_mask(mask, header.size if header else (0, 0)).values
