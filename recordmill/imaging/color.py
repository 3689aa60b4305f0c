"""Converts any of Pillow's modes to 8-bit gray or sRGB without transparency.

Images whose profile is not sRGB are converted, since readers of the dataset ignore profiles. Gray
images of more than 8 bits are reduced to 8, without the saturation of Pillow's `convert`: see
`depth`.
"""

import io
from functools import lru_cache
from itertools import chain, product
from typing import Literal

from PIL import Image, ImageCms

from recordmill.imaging.depth import is_deep, reduce_depth

Verdict = Literal["harmless", "needed", "unusable"]

# The profile's color space signature that fits each mode (ICC.1:2022, 7.2.6).
_SIGNATURES = {"L": "GRAY", "RGB": "RGB ", "CMYK": "CMYK", "LAB": "Lab "}

# Profiles that move no probe by more than this many of 255 levels count as sRGB. Measured on the
# RGB profiles found in 2,403 real files: all profiles named sRGB move them by 0 or 1, all others by
# 64 or more.
_TOLERANCE = 2


def apply_profile(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, set[str]]:
    """Converts an L, RGB, CMYK or LAB image to sRGB by its profile, if that makes a difference.

    Returns:
        The image and the names of the changes. If it is converted, gray stays L, and all others
        become RGB.
    """
    verdict, transform = judge_profile(profile, image.mode)
    if verdict == "unusable":
        return image, {"icc_ignored"}
    if transform is None:
        return image, set()
    converted = transform.apply(image)
    if image.mode == "L":
        converted = converted.getchannel("G")
    return converted, {"icc_converted"}


@lru_cache(maxsize=1)
def _lab_transform() -> ImageCms.ImageCmsTransform:
    """Returns from LAB (D50) to sRGB."""
    return _build(ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")), "LAB")


# A collection has few profiles, and building a transform takes longer than using it.
@lru_cache(maxsize=64)
def judge_profile(
    profile: bytes | None, mode: str
) -> tuple[Verdict, ImageCms.ImageCmsTransform | None]:
    """Judges the effect of a profile on an image of mode L, RGB, CMYK or LAB.

    Returns:
        `harmless` if there is none or it amounts to sRGB, `needed` if the image looks different
        with it, `unusable` if it is unreadable or made for another kind of image; and the
        conversion to sRGB if it is needed.
    """
    if profile is None:
        return "harmless", None
    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if opened.profile.xcolor_space != _SIGNATURES[mode]:
            return "unusable", None
        transform = _build(opened, mode)
    except (OSError, ValueError, TypeError, ImageCms.PyCMSError):
        return "unusable", None
    if mode in ("L", "RGB") and _changes_nothing(transform, mode):
        return "harmless", None
    return "needed", transform


def _build(profile: ImageCms.ImageCmsProfile, mode: str) -> ImageCms.ImageCmsTransform:
    # Relative colorimetric with black point compensation is what photo editors convert with by
    # default.
    return ImageCms.buildTransform(
        profile,
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _changes_nothing(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    """Whether all 256 grays, or 729 colors spread over the whole cube, stay nearly as they are."""
    if mode == "L":
        probe = Image.frombytes(mode, (256, 1), bytes(range(256)))
    else:
        colors = chain.from_iterable(product((*range(0, 256, 32), 255), repeat=3))
        probe = Image.frombytes(mode, (729, 1), bytes(colors))
    before, after = probe.convert("RGB").tobytes(), transform.apply(probe).tobytes()
    return max(abs(a - b) for a, b in zip(before, after, strict=True)) <= _TOLERANCE


Color = tuple[int, int, int]


def to_gray_or_srgb(
    image: Image.Image, icc_profile: bytes | None, background: Color
) -> tuple[Image.Image, set[str]]:
    """Converts a loaded image.

    Args:
        image: of any mode that the accepted formats load as.
        icc_profile: as embedded in the file; one that cannot be used is ignored.
        background: sRGB color that replaces transparency.

    Returns:
        An image of mode L (if it was gray, and the background is neutral or not needed) or RGB, and
        the names of the changes.
    """
    plain, changes = _unpack(image)
    if plain.mode in ("LA", "RGBA"):
        alpha = plain.getchannel("A")
    else:
        alpha = None
    if alpha is not None:
        plain = plain.convert(plain.mode.removesuffix("A"))
    plain, profile_changes = apply_profile(plain, icc_profile)
    changes |= profile_changes
    if plain.mode == "CMYK":
        plain = plain.convert("RGB")
    elif plain.mode == "LAB":
        plain = _lab_transform().apply(plain)
    if alpha is not None and alpha.getextrema() != (255, 255):
        plain = lay_on(background, plain.size, plain, alpha=alpha)
        changes.add("flattened")
    return plain, changes


def lay_on(
    background: Color,
    size: tuple[int, int],
    image: Image.Image,
    place: tuple[int, int] = (0, 0),
    alpha: Image.Image | None = None,
) -> Image.Image:
    """Pastes an L or RGB image at `place` (left, top) on a background of a given size.

    The image is pasted where `alpha` shows it. Gray stays gray on neutral backgrounds, and becomes
    RGB on colored ones.
    """
    if image.mode == "L" and len(set(background)) > 1:
        image = image.convert("RGB")
    ground = Image.new(image.mode, size, background[0] if image.mode == "L" else background)
    ground.paste(image, place, alpha)
    return ground


def _unpack(image: Image.Image) -> tuple[Image.Image, set[str]]:
    """Returns the image as L, LA, RGB, RGBA, CMYK or LAB."""
    transparent = "transparency" in image.info
    match image.mode:
        case mode if is_deep(mode):
            return reduce_depth(image), {"depth_reduced"}
        case "P" | "PA":
            return image.convert("RGBA" if transparent or image.mode == "PA" else "RGB"), {
                "palette_expanded"
            }
        case "1" | "L":
            return image.convert("LA" if transparent else "L"), set()
        case "RGB":
            if transparent:
                image = image.convert("RGBA")
            return image, set()
        case "La" | "RGBa":
            return image.convert(image.mode.upper()), set()
        case "CMYK":
            return image, {"cmyk_converted"}
        case "LAB":
            return image, {"lab_converted"}
        case "LA" | "RGBA":
            return image, set()
        case _:  # YCbCr, HSV, RGBX
            return image.convert("RGB"), set()
