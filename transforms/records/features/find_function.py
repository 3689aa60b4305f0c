"""The functions that settings name: found by their names, identified by their code, and called.

Features that functions compute for one record.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.machinery import BuiltinImporter, FrozenImporter
from typing import Any

import numpy as np

from recordmill.imaging.pixels import Raster, copy_pixels
from recordmill.schemas.coercion import COERCE, FeatureValueError, Value
from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Reject, Rejected
from recordmill.schemas.settings.custom_convention import FeatureFunction
from recordmill.transforms.records.features.built_in import FUNCTIONS

MOST_OF_DETAIL = 500
"""Letters of the reason that a function gives for rejecting an image."""


class FunctionError(Exception):
    """A function failed, or returned something that cannot be used: only its author can fix that, so the run fails.

    The message names the setting, the function, the file and what went wrong.
    """


def call_function(setting: str, name: str, key: str, *arguments: Any) -> Any:
    """What the function of that name returns.

    Args:
        setting: the YAML key that names it, for people.
        name: its name.
        key: the record's name in the dataset, for people.
        arguments: those of the function.

    Raises:
        FunctionError: it failed.
        Rejected: stage `encode`, `function`: it raised `Reject`.
    """
    function = find_function(name)
    try:
        return function(*arguments)
    except Reject as rejected:
        why = " ".join(str(rejected).split())[:MOST_OF_DETAIL]
        raise Rejected("encode", "function", why or f"{name} gives no reason") from None
    except (Exception, SystemExit) as error:  # a user's function may raise whatever it likes
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise FunctionError(f"{setting}: {name} failed on {key}: {why}") from error


@cache
def find_function(name: str) -> Callable[..., Any]:
    """The function of that name.

    Raises:
        ValueError: there is none.
    """
    module_name, colon, path = name.partition(":")
    if not colon:
        return FUNCTIONS[name]
    try:
        found: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's module may raise whatever it likes
        why = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "correct it, or add its folder to PYTHONPATH"
        raise ValueError(f"function {name!r}: the module cannot be imported ({why}): {advice}") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"function {name!r}: the module {module_name} has no function {path!r}")
    if _is_built_into_python(module_name):
        raise ValueError(f"function {name!r} is Python's own: name a function in a module of your own")
    return found


def _is_built_into_python(module: str) -> bool:
    """Whether a module comes with the interpreter itself, not from a file: `os`, `builtins`."""
    return getattr(sys.modules.get(module), "__loader__", None) in (BuiltinImporter, FrozenImporter)


def digest_code(name: str) -> str:
    """SHA-256 of the source of a function's module: changed code makes another dataset.

    What that module imports is not in it. Empty for functions of Recordmill, which has a version.
    """
    if ":" not in name:
        return ""
    function = find_function(name)
    modules = {name.partition(":")[0], getattr(function, "__module__", None) or type(function).__module__}
    digest = hashlib.sha256()
    for module in sorted(modules):
        found = sys.modules.get(module)
        path = getattr(found, "__file__", None)
        if path and not _is_built_into_python(module):  # from a folder or an archive, source or compiled
            digest.update(found.__loader__.get_data(path))  # type: ignore[union-attr]
    return digest.hexdigest()


def compute_features(
    functions: Mapping[str, FeatureFunction], raster: Raster | None, data: bytes, key: str, uri: str
) -> dict[str, Any]:
    """Values by feature.

    Args:
        functions: by feature.
        raster: the decoded image; None where no function takes it.
        data: the file's bytes.
        key: the record's name in the dataset, for people.
        uri: where the file is.

    Raises:
        FunctionError: a function failed.
    """
    return {name: _compute(name, each, raster, data, key, uri) for name, each in functions.items()}


def _compute(name: str, settings: FeatureFunction, raster: Raster | None, data: bytes, key: str, uri: str) -> Any:
    arguments: tuple[Any, ...] = (data, uri)
    if settings.takes == "image" and raster is not None:
        # The user's own may write into it, and the next one is given the image again.
        arguments = (raster if settings.is_built_in else copy_pixels(raster),)
    given = call_function(f"features.{name}", settings.function, key, *arguments)
    try:
        return _fit(given, settings.as_feature(name))
    except FeatureValueError as error:
        what = f"what {settings.function} gave for {key} does not fit"
        raise FunctionError(f"features.{name}: {what}: {error}") from None


def _fit(given: Any, feature: Feature) -> Value | list[Value]:
    coerce = COERCE[feature.kind]
    if isinstance(given, np.ndarray):
        if feature.many and given.ndim != 1:
            raise FeatureValueError(f"its shape is {list(given.shape)}, not that of a list: give it flat")
        given = given.tolist()
    if not feature.many:
        return coerce(given)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise FeatureValueError("must be a list (with shape: [], one value)")
    return [coerce(each) for each in given]
