"""What a source implements, and how one is found by name."""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from schemas.features import Feature
from schemas.image_ref import ImageRef


@runtime_checkable
class Source(Protocol):
    """Turns one listed file into the references of its images. A frozen dataclass: its fields are its YAML keys."""

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """Yields a reference for each image of one file; without Beam, and without reading the file where possible.

        Args:
            path: the file's path below the input, without the folder that gave its split; `/`-separated, NFC.
            file: a reference to the whole file: `key`, `uri`, `size`, `version` and, where given, `split` are set.

        Yields:
            References with `label`, `group`, `features` and byte range set; or one with `status="rejected"`, a
            `reason` code and a `detail` for people. Never nothing: the ledger counts a file that holds no image too.
        """
        ...

    def features(self) -> tuple[Feature, ...]:
        """Features that this source adds to a convention's own; their `field` is a name in `ImageRef.features`."""
        ...


@cache
def source_names() -> tuple[str, ...]:
    """The names of all sources, sorted."""
    package = import_module("transforms.sources")
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in modules if name != "source"))


def load_source(kind: str) -> type[Any]:
    """The dataclass of the source of that name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in source_names():
        raise ValueError(f"there is no source {kind!r}: choose one of {', '.join(source_names())}")
    source: type[Any] = import_module(f"transforms.sources.{kind}").SOURCE
    return source
