import pytest
from PIL import Image, ImageCms

from recordmill.imaging.color import to_gray_or_srgb

WHITE, RED = (255, 255, 255), (255, 0, 0)


def convert(image, background=WHITE, profile=None):
    plain, changes = to_gray_or_srgb(image, profile, background)
    return plain.mode, plain.getpixel((0, 0)), changes


@pytest.mark.parametrize(
    ("mode", "pixel", "expected"),
    [
        ("1", 255, ("L", 255, set())),
        ("L", 7, ("L", 7, set())),
        ("RGB", (1, 2, 3), ("RGB", (1, 2, 3), set())),
        ("CMYK", (0, 255, 255, 0), ("RGB", (255, 0, 0), {"cmyk_converted"})),
        ("CMYK", (0, 0, 0, 255), ("RGB", (0, 0, 0), {"cmyk_converted"})),
        ("HSV", (85, 255, 255), ("RGB", (0, 255, 0), set())),
        ("YCbCr", (128, 128, 128), ("RGB", (128, 128, 128), set())),
        ("I;16", 0x8000, ("L", 0x80, {"depth_reduced"})),
        ("LA", (10, 255), ("L", 10, set())),
        ("LA", (10, 0), ("L", 255, {"flattened"})),
        ("RGBA", (10, 20, 30, 255), ("RGB", (10, 20, 30), set())),
        ("RGBA", (10, 20, 30, 0), ("RGB", (255, 255, 255), {"flattened"})),
        ("RGBA", (0, 0, 0, 51), ("RGB", (204, 204, 204), {"flattened"})),
        ("RGBa", (0, 0, 0, 51), ("RGB", (204, 204, 204), {"flattened"})),
    ],
)
def test_modes(mode, pixel, expected):
    assert convert(Image.new(mode, (2, 2), pixel)) == expected


@pytest.mark.parametrize(
    ("transparency", "color", "changes"),
    [
        (None, (9, 8, 7), {"palette_expanded"}),
        (1, (255, 255, 255), {"palette_expanded", "flattened"}),
    ],
)
def test_palettes(transparency, color, changes):
    image = Image.new("P", (2, 2), 1)
    image.putpalette([0, 0, 0, 9, 8, 7])
    if transparency is not None:
        image.info["transparency"] = transparency
    assert convert(image) == ("RGB", color, changes)


@pytest.mark.parametrize(("mode", "pixel"), [("L", 9), ("RGB", (9, 8, 7))])
def test_transparent_colors(mode, pixel):
    image = Image.new(mode, (2, 2), pixel)
    image.info["transparency"] = pixel
    plain, changes = to_gray_or_srgb(image, None, WHITE)
    assert (plain.mode, set(plain.tobytes()), changes) == (mode, {255}, {"flattened"})


def test_gray_on_a_colored_background_becomes_color():
    assert convert(Image.new("LA", (1, 1), (9, 0)), RED) == ("RGB", RED, {"flattened"})
    assert convert(Image.new("LA", (1, 1), (9, 0)), (7, 7, 7)) == ("L", 7, {"flattened"})


def test_profiles():
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    assert convert(Image.new("RGBA", (1, 1), (9, 8, 7, 255)), profile=lab) == (
        "RGB",
        (9, 8, 7),
        {"icc_ignored"},
    )
    mode, _, changes = convert(Image.new("LAB", (1, 1), (128, 128, 128)), profile=lab)
    assert (mode, changes) == ("RGB", {"lab_converted", "icc_converted"})
