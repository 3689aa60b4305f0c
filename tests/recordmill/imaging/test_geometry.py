"""A rectangle painted into an image is found again where its box says, whatever was done to the
image."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging import geometry as geometry_module
from recordmill.imaging.geometry import read_geometry

WIDTH, HEIGHT = 240, 160
BOX = (48, 32, 120, 112)  # in stored pixels: left, top, right, bottom


def draw(orientation, kind):
    picture = np.full((HEIGHT, WIDTH, 3), 30, np.uint8)
    picture[BOX[1] : BOX[3], BOX[0] : BOX[2]] = (240, 30, 30)
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(picture).save(
        file, kind, exif=exif, **({"quality": 95} if kind == "JPEG" else {})
    )
    return file.getvalue()


def find_red(encoded):
    """Left, top, right, bottom of what is red, in fractions; of the image as a reader that ignores
    metadata sees it."""
    pixels = np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")).astype(int)
    red = (pixels[..., 0] > 135) & (pixels[..., 1] < 100)
    rows, columns = np.nonzero(red.any(axis=1))[0], np.nonzero(red.any(axis=0))[0]
    height, width = red.shape
    return columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    "settings",
    [
        ImageSettings(),
        ImageSettings(reencode="never"),
        ImageSettings(resize=Resize(longest=96)),
        ImageSettings(resize=Resize(shortest=70)),
        ImageSettings(resize=Resize(exact=(128, 128), fit="pad")),
        ImageSettings(resize=Resize(exact=(128, 112), fit="crop")),
        ImageSettings(resize=Resize(exact=(400, 90), fit="pad")),
    ],
    ids=["as it is", "never", "longest", "shortest", "pad", "crop", "enlarged"],
)
def test_a_box_is_where_its_pixels_are(kind, orientation, settings):
    data = draw(orientation, kind)
    image = prepare_image(data, settings)
    geometry = read_geometry(data, image, settings)
    assert (geometry.source_size, geometry.orientation) == ((WIDTH, HEIGHT), orientation)
    sides = (WIDTH, HEIGHT) * 2
    placed = geometry.place(
        tuple(side / whole for side, whole in zip(BOX, sides, strict=True)), "stored"
    )
    clipped = tuple(min(1.0, max(0.0, side)) for side in placed)
    assert find_red(image.encoded) == pytest.approx(
        clipped, abs=1.6 / min(image.width, image.height)
    )


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("reencode", ["when_needed", "never"])
def test_boxes_drawn_on_the_displayed_image_are_the_same_boxes(orientation, reencode):
    data = draw(orientation, "JPEG")
    settings = ImageSettings(reencode=reencode)
    geometry = read_geometry(data, prepare_image(data, settings), settings)
    displayed = replace(geometry, turned=True)  # where it is seen once it is turned
    box = tuple(side / whole for side, whole in zip(BOX, (WIDTH, HEIGHT) * 2, strict=True))
    assert geometry.place(displayed.place(box, "stored"), "displayed") == pytest.approx(
        geometry.place(box, "stored")
    )


@pytest.mark.parametrize(
    ("resize", "scale"),
    [
        (None, 1.0),
        (Resize(longest=120), 0.25),
        (Resize(shortest=80), 0.25),
        (Resize(exact=(80, 120)), 0.25),
        (Resize(exact=(80, 80), fit="crop"), 0.25),
        (Resize(exact=(120, 120), fit="pad"), 0.25),
    ],
)
def test_an_area_shrinks_as_the_pixels_do(resize, scale):
    data = draw(1, "JPEG")
    settings = ImageSettings(resize=resize)
    assert read_geometry(data, prepare_image(data, settings), settings).area_scale == pytest.approx(
        scale
    )


@pytest.mark.parametrize("reencode", ["when_needed", "never"])
def test_an_image_is_not_decoded_again_for_its_boxes(reencode, monkeypatch):
    data = draw(6, "PNG")
    settings = ImageSettings(reencode=reencode)
    image = prepare_image(data, settings)
    expected = read_geometry(data, replace(image, source=None), settings)
    monkeypatch.setattr(geometry_module, "decode_first_frame", None)
    assert read_geometry(data, image, settings) == expected
