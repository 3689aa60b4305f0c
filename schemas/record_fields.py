"""The fields of a record, from which a convention's features are filled, whatever the source."""

from collections.abc import Mapping
from dataclasses import dataclass

from recordmill.schemas.features import Kind


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field: the kind of feature that it fills, and what it means."""

    kind: Kind
    meaning: str
    many: bool = False


_REFERENCE = {
    "label": RecordField("int64", "class id"),
    "label_text": RecordField("bytes", "class name, UTF-8"),
    "filename": RecordField("bytes", "last part of `key`: the file's name, unless the source sets the key"),
    "key": RecordField("bytes", "the record's name in the dataset, UTF-8: by default the path below the input"),
    "source_id": RecordField(
        "bytes", "the source's own id (COCO's of an image, that of an Example), else as `filename`"
    ),
    "split": RecordField("bytes", "the split's name"),
    "split_upper": RecordField("bytes", "the same in upper case"),
}
_PIXELS = {
    "encoded": RecordField("bytes", "the encoded image; with `images.store: raw` the pixels"),
    "format": RecordField("bytes", "its format, as `format_names` has it"),
    "height": RecordField("int64", "its rows of pixels"),
    "width": RecordField("int64", "its columns of pixels"),
    "channels": RecordField("int64", "channels of a pixel: 3, or 1 for grayscale"),
    "pixels_base64": RecordField("bytes", "with `images.store: raw`, the pixels in url-safe base64"),
}
_DIGESTS = {
    "sha256": RecordField("bytes", "SHA-256 of `encoded` in hex; where there is no image, of the file"),
    "file_sha256": RecordField("bytes", "SHA-256 of the source's bytes in hex, whatever was made of them"),
}
_MANY_LABELS = {
    "labels": RecordField("int64", "class ids of an image with several", many=True),
    "label_texts": RecordField("bytes", "their class names, UTF-8", many=True),
}
_BOXES = {
    "xmin": RecordField("float", "left sides of boxes, 0 to 1", many=True),
    "xmax": RecordField("float", "right sides", many=True),
    "ymin": RecordField("float", "upper sides", many=True),
    "ymax": RecordField("float", "lower sides", many=True),
    "bbox": RecordField("float", "the same as ymin, xmin, ymax, xmax of each box", many=True),
    "box_labels": RecordField("int64", "class ids of the boxes", many=True),
    "box_label_texts": RecordField("bytes", "class names of the boxes, UTF-8", many=True),
    "is_crowd": RecordField("int64", "1 for a group of objects, where the source says so", many=True),
    "area": RecordField("float", "area in pixels, where the source says it", many=True),
}

REFERENCE_FIELDS = frozenset(_REFERENCE)
"""The fields of every reference."""

PIXEL_FIELDS = frozenset(_PIXELS)
"""The fields that only images have."""

MANY_LABELS_FIELDS = frozenset(_MANY_LABELS)
"""The fields of images with several labels."""

BOX_FIELDS = frozenset(_BOXES)
"""The fields of images whose sources give boxes: lists of one value per box, four in `bbox`."""

IMAGE_FIELDS = frozenset((*_REFERENCE, *_PIXELS, *_DIGESTS))
"""The fields of every image; a source's own features cannot have these names."""

RECORD_FIELDS: Mapping[str, RecordField] = _PIXELS | _DIGESTS | _REFERENCE | _MANY_LABELS | _BOXES
"""All fields, in the order in which they are documented."""
