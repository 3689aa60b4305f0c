"""Whatever the bytes are, an image is prepared or rejected, in bounded memory."""

import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from functools import partial
from random import Random

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordmill.imaging import ImageSettings, PreparedImage, prepare_image
from recordmill.schemas.rejection import REASONS, Rejected

DEFAULT = ImageSettings()
SETTINGS = [
    DEFAULT,
    ImageSettings(store="png"),
    ImageSettings(reencode="always"),
    ImageSettings(reencode="never"),
    ImageSettings(check="header"),
]
SETTINGS_OF_JPEG_AND_PNG = [DEFAULT, ImageSettings(store="png"), ImageSettings(grayscale="expand")]
MUTANTS = int(os.environ.get("RECORDMILL_MUTANTS", "400"))  # a night's worth is a million
MAGICS = [
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"GIF89a",
    b"RIFF\0\0\0\0WEBPVP8 ",
    b"BM",
    b"II*\0",
    b"P5 9 9 255 ",
    b"",
]


def outcome(data, settings=DEFAULT):
    """The rejection's code, or None; anything else raised fails the test, and so does what cannot
    be read back."""
    try:
        result = prepare_image(data, settings)
    except Rejected as bad:
        result = bad
    if isinstance(result, PreparedImage):
        if settings.check == "decode":
            read_back(result)
        return None
    assert result.reason in REASONS["decode"]
    assert "\n" not in result.detail
    assert " at 0x" not in result.detail
    return result.reason


def read_back(prepared):
    """Opens and decodes what is stored by Pillow, as its users do, and by libjpeg-turbo unless that
    only warns."""
    image = Image.open(io.BytesIO(prepared.encoded))
    image.load()
    assert image.size == (prepared.width, prepared.height)
    if prepared.format == "JPEG":
        assert len(image.getbands()) == prepared.channels
    if prepared.format == "JPEG" and prepared.channels < 4:
        try:
            pixels = simplejpeg.decode_jpeg(
                prepared.encoded, "GRAY" if prepared.channels == 1 else "RGB"
            )
        except ValueError as error:
            assert "premature" not in str(error)  # noqa: PT017
        else:
            assert pixels.shape == (prepared.height, prepared.width, prepared.channels)


def mutate(data, random):
    """A few bits, bytes or stretches changed, moved or taken away, often near the start, where the
    headers are."""
    mutated = bytearray(data)
    for _ in range(random.randint(1, 4)):
        near = random.choice([64, 700, len(mutated), len(mutated)])
        at = random.randint(0, min(near, len(mutated)))
        match random.choice(["flip", "flip", "replace", "marker", "cut", "splice"]):
            case "flip" if at < len(mutated):
                mutated[at] ^= 1 << random.randint(0, 7)
            case "replace":
                mutated[at : at + random.randint(0, 8)] = random.randbytes(random.randint(0, 8))
            case "marker":
                mutated[at:at] = b"\xff" + random.randbytes(random.randint(1, 3))
            case "cut":
                del mutated[at : random.choice([at + 1, at + 40, len(mutated)])]
            case "splice":
                start = random.randint(0, len(mutated))
                mutated[at:at] = mutated[start : start + random.randint(0, 200)]
    return bytes(mutated)


@pytest.fixture(scope="module")
def files(photo, save) -> list[bytes]:
    """One small file of each format and of several modes."""
    small = photo.resize((24, 16))
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = {"save_all": True, "append_images": [small.rotate(90)]}
    return [
        save(small, "JPEG", exif=exif, icc_profile=b"profile"),
        save(small, "JPEG", progressive=True),
        save(small.convert("CMYK"), "JPEG"),
        save(small.convert("RGBA"), "PNG", exif=exif),
        save(small.convert("P"), "PNG", transparency=3),
        save(
            Image.fromarray(np.arange(384, dtype=np.uint16).reshape(16, 24)), "PNG", transparency=3
        ),
        save(small, "GIF", **frames),
        save(small, "WEBP", exif=exif, **frames),
        save(small, "BMP"),
        save(small, "TIFF", compression="tiff_lzw", exif=exif),
        save(small.convert("F"), "TIFF"),
        save(small, "PPM"),
    ]


@given(st.sampled_from(MAGICS), st.binary(max_size=200), st.sampled_from(SETTINGS))
def test_any_bytes(magic, rest, settings):
    outcome(magic + rest, settings)


def test_a_mutant_is_rejected_or_becomes_an_image_that_is_read_back(files):
    for seed in range(MUTANTS):
        random = Random(seed)
        outcome(mutate(random.choice(files), random), random.choice(SETTINGS))


@pytest.mark.slow
def test_tensorflow_decodes_what_is_stored_of_mutants(files, tmp_path):
    random = Random(0)
    stored = []
    while len(stored) < MUTANTS:
        with suppress(Rejected):
            mutant = mutate(random.choice(files), random)
            stored.append(prepare_image(mutant, random.choice(SETTINGS_OF_JPEG_AND_PNG)))
    (tmp_path / "stored").write_bytes(
        pickle.dumps(
            [(image.encoded, (image.height, image.width, image.channels)) for image in stored]
        )
    )
    code = """
import pickle, sys, tensorflow
for number, (encoded, shape) in enumerate(pickle.load(open(sys.argv[1], "rb"))):
    assert tensorflow.io.decode_image(encoded).shape == shape, number
"""
    child = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "stored")], capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr[-1_000:]


def test_every_cut(files):
    for data in files[:2]:
        assert {outcome(data[:length]) for length in range(3, len(data) - 2)} == {"truncated"}
    for data in files[2:]:
        for length in range(0, len(data), 7):
            outcome(data[:length])


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_a_truncated_jpeg_with_an_appended_end_marker_is_found(photo, save, share):
    baseline, progressive = save(photo, "JPEG"), save(photo, "JPEG", progressive=True)
    assert outcome(baseline[: int(len(baseline) * share)] + b"\xff\xd9") == "truncated"
    # Between a progressive JPEG's scans there are tables, and half a table is an error of its own.
    assert outcome(progressive[: int(len(progressive) * share)] + b"\xff\xd9") in {
        "truncated",
        "decode_error",
    }


def test_cut_photographs_are_found_and_whole_ones_pass(shared_data):
    photographs = [
        path.read_bytes() for path in sorted((shared_data / "imagenet-flat").iterdir())[::2]
    ]
    assert {outcome(data) for data in photographs} == {None}
    for share in (0.3, 0.9):
        codes = [outcome(data[: int(len(data) * share)] + b"\xff\xd9") for data in photographs]
        assert codes.count("truncated") >= 0.95 * len(codes), share


def png_header(width, height):
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + b"\0\0\0\x09IDAT"
        + bytes(13)
    )


def gif_header(width, height):
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08\1\0\0;"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + frame


def webp_header(width, height):
    body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(9)
    return (
        b"RIFF"
        + struct.pack("<I", len(body) + 12)
        + b"WEBPVP8L"
        + struct.pack("<I", len(body))
        + body
    )


def jpeg_header(width, height):
    return (
        b"\xff\xd8\xff\xc0\0\x0b\x08"
        + struct.pack(">HH", height, width)
        + b"\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0\xff\xd9"
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (webp_header(12_000, 12_000), "too_many_pixels"),
        (png_header(12_000, 12_000), "too_many_pixels"),
        (png_header(70_000, 1), "side_too_long"),
        (jpeg_header(12_000, 12_000), "too_many_pixels"),
        (jpeg_header(65_535, 1), "side_too_long"),
        (gif_header(60_000, 60_000), "too_many_pixels"),
        (b"P6 12000 12000 255\n", "too_many_pixels"),
    ],
)
def test_sizes_are_checked_before_memory_is_taken(data, code):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert outcome(data) == code
    # KiB; decoded they take 430,000.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_every_reason_is_reached(jpeg, photo, save):
    png = save(photo, "PNG")
    scrambled = png[:60] + bytes(value ^ 0x55 for value in png[60:-20]) + png[-20:]
    given_as = partial(
        outcome,
        settings=ImageSettings(max_bytes=2_000_000, max_side=1_000, max_pixels=10_000, bits=12),
    )
    bright = save(Image.new("I;16", (8, 8), 4_096), "PNG")
    assert {
        given_as(data)
        for data in (
            b"",
            bytes(2_000_001),
            b"text",
            b"8BPS",
            b"FUJIFILMCCD-RAW",
            bright,
            png_header(0, 0),
            png_header(200, 200),
            png_header(2_000, 2),
            jpeg[:-200],
            scrambled,
            jpeg[:2] + b"\xff\0" * 2**19 + jpeg[2:],
        )
    } == set(REASONS["decode"])
