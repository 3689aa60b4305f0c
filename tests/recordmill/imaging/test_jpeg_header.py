import struct
from dataclasses import replace

import pytest

from recordmill.imaging.jpeg_header import (
    MAX_EXIF_BYTES,
    MAX_SEGMENTS,
    MAX_STRAY_BYTES,
    Soundness,
    check_exif,
    read_jpeg_header,
)
from recordmill.schemas.rejection import Rejected


def segment(marker, payload):
    return bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload


FRAME = segment(0xC0, struct.pack(">BHHB", 8, 5, 7, 1) + b"\1\x11\0")
SCAN = segment(0xDA, b"\1\1\0\0\x3f\0")

JFIF_OF_72_DPI = segment(0xE0, b"JFIF\0\1\1\1\0\x48\0\x48\0\0")


def icc(number, count, body):
    return segment(0xE2, b"ICC_PROFILE\0" + bytes([number, count]) + body)


def test_the_header_and_profile_of_a_jpeg_of_pillows_are_read(photo, save):
    header = read_jpeg_header(save(photo, "JPEG", progressive=True, icc_profile=b"x" * 70_000))
    assert (header.process, header.precision, header.height, header.width, header.components) == (
        0xC2,
        8,
        64,
        96,
        3,
    )
    assert header.icc_profile == b"x" * 70_000
    assert header.is_widely_readable
    assert header.process == 0xC2


def test_cmyk_is_not_widely_readable(photo, save):
    assert not read_jpeg_header(save(photo.convert("CMYK"), "JPEG")).is_widely_readable


@pytest.mark.parametrize(
    ("factors", "upright", "turned"),
    [
        ((0x11, 0x11, 0x11), "4:4:4", "4:4:4"),
        ((0x22, 0x22, 0x22), "4:4:4", "4:4:4"),
        ((0x21, 0x11, 0x11), "4:2:2", "4:4:0"),
        ((0x22, 0x11, 0x11), "4:2:0", "4:2:0"),
        ((0x12, 0x11, 0x11), "4:4:0", "4:2:2"),
        ((0x41, 0x11, 0x11), "4:1:1", "4:2:0"),
        ((0x22, 0x21, 0x11), "4:4:4", "4:4:4"),  # the two colors differ
        ((0x11, 0x22, 0x22), "4:4:4", "4:4:4"),  # more color than brightness
        ((0x22, 0x00, 0x00), "4:4:4", "4:4:4"),  # nonsense, which the decoder refuses
        ((0x11,), "4:2:0", "4:2:0"),  # gray
        ((0x22, 0x11, 0x11, 0x22), "4:2:0", "4:2:0"),
    ],
)
def test_how_colors_are_sampled(factors, upright, turned):
    components = b"".join(bytes([number, factor, 0]) for number, factor in enumerate(factors))
    header = read_jpeg_header(
        b"\xff\xd8" + segment(0xC0, struct.pack(">BHHB", 8, 5, 7, len(factors)) + components) + SCAN
    )
    assert (header.subsampling, header.upright_subsampling) == (upright, upright)
    assert replace(header, orientation=6).upright_subsampling == turned


@pytest.mark.parametrize("marker", [0xC3, 0xC9, 0xCA])
def test_neither_are_lossless_and_arithmetic_coding(marker):
    assert not read_jpeg_header(
        b"\xff\xd8" + FRAME.replace(b"\xff\xc0", bytes([0xFF, marker])) + SCAN
    ).is_widely_readable


def test_stray_bytes_and_fill_bytes_are_skipped_as_libjpeg_does():
    header = read_jpeg_header(
        b"\xff\xd8junk\xff\0\xff\xff\xff" + FRAME[1:] + b"more" + b"\xff\xd0" + SCAN
    )
    assert (header.height, header.width, header.orientation, header.icc_profile) == (5, 7, 1, None)


def test_profile_chunks_are_joined_by_number():
    header = read_jpeg_header(
        b"\xff\xd8" + icc(2, 2, b"world") + icc(1, 2, b"hello ") + FRAME + SCAN
    )
    assert header.icc_profile == b"hello world"


@pytest.mark.parametrize(
    "chunks",
    [icc(1, 2, b"half"), icc(0, 1, b"zero"), segment(0xE2, b"ICC_PROFILE\0"), icc(1, 1, b"")],
)
def test_an_incomplete_profile_is_none(chunks):
    assert read_jpeg_header(b"\xff\xd8" + chunks + FRAME + SCAN).icc_profile is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xd8", "truncated"),
        (b"\xff\xd8\xff", "truncated"),
        (b"\xff\xd8" + FRAME[:7], "truncated"),
        (b"\xff\xd8" + FRAME, "truncated"),
        (b"\xff\xd8" + FRAME + b"\xff\xd9", "truncated"),
        (b"\xff\xd8" + SCAN, "bad_header"),
        (b"\xff\xd8" + FRAME + FRAME + SCAN, "bad_header"),
        (b"\xff\xd8\xff\xd8" + FRAME + SCAN, "bad_header"),
        (b"\xff\xd8" + b"\xff\xdb\0\1" + FRAME + SCAN, "bad_header"),
        (b"\xff\xd8" + segment(0xC0, FRAME[4:] + b"\0") + SCAN, "bad_header"),
        (b"\xff\xd8" + segment(0xC0, b"\x08\0\0\0\7\1") + SCAN, "bad_header"),
        (b"\xff\xd8" + segment(0xC0, b"\x08\0\5") + SCAN, "bad_header"),
    ],
)
def test_damage(data, code):
    with pytest.raises(Rejected) as caught:
        read_jpeg_header(data)
    assert caught.value.reason == code


@pytest.mark.parametrize(
    ("before_frame", "soundness"),
    [
        (segment(0xE0, b"JFIF\0\1\2") + segment(0xFE, b""), Soundness.PLAIN),
        (segment(0xE0, b"JFIF\0\1"), Soundness.UNUSUAL),
        (segment(0xE1, b"Exif\0\0II*\0"), Soundness.UNUSUAL),
        (segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0"), Soundness.PLAIN),
        (icc(1, 1, b""), Soundness.PLAIN),
        (segment(0xE2, b"ICC_PROFILE\0\1"), Soundness.UNUSUAL),
        (segment(0xE2, b"MPF\0more of it"), Soundness.UNUSUAL),
        (segment(0xED, b"Photoshop 3.0\x008BIM\4\4"), Soundness.UNUSUAL),
        (segment(0xED, b"Photoshop 3.0\x008BIM\4\4\0\0\0\0\0\0"), Soundness.PLAIN),
        (JFIF_OF_72_DPI + segment(0xE1, b"Exif\0\0II*\0"), Soundness.PLAIN),
        (
            JFIF_OF_72_DPI.replace(b"\1\0\x48", b"\0\0\x48", 1) + segment(0xE1, b"Exif\0\0II*\0"),
            Soundness.UNUSUAL,
        ),
        (segment(0xEE, b"Adobe\0"), Soundness.UNUSUAL),
        (b"\xff\x01", Soundness.UNUSUAL),
        (b"\xff", Soundness.UNUSUAL),
        (b"stray", Soundness.UNUSUAL),
        (b"\xff\xfe\0\0", Soundness.MALFORMED),
        (b"\xff\xfe\0\1", Soundness.MALFORMED),
        (b"\xff\xe5\0\1" + segment(0xFE, b"a comment"), Soundness.MALFORMED),
    ],
)
def test_what_other_readers_may_stumble_over_is_marked(before_frame, soundness):
    header = read_jpeg_header(b"\xff\xd8" + before_frame + FRAME + SCAN)
    assert (header.soundness, header.height, header.width) == (soundness, 5, 7)


@pytest.mark.parametrize(
    ("one", "most"),
    [
        (segment(0xFE, b""), MAX_SEGMENTS - 2),
        (b"\xff\0", MAX_STRAY_BYTES // 2),
        (b"-", MAX_STRAY_BYTES),
    ],
)
def test_data_before_the_first_scan_are_limited(one, most):
    assert read_jpeg_header(b"\xff\xd8" + one * most + FRAME + SCAN).height == 5
    with pytest.raises(Rejected, match="too_much_work"):
        read_jpeg_header(b"\xff\xd8" + one * (most + 2) + FRAME + SCAN)


def test_exif_in_parts_is_limited_for_pillow():
    part, most = segment(0xE1, b"Exif\0\0" + bytes(65_000)), MAX_EXIF_BYTES // 65_006
    check_exif(b"\xff\xd8" + part * most + FRAME + SCAN)
    longer = b"\xff\xd8" + part * (most + 1) + FRAME + SCAN
    assert read_jpeg_header(longer).height == 5
    with pytest.raises(Rejected, match="too_much_work: JPEG: more than 16,777,216 bytes of Exif"):
        check_exif(longer)


def test_exif_whose_values_share_bytes_is_refused_where_it_may_be_long():
    many = 50_000
    values = b"".join(struct.pack("<HHII", tag, 7, 500_000, 8) for tag in range(many))
    exif = b"II*\0\x08\0\0\0" + struct.pack("<H", many) + values + bytes(4)
    parts = b"".join(
        segment(0xE1, b"Exif\0\0" + exif[at : at + 60_000]) for at in range(0, len(exif), 60_000)
    )
    with pytest.raises(
        Rejected, match=r"too_much_work: directories \(TIFF, Exif\) of more values than bytes"
    ):
        check_exif(b"\xff\xd8" + parts + FRAME + SCAN)


@pytest.mark.parametrize("kind", range(1, 17))
def test_exif_that_is_cut_or_damaged_is_left_to_pillow(kind):
    damaged = b"II*\0\x08\0\0\0\xff\xff" + struct.pack("<HHII", 1, kind, 2**30, 2**31) * 5_000
    parts = segment(0xE1, b"Exif\0\0" + damaged) * 2
    check_exif(b"\xff\xd8" + parts + FRAME + SCAN)
