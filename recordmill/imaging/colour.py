"""Converts any of Pillow's modes to 8-bit gray or sRGB without transparency."""

from PIL import Image

from recordmill.imaging.depth import is_deep, reduce_depth
from recordmill.imaging.icc import apply_profile, lab_to_srgb

Colour = tuple[int, int, int]


def to_gray_or_srgb(image: Image.Image, icc_profile: bytes | None, background: Colour) -> tuple[Image.Image, set[str]]:
    """Converts a loaded image.

    Args:
        image: of any mode that the accepted formats load as.
        icc_profile: as embedded in the file; one that cannot be used is ignored.
        background: sRGB colour that replaces transparency.

    Returns:
        An image of mode L (if it was gray, and the background is neutral or not needed) or RGB, and the names of the
        changes.
    """
    plain, changes = _unpack(image)
    alpha = plain.getchannel("A") if plain.mode in ("LA", "RGBA") else None
    if alpha is not None:
        plain = plain.convert(plain.mode.removesuffix("A"))
    plain, profile_changes = apply_profile(plain, icc_profile)
    changes |= profile_changes
    if plain.mode == "CMYK":
        plain = plain.convert("RGB")
    elif plain.mode == "LAB":
        plain = lab_to_srgb(plain)
    if alpha is not None and alpha.getextrema() != (255, 255):
        plain = lay_on(background, plain.size, plain, alpha=alpha)
        changes.add("flattened")
    return plain, changes


def lay_on(
    background: Colour,
    size: tuple[int, int],
    image: Image.Image,
    place: tuple[int, int] = (0, 0),
    alpha: Image.Image | None = None,
) -> Image.Image:
    """Pastes an L or RGB image on a background of a given size, at its left and top, where `alpha` shows it.

    Gray stays gray on neutral backgrounds, and becomes RGB on coloured ones.
    """
    if image.mode == "L" and len(set(background)) > 1:
        image = image.convert("RGB")
    ground = Image.new(image.mode, size, background[0] if image.mode == "L" else background)
    ground.paste(image, place, alpha)
    return ground


def _unpack(image: Image.Image) -> tuple[Image.Image, set[str]]:
    """The image as L, LA, RGB, RGBA, CMYK or LAB."""
    transparent = "transparency" in image.info
    match image.mode:
        case mode if is_deep(mode):
            return reduce_depth(image), {"depth_reduced"}
        case "P" | "PA":
            return image.convert("RGBA" if transparent or image.mode == "PA" else "RGB"), {"palette_expanded"}
        case "1" | "L":
            return image.convert("LA" if transparent else "L"), set()
        case "RGB":
            return image.convert("RGBA") if transparent else image, set()
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
