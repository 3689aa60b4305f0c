"""The elements of the steps: an image on its way from bytes to an Example, or why it is rejected.

A DoFn of your own between two steps may drop elements, or change them with `dataclasses.replace`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apache_beam import coders

from recordmill.imaging import PreparedImage
from recordmill.schemas.image_ref import Annotations, ImageRef, Pixels, SourceFile
from recordmill.transforms.records.convert_image import ConvertedImage


@dataclass(frozen=True, slots=True)
class RawImage:
    """An image as it was read.

    Attributes:
        key: its name in the dataset, which decides the split.
        data: the bytes of its file.
        label: the name of its class, or the number that a `LabelMap` gives the class; None without
            one.
        features: further values by the field of the convention that stores them.
        group: images of one group get into one split; empty for the image alone.
        split: its split if that is decided already; empty: its hash decides.
        annotations: its annotations by kind, as `recordmill.pack_annotations` packs them.
        pixels: decoded pixels to store in place of `data`: height, width, 1 or 3 channels, red
            first; None to decode `data`.
        reference: what the main job listed; None in other pipelines.
        files: the files that annotations are read from when the record is made.
    """

    key: str
    data: bytes
    label: str | int | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    split: str = ""
    annotations: Annotations = ()
    pixels: Pixels | None = field(default=None, compare=False)
    reference: ImageRef | None = field(default=None, repr=False)
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image that is ready to be stored.

    Attributes:
        key: as in `RawImage`.
        image: the stored bytes, with their format, height, width and channels; None if the dataset
            holds no images.
        data: the bytes of its file, which give the record's digests.
        label: as in `RawImage`.
        features: as in `RawImage`, and what functions have computed.
        group: as in `RawImage`.
        split: as in `RawImage`.
        annotations: as in `RawImage`.
        reference: as in `RawImage`.
        files: as in `RawImage`.
    """

    key: str
    image: PreparedImage | None
    data: bytes
    label: str | int | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    split: str = ""
    annotations: Annotations = ()
    reference: ImageRef | None = field(default=None, repr=False)
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltExample:
    """A record that is ready to be written.

    Attributes:
        key: as in `RawImage`.
        group: as in `RawImage`.
        record: the serialized `tf.train.Example`.
        split: as in `RawImage`.
        reference: as in `RawImage`.
        converted: what the main job counts of it; None in other pipelines.
    """

    key: str
    group: str
    record: bytes
    split: str = ""
    reference: ImageRef | None = field(default=None, repr=False)
    converted: ConvertedImage | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RejectedImage:
    """An image that cannot be stored.

    Attributes:
        key: the image's key.
        reason: a short code: docs/settings.md lists all of them.
        detail: one line for people, the same on every machine.
    """

    key: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class RejectedReference(RejectedImage):
    """A reference of the main job that gives no record.

    Attributes:
        reference: the reference.
        split: its split.
        error: a `Rejected`, or a `FunctionError` that fails the run.
    """

    reference: ImageRef
    split: str
    error: Exception


# Beam's own coder for dataclasses knows their class only in the process that built the pipeline.
for _type in (RawImage, EncodedImage, BuiltExample, RejectedImage, RejectedReference):
    coders.registry.register_coder(_type, coders.PickleCoder)
