"""What YAML says of a computed feature."""

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import BuiltinImporter, FrozenImporter
from typing import Any, Literal

from recordmill.schemas.features import Feature, Kind
from recordmill.transforms.records.features.built_in import BUILT_IN


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFunction:
    """One computed feature: the YAML keys below its name.

    Attributes:
        function: `package.module:function`, or the name of one that comes with Recordmill: `mean_std`,
            `color_histogram`, `difference_hash`, `pixels_sha256`, `file_sha256`.
        type: `float`, `int64` or `bytes`: what a function of your own gives.
        shape: of that, `[null]` for a list (the default) or `[]` for one value.
        of: what a function of your own takes: `image`, its pixels; or `file`, its bytes and its uri.
        meaning: one line for people.
    """

    function: str
    type: Kind | None = None
    shape: tuple[None, ...] | None = None
    of: Literal["image", "file"] | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError where there is no such function, or where its known result is declared."""
        if self.shape is not None and len(self.shape) > 1:
            raise ValueError("shape is [] for one value or [null] for any number of them")
        if self.is_built_in and (self.type or self.shape is not None or self.of):
            raise ValueError(f"type, shape and of are fixed for {self.function}: remove them")
        resolve(self.function)

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with Recordmill."""
        return ":" not in self.function

    @property
    def takes(self) -> Literal["image", "file"]:
        """What the function is given."""
        return BUILT_IN[self.function].of if self.is_built_in else self.of or "image"

    def as_feature(self, name: str) -> Feature:
        """The feature that it fills, which is its field too."""
        if self.is_built_in:
            known = BUILT_IN[self.function]
            return Feature(name, known.kind, name, self.meaning or known.meaning, many=known.many)
        many = self.shape is None or bool(self.shape)
        return Feature(name, self.type or "float", name, self.meaning or f"computed by `{self.function}`", many=many)

    @property
    def code_digest(self) -> str:
        """SHA-256 of the source of the function's module: changed code makes another dataset.

        What that module imports is not in it. Empty for functions of Recordmill, which has a version.
        """
        return "" if self.is_built_in else _digest_of(resolve(self.function), self.function)


@cache
def resolve(name: str) -> Callable[..., Any]:
    """The function of that name.

    Raises:
        ValueError: there is none.
    """
    module_name, colon, path = name.partition(":")
    if not colon:
        if name not in BUILT_IN:
            known = ", ".join(BUILT_IN)
            raise ValueError(
                f"unknown function {name!r}: write one of {known}, or package.module:function for your own"
            )
        return BUILT_IN[name].function
    found: Any = _import(module_name, name)
    for part in path.split("."):
        found = getattr(found, part, None)
    if callable(found) and _is_built_into_python(module_name):
        raise ValueError(f"function {name!r} is Python's own: name a function in a module of your own")
    if not callable(found):
        raise ValueError(f"function {name!r}: the module {module_name} has no function {path!r}")
    function: Callable[..., Any] = found
    return function


def _import(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's module may raise whatever it likes
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"function {name!r}: the module cannot be imported ({why}): correct it, or add its folder to PYTHONPATH"
        ) from None


def _is_built_into_python(module: str) -> bool:
    """Whether a module comes with the interpreter itself, not from a file: `os`, `builtins`."""
    return getattr(sys.modules.get(module), "__loader__", None) in (BuiltinImporter, FrozenImporter)


def _digest_of(function: Callable[..., Any], name: str) -> str:
    modules = {name.partition(":")[0], getattr(function, "__module__", None) or type(function).__module__}
    digest = hashlib.sha256()
    for module in sorted(modules):
        found = sys.modules.get(module)
        path = getattr(found, "__file__", None)
        if path and not _is_built_into_python(module):  # from a folder or an archive, source or compiled
            digest.update(found.__loader__.get_data(path))  # type: ignore[union-attr]
    return digest.hexdigest()
