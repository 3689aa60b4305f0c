"""What a source implements, and how one is found by name."""

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import orjson

from recordmill.schemas.content import Content
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch
from recordmill.transforms.inputs.read_image import read_image


@dataclass(frozen=True, slots=True)
class Recognised:
    """How the files of an input may be meant.

    Attributes:
        settings: the settings that say so, as a user would write them in YAML.
        why: by which files: the end of a sentence `it looks like ...`.
        is_firm: whether the names speak for it; if not, it is taken only where nothing else fits.
        needs: what must be said or done first, as a sentence; empty: nothing.
        needed_key: the YAML key that says it, if one does.
    """

    settings: Mapping[str, Any]
    why: str
    is_firm: bool = True
    needs: str = ""
    needed_key: str = ""

    @property
    def kind(self) -> str:
        """The source."""
        return str(self.settings["source"]["kind"])


class Source(SourceSettings, Protocol):
    """Turns listed files into references, and references into what they hold.

    A source inherits from this class as a frozen dataclass: its fields are its YAML keys. `refer` is all that it must
    have; `schemas.settings.source` says what else it may have.
    """

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterable[Recognised]:
        """The ways in which an input's files may be meant for this source, where users say nothing.

        Several where the user must choose. No file is read: the sketch has what may be known.
        """
        return ()

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Reads what one reference holds. A source overrides it where that is no plain image file.

        Args:
            ref: one of the references that `refer` gave.
            max_bytes: more is not read.

        Raises:
            Rejected: there is something wrong with this one; see `transforms.compose.read_images.read_image`.
        """
        data = read_image(ref, max_bytes)
        return Content(data, data)


def list_file(source: SourceSettings, path: str, file: ImageRef) -> Iterator[ImageRef]:
    """Yields what `source.refer` yields; where that rejects the file, or the rest of it, a rejected reference of it."""
    try:
        yield from source.refer(path, file)
    except Rejected as rejected:
        yield file.but(status="rejected", reason=rejected.reason, detail=rejected.detail)


def announce_classes(file: ImageRef, classes: Mapping[str, int] | Iterable[str]) -> ImageRef:
    """A reference that names classes, for a source's `refer` to yield beside its images.

    Args:
        file: the file that they are known from.
        classes: every class by the number that the source gives it, which decides the order of the ids; or names alone,
            for labels that no reference has in `label` (those of boxes, or of several in one image).
    """
    known = dict(classes) if isinstance(classes, Mapping) else sorted(set(classes))
    return ImageRef(file.key, file.uri, status="classes", reason="classes", detail=orjson.dumps(known).decode())


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
