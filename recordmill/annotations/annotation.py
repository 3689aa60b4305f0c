"""The protocol that each kind of annotation follows, and the types that pass through it.

A reference carries the annotations of its image as packed bytes by kind. All other code loops over
the kinds and asks them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from recordmill.annotations.shapes import Shape
from recordmill.schemas.attribute_words import AttributeText
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals, Totals
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import RecordField
from recordmill.schemas.formatting import agree, plural_of, say_count
from recordmill.schemas.image_ref import Annotations, SourceFile
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import LeftOut, Rejected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordmill.imaging import PreparedImage
    from recordmill.imaging.geometry import Box, Frame, Geometry
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

Label = str | int
"""A class as a source gives it: by its name, or by its number in `ClassNames`."""


class Packable(Protocol):
    """The annotations of one kind of an image, as a source gives them."""

    kind: ClassVar[str]

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries; equal annotations give equal bytes."""


def pack_annotations(given: Iterable[Packable]) -> Annotations:
    """Packs an image's annotations, one of each kind at most, for its reference.

    Example:
        boxes = recordmill.boxes_of([[10, 20, 50, 80]], ["cat"])
        annotations = recordmill.pack_annotations([boxes])
    """
    return tuple(sorted((each.kind, each.pack()) for each in given))


class ListedLabels(NamedTuple):
    """What is known of an image's annotations of one kind when it is listed.

    Attributes:
        labels: the class of each, in their order.
        unnamed: how many more there are, without a class here: their kind has none, or the source
            has dropped them.
        parts: the names of the parts that each consists of.
    """

    labels: Sequence[Label]
    unnamed: int = 0
    parts: Sequence[str] = ()

    @property
    def total(self) -> int:
        """The number of all of them."""
        return len(self.labels) + self.unnamed


class DroppedAnnotation(NamedTuple):
    """An annotation that is in no Example.

    Attributes:
        reason: why, in a word.
        class_name: its class, or the class's number if it has no name.
        place: its place among the image's annotations of its kind, from 1.
        is_faulty: whether `max_rejected` counts it: no setting asks to drop it.
    """

    reason: str
    class_name: str
    place: int
    is_faulty: bool


PlacedSides = tuple[float, float, float, float]
"""Left, top, right and bottom, in fractions of the image's width and height."""


class ReadFile(NamedTuple):
    """A file that annotations were read from.

    Attributes:
        key: its name in the dataset.
        size: its bytes.
        sha256: their SHA-256, in hex.
    """

    key: str
    size: int
    sha256: str


@dataclass(slots=True)
class AnnotationOutcome:
    """How many of an image's annotations of one kind were written and dropped.

    Attributes:
        counts: their number by outcome.
        dropped: those that were dropped though their image is written. `verify` adds up their
            classes and compares them with the counts.
        lacks_file: whether the file that would describe them does not exist.
        located: where those that were dropped would be on the stored image, by their place: left,
            top, right and bottom in fractions of it; None if one is not finite.
        files: the files that they were read from when the image was.
    """

    counts: AnnotationCounts
    dropped: list[DroppedAnnotation] = field(default_factory=list)
    lacks_file: bool = False
    files: list[ReadFile] = field(default_factory=list)
    located: dict[int, PlacedSides | None] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class PlacedObjects:
    """The objects of an image that are stored, and the image on which they were drawn.

    Attributes:
        listed: how many objects the source lists.
        stored: the place of each stored object among them, from 0, in the order of storing.
        names: the class of each listed object, or its number if it has no name.
        drawn_on: the orientation of the image on which all were drawn.
        sides: left, top, right and bottom of the box of each stored object, as fractions of the
            stored image.
    """

    listed: int
    stored: Sequence[int]
    names: Sequence[str]
    drawn_on: "Frame"
    sides: "Sequence[Box]" = ()


@dataclass(slots=True)
class PlacedAnnotations:
    """An image's annotations of one kind, ready to be encoded.

    Attributes:
        fields: values of `AnnotationKind.fields`, and of further fields of the source.
        classes: the class of each annotation that is stored.
        outcome: the number of all of them, by outcome.
        objects: which objects are stored, if this kind decides it for all others.
        unwanted: objects that the settings drop with all their annotations, by their place among
            those listed, from 0: why, in a word.
    """

    fields: dict[str, Any]
    classes: list[str]
    outcome: AnnotationOutcome
    objects: PlacedObjects | None = None
    unwanted: Mapping[int, str] = field(default_factory=dict)


@dataclass
class AnnotatedImage:
    """The image on which annotations are placed.

    Attributes:
        data: the bytes of its source.
        image: the image that will be stored; None if none is.
        settings: how it was made, and what to do with invalid annotations.
        label_map: class ids.
        files: the files that annotations are read from, by their keys.
        read_file: reads one of them, and raises Rejected if that is impossible.
        prepare_file: makes what is stored of another image file, by the same settings; raises
            Rejected.
        objects: which objects are stored; None until that is decided.
        unwanted: objects that are dropped because of another kind, see `PlacedAnnotations`.
    """

    data: bytes
    image: "PreparedImage | None"
    settings: "DatasetSettings"
    label_map: LabelMap
    files: Mapping[str, SourceFile] = field(default_factory=dict)
    read_file: Callable[[SourceFile], bytes] | None = None
    prepare_file: Callable[[bytes], "PreparedImage"] | None = None
    objects: PlacedObjects | None = None
    unwanted: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def geometry(self) -> "Geometry":
        """How the stored image was made from its source."""
        # Imported here: processes that verify shards do without Pillow.
        from recordmill.imaging.geometry import read_geometry

        if self.image is None:
            raise ValueError("there is no image on which annotations could be placed")
        return read_geometry(self.data, self.image, self.settings.images)


@dataclass(slots=True)
class ListedAnnotations(Totals):
    """What a listing has of annotations of one kind.

    Attributes:
        total: those of the images to convert, and of images that were rejected when listed.
        images: how many images have some, or say that they have none.
        labels: those of the images to convert, by their class.
        lost: those whose image is missing, by their class.
        parts: the names of the parts of each, see `ListedLabels`: the first two of distinct ones.
        part_names: all these names; their numbers mean nothing.
    """

    total: int = 0
    images: int = 0
    labels: Counter[Label] = field(default_factory=Counter)
    lost: Counter[Label] = field(default_factory=Counter)
    parts: tuple[tuple[str, ...], ...] = ()
    part_names: Counter[str] = field(default_factory=Counter)

    def add_parts(self, names: Sequence[str]) -> None:
        """Adds the names of the parts of some annotations."""
        if names and tuple(names) not in self.parts:
            self.parts = (*self.parts, tuple(names))[:2]
            self.part_names.update(names)

    def order_parts(self) -> tuple[str, ...]:
        """Returns the names of all parts in an order that does not depend on that of the images.

        It is that of the source if all images have the same. Otherwise, numbers come first.
        """
        if len(self.parts) < 2:
            return next(iter(self.parts), ())
        return tuple(sorted(self.part_names, key=_by_number))


def _by_number(name: str) -> tuple[bool, int, str]:
    is_number = name.isdecimal()
    return not is_number, int(name) if is_number else 0, name


@dataclass(frozen=True, slots=True)
class LostAnnotations:
    """What a run loses of annotations of one kind.

    Attributes:
        counts: all of them by outcome.
        totals: the dropped ones by class.
        written: the written ones by class.
        examples: an image that was rejected for each reason, in words.
    """

    counts: AnnotationCounts
    totals: AnnotationTotals
    written: Mapping[str, int]
    examples: Mapping[str, str] = field(default_factory=dict)


Values = Mapping[str, Sequence[Any]]
"""The values in an Example by field; without the fields that the Example has no feature for."""


class AnnotationKind(Protocol):
    """One kind of annotation. A kind is a subclass, and overrides what differs for it.

    Attributes:
        name: its name in files and settings, e.g. `boxes`.
        unit: what people call one of them, e.g. `box`.
        stored_by: the conventions that a note names if another one stores none; none: no note.
        fields: the fields that it fills, which a convention may ask for.
        named: the fields with names of classes, each with the field that has their ids.
        id_images: the fields with images whose pixels are ids of classes.
        compared: other fields that `check` compares with its own.
        loaded: the fields from which one array is made where Examples are loaded, in each form in
            which they may be stored; empty: none is.
        loaded_type: the name of that array's type, such as `uint8`.
        loaded_rank: the number of its dimensions; with two, they are the height and width of the
            image.
        is_always_loaded: whether it is made without being asked for.
        follows_pixels: whether annotations move with the pixels, and so need the geometry of the
            source.
        has_classes: whether they have classes, or stand for an image's one class.
        has_lines: whether lines may join the parts of each, see `ListedLabels`.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    stored_by: ClassVar[Sequence[str]] = ()
    fields: ClassVar[Mapping[str, RecordField]]
    named: ClassVar[Mapping[str, str]] = {}
    id_images: ClassVar[frozenset[str]] = frozenset()
    compared: ClassVar[frozenset[str]] = frozenset()
    loaded: ClassVar[Sequence[frozenset[str]]] = ()
    loaded_type: ClassVar[str] = ""
    loaded_rank: ClassVar[Literal[2, 3]] = 3
    is_always_loaded: ClassVar[bool] = False
    follows_pixels: ClassVar[bool] = False
    has_classes: ClassVar[bool] = True
    has_lines: ClassVar[bool] = False

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the classes of an image's annotations."""

    def rename_files(self, packed: bytes, names: Mapping[str, str]) -> bytes:
        """Returns an image's annotations as if the files that they are read from had other names.

        Args:
            packed: the annotations.
            names: the other names by the files' keys.
        """
        return packed

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Places annotations on the stored image, and gives them the ids of their classes.

        Raises:
            Rejected: stage `encode`: they are bad; stage `read`: their file cannot be read now.
        """

    def find_versions(self) -> Mapping[str, str]:
        """Returns the versions of the libraries that decide its values in Examples."""
        return {}

    def list_attributes(self, packed: bytes) -> Iterable[AttributeText]:
        """Returns the values of an image's objects that get their numbers from a listing."""
        return ()

    def fill(self, on: AnnotatedImage) -> Values:
        """Returns the fields of an image whose objects have no such annotations."""
        return {}

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the annotations of an image that is not written; None if there are none.

        Args:
            packed: the annotations.
            rejected: why the image is not written.
            label_map: class ids.
        """

    def predict(
        self, listed: ListedAnnotations, settings: "DatasetSettings", label_map: LabelMap
    ) -> LostAnnotations | None:
        """Predicts what a run will lose; None if nothing is known before images are read."""
        return None

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many are lost, in a sentence; None if they are not."""

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share that `expect` allows to be lost, if it has one."""

    def note_unstored(self, listed: int, convention: str) -> str | None:
        """Returns a note if the convention with this title stores none of them.

        None if nothing is lost, or if it is noted elsewhere.
        """
        if not self.stored_by:
            return None
        others, do = " and ".join(self.stored_by), agree(len(self.stored_by), "does")
        return (
            f"{say_count(listed, self.unit, 'is')} in no Example: the convention ({convention}) "
            f"stores no {plural_of(self.unit)}, {others} {do}"
        )

    def refuse_unstored(self, what: str, flag: str = "--set ") -> SettingError | None:
        """Returns the error of a run that would lose them because no convention was named.

        Args:
            what: which annotations there are, as a clause.
            flag: what the user writes before a setting.
        """
        return None

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields sentences that are worth a look; `record` is what a record is called."""
        yield from ()

    def find_tfds_type(
        self, field: str, classes: int, parts: Sequence[str], recipe: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Returns the type of single values of a field in TensorFlow Datasets.

        None if it is that of other features.

        Args:
            field: one of its fields.
            classes: how many classes the field's ids may have; 0 if it is unknown.
            parts: the names of the parts of each annotation.
            recipe: what the plan of the dataset stands for.
        """
        return None

    def check(self, values: Values) -> str | None:
        """Returns the problem with the annotations in an Example, if there is one."""
        return None

    def check_pixels(self, values: Values) -> str | None:
        """Returns the problem with the pixels of annotations that are images, if there is one."""
        return None

    def trace(self, values: Values, names: Mapping[int, str]) -> Sequence[Shape]:
        """Returns the annotations in an Example as shapes that pages draw over its image.

        Args:
            values: the values of all kinds of annotations: the class of an object may be in the
                fields of another kind.
            names: names of classes by their ids.
        """
        return ()

    def join_parts(self, skeleton: Mapping[str, Sequence[str]]) -> "AnnotationKind":
        """Returns the kind for a dataset with this skeleton, whose lines `trace` then gives.

        `skeleton` is as in `Marker`.
        """
        return self

    def find_loaded_type(self, recipe: Mapping[str, Any]) -> str:
        """Returns the name of the type of the array that `as_array` makes.

        Args:
            recipe: what the plan of the dataset stands for.
        """
        return self.loaded_type

    def as_array(
        self, values: Values, size: tuple[int, int], resized: tuple[int, int] | None = None
    ) -> "NDArray[Any] | None":
        """Returns the annotations in an Example as one array; None if nothing is `loaded`.

        Args:
            values: the values of `loaded`, by field.
            size: height and width of the image as stored.
            resized: what the image is resized to; None if it is not.
        """
        return None


def name_loss(rejected: Rejected) -> str:
    """Returns the reason for which the annotations of an image are dropped with it."""
    if isinstance(rejected, LeftOut):
        return "with_left_out_images"
    return "with_rejected_images"
