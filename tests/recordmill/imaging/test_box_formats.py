import io
import re
import struct
from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageCms

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.pillow_decode import check_codestream, jpeg2000_profile
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS

ALL = ImageSettings(formats=(*FORMATS, *OPTIONAL_FORMATS))
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def box(kind, body):
    return struct.pack(">I", len(body) + 8) + kind + body


def pixels_of(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def heif():
    return pytest.importorskip("pillow_heif", reason="pip install pillow-heif")


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000"])
@pytest.mark.parametrize("store", ["jpeg", "png"])
def test_an_image_is_reencoded(photo, save, kind, store):
    image = prepare_image(
        save(photo, kind, **({"quality": 100} if kind == "AVIF" else {})), replace(ALL, store=store)
    )
    assert (image.format, image.width, image.height, image.changes) == (
        store.upper(),
        96,
        64,
        ("reencoded",),
    )
    assert np.abs(pixels_of(image.encoded) - np.asarray(photo)).mean() < 3


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000"])
@pytest.mark.parametrize("check", ["decode", "header"])
def test_an_image_is_stored_as_it_is_where_nothing_is_reencoded(photo, save, kind, check):
    clear = photo.copy()
    clear.putalpha(9)
    data = save(clear, kind)
    image = prepare_image(data, replace(ALL, reencode="never", check=check))
    assert (image.encoded, image.format, image.height, image.width, image.channels) == (
        data,
        kind,
        64,
        96,
        4,
    )


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000"])
def test_transparency_is_flattened_and_size_is_limited_before_decoding(photo, save, kind):
    clear = photo.copy()
    clear.putalpha(0)
    image = prepare_image(save(clear, kind), replace(ALL, store="png", background=(255, 0, 0)))
    assert image.changes == ("flattened", "reencoded")
    assert (pixels_of(image.encoded) == (255, 0, 0)).all()
    with pytest.raises(Rejected, match="too_many_pixels"):
        prepare_image(save(photo, kind), replace(ALL, max_pixels=96 * 64 - 1))


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_avif_is_turned_as_its_boxes_say(photo, save, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = save(photo, "AVIF", exif=exif.tobytes(), quality=100)
    assert b"irot" in data or b"imir" in data
    turned = prepare_image(save(photo, "PNG", exif=exif.tobytes()), replace(ALL, store="png"))
    image = prepare_image(data, replace(ALL, store="png"))
    assert image.changes == ("reencoded", "rotated")
    assert (image.width, image.height) == (turned.width, turned.height)
    assert np.abs(pixels_of(image.encoded) - pixels_of(turned.encoded)).mean() < 3


def test_the_first_frame_of_an_animated_avif_is_stored(photo, save):
    data = save(photo, "AVIF", save_all=True, append_images=[photo.rotate(180)])
    image = prepare_image(data, replace(ALL, store="png"))
    assert image.changes == ("first_frame", "reencoded")
    assert np.abs(pixels_of(image.encoded) - np.asarray(photo)).mean() < 6


def test_16_bits_become_8(save):
    values = np.linspace(0, 65_535, 96 * 64).astype(np.uint16).reshape(64, 96)
    data = save(Image.fromarray(values), "JPEG2000")
    image = prepare_image(data, replace(ALL, store="png"))
    assert image.changes == ("depth_reduced", "reencoded")
    assert (np.asarray(Image.open(io.BytesIO(image.encoded))) == values >> 8).all()


def test_the_profile_of_a_jpeg_2000_is_in_its_header(photo, save):
    data = save(photo, "JPEG2000")
    assert (jpeg2000_profile(data), jpeg2000_profile(b"")) == (None, None)
    at, end = data.index(b"jp2h") + 4, data.index(b"jp2c") - 4
    old = data.index(b"colr") - 4
    size = int.from_bytes(data[old : old + 4], "big")
    header = data[at:old] + box(b"colr", b"\2\0\0" + PROFILE) + data[old + size : end]
    profiled = data[: at - 8] + box(b"jp2h", header) + data[end:]
    assert jpeg2000_profile(profiled) == PROFILE
    assert prepare_image(profiled, ALL).changes == ("reencoded",)


def codestream(width, height, block, precincts=b""):
    size = (
        struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, width, height, 0, 0, 3) + b"\7\1\1" * 3
    )
    style = (
        bytes([bool(precincts), 0, 0, 1, 0, max(len(precincts) - 1, 0), block, block, 0, 0])
        + precincts
    )
    segments = ((0x51, size), (0x52, style), (0x90, b""))
    return b"\xff\x4f" + b"".join(
        struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body for kind, body in segments
    )


def test_far_too_many_pieces_are_too_much_work():
    check_codestream(codestream(9_000, 9_000, 4, b"\x88" * 6))
    check_codestream(b"\xff\x4f\xff\x51")
    for data in (codestream(9_000, 9_000, 0), codestream(9_000, 9_000, 4, b"\x88" * 5 + b"\x11")):
        with pytest.raises(
            Rejected, match="too_much_work: JPEG2000: over 1,048,576 code-blocks or precincts"
        ):
            prepare_image(data, ALL)


def test_a_codestream_that_ends_early_is_rejected(photo, save):
    data = save(photo, "JPEG2000", no_jp2=True, tile_size=(64, 64))
    first, second = (match.start() for match in re.finditer(rb"\xff\x90", data))
    for end in (*range(4, first + 14), *range(second - 1, second + 14)):
        with pytest.raises(Rejected, match=r"truncated|bad_header|decode_error"):
            prepare_image(data[:end], ALL)


def test_mutants_are_rejected_or_stored(photo, save):
    small = photo.resize((24, 16))
    files = [
        save(small, "AVIF"),
        save(small, "JPEG2000"),
        save(small.convert("RGBA"), "JPEG2000", no_jp2=True),
    ]
    random = Random(0)
    for _ in range(200):
        data = bytearray(random.choice(files))
        for _ in range(random.randint(1, 4)):
            data[random.randrange(12, len(data))] = random.randrange(256)
        for cut in (len(data), random.randrange(len(data))):
            with suppress(Rejected):
                assert prepare_image(bytes(data[:cut]), ALL).format == "JPEG"


def test_real_files_are_stored_or_rejected(shared_data):
    images = shared_data / "odd-images"
    for name, expected in (
        ("Pillow/c26fb696_rot3mir0.avif", (640, 427, 3, ("reencoded", "rotated"))),
        ("Pillow/d63fc3f5_9bit.j2k", (128, 128, 1, ("depth_reduced", "reencoded"))),
        ("libvips/c9064d24_issue412.jp2", (256, 100, 3, ("palette_expanded", "reencoded"))),
        ("test-images/63621a32_issue205.jp2", (540, 785, 3, ("cmyk_converted", "reencoded"))),
    ):
        image = prepare_image((images / name).read_bytes(), ALL)
        assert (image.width, image.height, image.channels, image.changes) == expected, name


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_heic_is_turned_once_and_flattened(heif, photo, save, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    for alpha, changes in ((255, ("reencoded",)), (0, ("flattened", "reencoded"))):
        picture = photo.copy()
        if not alpha:
            picture.putalpha(alpha)
        file, stream = heif.from_pillow(picture), io.BytesIO()
        file.info["exif"] = exif.tobytes()
        file.save(stream, quality=-1)
        image = prepare_image(stream.getvalue(), replace(ALL, store="png"))
        turned = prepare_image(save(picture, "PNG", exif=exif.tobytes()), replace(ALL, store="png"))
        assert image.changes == changes
        assert (image.width, image.height) == (turned.width, turned.height)
        assert np.abs(pixels_of(image.encoded) - pixels_of(turned.encoded)).mean() < 3


def test_heic_keeps_its_colors(heif, photo):
    stream = io.BytesIO()
    heif.from_pillow(photo).save(stream, quality=-1)
    image = prepare_image(stream.getvalue(), replace(ALL, store="png"))
    assert np.abs(pixels_of(image.encoded) - np.asarray(photo)).mean() < 3
    never = prepare_image(stream.getvalue(), replace(ALL, reencode="never"))
    assert (never.encoded, never.format) == (stream.getvalue(), "HEIC")
