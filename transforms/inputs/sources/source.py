"""What a source implements, and how one is found by name."""

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Protocol

from recordmill.schemas.content import Content
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import SourceSettings
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.listing.class_names import state_classes
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised


class Source(SourceSettings, Protocol):
    """Turns listed files into references, and references into what they hold.

    A source inherits from this class as a frozen dataclass: its fields are its YAML keys. Only `list_references` is
    required; `schemas.settings.source` says what else it may have.
    """

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterable[Recognised]:
        """The ways in which an input's files may be meant for this source, where users say nothing.

        Several where the user must choose. No file is read: the sketch has what may be known.
        """
        return ()

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads what one reference holds. A source overrides it where that is not a plain image file.

        Args:
            ref: one of the references that `list_references` gave.
            max_bytes: more is not read.

        Raises:
            Rejected: there is something wrong with this one; see `storage.packed_files.read_image`.
        """
        data = read_image(ref, max_bytes)
        return Content(data, data)


class ArraySource(Source, Protocol):
    """A source of pixels, whose labels are numbers.

    Attributes:
        labels: where labels are; empty if there are none.
        class_names: the classes in the order of their numbers, or how many there are, called 0, 1, ...
    """

    labels: Any
    class_names: tuple[str, ...] | int
    gives_pixels: ClassVar[bool] = True

    def classes(self) -> Mapping[str, int]:
        """Those of `class_names`."""
        return state_classes(self.class_names)

    @property
    def gives_labels(self) -> bool:
        """If they are somewhere."""
        return bool(self.labels)


def list_file(source: SourceSettings, path: str, file: ImageRef) -> Iterator[Listed]:
    """Yields what `source.list_references` yields; where that rejects the file, or the rest of it, a notice of that."""
    try:
        yield from source.list_references(path, file)
    except Rejected as rejected:
        yield file.notice("rejected", rejected.reason, rejected.detail)


@cache
def source_names() -> tuple[str, ...]:
    """The names of all sources, sorted."""
    package = import_module("recordmill.transforms.inputs.sources")
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in modules if name != "source"))


def load_source(kind: str) -> type[Any]:
    """The dataclass of the source of that name.

    Raises:
        ValueError: there is none, and the message lists those there are; or its module names none.
    """
    if kind not in source_names():
        raise ValueError(f"there is no source {kind!r}: choose one of {', '.join(source_names())}")
    module = import_module(f"recordmill.transforms.inputs.sources.{kind}")
    source: type[Any] | None = getattr(module, "SOURCE", None)
    if source is None:
        raise ValueError(f"the source {kind} cannot be used: write SOURCE = and its class at the end of {kind}.py")
    return source
