"""What the values of semantic masks mean, as a few of them look: ids, two levels, or colors."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from recordmill import storage
from recordmill.annotations.segmentation import IGNORED_ID, IGNORED_ID_16
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.masks.mask_file import MaskValues, decode_mask
from recordmill.imaging.masks.mask_values import find_levels, read_gray
from recordmill.imaging.masks.outline import OutlineError
from recordmill.transforms.inputs.image_looks import (
    MOST_PIXELS,
    Appearance,
    look_at_image,
    look_at_wide_gray,
)
from recordmill.transforms.inputs.listed_pairs import MOST_BYTES
from recordmill.transforms.inputs.pair_names import means_mask

LEAST_LIKE_MASKS = 0.9
"""The least share of the second images that look like masks, and of the first that do not."""

_LEAST_HIGH = 128
"""The smallest upper value of two levels: smaller ones are ids."""

MaskForm = Literal["ids", "levels", "smooth levels", "colors"]
"""`levels` are two, such as 0 and 255; `smooth levels` are two with others between them, at borders
or since JPEG has changed them."""


@dataclass(frozen=True, slots=True)
class MaskLook:
    """What some masks have in common.

    Attributes:
        form: what their values are.
        threshold: for two levels, the value in the middle.
        values: the values that were seen, as `decode_mask` gives them.
    """

    form: MaskForm
    threshold: int
    values: frozenset[int]

    @property
    def needs_16_bits(self) -> bool:
        """Whether there are ids over those of 8 bits."""
        return self.form == "ids" and max(self.values) > IGNORED_ID

    @property
    def ignored(self) -> int:
        """The id that needs no name."""
        return IGNORED_ID_16 if self.needs_16_bits else IGNORED_ID


@dataclass(frozen=True, slots=True)
class _SeenImage:
    data: bytes
    size: tuple[int, int]
    appearance: Appearance


def look_at_masks(root: str, pairs: Sequence[tuple[str, str]], is_local: bool) -> MaskLook | None:
    """Looks at some pairs of an image and its mask.

    Args:
        root: the input.
        pairs: the paths of each image and its mask, below it.
        is_local: whether images are read, too, and not just masks: on a store, each takes a
            request.

    Returns:
        What their values are; None if the second images do not look like masks of the first.
    """
    seconds = list[_SeenImage]()
    likely = 0
    for image, mask in pairs:
        second = _see(f"{root}/{mask}")
        if second is None:
            return None
        seconds.append(second)
        first = _see(f"{root}/{image}") if is_local else None
        likely += _is_pair(first, second, means_mask(mask) and not means_mask(image))
    if likely < LEAST_LIKE_MASKS * len(pairs):
        return None
    return _compare_values(seconds)


def _see(uri: str) -> _SeenImage | None:
    try:
        data = storage.read_range(uri, 0, MOST_BYTES)
        with Image.open(io.BytesIO(data)) as image:
            size = image.size
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    found = look_at_image(data) or look_at_wide_gray(data)
    return _SeenImage(data, size, found) if found and size[0] * size[1] <= MOST_PIXELS else None


def _is_pair(first: _SeenImage | None, second: _SeenImage, is_named: bool) -> bool:
    """Returns whether the second image may be a mask of the first one, which may be unknown.

    If a program has drawn the first one, too, names must tell which is which.
    """
    if not second.appearance.is_drawn:
        return False
    if first is None:
        return True
    is_of_size = first.size in (second.size, second.size[::-1])
    return is_of_size and (is_named or not first.appearance.is_drawn)


def _compare_values(seconds: Sequence[_SeenImage]) -> MaskLook | None:
    """Returns what all masks have in common; None if they cannot be decoded, or JPEG spoils ids."""
    found, forms, middles = set[int](), set[MaskForm](), set[int]()
    for each in seconds:
        try:
            decoded = decode_mask(each.data, each.size)
        except OutlineError:
            return None
        values = read_gray(decoded.values)
        form, middle = _find_form(values)
        if decoded.has_colors:
            form = "colors"
        if sniff(each.data) == "JPEG":
            if each.appearance.levels > 2 or form == "colors":
                return None
            form = "smooth levels"
        forms.add(form)
        middles.add(middle)
        found |= {*np.unique(values).tolist()}
    form = _join_forms(forms, found)
    return MaskLook(form, max(middles), frozenset(found))


def _find_form(values: MaskValues) -> tuple[MaskForm, int]:
    """Returns what the values of one mask are, and the value in the middle of two levels."""
    levels = find_levels(values)
    if levels is None or levels.high < _LEAST_HIGH:
        return "ids", 0
    return ("levels" if levels.is_exact else "smooth levels"), levels.threshold


def _join_forms(forms: set[MaskForm], values: set[int]) -> MaskForm:
    """Returns what the values of all masks are, if some have one value alone."""
    if "colors" in forms:
        return "colors"
    if "smooth levels" in forms:
        return "smooth levels"
    if forms == {"ids"}:
        return "ids"
    return "levels" if len(values) == 2 and 0 in values else "ids"
