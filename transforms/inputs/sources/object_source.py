"""What sources share whose files describe many images, by shapes of objects or by classes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from recordmill.annotations.annotation import Packable
from recordmill.annotations.labels import Labels
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef, Listed, Notice
from recordmill.transforms.inputs.described_objects import OtherShapes
from recordmill.transforms.inputs.image_classes import offer_classes
from recordmill.transforms.inputs.named_files import DataFile, bad_annotations
from recordmill.transforms.inputs.patterns import check_template
from recordmill.transforms.inputs.sources.source import AnnotationSource


class LabelChoices(NamedTuple):
    """The values of a source's setting `labels`, in the tool's own words.

    Attributes:
        shapes: the objects' shapes give boxes.
        one: an image has one class.
        several: an image has any number of classes.
    """

    shapes: str
    one: str
    several: str


@dataclass(frozen=True, slots=True)
class DescribedImage:
    """What a file says about one image.

    Attributes:
        given: what annotates it.
        label: its own class; empty if it has none.
        classes: all classes that it names.
    """

    given: Sequence[Packable]
    label: str
    classes: Sequence[str]

    def list_in(
        self, file: DataFile, place: str, find_other: Callable[[], str | None]
    ) -> Iterator[Listed]:
        """Yields the image; the arguments are those of `DataFile.list_annotated`."""
        for each in file.list_annotated(
            place, self.given, classes=self.classes, find_other=find_other
        ):
            yield each.replace(label=self.label) if type(each) is ImageRef else each


class ObjectSource(AnnotationSource, Protocol):
    """A source of boxes, masks and key points of objects, or of one or several classes per image.

    Attributes:
        placeholders: what stands for what in the folder of the images, by the name in braces.
        choices: the values of `labels`.
        not_stored: what else a file may have that is not stored, in the plural, besides the shapes
            or the classes, whichever are not read.
    """

    placeholders: ClassVar[Mapping[str, str]]
    choices: ClassVar[LabelChoices]
    not_stored: ClassVar[tuple[str, ...]]

    @property
    def images(self) -> str:
        """The folder of the images, relative to the input."""

    @property
    def labels(self) -> str:
        """What gives labels: one of `choices`."""

    @property
    def other_shapes(self) -> OtherShapes:
        """What to do with shapes that are not upright rectangles."""

    def __post_init__(self) -> None:
        """Raises ValueError if the template of the folder is invalid."""
        check_template(self.images, "source.images", *self.placeholders)

    @property
    def is_about_boxes(self) -> bool:  # type: ignore[override]  # depends on the settings
        """Whether shapes are read."""
        return self.labels == self.choices.shapes

    def annotations(self) -> Mapping[str, str]:
        """Returns boxes and what describes their objects, or several labels."""
        if self.labels == self.choices.several:
            return {"labels": "source.labels"}
        if self.is_about_boxes:
            kinds = ("boxes", "masks", "keypoints", "attributes", "corners")
            return dict.fromkeys(kinds, "")
        return {}

    def idle_settings(self) -> Mapping[str, str]:
        """Returns `other_shapes` if shapes are not read."""
        if self.is_about_boxes:
            return {}
        return {"other_shapes": f"source.labels is {self.labels}"}

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images."""
        where = ", ".join(
            f"'{{{name}}}' stands for {meaning}" for name, meaning in self.placeholders.items()
        )
        return {"vanished": f"correct source.images, which is {self.images!r} ({where})"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each image of the file, with its boxes and key points, or its classes."""
        return self._list(path, file, with_outlines=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the same images, also with the outlines of their objects."""
        return self._list(path, file, with_outlines=True)

    def _list(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        is_empty = True
        for each in self.list_images(path, file, with_outlines):
            is_empty = False
            yield each
        if is_empty:
            yield file.notice("ignored", "no_images")

    def list_images(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        """Yields each image of the file; the arguments are those of `list_references`."""

    def describe_classes(self, names: Sequence[str]) -> DescribedImage:
        """Returns an image with classes, and without shapes.

        Raises:
            Rejected: `bad_annotations`: it has none or several, and only one is expected.
        """
        if self.labels == self.choices.several:
            return DescribedImage([Labels(list(dict.fromkeys(names)))], "", names)
        if len(names) != 1:
            one = self.choices.one
            raise bad_annotations(
                f"it has {format_count(len(names), one)}, and source.labels is {one}, which needs "
                "one"
            )
        return DescribedImage([], names[0], names)

    def report_unstored(self, file: ImageRef, counts: Counter[str]) -> Iterator[Notice]:
        """Yields what is not stored of a file; an error if that is all that it has.

        Args:
            file: the file.
            counts: numbers of what it has, by the names in `choices` and `not_stored`.
        """
        shapes, one, several = self.choices
        if self.is_about_boxes and counts[several] and not counts[shapes]:
            detail = (
                f"it has {format_count(counts[several], one)} and no {shapes}: "
                f"{offer_classes(one, several)}"
            )
            yield file.notice("fatal", "bad_annotations", detail)
        others = several if self.is_about_boxes else shapes
        for kind in (others, *self.not_stored):
            if counts[kind]:
                yield file.notice("not_stored", kind, count=counts[kind])
