import io
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import simplejpeg
from PIL import Image, ImageCms

from recordmill.imaging import ImageSettings, PreparedImage, Resize, prepare_image
from recordmill.schemas.rejection import Rejected

DEFAULT = ImageSettings(moments=True)
FAITHFUL = ImageSettings(moments=True, quality=100, subsampling="4:4:4")


def decode(prepared):
    """The pixels that a reader sees, of shape (height, width, channels), after checking the
    record's word for them."""
    image = Image.open(io.BytesIO(prepared.encoded))
    pixels = np.atleast_3d(np.asarray(image)).astype(int)
    assert image.format == prepared.format
    assert pixels.shape == (prepared.height, prepared.width, prepared.channels)
    assert prepared.moments in (None, moments_of(pixels))
    return pixels


def moments_of(image):
    values = np.atleast_3d(np.asarray(image)).astype(int)
    return tuple((int(plane.sum()), int((plane**2).sum())) for plane in np.moveaxis(values, 2, 0))


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 100}]
)
def test_a_fitting_jpeg_is_stored_unchanged(photo, save, mode, options):
    data = save(photo.convert(mode), "JPEG", **options)
    moments = moments_of(Image.open(io.BytesIO(data)))
    assert prepare_image(data, DEFAULT) == PreparedImage(
        data, "JPEG", 64, 96, len(moments), moments, ()
    )
    assert prepare_image(data, ImageSettings(moments=True, check="header")) == PreparedImage(
        data, "JPEG", 64, 96, len(moments), None, ()
    )


@pytest.mark.parametrize("tail", [b"", b"\0" * 9, b"\xff\xd8\xff trailing"])
def test_bytes_after_the_end_are_harmless(jpeg, tail):
    assert prepare_image(jpeg + tail, DEFAULT).encoded == jpeg + tail
    assert (
        prepare_image(jpeg + tail, ImageSettings(moments=True, check="header")).encoded
        == jpeg + tail
    )


def test_stray_bytes_between_segments_are_harmless(jpeg):
    data = jpeg.replace(b"\xff\xdb", b"junk\xff\xdb", 1)
    prepared = prepare_image(data, DEFAULT)
    assert (prepared.encoded, prepared.changes) == (data, ())
    assert prepared.moments == prepare_image(jpeg, DEFAULT).moments


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_always_reencodes_what_fits(photo, save, mode):
    data = save(photo.convert(mode), "JPEG")
    prepared = prepare_image(data, ImageSettings(moments=True, reencode="always", quality=70))
    assert prepared.changes == ("reencoded",)
    assert prepared.moments != prepare_image(data, DEFAULT).moments  # they are of the new pixels
    assert (
        np.abs(decode(prepared) - np.atleast_3d(np.asarray(photo.convert(mode))).astype(int)).mean()
        < 4
    )


@pytest.mark.parametrize(
    ("file_format", "subsampling", "layout"),
    [("JPEG", "auto", 2), ("PNG", "auto", 1), ("PNG", "4:2:0", 2)],
)
def test_subsampling(photo, save, file_format, subsampling, layout):
    settings = ImageSettings(moments=True, reencode="always", subsampling=subsampling)
    assert (
        Image.open(io.BytesIO(prepare_image(save(photo, file_format), settings).encoded)).layer[0][
            1
        ]
        == layout
    )


SAMPLINGS = {"444": (1, 1), "422": (2, 1), "420": (2, 2), "440": (1, 2), "411": (4, 1)}


def sampling_of(prepared):
    """The sampling factors of brightness, by a reader that shares no code with ours."""
    return Image.open(io.BytesIO(prepared.encoded)).layer[0][1:3]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_jpeg_keeps_its_sampling(photo, sampling):
    data = simplejpeg.encode_jpeg(np.asarray(photo), 90, "RGB", sampling)
    prepared = prepare_image(data, ImageSettings(reencode="always"))
    assert (prepared.changes, sampling_of(prepared)) == (("reencoded",), SAMPLINGS[sampling])


@pytest.mark.parametrize(
    ("sampling", "turned"), [("422", (1, 2)), ("440", (2, 1)), ("444", (1, 1)), ("420", (2, 2))]
)
def test_a_jpeg_that_is_turned_sideways_has_its_sampling_turned(photo, sampling, turned):
    data = simplejpeg.encode_jpeg(np.asarray(photo), 90, "RGB", sampling)
    exif = Image.Exif()
    exif[0x0112] = 6
    block = exif.tobytes()
    data = data[:2] + b"\xff\xe1" + (len(block) + 2).to_bytes(2, "big") + block + data[2:]
    prepared = prepare_image(data, ImageSettings())
    assert (prepared.changes, sampling_of(prepared)) == (("reencoded", "rotated"), turned)


def test_quality_or_sampling_asks_for_every_image_to_be_encoded(jpeg):
    for settings in (ImageSettings(quality=50), ImageSettings(subsampling="4:4:4")):
        assert settings.reencoding == "always"
        assert prepare_image(jpeg, settings).changes == ("reencoded",)
    for settings in (ImageSettings(), ImageSettings(quality=50, reencode="when_needed")):
        assert settings.reencoding == "when_needed"
        assert prepare_image(jpeg, settings).encoded == jpeg


@pytest.mark.parametrize("file_format", ["PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_other_formats_become_jpegs_of_the_same_pixels(photo, save, file_format):
    data = save(photo, file_format)
    prepared = prepare_image(data, FAITHFUL)
    pixels = Image.open(io.BytesIO(data)).convert("RGB")
    assert np.abs(decode(prepared) - np.asarray(pixels)).max() <= 5
    assert prepared.changes == (
        ("palette_expanded", "reencoded") if file_format == "GIF" else ("reencoded",)
    )


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(2, 9))
def test_orientation_is_applied(save, orientation, file_format):
    corners = Image.new("L", (48, 32), 128)
    for box, value in [
        ((0, 0, 16, 16), 0),
        ((32, 0, 48, 16), 80),
        ((0, 16, 16, 32), 170),
        ((32, 16, 48, 32), 255),
    ]:
        corners.paste(value, box)
    # Pillow's transposition that the camera did.
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = corners.transpose(Image.Transpose(undo)).convert("RGB")
    prepared = prepare_image(save(stored, file_format, exif=exif), FAITHFUL)
    assert prepared.changes == ("reencoded", "rotated")
    pixels = decode(prepared)[:, :, 0]
    assert pixels.shape == (32, 48)
    assert np.abs(pixels[[8, 8, 24, 24], [8, 40, 8, 40]] - [0, 80, 170, 255]).max() <= 8


@pytest.mark.parametrize("orientation", [0, 1, 9])
def test_an_orientation_without_meaning_is_left(photo, save, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert prepare_image(save(photo, "JPEG", exif=exif), DEFAULT).changes == ()


@pytest.mark.parametrize(("file_format", "lowest"), [("JPEG", 240), ("TIFF", 255)])
def test_cmyk(save, file_format, lowest):
    # Pillow writes Adobe's inverted CMYK into JPEGs.
    prepared = prepare_image(
        save(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), file_format), FAITHFUL
    )
    assert prepared.changes == ("cmyk_converted", "reencoded")
    red, green, blue = decode(prepared)[8, 8]
    assert red >= lowest - 3
    assert max(green, blue) <= 258 - lowest


@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_not_saturated(save, file_format):
    gradient = np.tile(np.linspace(0, 65_535, 256, dtype=np.uint16), (16, 1))
    prepared = prepare_image(save(Image.fromarray(gradient), file_format), FAITHFUL)
    assert prepared.changes == ("depth_reduced", "reencoded")
    assert np.abs(decode(prepared)[:, :, 0] - (gradient >> 8)).max() <= 1


def test_transparency_shows_the_background(save):
    half = Image.new("RGBA", (32, 16), (255, 0, 0, 0))
    half.paste((0, 0, 255, 255), (16, 0, 32, 16))
    prepared = prepare_image(save(half, "PNG"), ImageSettings(moments=True, background=(0, 255, 0)))
    assert prepared.changes == ("flattened", "reencoded")
    pixels = decode(prepared)
    assert np.abs(pixels[:, :16] - (0, 255, 0)).max() <= 2
    assert np.abs(pixels[:, 16:] - (0, 0, 255)).max() <= 2


def test_gray_is_kept_or_expanded(photo, save):
    gray = photo.convert("L")
    for file_format, changes in [("JPEG", ()), ("PNG", ("reencoded",))]:
        kept = prepare_image(save(gray, file_format), DEFAULT)
        expanded = prepare_image(
            save(gray, file_format), ImageSettings(moments=True, grayscale="expand")
        )
        assert (kept.channels, kept.changes) == (1, changes)
        assert (expanded.channels, expanded.changes) == (3, ("grayscale_expanded", "reencoded"))
        assert np.abs(decode(expanded) - decode(kept)).max() <= 3


@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_is_taken(save, file_format):
    frames = [
        Image.new("RGB", (16, 16), color) for color in [(200, 0, 0), (0, 200, 0), (0, 0, 200)]
    ]
    prepared = prepare_image(
        save(frames[0], file_format, save_all=True, append_images=frames[1:]), FAITHFUL
    )
    assert "first_frame" in prepared.changes
    assert np.abs(decode(prepared)[8, 8] - [200, 0, 0]).max() <= 6


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SWAPPED = (
    SRGB.replace(b"rXYZ", b"####", 1).replace(b"gXYZ", b"rXYZ", 1).replace(b"####", b"gXYZ", 1)
)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
def test_profiles_are_applied(save, file_format):
    data = save(Image.new("RGB", (16, 16), (250, 10, 10)), file_format, icc_profile=SWAPPED)
    prepared = prepare_image(data, FAITHFUL)
    assert prepared.changes == ("icc_converted", "reencoded")
    assert np.abs(decode(prepared)[8, 8] - [10, 250, 10]).max() <= 6


@pytest.mark.parametrize(
    ("profile", "changes"), [(SRGB, ("reencoded",)), (b"nonsense", ("icc_ignored", "reencoded"))]
)
def test_profiles_without_effect_leave_a_jpeg_alone(photo, save, profile, changes):
    data = save(photo, "JPEG", icc_profile=profile)
    assert prepare_image(data, DEFAULT).changes == ()
    assert prepare_image(data, ImageSettings(moments=True, reencode="always")).changes == changes


@pytest.mark.parametrize(
    ("resize", "size"),
    [
        (Resize(longest=48), (48, 32)),
        (Resize(exact=(20, 20)), (20, 20)),
        (Resize(exact=(20, 30), fit="pad"), (30, 20)),
        (Resize(exact=(100, 200)), (200, 100)),
    ],
)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.parametrize("check", ["decode", "header"])
def test_resizing(photo, save, resize, size, file_format, check):
    prepared = prepare_image(
        save(photo, file_format), ImageSettings(moments=True, resize=resize, check=check)
    )
    assert (prepared.width, prepared.height) == size
    assert prepared.changes == ("reencoded", "resized")
    assert decode(prepared).shape == (*size[::-1], 3)


def test_a_turned_image_is_measured_upright(photo, save):
    exif = Image.Exif()
    exif[0x0112] = 6
    prepared = prepare_image(
        save(photo, "JPEG", exif=exif), ImageSettings(moments=True, resize=Resize(longest=24))
    )
    assert (prepared.height, prepared.width, prepared.changes) == (
        24,
        16,
        ("reencoded", "resized", "rotated"),
    )


def test_a_reduced_decode_looks_like_a_full_one(photo, save):
    large = save(photo.resize((1536, 1024), Image.Resampling.BICUBIC), "JPEG", quality=95)
    small = decode(
        prepare_image(
            large,
            ImageSettings(
                moments=True, resize=Resize(longest=96), quality=100, subsampling="4:4:4"
            ),
        )
    )
    assert np.abs(small - np.asarray(photo).astype(int)).mean() < 2


def test_small_images_are_not_enlarged(jpeg):
    assert (
        prepare_image(jpeg, ImageSettings(moments=True, resize=Resize(longest=96))).encoded == jpeg
    )


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_never_stores_any_format_untouched(photo, save, file_format):
    data = save(photo, file_format)
    decoded = prepare_image(data, ImageSettings(moments=True, reencode="never"))
    moments = moments_of(Image.open(io.BytesIO(data))) if file_format in ("JPEG", "PNG") else None
    assert decoded == PreparedImage(data, file_format, 64, 96, 3, moments, ())
    assert (
        prepare_image(data, ImageSettings(moments=True, reencode="never", check="header")).moments
        is None
    )


def test_never_reports_what_readers_of_the_bytes_see(photo, save):
    exif = Image.Exif()
    exif[0x0112] = 6
    never = ImageSettings(moments=True, reencode="never")
    assert prepare_image(save(photo, "JPEG", exif=exif), never).width == 96
    assert prepare_image(save(photo.convert("RGBA"), "PNG", exif=exif), never).channels == 4
    assert prepare_image(save(photo.convert("CMYK"), "JPEG"), never).channels == 4


@pytest.mark.parametrize(
    ("mode", "file_format"), [("CMYK", "JPEG"), ("RGBA", "PNG"), ("P", "PNG"), ("I;16", "PNG")]
)
def test_never_takes_no_moments_of_what_readers_see_differently(photo, save, mode, file_format):
    image = Image.new(mode, (8, 8)) if mode == "I;16" else photo.convert(mode)
    assert (
        prepare_image(
            save(image, file_format), ImageSettings(moments=True, reencode="never")
        ).moments
        is None
    )


def test_threads_agree(photo, save):
    files = [
        save(photo.rotate(angle), file_format)
        for angle in range(0, 90, 15)
        for file_format in ("JPEG", "PNG", "WEBP")
    ]
    settings = ImageSettings(moments=True, reencode="always", resize=Resize(longest=50))
    alone = [prepare_image(data, settings) for data in files]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda data: prepare_image(data, settings), files * 20)) == alone * 20


def test_it_is_light_to_import():
    script = (
        "import sys, recordmill.imaging.prepare; print({'apache_beam', 'tensorflow', 'pydantic'} "
        "& set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_a_rejection_says_why_on_one_line(jpeg):
    with pytest.raises(Rejected) as caught:
        prepare_image(jpeg[:300], DEFAULT)
    assert (caught.value.reason, caught.value.detail) == (
        "truncated",
        "JPEG: ends inside a header segment",
    )


def test_moments_are_taken_only_where_asked_for(photo, save):
    for settings in (
        ImageSettings(),
        ImageSettings(reencode="always"),
        ImageSettings(reencode="never"),
    ):
        assert prepare_image(save(photo, "JPEG"), settings).moments is None
        assert prepare_image(save(photo, "PNG"), settings).moments is None


@pytest.mark.parametrize(
    "settings",
    [{}, {"check": "header"}, {"reencode": "never"}, {"reencode": "never", "check": "header"}],
)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
def test_pixels_are_kept_in_full_where_they_are_asked_for(settings, file_format):
    file = io.BytesIO()
    Image.effect_mandelbrot((40, 24), (-2, -1.5, 1, 1.5), 50).convert("RGB").save(file, file_format)
    decoded = np.asarray(Image.open(file))
    kept = prepare_image(file.getvalue(), ImageSettings(**settings), keep_pixels=True)
    assert np.array_equal(kept.raster[:, :, :3], decoded)
    without = prepare_image(file.getvalue(), ImageSettings(**settings))
    assert (without, without.raster) == (kept, None)


def test_pixels_that_came_decoded_are_kept_as_they_were_resized():
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert np.array_equal(
        prepare_image(pixels, ImageSettings(), keep_pixels=True).raster[:, :, :3], pixels
    )
    half = ImageSettings(resize=Resize(exact=(2, 2)))
    assert prepare_image(pixels, half, keep_pixels=True).raster.shape[:2] == (2, 2)


def insert(jpeg, *parts):
    """The parts before everything else but the start marker, and without the JFIF segment that
    Pillow writes."""
    return jpeg[:2] + b"".join(parts) + jpeg[20:]


def segment(marker, payload):
    return bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload


RESOLUTION_AS_TEXT = struct.pack("<HHI2s2x", 0x011A, 2, 2, b"7") + struct.pack(
    "<HHIHxx", 0x0128, 3, 1, 2
)
HALF_AN_INDEX = struct.pack("<HHII", 0xB001, 4, 1, 9) + struct.pack("<HHII", 0xB002, 7, 4, 0)
UNREADABLE_BY_PILLOW = {
    "a marker without length": b"\xff\x01",
    "half an Adobe segment": segment(0xEE, b"Adobe\0"),
    "half a JFIF segment": segment(0xE0, b"JFIF\0\1"),
    "a profile without a number": segment(0xE2, b"ICC_PROFILE\0\1"),
    "half a resource": segment(0xED, b"Photoshop 3.0\x008BIM\4\4"),
    "text for a resolution": segment(
        0xE1, b"Exif\0\0II*\0\x08\0\0\0\2\0" + RESOLUTION_AS_TEXT + bytes(4)
    ),
    "half an index of pictures": segment(
        0xE2, b"MPF\0II*\0\x08\0\0\0\2\0" + HALF_AN_INDEX + bytes(4)
    ),
}


@pytest.mark.parametrize("part", UNREADABLE_BY_PILLOW.values(), ids=UNREADABLE_BY_PILLOW.keys())
@pytest.mark.parametrize("check", ["decode", "header"])
def test_a_jpeg_that_only_libjpeg_reads_is_reencoded(jpeg, part, check):
    data = insert(jpeg, part)
    with pytest.raises(OSError, match="cannot identify"):
        Image.open(io.BytesIO(data))
    prepared = prepare_image(data, ImageSettings(check=check))
    assert prepared.changes == ("reencoded",)
    assert np.array_equal(
        decode(prepared), decode(prepare_image(jpeg, ImageSettings(reencode="always")))
    )
    with pytest.raises(
        Rejected, match="bad_header: JPEG: Pillow cannot open it, and reencode is never"
    ):
        prepare_image(data, ImageSettings(check=check, reencode="never"))


@pytest.mark.parametrize("length", [b"\0\0", b"\0\1"])
@pytest.mark.parametrize("marker", [b"\xff\xfe", b"\xff\xe5", b"\xff\xed"])
def test_a_comment_shorter_than_its_own_length_field_is_reencoded(jpeg, marker, length):
    prepared = prepare_image(insert(jpeg, marker, length), ImageSettings())
    assert prepared.changes == ("reencoded",)
    assert np.array_equal(
        decode(prepared), decode(prepare_image(jpeg, ImageSettings(reencode="always")))
    )


STRAY = segment(0xFE, b"") + b"stray"


@pytest.mark.parametrize(
    "part",
    [
        segment(0xE1, b"Exif\0\0II*\0\x08\0\0\0\0\0" + bytes(4)),
        segment(0xED, b"Photoshop 3.0\0"),
        STRAY,
    ],
)
def test_a_jpeg_that_pillow_reads_too_is_stored_unchanged(jpeg, part):
    data = insert(jpeg, part)
    for settings in (
        ImageSettings(),
        ImageSettings(check="header"),
        ImageSettings(reencode="never"),
    ):
        assert (prepare_image(data, settings).encoded, prepare_image(data, settings).changes) == (
            data,
            (),
        )


@pytest.mark.parametrize(
    "part", [STRAY, segment(0xE0, b"JFIF\0\x55\xb6\0\0\1\0\1\0\0"), b"\xff\xfe\0\0"]
)
def test_a_cut_is_found_in_an_odd_jpeg_too(jpeg, part):
    data = insert(jpeg, part)
    prepare_image(data, ImageSettings())
    with pytest.raises(Rejected, match=r"truncated: JPEG: .*premature end"):
        prepare_image(data[: len(data) * 2 // 3] + b"\xff\xd9", ImageSettings())


def test_a_png_that_only_pillow_reads_is_reencoded(photo, save):
    png = save(photo, "PNG")
    assert prepare_image(png, ImageSettings(store="png")).changes == ()
    checksum = png.index(b"IEND") - 5
    for data in (
        png[:checksum] + bytes([png[checksum] ^ 1]) + png[checksum + 1 :],
        png[: checksum + 1],
        png[:33] + struct.pack(">I4sI", 0, b"ABCD", zlib.crc32(b"ABCD")) + png[33:],
    ):
        prepared = prepare_image(data, ImageSettings(store="png"))
        assert prepared.changes == ("reencoded",)
        assert np.array_equal(decode(prepared), np.asarray(photo))
        with pytest.raises(
            Rejected, match="decode_error: PNG: damaged, although Pillow decodes it"
        ):
            prepare_image(data, ImageSettings(reencode="never"))
