"""Embedded ICC profiles: images that are not sRGB are converted, since readers of the dataset ignore the profile."""

import io
from functools import lru_cache
from itertools import chain, product
from typing import Literal

from PIL import Image, ImageCms

Verdict = Literal["harmless", "needed", "unusable"]

# The profile's colour space signature that fits each mode (ICC.1:2022, 7.2.6).
_SIGNATURES = {"L": "GRAY", "RGB": "RGB ", "CMYK": "CMYK", "LAB": "Lab "}

# Profiles that move no probe by more than this many of 255 levels count as sRGB. Measured on the RGB profiles found in
# 2,403 real files: all profiles named sRGB move them by 0 or 1, all others by 64 or more.
_TOLERANCE = 2


def judge_profile(profile: bytes | None, mode: str) -> Verdict:
    """What a profile means for an image of mode L, RGB, CMYK or LAB.

    Returns:
        `harmless` if there is none or it amounts to sRGB, `needed` if the image looks different with it,
        `unusable` if it is unreadable or made for another kind of image.
    """
    return _judge(profile, mode)[0]


def apply_profile(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, set[str]]:
    """Converts an L, RGB, CMYK or LAB image to sRGB by its profile, if that makes a difference.

    Returns:
        The image and the names of the changes. If it is converted, gray stays L, and all others become RGB.
    """
    verdict, transform = _judge(profile, image.mode)
    if transform is None:
        return image, {"icc_ignored"} if verdict == "unusable" else set()
    converted = transform.apply(image)
    return converted.getchannel("G") if image.mode == "L" else converted, {"icc_converted"}


def lab_to_srgb(image: Image.Image) -> Image.Image:
    """Converts a LAB image (D50) to sRGB."""
    return _lab_transform().apply(image)


@lru_cache(maxsize=1)
def _lab_transform() -> ImageCms.ImageCmsTransform:
    return _build(ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")), "LAB")


@lru_cache(maxsize=64)  # a collection has few profiles, and building a transform takes longer than using it
def _judge(profile: bytes | None, mode: str) -> tuple[Verdict, ImageCms.ImageCmsTransform | None]:
    """What a profile means, and the conversion to sRGB if it is needed."""
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
    # Relative colorimetric with black point compensation is what photo editors convert with by default.
    return ImageCms.buildTransform(
        profile,
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _changes_nothing(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    probe = _probe(mode)
    before, after = probe.convert("RGB").tobytes(), transform.apply(probe).tobytes()
    return max(abs(a - b) for a, b in zip(before, after, strict=True)) <= _TOLERANCE


def _probe(mode: str) -> Image.Image:
    """All 256 grays, or 729 colours spread over the whole cube."""
    if mode == "L":
        return Image.frombytes("L", (256, 1), bytes(range(256)))
    colours = product((0, 32, 64, 96, 128, 160, 192, 224, 255), repeat=3)
    return Image.frombytes("RGB", (729, 1), bytes(chain.from_iterable(colours)))
