import pytest
from PIL import Image, ImageCms

from recordmill.imaging.color import apply_profile, judge_profile, to_gray_or_srgb

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# Red and green change places in the tag table.
SWAPPED = (
    SRGB.replace(b"rXYZ", b"####", 1).replace(b"gXYZ", b"rXYZ", 1).replace(b"####", b"gXYZ", 1)
)
LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


@pytest.mark.parametrize(
    ("profile", "mode", "verdict"),
    [
        (None, "RGB", "harmless"),
        (SRGB, "RGB", "harmless"),
        (SWAPPED, "RGB", "needed"),
        (LAB, "LAB", "needed"),
        (SRGB, "L", "unusable"),
        (SRGB, "CMYK", "unusable"),
        (LAB, "RGB", "unusable"),
        (SRGB[:200], "RGB", "unusable"),
        (b"not a profile", "RGB", "unusable"),
    ],
)
def test_verdicts(profile, mode, verdict):
    assert judge_profile(profile, mode)[0] == verdict


def test_colors_follow_the_profile():
    converted, changes = apply_profile(Image.new("RGB", (2, 1), (255, 0, 0)), SWAPPED)
    assert changes == {"icc_converted"}
    assert (
        max(abs(a - b) for a, b in zip(converted.getpixel((0, 0)), (0, 255, 0), strict=True)) <= 2
    )


def test_lab():
    white, black = (
        to_gray_or_srgb(Image.new("LAB", (1, 1), (255, 128, 128)), None, (0, 0, 0))[0],
        to_gray_or_srgb(Image.new("LAB", (1, 1), (0, 128, 128)), None, (0, 0, 0))[0],
    )
    assert min(white.getpixel((0, 0))) >= 253
    assert max(black.getpixel((0, 0))) <= 2
