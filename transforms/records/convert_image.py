"""Converts one reference to a record and its row in the sidecar, or to a row that says why not."""

import base64
import hashlib
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from recordmill.annotations.annotation import AnnotatedImage, PlacedAnnotations
from recordmill.annotations.kinds import KINDS
from recordmill.imaging import PreparedImage, prepare_image
from recordmill.schemas.conventions import Convention
from recordmill.schemas.corrections import WITHOUT_CORRECTIONS, CorrectionFate, Corrections
from recordmill.schemas.dataset.record_index import UNKNOWN, RowOrigin
from recordmill.schemas.dataset.side_files import RejectedRow, Row, SidecarRow
from recordmill.schemas.digests import digest_parts
from recordmill.schemas.features import STORED_IMAGE
from recordmill.schemas.image_ref import UNKNOWN_SIZE, Content, ImageRef, Notice
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout, KeepSettings
from recordmill.transforms.inputs.tables.other_files import read_other_file
from recordmill.transforms.records.annotations import (
    Outcomes,
    describe_details,
    describe_outcomes,
    fill_fields,
    lose_annotations,
    read_outcomes,
    resolve_annotations,
)
from recordmill.transforms.records.earlier_datasets import EarlierRecord
from recordmill.transforms.records.image_functions import check_kept, compute_features, make_hooks


def image_record(image: PreparedImage, convention: Convention, sha256: str) -> dict[str, Any]:
    """Returns the fields of an image that a convention's features are filled from.

    `sha256` is the stored image's, in hex.

    Returns:
        `encoded` (bytes), `format` (as the convention names it), `height`, `width`, `channels` (of
        the encoded image), `sha256` (of `encoded`, in hex); and, if the convention asks for it,
        `pixels_base64` (url-safe base64 of `encoded`). Strings are UTF-8 bytes.
    """
    fields = {
        "encoded": image.encoded,
        "format": convention.name_format(image.format).encode(),
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        "sha256": sha256.encode(),
    }
    if "pixels_base64" in convention.fields:
        fields["pixels_base64"] = base64.urlsafe_b64encode(image.encoded)
    return fields


def reference_record(
    ref: ImageRef, class_name: str | None, class_id: int | None, split: str = ""
) -> dict[str, Any]:
    """Returns the fields that need no image.

    They are `schemas.features.REFERENCE_FIELDS` and the reference's own features.

    Returns:
        `label` (id) and `label_text` (name; both None without a label), `filename` (base name),
        `source_id` (the same, unless the source gives one), `key`, `split`, `split_upper` (the same
        in upper case), and the reference's own features. Strings are UTF-8 bytes.
    """
    filename = ref.key.rpartition("/")[2].encode()
    fields: dict[str, Any] = {
        "label": class_id,
        "label_text": None if class_name is None else class_name.encode(),
        "filename": filename,
        "source_id": filename,
        "key": ref.key.encode(),
        "split": split.encode(),
        "split_upper": split.upper().encode(),
    }
    if ref.features:
        fields.update((key, as_bytes(value)) for key, value in orjson.loads(ref.features).items())
    return fields


def as_bytes(value: Any) -> Any:
    """Returns strings as UTF-8 for Examples; all other values unchanged."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {key: as_bytes(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_bytes(each) for each in value]
    return value


WITHOUT_FILTERS = KeepSettings()
"""Second images are kept whenever their images are."""

WITHOUT_A_FILE = frozenset({"not_a_file", "outside_root", "vanished"})
"""Rejection reasons for images without a file. Their size is that of the file that lists them."""


@dataclass(slots=True)
class ConvertedImage:
    """The outcome of one reference.

    Attributes:
        record: the serialized Example; None if the image was rejected or left out.
        row: its row in the sidecar, without the place in the file; nothing in it depends on place
            or time.
        annotations: the outcome of its annotations, by kind; empty if its source gives none.
        missing: keys of optional features that the record lacks.
        has_position: whether the stored image has a GPS position in its metadata.
        seconds: how long it took to decode and encode.
        is_reused: whether the image was taken from an earlier dataset.
        is_disputed: whether earlier datasets disagreed about it.
        damaged: files of earlier datasets that were found damaged while looking for it.
        made_from: the digests of its source and of its reference.
        excluded: the lines of `exclude` that match it; see `Exclusions.find`.
        correction: what happened to its line of `corrections`; None without one or without a
            record.
    """

    record: bytes | None
    row: Row
    annotations: Outcomes = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    has_position: bool = False
    seconds: float = 0.0
    is_reused: bool = False
    is_disputed: bool = False
    damaged: tuple[str, ...] = ()
    made_from: RowOrigin = UNKNOWN
    excluded: tuple[str, ...] = ()
    correction: CorrectionFate | None = None

    def size(self) -> int:
        """Returns bytes that it takes in memory, without its row."""
        return len(self.record or b"")

    def origin(self) -> RowOrigin:
        """Returns what a later run needs besides the row in order to copy the record."""
        if self.record is None or not (self.missing or self.has_position or self.annotations):
            return self.made_from
        counts = {
            "missing": self.missing,
            "has_position": self.has_position,
            "annotations": describe_details(self.annotations),
        }
        return self.made_from._replace(counts={key: each for key, each in counts.items() if each})


@dataclass(slots=True)
class LoadedImage:
    """A reference with its content.

    Attributes:
        ref: the reference.
        split: the split that it goes to, for conventions that store it.
        content: its content.
        class_name: its class; None for an image without one.
        class_id: the id of its class, or None.
        sha256: the hex digest of its bytes, if it had to be computed; else the empty string.
        size: the number of its bytes.
        listed_class: the class that its source gives, or the empty name, if it was corrected.
    """

    ref: ImageRef
    split: str
    content: Content
    class_name: str | None
    class_id: int | None
    sha256: str
    size: int
    listed_class: str | None = None

    def digest(self) -> str:
        """Returns the hex digest of its bytes."""
        return self.sha256 or hashlib.sha256(self.content.data).hexdigest()


def convert_image(
    ref: ImageRef,
    layout: ExampleLayout,
    label_map: LabelMap,
    decoding: AbstractContextManager[Any],
    split: str = "",
    earlier: EarlierRecord | None = None,
    origin: RowOrigin = UNKNOWN,
    corrections: Corrections = WITHOUT_CORRECTIONS,
    twice: bool = False,
) -> ConvertedImage:
    """Reads, checks, re-encodes and serializes one image; a bad one gives a rejected row.

    Args:
        ref: the image, or something that was rejected when it was listed.
        layout: what the dataset and its Examples are.
        label_map: class ids.
        decoding: entered for work on a processor, but not while waiting for bytes.
        split: the split that it goes to, for conventions that store it.
        earlier: the image in an earlier dataset. If the source is unchanged, its row and record are
            copied, or the stored image is used again.
        origin: the digests of the source and of the reference; by default, later runs cannot reuse
            the image.
        corrections: other classes of some images.
        twice: whether to call functions that decide what is stored twice, and fail if their answers
            differ.
    """
    if earlier is not None and earlier.is_current and earlier.is_same:
        return copy_earlier(ref, earlier, label_map, origin.source)
    made_from = loaded = None
    try:
        loaded = load_image(ref, layout.settings, label_map, split, earlier, corrections)
        content = loaded.content
        made_from = origin
        if content.label is not None or content.fields:
            made_from = UNKNOWN
        is_unchanged = earlier is not None and loaded.sha256 == earlier.row.sha256
        if earlier is not None and is_unchanged and earlier.is_same and made_from.reference:
            return copy_earlier(ref, earlier, label_map, made_from.source)
        is_reused = is_unchanged and content.image is content.data
        with decoding:
            began = time.perf_counter()
            if earlier is not None and is_reused:
                image: PreparedImage | None = earlier.as_prepared(layout.settings.images)
                computed: dict[str, Any] = {}
            else:
                image, computed = prepare_loaded(loaded, layout, twice)
            seconds = time.perf_counter() - began
        converted = build_record(loaded, image, computed, layout, label_map)
    except Rejected as rejected:
        converted = reject_image(ref, rejected, label_map, loaded)
        if rejected.stage not in ("decode", "encode"):  # reading may succeed the next time
            return converted
    else:
        converted.seconds, converted.is_reused = seconds, is_reused
    # The label in the source was not read, so 0: the source must be read again to know whether it
    # has changed.
    converted.made_from = made_from or RowOrigin(0, origin.reference)
    converted.is_disputed = earlier is not None and earlier.is_disputed
    return converted


def copy_earlier(
    ref: ImageRef, earlier: EarlierRecord, label_map: LabelMap, source: int
) -> ConvertedImage:
    """Returns the outcome for an image whose source, reference and settings have not changed.

    `source` is the new digest of its source.
    """
    row, counts = earlier.row, earlier.origin.counts or {}
    if isinstance(row, RejectedRow):
        why: Rejected
        if row.left_out:
            why = LeftOut(row.left_out, row.detail)
        else:
            why = Rejected(row.stage, str(row.reason), row.detail)
        why.sha256 = row.sha256 or ""
        copied = reject_image(ref, why, label_map)
    else:
        copied = ConvertedImage(earlier.record, row, is_reused=True)
        copied.missing, copied.has_position = (
            tuple(counts.get("missing", ())),
            counts.get("has_position", False),
        )
        copied.annotations = read_outcomes(row, counts.get("annotations", {}))
    copied.made_from, copied.is_disputed = (
        RowOrigin(source, earlier.origin.reference),
        earlier.is_disputed,
    )
    return copied


def reject_image(
    ref: ImageRef, rejected: Rejected, label_map: LabelMap, loaded: LoadedImage | None = None
) -> ConvertedImage:
    """Returns the outcome for an image that is rejected or left out.

    `loaded` is the image, if it was read.
    """
    size = ref.image_bytes
    if rejected.stage == "list" and rejected.reason in WITHOUT_A_FILE:
        size = UNKNOWN_SIZE
    left_out = None
    if isinstance(rejected, LeftOut):
        left_out = rejected.reason
    annotations = lose_annotations(ref, rejected, label_map)
    row = RejectedRow(
        key=ref.key,
        spelling=ref.spelling or None,
        bytes=size if size >= 0 else None,
        sha256=loaded.digest() if loaded else rejected.sha256 or None,
        class_name=ref.label or None,
        stage=rejected.stage,
        reason=None if left_out else rejected.reason,
        detail=rejected.detail,
        left_out=left_out,
        annotations=describe_outcomes(annotations),
    )
    return ConvertedImage(None, row, annotations)


def load_image(
    ref: ImageRef,
    settings: DatasetSettings,
    label_map: LabelMap,
    split: str = "",
    earlier: EarlierRecord | None = None,
    corrections: Corrections = WITHOUT_CORRECTIONS,
) -> LoadedImage:
    """Reads an image, checks its class and its digest, and corrects the class.

    Nothing is read if an earlier record replaces the source: the content is then the stored image,
    or empty if that differs from the source. For any other earlier record, the digest is computed
    in order to compare it.

    Raises:
        Rejected: it was rejected when it was listed, has no class id, or cannot be read.
    """
    if isinstance(ref, Notice):
        raise Rejected("list", ref.reason, ref.detail)
    class_name, class_id = find_class(ref.label, label_map)
    if earlier is not None and earlier.replaces_source(ref):
        row = earlier.written
        data = b"" if row.changes else earlier.encoded
        content, digest, size = Content(data, data), row.sha256, row.bytes
    else:
        content = settings.source.read(ref, settings.images.max_bytes)
        digest = ""
        if ref.sha256 or earlier is not None or ref.key in corrections.by_key:
            digest = hashlib.sha256(content.data).hexdigest()
        size = len(content.data)
    if ref.sha256 and digest != ref.sha256.lower():
        raise Rejected("read", "wrong_sha256", f"sha256 is {digest}, not {ref.sha256}", digest)
    loaded = LoadedImage(ref, split, content, class_name, class_id, digest, size)
    if content.label is not None:
        try:
            loaded.class_name, loaded.class_id = find_class(content.label, label_map)
        except Rejected as rejected:
            rejected.sha256 = loaded.digest()
            raise
    _correct(loaded, corrections, label_map)
    return loaded


def _correct(loaded: LoadedImage, corrections: Corrections, label_map: LabelMap) -> None:
    """Gives an image the class of its line in `corrections`, if the line is for the same bytes."""
    key = loaded.ref.key
    if corrections.judge(key, loaded.sha256) != "corrected":
        return
    listed = loaded.class_name
    loaded.class_name, loaded.class_id = find_class(corrections.by_key[key].class_name, label_map)
    if loaded.class_name != listed:
        loaded.listed_class = listed or ""


def note_correction(image: ConvertedImage, corrections: Corrections) -> None:
    """Notes what happens to the line of `corrections` for an image that is written."""
    if isinstance(image.row, SidecarRow):
        image.correction = corrections.judge(image.row.key, image.row.sha256)


def prepare_loaded(
    loaded: LoadedImage, layout: ExampleLayout, twice: bool = False
) -> tuple[PreparedImage | None, dict[str, Any]]:
    """Checks and re-encodes an image, and computes features from it.

    `twice` is as for `convert_image`.

    Returns:
        The image, None if none is stored; and the computed features by name.

    Raises:
        Rejected: it cannot be decoded, or is not acceptable.
        LeftOut: a filter of `keep` leaves it out.
    """
    settings, content, ref = layout.settings, loaded.content, loaded.ref
    stored = content.image if settings.decode == "images" else None
    image = raster = None
    if stored is not None:
        hooks = make_hooks(ref, settings.images, settings.keep, twice)
        image = prepare_image(stored, settings.images, layout.needs_pixels, hooks=hooks)
        raster = image.raster
    if raster is not None:
        check_kept(raster, settings.keep, ref.key, twice)
    features = settings.features
    return image, compute_features(
        features, raster, content.data, ref.key, ref.uri
    ) if features else {}


def build_record(
    loaded: LoadedImage,
    image: PreparedImage | None,
    computed: Mapping[str, Any],
    layout: ExampleLayout,
    label_map: LabelMap,
) -> ConvertedImage:
    """Serializes one image.

    Args:
        loaded: what was read.
        image: the image that will be stored, if any.
        computed: the features that functions computed.
        layout: what the dataset and its Examples are.
        label_map: class ids, for its annotations.

    Raises:
        Rejected: its annotations are bad.
    """
    settings, ref, content, data = layout.settings, loaded.ref, loaded.content, loaded.content.data
    digest = loaded.digest()
    row = SidecarRow(ref.key, loaded.size, digest, loaded.class_name, loaded.class_id)
    row.listed_class = loaded.listed_class
    own = reference_record(ref, loaded.class_name, loaded.class_id, loaded.split)
    outcomes: Outcomes = {}
    if ref.annotations:
        on = AnnotatedImage(data, image, settings, label_map)
        placed = _place_annotations(ref, on)
        own.update(item for each in placed.values() for item in each.fields.items())
        own.update(fill_fields(placed, on, layout.fields))
        outcomes = {name: each.outcome for name, each in placed.items()}
        row.annotations = describe_outcomes(outcomes)
        counted = (each.classes for name, each in placed.items() if KINDS[name].has_classes)
        row.classes = next(counted, None)
    if image is None:
        digests = {"sha256": digest.encode(), "file_sha256": digest.encode()}
        fields = {**own, **digests, **content.fields, **computed}
        record = layout.encoder.encode(fields)
        row.record = hashlib.sha256(record).hexdigest()
        return ConvertedImage(record, row, outcomes, _find_missing(layout, fields))
    if image.encoded is data or image.encoded == data:
        stored_digest, row.changes = image.sha256 or digest, ()
    else:
        stored_digest = image.sha256 or hashlib.sha256(image.encoded).hexdigest()
        row.changes = image.changes
    fields = image_record(image, layout.convention, stored_digest)
    fields |= {**own, **content.fields, **computed, "file_sha256": digest.encode()}
    row.height, row.width, row.channels = image.height, image.width, image.channels
    row.moments = image.moments
    if image.difference_hash is not None:
        row.difference_hash = f"{image.difference_hash:016x}"
    record, rest = layout.encoder.encode_with_rest(fields)
    if not layout.fields.isdisjoint(STORED_IMAGE):
        row.record, row.rest = digest_parts(rest, stored_digest)
    else:
        row.record = hashlib.sha256(record).hexdigest()
    row.pixels, row.losses = image.pixels, image.losses or None
    return ConvertedImage(record, row, outcomes, _find_missing(layout, fields), image.has_position)


def _place_annotations(ref: ImageRef, on: AnnotatedImage) -> dict[str, PlacedAnnotations]:
    """Places the annotations of an image, which may read its further files."""
    if ref.files:
        images = on.settings.images
        on.files = {file.key: file for file in ref.files}
        on.read_file = partial(read_other_file, max_bytes=images.max_bytes)
        hooks = make_hooks(ref, images, WITHOUT_FILTERS)
        on.prepare_file = partial(prepare_image, settings=images, hooks=hooks)
    return resolve_annotations(ref, on)


def _find_missing(layout: ExampleLayout, fields: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple([key for key, field in layout.optional_fields if fields.get(field) is None])
