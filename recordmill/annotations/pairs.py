"""Second images of pairs: each is a feature of its image's Example, prepared as the image is."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    ReadFile,
)
from recordmill.annotations.count_details import drop_undecoded, lose_details
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import LOSSLESS, AnnotationCounts
from recordmill.schemas.features import Feature, RecordField
from recordmill.schemas.formatting import format_count, plural_of, say_count
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import TRANSIENT, Rejected
from recordmill.schemas.settings.dataset import ExampleLayout

if TYPE_CHECKING:
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

_FAULTS = ("bad_second_image", "no_second_image")
"""The reasons for which an image is rejected because of its second image."""

_FIELDS = "pairs/"
"""What the fields of second images begin with."""

_FORMAT = "/format"


def features_of_pairs(names: Iterable[str]) -> tuple[Feature, ...]:
    """Returns the features of second images: `image/NAME/encoded` and `image/NAME/format`.

    Args:
        names: the names of the second images.
    """
    found = list[Feature]()
    for name in names:
        field, key = f"{_FIELDS}{name}", f"image/{name}"
        found += [
            Feature(f"{key}/encoded", "bytes", field, f"the encoded second image {name}"),
            Feature(f"{key}/format", "bytes", f"{field}{_FORMAT}", "its format, as the image's"),
        ]
    return tuple(found)


def is_second_image(feature: Feature) -> bool:
    """Returns whether a feature holds encoded second images."""
    return is_second_field(feature.field)


def is_second_field(field: str) -> bool:
    """Returns whether a field of a record is an encoded second image."""
    return field.startswith(_FIELDS) and not field.endswith(_FORMAT)


def describe_second_field(field: str) -> str:
    """Returns what the second images in a field are called, such as `second images (target)`."""
    return f"{plural_of(PairKind.unit)} ({field.removeprefix(_FIELDS)})"


@dataclass(frozen=True, slots=True)
class PairedImages:
    """The second images of an image, as its source gives them.

    Attributes:
        files: the key of each one's file, which is one of the reference's files, by its name.
    """

    kind: ClassVar[str] = "pairs"

    files: Mapping[str, str]

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries."""
        return as_kept_json(dict(self.files), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the second images that a reference carries."""
        return cls(orjson.loads(packed))


class PairKind(AnnotationKind):
    """Second images: if one of them is missing or bad, the image is rejected."""

    name: ClassVar[str] = PairedImages.kind
    unit: ClassVar[str] = "second image"
    fields: ClassVar[Mapping[str, RecordField]] = {}
    has_classes: ClassVar[bool] = False

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns how many there are; they have no classes."""
        return ListedLabels((), len(PairedImages.unpack(packed).files))

    def rename_files(self, packed: bytes, names: Mapping[str, str]) -> bytes:
        """Returns the second images as if their files had other names."""
        given = PairedImages.unpack(packed).files
        return PairedImages({name: names.get(key, key) for name, key in given.items()}).pack()

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Prepares the second images by the settings of the image.

        Raises:
            Rejected: stage `encode`: `no_second_image` or `bad_second_image`; stage `read`: a file
                was there when it was listed, and cannot be read now, as for images.
        """
        given = PairedImages.unpack(packed).files
        if on.image is None or on.prepare_file is None:
            return drop_undecoded(len(given))
        convention = ExampleLayout(on.settings).convention
        outcome = AnnotationOutcome(AnnotationCounts(listed=len(given), written=len(given)))
        fields = dict[str, Any]()
        for name, key in given.items():
            data = _read(key, on)
            try:
                prepared = on.prepare_file(data)
            except Rejected as rejected:
                detail = f"{key}: {rejected.reason}: {rejected.detail}"
                raise Rejected("encode", "bad_second_image", detail) from None
            fields[f"{_FIELDS}{name}"] = prepared.encoded
            fields[f"{_FIELDS}{name}{_FORMAT}"] = convention.name_format(prepared.format).encode()
            outcome.files.append(ReadFile(key, len(data), hashlib.sha256(data).hexdigest()))
            if (prepared.height, prepared.width) != (on.image.height, on.image.width):
                outcome.counts.noted["other_size"] += 1
            if prepared.format == "JPEG" and key.lower().endswith(LOSSLESS):
                outcome.counts.noted["became_lossy"] += 1
            if "depth_reduced" in prepared.changes:
                outcome.counts.noted["depth_reduced"] += 1
        return PlacedAnnotations(fields, [], outcome)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the second images of an image that is not written.

        If one of them is at fault, the others count as well.
        """
        listed = self.list_labels(packed).total
        if rejected.reason not in _FAULTS:
            return lose_details(listed, rejected)
        counts = AnnotationCounts(listed=listed)
        counts.dropped[rejected.reason] = listed
        return AnnotationOutcome(counts)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns None: `max_rejected` counts their images."""
        return None

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns None: `expect.rejected` counts their images."""
        return None

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields remarks on second images of another size than their images, or that lose much."""
        noted = entry.noted or {}
        if others := noted.get("other_size", 0):
            yield (f"{say_count(others, self.unit, 'has')} another size than its image, as stored.")
        if reduced := noted.get("depth_reduced", 0):
            yield (
                f"{say_count(reduced, self.unit, 'was')} reduced to 8 bits: set images.depth=16 "
                "and images.store=png to keep gray images of 16 bits."
            )
        if lossy := noted.get("became_lossy", 0):
            yield (
                f"{format_count(lossy, self.unit)} with a lossless extension, such as .png, became "
                "JPEG, which is lossy: set images.store=png to keep every pixel."
            )


PAIRS = PairKind()


def _read(key: str, on: AnnotatedImage) -> bytes:
    """Reads a second image; raises Rejected as `PairKind.place` does."""
    file = on.files.get(key)
    if file is None or on.read_file is None:
        raise Rejected("encode", "no_second_image", f"{key}: the reference does not name the file")
    try:
        return on.read_file(file)
    except Rejected as rejected:
        if rejected.reason == "vanished" and file.size < 0:  # perhaps it was never there
            missing = f"{key}: {file.explain_missing(rejected.detail)}"
            raise Rejected("encode", "no_second_image", missing) from None
        detail = f"{key}: {rejected.detail}"
        if rejected.reason in TRANSIENT:
            raise Rejected("read", rejected.reason, detail) from None
        raise Rejected("encode", "bad_second_image", detail) from None
