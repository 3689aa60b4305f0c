"""What settings do to single images besides preparing them: filters, and functions of the user's own."""

from functools import partial

import numpy as np

from recordmill.imaging import ImageSettings
from recordmill.imaging.limits import check_size
from recordmill.imaging.pixels import Raster, copy_pixels, to_image
from recordmill.imaging.prepare import NO_HOOKS, Hooks
from recordmill.schemas.content import Pixels
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_boxes import count_boxes
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.settings.dataset import KeepSettings
from recordmill.transforms.records.features.find_function import FunctionError, call_function


def make_hooks(ref: ImageRef, images: ImageSettings, keep: KeepSettings, twice: bool = False) -> Hooks:
    """What is done to an image while it is prepared.

    Args:
        ref: the image.
        images: the settings that may name a function.
        keep: the filters of sizes are applied.
        twice: whether to call the function twice, and fail if it returns other pixels.
    """
    if keep.min_side is None and keep.max_aspect is None and not images.function:
        return NO_HOOKS
    change = partial(_call, images, ref, twice) if images.function else None
    return Hooks(partial(_check_size, keep), change)


def _check_size(keep: KeepSettings, width: int, height: int) -> None:
    shorter, longer = sorted((width, height))
    size = f"{width} x {height} pixels"
    if keep.min_side is not None and shorter < keep.min_side:
        raise LeftOut("too_small", size)
    if keep.max_aspect is not None and longer > keep.max_aspect * shorter:
        raise LeftOut("too_long", size)


def _call(images: ImageSettings, ref: ImageRef, twice: bool, pixels: Pixels) -> Pixels:
    """What `images.function` returns for these pixels."""
    name, size = str(images.function), pixels.shape[:2]
    copies = [pixels.copy()] if twice else []
    returned = call_function("images.function", name, ref.key, pixels)
    problem = _find_problem(returned, images)
    if not problem and count_boxes(ref) and returned.shape[:2] != size:
        problem = f"{_show(returned)} for an image of {size[1]} x {size[0]} with boxes: keep its size"
    if problem:
        raise FunctionError(f"images.function: {name} returned, for {ref.key}, {problem}")
    for copy in copies:
        if not np.array_equal(returned, call_function("images.function", name, ref.key, copy)):
            raise FunctionError(_differ("images.function", name, ref.key))
    return np.ascontiguousarray(returned)


def _find_problem(returned: object, images: ImageSettings) -> str:
    """What is wrong with what a function returned, and what to do; the empty string if nothing is."""
    if not isinstance(returned, np.ndarray):
        return f"a value of the type {type(returned).__name__}: return a numpy array"
    if returned.ndim != 3 or returned.shape[2] not in (1, 3):
        return f"an array of shape {list(returned.shape)}: return height x width x 1 or 3"
    if returned.dtype != np.uint8:
        return f"values of the type {returned.dtype}: return 0 to 255 as uint8"
    try:
        check_size(returned.shape[1], returned.shape[0], images)
    except Rejected as rejected:
        return f"{rejected.detail}: return another size"
    return ""


def check_kept(raster: Raster, keep: KeepSettings, key: str, twice: bool = False) -> None:
    """Applies the filters that need an image's pixels.

    Args:
        raster: the pixels as they are stored, before they are encoded.
        keep: the filters.
        key: the image's key.
        twice: whether to call the function twice, and fail if it gives another answer.

    Raises:
        LeftOut: the image does not meet a condition.
        FunctionError: the function failed, or its answers are not usable.
    """
    if keep.min_sharpness is not None or keep.min_brightness is not None:
        gray = np.asarray(to_image(raster).convert("L"))
        if keep.min_brightness is not None and (mean := float(gray.mean())) < keep.min_brightness:
            raise LeftOut("too_dark", f"brightness {mean:.1f}")
        if keep.min_sharpness is not None and (variance := measure_sharpness(gray)) < keep.min_sharpness:
            raise LeftOut("too_blurred", f"sharpness {variance:.1f}")
    if keep.function:
        answers = [call_function("keep.function", keep.function, key, copy_pixels(raster)) for _ in range(1 + twice)]
        for answer in answers:
            if not isinstance(answer, bool | np.bool_):
                what = f"a value of the type {type(answer).__name__}"
                raise FunctionError(f"keep.function: {keep.function} returned, for {key}, {what}: return True or False")
        if len(set(answers)) > 1:
            raise FunctionError(_differ("keep.function", keep.function, key))
        if not answers[0]:
            raise LeftOut("unwanted", keep.function)


def measure_sharpness(gray: Raster) -> float:
    """The variance of the Laplacian of gray values, without the outermost pixels; 0 for images of less than 3 x 3."""
    values = gray.astype(np.int16)
    inner = values[1:-1, 1:-1]
    edges = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * inner
    if not edges.size:
        return 0.0
    # In integers, so that every machine finds the same.
    total, squares = int(edges.sum(dtype=np.int64)), int(np.square(edges, dtype=np.int32).sum(dtype=np.int64))
    return (squares * edges.size - total * total) / edges.size**2


def _differ(setting: str, name: str, key: str) -> str:
    return f"{setting}: {name} gave two answers for {key}: its answer must depend on the image alone"


def _show(pixels: Pixels) -> str:
    return f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
