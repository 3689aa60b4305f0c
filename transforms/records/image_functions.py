"""Functions that settings name, and filters: work on single images besides preparing them.

Functions are found by name, identified by their code, and called. Some are built in.
"""

import hashlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.machinery import BuiltinImporter, FrozenImporter
from typing import Any

import numpy as np

from recordmill.annotations.kinds import KINDS
from recordmill.imaging import ImageSettings
from recordmill.imaging.acceptance import check_size
from recordmill.imaging.geometry import hash_differences as hash_of
from recordmill.imaging.pixels import Raster, copy_pixels, count_values, moments, to_image
from recordmill.imaging.prepare import NO_HOOKS, Hooks
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import COERCE, Feature, FeatureValueError, Value
from recordmill.schemas.formatting import plural_of
from recordmill.schemas.image_ref import ImageRef, Pixels
from recordmill.schemas.rejection import LeftOut, Reject, Rejected, describe_error
from recordmill.schemas.settings.dataset import KeepSettings
from recordmill.schemas.settings.feature_function import FeatureFunction

BINS = 8
"""Bins of the color histogram, for each channel."""


def mean_std(image: Pixels) -> list[float]:
    """Returns the means of red, green and blue, then their standard deviations, 0 to 255.

    Gray counts as three equal channels.
    """
    taken = np.array(moments(np.ascontiguousarray(image)), dtype=np.float64) / (
        image.shape[0] * image.shape[1]
    )
    means, squares = np.broadcast_to(taken, (3, 2)).T
    return [*map(float, means), *map(float, np.sqrt(np.maximum(squares - means**2, 0)))]


def color_histogram(image: Pixels) -> list[float]:
    """Returns the shares of pixels by red, then green, then blue, in eight bins each.

    These are 24 numbers; each group of eight sums to 1.
    """
    counts = count_values(np.ascontiguousarray(image)).reshape(-1, BINS, 256 // BINS).sum(2)
    shares = np.broadcast_to(counts / counts.sum(1, keepdims=True), (3, BINS))
    return [float(value) for value in shares.ravel()]


def difference_hash(image: Pixels) -> bytes:
    """Returns 64 bits in hex; few differ between images that look alike: see `imaging.geometry`."""
    return f"{hash_of(np.ascontiguousarray(image)):016x}".encode()


def pixels_sha256(image: Pixels) -> bytes:
    """Returns SHA-256 in hex of the pixels, row by row, with interleaved channels."""
    return hashlib.sha256(copy_pixels(np.ascontiguousarray(image)).data).hexdigest().encode()


def file_sha256(data: bytes, uri: str) -> bytes:
    """Returns SHA-256 in hex of the file's bytes."""
    return hashlib.sha256(data).hexdigest().encode()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (mean_std, color_histogram, difference_hash, pixels_sha256, file_sha256)
}
"""The built-in functions by their names in YAML. They take pixels (height, width, 1 or 3 channels,
or 4 with an unused last one), or a file's bytes and uri."""


MOST_OF_DETAIL = 500
"""The most characters kept of a function's reason for rejecting an image."""


class FunctionError(Exception):
    """A function failed, or returned something that cannot be used.

    Only its author can fix that, so the run fails. The message names the setting, the function, the
    file and what went wrong.
    """


def call_function(setting: str, name: str, key: str, *arguments: Any) -> Any:
    """Calls the function of that name.

    Args:
        setting: the YAML key that names it, for messages.
        name: its name.
        key: the record's name in the dataset, for messages.
        arguments: its arguments.

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
        raise FunctionError(
            f"{setting}: {name} failed on {key}: {describe_error(error)}"
        ) from error


_PATH_LOCK = threading.Lock()


@contextmanager
def _current_folder_on_path() -> Iterator[None]:
    """Lets modules be imported from the current folder, too, while the block runs.

    The command `recordmill` must find the user's modules. It must not find them first: a
    `random.py` next to the images would then replace Python's module everywhere.
    """
    here = ""  # Python takes the empty entry for the current folder, even if that was deleted
    sys.path.append(here)
    try:
        yield
    finally:
        # The last of the equal entries goes: the user's own comes first. With several threads in
        # the block, it does not matter whose entry goes.
        with _PATH_LOCK:
            if here in sys.path:  # else the module has removed it
                del sys.path[len(sys.path) - 1 - sys.path[::-1].index(here)]


@cache
def find_function(name: str) -> Callable[..., Any]:
    """Finds the function of that name.

    Its module is imported from where Python finds it, or else from the current folder.

    Raises:
        SettingError: there is none.
    """
    module_name, colon, path = name.partition(":")
    if not colon:
        return FUNCTIONS[name]
    try:
        with _current_folder_on_path():
            found: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's module may raise whatever it likes
        why = f"the module cannot be imported ({describe_error(error)})"
        raise SettingError(
            "function",
            f"{name!r}: {why}: correct it, add its folder to PYTHONPATH, or run from that folder",
        ) from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        file = getattr(sys.modules.get(module_name), "__file__", None)
        where = f": its file is {file}" if file else ""  # perhaps another module of that name
        raise SettingError(
            "function", f"{name!r}: the module {module_name} has no function {path!r}{where}"
        )
    if _is_built_into_python(module_name):
        raise SettingError(
            "function", f"{name!r} is Python's own: name a function in a module of your own"
        )
    return found


def _is_built_into_python(module: str) -> bool:
    """Returns whether a module is part of the interpreter rather than a file: `os`, `builtins`."""
    return getattr(sys.modules.get(module), "__loader__", None) in (BuiltinImporter, FrozenImporter)


def digest_code(name: str) -> str:
    """Returns SHA-256 of the source of a function's module: changed code makes another dataset.

    Modules that it imports are not included. Empty for Recordmill's own functions: it has a
    version.
    """
    if ":" not in name:
        return ""
    function = find_function(name)
    modules = {
        name.partition(":")[0],
        getattr(function, "__module__", None) or type(function).__module__,
    }
    digest = hashlib.sha256()
    for module in sorted(modules):
        found = sys.modules.get(module)
        path = getattr(found, "__file__", None)
        # From a folder or an archive, source or compiled.
        if path and not _is_built_into_python(module):
            digest.update(found.__loader__.get_data(path))  # type: ignore[union-attr]
    return digest.hexdigest()


def compute_features(
    functions: Mapping[str, FeatureFunction], raster: Raster | None, data: bytes, key: str, uri: str
) -> dict[str, Any]:
    """Computes values by feature.

    Args:
        functions: by feature.
        raster: the decoded image; None if no function takes it.
        data: the file's bytes.
        key: the record's name in the dataset, for messages.
        uri: where the file is.

    Raises:
        FunctionError: a function failed.
    """
    values = {}
    for name, settings in functions.items():
        arguments: tuple[Any, ...] = (data, uri)
        if settings.signature.of == "image" and raster is not None:
            # A user's function may write into the array, and the next function gets the same image.
            arguments = (raster if settings.is_built_in else copy_pixels(raster),)
        given = call_function(f"features.{name}", settings.function, key, *arguments)
        try:
            values[name] = _coerce(given, settings.as_feature(name))
        except FeatureValueError as error:
            what = f"what {settings.function} gave for {key} does not fit"
            raise FunctionError(f"features.{name}: {what}: {error}") from None
    return values


def _coerce(given: Any, feature: Feature) -> Value | list[Value]:
    coerce = COERCE[feature.kind]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not feature.many:
        return coerce(given)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise FeatureValueError("must be a list (with shape: [], one value)")
    return [coerce(each) for each in given]


def make_hooks(
    ref: ImageRef, images: ImageSettings, keep: KeepSettings, twice: bool = False
) -> Hooks:
    """Makes the hooks that are called while an image is prepared.

    Args:
        ref: the image.
        images: may name a function.
        keep: the filters; only those by size are applied.
        twice: whether to call the function twice, and fail if it returns different pixels.
    """
    if keep.min_side is None and keep.max_aspect is None and not images.function:
        return NO_HOOKS
    if images.function:
        change = partial(_apply_function, images, ref, twice)
    else:
        change = None
    return Hooks(partial(_check_size, keep), change)


def _check_size(keep: KeepSettings, width: int, height: int) -> None:
    shorter, longer = sorted((width, height))
    size = f"{width} x {height} pixels"
    if keep.min_side is not None and shorter < keep.min_side:
        raise LeftOut("too_small", size)
    if keep.max_aspect is not None and longer > keep.max_aspect * shorter:
        raise LeftOut("too_long", size)


def _apply_function(images: ImageSettings, ref: ImageRef, twice: bool, pixels: Pixels) -> Pixels:
    """Calls `images.function`, and checks the result."""
    name, (height, width) = str(images.function), pixels.shape[:2]
    returned = _call_with_pixels("images.function", name, ref.key, pixels, twice)
    problem = _find_problem(returned, images)
    if not problem and returned.shape[:2] != (height, width) and (moved := _find_moved(ref)):
        now = f"{returned.shape[1]} x {returned.shape[0]} pixels"
        problem = f"{now} for an image of {width} x {height} with {moved}: keep its size"
    if problem:
        raise FunctionError(f"images.function: {name} returned, for {ref.key}, {problem}")
    return np.ascontiguousarray(returned)


def _find_moved(ref: ImageRef) -> str | None:
    """Returns what annotates an image and would have to move with its pixels, in the plural."""
    for name, packed in ref.annotations:
        kind = KINDS[name]
        if kind.follows_pixels and kind.list_labels(packed).total:
            return plural_of(kind.unit)
    return None


def _call_with_pixels(setting: str, name: str, key: str, pixels: Pixels, twice: bool) -> Any:
    """Calls a function that decides what is stored.

    If `twice`, it must give the same answer again.
    """
    # The function may change the pixels.
    answer = call_function(setting, name, key, pixels.copy() if twice else pixels)
    if (
        twice
        and np.asarray(answer).tobytes()
        != np.asarray(call_function(setting, name, key, pixels)).tobytes()
    ):
        what = f"{name} gave two answers for {key}"
        raise FunctionError(f"{setting}: {what}: its answer must depend on the image alone")
    return answer


def _find_problem(returned: object, images: ImageSettings) -> str | None:
    """Returns what is wrong with a returned value, and what to do; None if nothing is."""
    if not isinstance(returned, np.ndarray):
        return f"a value of the type {type(returned).__name__}: return a numpy array"
    if returned.ndim != 3 or returned.shape[2] not in (1, 3) or returned.dtype != np.uint8:
        what = f"an array of shape {list(returned.shape)} of {returned.dtype}"
        return f"{what}: return height x width x 1 or 3 values of uint8, 0 to 255"
    try:
        check_size(returned.shape[1], returned.shape[0], images)
    except Rejected as rejected:
        return f"{rejected.detail}: return another size"
    return None


def check_kept(raster: Raster, keep: KeepSettings, key: str, twice: bool = False) -> None:
    """Applies the filters that need an image's pixels.

    Args:
        raster: the pixels that will be stored, before they are encoded.
        keep: the filters.
        key: the image's key.
        twice: whether to call the function twice, and fail if its answers differ.

    Raises:
        LeftOut: the image does not meet a condition.
        FunctionError: the function failed, or its answers are not usable.
    """
    if keep.min_sharpness is not None or keep.min_brightness is not None:
        gray = np.asarray(to_image(raster).convert("L"))
        if keep.min_brightness is not None and (mean := float(gray.mean())) < keep.min_brightness:
            raise LeftOut("too_dark", f"brightness {mean:.1f}")
        if (
            keep.min_sharpness is not None
            and (variance := measure_sharpness(gray)) < keep.min_sharpness
        ):
            raise LeftOut("too_blurred", f"sharpness {variance:.1f}")
    if keep.function:
        answer = _call_with_pixels("keep.function", keep.function, key, copy_pixels(raster), twice)
        if not isinstance(answer, bool | np.bool_):
            what = f"a value of the type {type(answer).__name__}"
            raise FunctionError(
                f"keep.function: {keep.function} returned, for {key}, {what}: return True or False"
            )
        if not answer:
            raise LeftOut("unwanted", keep.function)


def measure_sharpness(gray: Raster) -> float:
    """Returns the variance of the Laplacian of gray values, without the outermost pixels.

    It is 0 for images of less than 3 x 3.
    """
    values = gray.astype(np.int16)
    inner = values[1:-1, 1:-1]
    edges = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * inner
    if not edges.size:
        return 0.0
    # In integers, so that every machine computes the same.
    total, squares = (
        int(edges.sum(dtype=np.int64)),
        int(np.square(edges, dtype=np.int32).sum(dtype=np.int64)),
    )
    return (squares * edges.size - total * total) / edges.size**2
