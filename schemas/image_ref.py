"""What a listing yields: references (which flow through the pipeline in place of images), notices, and class names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Literal, Self

UNKNOWN_SIZE = -1

Status = Literal["rejected", "ignored", "left_out", "warning", "fatal", "names_images"]

ASSUMED_BYTES = 100_000
"""The size that plans and windows assume for an image if it is not known before it is read."""


@dataclass(slots=True, unsafe_hash=True)  # frozen, one takes 5 us to make instead of 0.3, and each is made 4 times
class ImageRef:
    """The location of one image and what is known of it when it is listed: about 200 bytes, whatever the image's size.

    Treat it as immutable: `replace` makes another.

    Attributes:
        key: the image's name in the dataset: `[NAME/]path below the input`, `/`-separated, NFC; if a file contains
            several images, a suffix distinguishes them.
        uri: where to read it: a path or URL that Beam's file systems know.
        size: size of the file in bytes when it was listed; -1 if finding it out would take a request.
        version: the file's modification time when it was listed, or the generation or ETag of an object, as text; only
            ever compared for equality.
        offset: first byte of the image in the file, or in its unpacked content (`packing`).
        length: bytes of the image there; -1 for all from `offset`.
        packing: how its bytes are stored in the file, as the text of a `schemas.packing.Packing`; empty: as they are.
        label: class name; empty if the image has none, or its label is read with it.
        group: images of one group stay in one split; empty for the image alone.
        split: the split that the source gives; empty if it is decided later.
        spelling: the path below the input as the store spells it, if it differs from the key; otherwise empty.
        sha256: the hex digest that the image's bytes must have; empty if it is not known.
        features: further fields of the record as a JSON object: texts, numbers, truth values or lists of one of them;
            empty for none.
        lacks_file: whether it has no boxes because the file that would describe them does not exist.
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

    status = reason = detail = ""  # class attributes; in `Notice`, they are fields

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed: like `dataclasses.replace`, in a third of the time."""
        other = type(self)(*_FIELD_VALUES[type(self)](self))
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def notice(self, status: Status, reason: str, detail: str = "", count: int = 1) -> "Notice":
        """A notice about what this refers to."""
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
        return self.image_bytes if self.image_bytes >= 0 else ASSUMED_BYTES


@dataclass(slots=True, unsafe_hash=True)
class Notice(ImageRef):
    """Something in the input that does not become an image, or that the user must know about.

    Attributes:
        status: `rejected`, `ignored` and `left_out` are counted in the ledger; a `warning` is shown and not counted;
            `fatal` fails the run; `names_images` says how many files name the images of references.
        reason: a short stable code, e.g. `hidden` or `no_class`.
        detail: one line for people.
        count: how many things it stands for.
    """

    status: Status = "rejected"
    reason: str = ""
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class ClassNames:
    """Classes that a file names.

    Attributes:
        uri: the file.
        names: the classes.
        numbers: the number that the source gives each of them, which decides the order of the ids; empty for labels
            without numbers.
    """

    uri: str
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    status = "classes"

    @classmethod
    def of(cls, file: ImageRef, classes: Mapping[str, int] | Iterable[str]) -> Self:
        """The classes that a file names, with their numbers if there are any."""
        if isinstance(classes, Mapping):
            return cls(file.uri, tuple(classes), tuple(classes.values()))
        return cls(file.uri, tuple(sorted(set(classes))))


Listed = ImageRef | Notice | ClassNames

_FIELD_VALUES = {each: attrgetter(*(field.name for field in fields(each))) for each in (ImageRef, Notice)}
