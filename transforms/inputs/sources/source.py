"""The protocol that sources implement, and how to load one by name."""

import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

from recordmill.annotations.kinds import KINDS
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature, FeatureKind
from recordmill.schemas.formatting import plural_of
from recordmill.schemas.image_ref import ClassNames, Content, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import ListingSettings, SourceSettings
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.class_names import number_classes
from recordmill.transforms.inputs.file_roles import TITLES
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized


@runtime_checkable
class AddedFeature(Protocol):
    """A setting that describes one feature which a source adds."""

    type: FeatureKind
    many: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Where the values are: columns, or keys."""

    def as_feature(self, key: str) -> Feature:
        """Returns the feature, stored under a key."""


@runtime_checkable
class NamesClasses(Protocol):
    """A source with the setting `class_names`: names in the order of their numbers, or a count."""

    @property
    def class_names(self) -> Sequence[str] | int:
        """The names, or the number of classes."""


@runtime_checkable
class AddsFeatures(Protocol):
    """A source with the setting `features_from`: features by key."""

    @property
    def features_from(self) -> Mapping[str, AddedFeature]:
        """The features."""


@runtime_checkable
class FindsClassesInFolders(Protocol):
    """A source with the setting `class_from`: which folder of a path names the class."""

    @property
    def class_from(self) -> str:
        """The folder: `first_folder`, or another choice of the source."""


@runtime_checkable
class ReadsMembers(Protocol):
    """A source with the setting `members`: patterns of the members of archives that are read."""

    @property
    def members(self) -> tuple[str, ...]:
        """The patterns; none if all are read."""


@runtime_checkable
class ReadsLabelsBeside(Protocol):
    """A source with the setting `label_part`: the file next to an image that has its label."""

    @property
    def label_part(self) -> str:
        """The extension of the file, or `json.KEY`."""


@runtime_checkable
class ReadsTextLabels(Protocol):
    """A source that may take a whole text next to an image for its class."""

    @property
    def text_part(self) -> str | None:
        """The extension of the texts; None if no text is a class."""


@runtime_checkable
class ReadsCellLabels(Protocol):
    """A source that may take a whole cell of a table for the class of an image."""

    @property
    def class_column(self) -> str | None:
        """The column of the cells; None if no cell is a class."""


class Source(SourceSettings, Protocol):
    """Turns listed files into references, and references into their contents.

    A source is a frozen dataclass that inherits from this class; its fields are its YAML keys. Only
    `list_references` is required; `schemas.settings.source` documents what else it may override.
    """

    # Type checkers know by this that every source is a dataclass.
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterable[Recognized]:
        """Yields settings under which this source could read an input without a configuration.

        If there are several, the user must choose. No file is read: the sketch holds all that may
        be used.
        """
        return ()

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads the contents of one reference. Override it if that is not a plain image file.

        Args:
            ref: one of the references that `list_references` yielded.
            max_bytes: the most that is read.

        Raises:
            Rejected: this one cannot be used; see `storage.packed_files.read_image`.
        """
        data = read_image(ref, max_bytes)
        return Content(data, data)

    def classes(self) -> Mapping[str, int]:
        """Returns the classes in the setting `class_names`, if the source has it."""
        if isinstance(self, NamesClasses):
            return number_classes(self.class_names, "source.class_names")
        return {}

    @property
    def annotation_format(self) -> str | None:
        """The format of the files of annotations that it reads, as `FileRole.title`."""
        return TITLES.get(self.kind)

    def features(self) -> tuple[Feature, ...]:
        """Returns the features in the setting `features_from`, if the source has it."""
        if isinstance(self, AddsFeatures):
            return tuple(each.as_feature(key) for key, each in self.features_from.items())
        return ()


class AnnotationSource(Source, Protocol):
    """A source of boxes, whose files describe images in other files."""

    other_files: ClassVar[str] = "taken_only_by_name"
    is_about_boxes: ClassVar[bool] = True


class ArraySource(Source, Protocol):
    """A source of pixels, whose labels are numbers.

    Attributes:
        labels: where labels are; empty if there are none.
    """

    labels: Any
    gives_pixels: ClassVar[bool] = True
    reads_sets: ClassVar[bool] = True

    @property
    def gives_labels(self) -> bool:
        """Whether there are labels."""
        return bool(self.labels)


_ALL_FILES = ListingSettings()


def list_file(
    source: SourceSettings, path: str, file: ImageRef, settings: ListingSettings = _ALL_FILES
) -> Iterator[Listed]:
    """Yields what the source yields for a file, with outlines if the settings ask for them.

    If the source rejects the file, or the rest of it, a notice comes at the end. So do notices on
    annotations that the settings leave out.
    """
    left_out: Counter[str] = Counter()
    try:
        listed = source.list_references(path, file)
        if settings.with_outlines:
            listed = source.list_with_outlines(path, file)
        if settings.without:
            listed = (_leave_out(each, settings.without, left_out) for each in listed)
        yield from listed
    except Rejected as rejected:
        yield file.notice("rejected", rejected.reason, rejected.detail)
    for unit, count in left_out.items():
        yield file.notice("not_stored", unit, count=count)


def _leave_out(listed: Listed, kinds: frozenset[str], counts: Counter[str]) -> Listed:
    """Returns what is listed without annotations of these kinds, whose numbers are added."""
    if isinstance(listed, ClassNames) or not listed.annotations:
        return listed
    if kinds.isdisjoint(name for name, _ in listed.annotations):
        return listed
    for name, packed in listed.annotations:
        if name in kinds:
            counts[plural_of(KINDS[name].unit)] += KINDS[name].list_labels(packed).total
    return listed.replace(annotations=tuple(e for e in listed.annotations if e[0] not in kinds))


@cache
def source_names() -> tuple[str, ...]:
    """Returns the names of all sources, sorted: those of the modules that are not protocols."""
    package = import_module("recordmill.transforms.inputs.sources")
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in modules if not name.endswith("source")))


def load_source(kind: str) -> type[Source]:
    """Returns the dataclass of the source with that name.

    Raises:
        SettingError: there is no such source; the message lists all.
    """
    if kind not in source_names():
        known = ", ".join(source_names())
        raise SettingError("source.kind", f": there is no source {kind!r}: choose one of {known}")
    source: type[Source] = import_module(f"recordmill.transforms.inputs.sources.{kind}").SOURCE
    return source
