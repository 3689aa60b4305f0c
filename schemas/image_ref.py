"""What a listing yields: references, notices and class names.

References flow through the pipeline in place of images. The module also describes how an image's
bytes are stored in their file, and the content of a reference once it is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import orjson

UNKNOWN_SIZE = -1

NoticeStatus = Literal[
    "rejected",
    "ignored",
    "left_out",
    "warning",
    "fatal",
    "names_images",
    "not_stored",
    "respelled",
    "lost_label",
    "renamed",
    "noted",
    "unclaimed",
    "second_images",
    "unread_member",
]

Annotations = tuple[tuple[str, bytes], ...]
"""What annotates an image besides its class: each kind with its packed bytes, sorted by kind. The
kinds are in `recordmill.annotations`. A kind without a single annotation means that the image was
annotated, and has none."""


class SourceFile(NamedTuple):
    """A file besides an image's own from which its record is made.

    Attributes:
        key: its name in the dataset, as images have one.
        uri: where to read it.
        size: its size in bytes when it was listed; -1 if finding it out would take a request.
        version: its modification time then, or the generation or ETag of an object.
        offset: as in `ImageRef`, if it is in a file of many.
        length: the same.
        packing: the same; or `PARQUET_CELL`, a colon and the column.
        named_by: for people: what names it, if it was not seen to exist; otherwise empty.
    """

    key: str
    uri: str
    size: int = -1
    version: str = ""
    offset: int = 0
    length: int = -1
    packing: str = ""
    named_by: str = ""

    @classmethod
    def of(cls, ref: "ImageRef") -> Self:
        """Returns what a reference to a whole file, or to a part of one, refers to."""
        return cls(ref.key, ref.uri, ref.size, ref.version, ref.offset, ref.length, ref.packing)

    @classmethod
    def named(cls, key: str, uri: str, size: int, version: str, named_by: str) -> Self:
        """Returns a file that data name; it remembers them only if it may be missing."""
        return cls(key, uri, size, version, named_by="" if size >= 0 else named_by)

    @property
    def as_reference(self) -> "ImageRef":
        """A reference with which it is read as images are."""
        return ImageRef(*self[:-1])

    def explain_missing(self, detail: str) -> str:
        """Returns why it is missing; `detail` if it may have been there."""
        return f"named by {self.named_by}: no such file or directory" if self.named_by else detail


ASSUMED_BYTES = 100_000
"""The size that plans and windows assume for an image if it is not known before it is read."""


# Frozen, one takes 5 us to make instead of 0.3, and each is made 4 times.
@dataclass(slots=True, unsafe_hash=True)
class ImageRef:
    """The location of one image, and what is known about it when it is listed.

    A reference takes about 200 bytes, whatever the image's size. Treat it as immutable: `replace`
    makes another.

    Attributes:
        key: the image's name in the dataset: `[NAME/]path below the input`, `/`-separated, NFC; if
            a file contains several images, a suffix distinguishes them.
        uri: where to read it: a path or URL that Beam's file systems know.
        size: size of the file in bytes when it was listed; -1 if finding it out would take a
            request.
        version: the file's modification time when it was listed, or the generation or ETag of an
            object, as text; only ever compared for equality.
        offset: first byte of the image in the file, or in its unpacked content (`packing`).
        length: bytes of the image there; -1 for all from `offset`.
        packing: how its bytes are stored in the file, as the text of a `Packing`, or
            `PARQUET_CELL`; empty: as they are.
        label: class name; empty if the image has none, or its label is read with it.
        group: images of one group stay in one split; empty for the image alone.
        split: the split that the source gives; empty if it is decided later.
        spelling: the path below the input as the store spells it, if it differs from the key;
            otherwise empty.
        sha256: the hex digest that the image's bytes must have; empty if it is not known.
        features: further fields of the record as a JSON object: strings, numbers, truth values or
            lists of one of them; empty for none.
        lacks_file: whether it has no annotations because the file that would contain them does
            not exist.
        annotations: what annotates it besides its class.
        files: the files that annotations are read from when the image is, sorted by key.
    """

    key: str
    uri: str
    size: int = 0
    version: str = ""
    offset: int = 0
    length: int = -1
    packing: str = ""
    label: str = ""
    group: str = ""
    split: str = ""
    spelling: str = ""
    sha256: str = ""
    features: str = ""
    lacks_file: bool = False
    annotations: Annotations = ()
    files: tuple[SourceFile, ...] = ()

    status = reason = detail = ""  # class attributes; in `Notice`, they are fields

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed.

        Like `dataclasses.replace`, in a third of the time.
        """
        other = type(self)(*_FIELD_VALUES[type(self)](self))
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def notice(
        self, status: NoticeStatus, reason: str, detail: str = "", count: int = 1
    ) -> "Notice":
        """Returns a notice about what this refers to."""
        values: tuple[Any, ...] = (*_FIELD_VALUES[ImageRef](self), status, reason, detail, count)
        return Notice(*values)

    @property
    def image_bytes(self) -> int:
        """The size of the image in bytes when it was listed; -1 if it is not known."""
        if self.length >= 0:
            return self.length
        return self.size - self.offset if self.size >= 0 else UNKNOWN_SIZE

    @property
    def expected_bytes(self) -> int:
        """The same, or an assumed size if it is not known: plans and windows need a number."""
        size = self.image_bytes
        return size if size >= 0 else ASSUMED_BYTES


def pack_fields(values: Mapping[str, Any]) -> str:
    """Returns further fields of a record as `ImageRef.features`; empty if there are none."""
    if not values:
        return ""
    return orjson.dumps(values).decode()


@dataclass(slots=True, unsafe_hash=True)
class Notice(ImageRef):
    """Something in the input that does not become an image, or that the user must know about.

    Attributes:
        status: `rejected`, `ignored` and `left_out` are counted in the ledger; a `warning` is shown
            and not counted; `fatal` fails the run; `names_images` says how many files name the
            images of references; `not_stored` counts values of one kind, its reason, that have no
            place in a record; `respelled` counts images that annotations name otherwise;
            `lost_label` counts rejected rows of one class, its reason;
            `renamed` says that a class of images, its reason, has got a new name;
            `noted` counts images with one peculiarity, its reason, a sentence in which
            `{images}` and `{images have}` stand for their number;
            `unclaimed` counts files of one role, its reason, that no source claims and that
            may carry labels; `second_images` counts images that belong to others;
            `unread_member` is a member of an archive that is not an image: its reason is its path
            there, and `features` are the ends of the names of members that are read. The listing
            keeps these for itself.
        reason: a short stable code, e.g. `hidden` or `no_class`.
        detail: one line for people.
        count: how many things it stands for.
    """

    status: NoticeStatus = "rejected"
    reason: str = ""
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class ClassNames:
    """Classes that a file names.

    Attributes:
        uri: the file.
        names: the classes.
        numbers: the number that the source gives each of them, which decides the order of the ids;
            empty for labels without numbers.
        skeleton: pairs of names of parts of objects that a line joins.
    """

    uri: str
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    skeleton: tuple[tuple[str, str], ...] = ()

    status = "classes"

    @classmethod
    def of(
        cls,
        file: ImageRef,
        classes: Mapping[str, int] | Iterable[str],
        skeleton: Iterable[tuple[str, str]] = (),
    ) -> Self:
        """Returns the classes that a file names, with their numbers if there are any.

        `skeleton` is as in the class.
        """
        if isinstance(classes, Mapping):
            return cls(file.uri, tuple(classes), tuple(classes.values()), tuple(skeleton))
        return cls(file.uri, tuple(sorted(set(classes))), skeleton=tuple(skeleton))


Listed = ImageRef | Notice | ClassNames

_FIELD_VALUES = {
    each: attrgetter(*(field.name for field in fields(each))) for each in (ImageRef, Notice)
}


Pixels = npt.NDArray[np.uint8]
"""Decoded pixels: height, width, channels (1 or 3, red first)."""


@dataclass(slots=True)
class Content:
    """The content of one reference.

    Attributes:
        data: the bytes that were read, from which `sha256` and `bytes` of the sidecar are computed.
        image: an encoded image, decoded pixels, or None if there is no image to store.
        label: a label that is found only with the image: a class name, or its number in
            `ClassNames`; None if the reference has the label.
        fields: further fields of the record, besides the reference's own.
    """

    data: bytes
    image: bytes | Pixels | None
    label: str | int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


STORED, DEFLATED = 0, 8
"""The supported methods of zip archives (APPNOTE.TXT, 4.4.5)."""


@dataclass(frozen=True, slots=True)
class Gzip:
    """The file is a gzip stream; ranges refer to its unpacked content.

    Attributes:
        has_checksums: whether the content has checksums of its own, as records of TFRecord files
            have: a wrong checksum of the whole file is ignored then.
    """

    has_checksums: bool = False

    def __str__(self) -> str:
        return "gzip_records" if self.has_checksums else "gzip"


@dataclass(frozen=True, slots=True)
class NamedMember:
    """A range of the unpacked content of a zip archive's member."""

    name: str

    def __str__(self) -> str:
        return f"member:{self.name}"


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A whole member of a zip archive, by its position.

    Attributes:
        method: `STORED` or `DEFLATED`.
        start: first byte of its data in the archive, after its header.
        packed: compressed size in bytes.
        size: unpacked size in bytes.
        crc: CRC-32 of the unpacked bytes.
    """

    method: int
    start: int
    packed: int
    size: int
    crc: int

    def __str__(self) -> str:
        return f"zip:{self.method}:{self.start}:{self.packed}:{self.size}:{self.crc:08x}"


PARQUET_CELL = "parquet"
"""The `ImageRef.packing` of a cell of a Parquet file; `offset` is the number of its row, from 0."""

Packing = Gzip | NamedMember | ZipMember
"""How an image's bytes are stored in a file from which byte ranges are read.

`ImageRef.packing` holds the text of one of these types: it is short, costs nothing while files are
listed, and is part of plan ids. It is parsed when bytes are read.
"""


@lru_cache(1024)  # the rows of a table share one
def parse_packing(text: str) -> Packing:
    """Returns the packing that has this text.

    Raises:
        ValueError: there is none.
    """
    if text.startswith("member:"):
        return NamedMember(text.removeprefix("member:"))
    match text.replace(":", " ").split(" "):
        case ["gzip" | "gzip_records" as kind]:
            return Gzip(kind == "gzip_records")
        case ["zip", method, start, packed, size, crc]:
            return ZipMember(int(method), int(start), int(packed), int(size), int(crc, 16))
    raise ValueError(f"there is no packing {text!r}")
