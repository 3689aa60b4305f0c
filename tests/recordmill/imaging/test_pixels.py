import hashlib
import io

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageCms

from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging.pixels import (
    copy_pixels,
    count_channels,
    digest_pixels,
    encode_raster,
    moments,
    stored_format,
    to_image,
    to_raster,
)


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3)])
def test_images_and_rasters_hold_the_same_pixels(photo, mode, channels):
    image = photo.convert(mode)
    raster = to_raster(image)
    assert raster.shape == (64, 96, 1 if mode == "L" else 4)
    assert count_channels(raster) == channels
    assert to_image(raster) == image
    assert to_image(raster[:, :, :channels].copy()) == image
    copy = copy_pixels(raster)
    assert np.array_equal(copy, np.asarray(image).reshape(64, 96, channels))
    copy[:] = 0  # whoever is given it may write into it
    assert to_image(raster) == image
    values = np.asarray(image).reshape(-1, channels).astype(int)
    assert moments(raster) == tuple(
        zip(values.sum(0).tolist(), (values**2).sum(0).tolist(), strict=True)
    )


def test_the_digest_of_pixels_is_as_documented():
    image = Image.new("RGB", (200, 100), (1, 2, 3))
    block = bytes((1, 2, 3, 255)) * 2**14
    sums = (
        crc32c(block).to_bytes(4, "little"),
        crc32c(block[: 4 * 20_000 - 2**16]).to_bytes(4, "little"),
    )
    expected = hashlib.sha256(b"RGB 200 100 6\n" + b"".join(sums)).hexdigest()
    assert digest_pixels(image, 6) == digest_pixels(to_raster(image), 6) == expected
    palette = image.quantize(4)
    assert digest_pixels(palette, 1) == digest_pixels(palette.convert("RGBA"), 1)
    assert digest_pixels(to_raster(image.convert("L")), 1) == digest_pixels(image.convert("L"), 1)


@pytest.mark.parametrize("kind", ["pixel", "orientation", "size", "mode"])
def test_images_that_look_different_have_other_digests(photo, kind):
    before, orientation = digest_pixels(photo, 1), 1 + (kind == "orientation")
    if kind == "pixel":
        photo.putpixel((95, 63), tuple(255 - each for each in photo.getpixel((95, 63))))
    elif kind == "size":
        photo = Image.frombytes("RGB", photo.size[::-1], photo.tobytes())
    elif kind == "mode":
        photo = photo.convert("L")
    assert digest_pixels(photo, orientation) != before


@pytest.mark.parametrize("shape", [(66_000, 1, 1), (1, 66_000, 1), (66_000, 3, 4)])
def test_moments_of_long_sides(shape):
    count = shape[0] * shape[1]
    assert moments(np.full(shape, 255, np.uint8)) == ((count * 255, count * 255**2),) * (
        3 if shape[2] == 4 else 1
    )


def test_moments_are_exact_beyond_32_bits():
    assert moments(np.full((400, 400, 1), 255, np.uint8)) == ((160_000 * 255, 160_000 * 255**2),)


shapes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))
pictures = shapes.flatmap(lambda shape: arrays(np.uint8, shape))


def shown(prepared):
    """The pixels of what is stored, by a reader that shares no code with the writer."""
    shape = (prepared.height, prepared.width, prepared.channels)
    if prepared.format == "RAW":
        return np.frombuffer(prepared.encoded, np.uint8).reshape(shape)
    image = Image.open(io.BytesIO(prepared.encoded))
    assert (image.format, image.info) == (prepared.format, {})
    return np.asarray(image).reshape(shape)


@pytest.mark.parametrize("store", ["png", "raw"])
@pytest.mark.parametrize("moments", [False, True])
@given(pixels=pictures)
def test_pixels_stay_what_they_are(store, moments, pixels):
    prepared = prepare_image(pixels, ImageSettings(store=store, moments=moments))
    assert shown(prepared).tolist() == pixels.tolist()
    assert (prepared.format, prepared.changes) == (store.upper(), ("reencoded",))
    expected = tuple(
        (int(plane.sum()), int((plane**2).sum())) for plane in np.moveaxis(pixels.astype(int), 2, 0)
    )
    assert prepared.moments == (expected if moments else None)


@given(pixels=pictures)
def test_consecutive_planes_are_interleaved(pixels):
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    assert (
        prepare_image(planes.transpose(1, 2, 0), ImageSettings(store="raw")).encoded
        == pixels.tobytes()
    )


@pytest.mark.parametrize(
    ("store", "expected"), [("auto", "JPEG"), ("jpeg", "JPEG"), ("png", "PNG"), ("raw", "RAW")]
)
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_each_form_of_a_picture(photo, store, expected, mode):
    settings = ImageSettings(store=store)
    raster = to_raster(photo.convert(mode))
    encoded = encode_raster(raster, settings)
    assert stored_format(settings) == expected
    assert encoded == encode_raster(raster.copy(), settings)
    prepared = prepare_image(
        np.array(to_image(raster)).reshape(64, 96, -1), ImageSettings(store=store, moments=True)
    )
    pixels = photo.convert(mode) if expected in ("PNG", "RAW") else Image.open(io.BytesIO(encoded))
    assert (prepared.encoded, prepared.moments) == (encoded, moments(to_raster(pixels)))


@pytest.mark.parametrize("store", ["png", "raw"])
@pytest.mark.parametrize("file_format", ["JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_other_formats_keep_the_pixels_that_they_decode_to(photo, save, store, file_format):
    data = save(photo, file_format)
    prepared = prepare_image(data, ImageSettings(store=store, check="header"))
    assert prepared.format == store.upper()
    assert (
        shown(prepared).tolist() == np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).tolist()
    )
    assert "reencoded" in prepared.changes


@pytest.mark.parametrize("store", ["png", "raw"])
def test_pictures_are_turned_resized_and_expanded_first(photo, save, store):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = save(photo.convert("L"), "PNG", exif=exif)
    settings = ImageSettings(store=store, grayscale="expand", resize=Resize(longest=48))
    prepared = prepare_image(data, settings)
    assert (prepared.width, prepared.height, prepared.channels) == (32, 48, 3)
    assert prepared.changes == ("grayscale_expanded", "reencoded", "resized", "rotated")
    assert shown(prepared).shape == (48, 32, 3)
    small = prepare_image(np.asarray(photo.convert("L"))[:, :, None], settings)
    assert (small.changes, shown(small).shape) == (
        ("grayscale_expanded", "reencoded", "resized"),
        (32, 48, 3),
    )


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SWAPPED = (
    SRGB.replace(b"rXYZ", b"####", 1).replace(b"gXYZ", b"rXYZ", 1).replace(b"####", b"gXYZ", 1)
)


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize(
    "options", [{}, {"icc_profile": SRGB}, {"pnginfo": None, "optimize": True}]
)
def test_a_png_that_all_readers_show_correctly_is_stored_unchanged(photo, save, mode, options):
    options = {**options, "icc_profile": None} if mode == "L" else options
    data = save(photo.convert(mode), "PNG", **options)
    prepared = prepare_image(data, ImageSettings(store="png", moments=True))
    assert (prepared.encoded, prepared.changes) == (data, ())
    assert prepared.moments == moments(to_raster(photo.convert(mode)))
    assert prepare_image(data, ImageSettings(store="png", reencode="always")).changes == (
        "reencoded",
    )
    assert prepare_image(data, ImageSettings(store="jpeg")).format == "JPEG"


def with_transparent_color(photo, save):
    return save(photo, "PNG", transparency=(1, 2, 3))  # which no pixel has


@pytest.mark.parametrize(
    "make",
    [
        lambda photo, save: save(photo.convert("RGBA"), "PNG"),
        lambda photo, save: save(photo.convert("P"), "PNG"),
        lambda photo, save: save(photo.convert("1"), "PNG"),
        lambda photo, save: save(Image.fromarray(np.full((4, 4), 999, np.uint16)), "PNG"),
        lambda photo, save: save(photo, "PNG", icc_profile=SWAPPED),
        lambda photo, save: save(photo, "PNG", save_all=True, append_images=[photo.rotate(9)]),
        with_transparent_color,
    ],
)
def test_a_png_that_readers_show_differently_is_reencoded(photo, save, make):
    data = make(photo, save)
    prepared = prepare_image(data, ImageSettings(store="png"))
    assert prepared.encoded != data
    assert prepared.format == "PNG"
    assert shown(prepared).shape[2] == prepared.channels
    assert "reencoded" in prepared.changes


def test_an_unusual_jpeg_does_not_pass_where_pngs_do(photo, save):
    data = save(photo.convert("CMYK"), "JPEG")
    assert prepare_image(data, ImageSettings(store="png")).changes == (
        "cmyk_converted",
        "reencoded",
    )
