import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.pixels import (
    MAX_SCANS,
    UnusualJpeg,
    check_scans,
    decode_jpeg,
    encode_raster,
    to_image,
    to_raster,
)
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("progressive", [False, True])
def test_pixels_equal_pillows(photo, save, mode, progressive):
    data = save(photo.convert(mode), "JPEG", progressive=progressive)
    decoded = to_image(decode_jpeg(data, read_jpeg_header(data)))
    assert (decoded.mode, decoded.tobytes()) == (mode, Image.open(io.BytesIO(data)).tobytes())


@pytest.mark.parametrize(
    ("reduction", "shape"), [(1, (64, 95)), (2, (32, 48)), (4, (16, 24)), (8, (8, 12))]
)
def test_reductions_round_up(photo, save, reduction, shape):
    data = save(photo.crop((0, 0, 95, 64)), "JPEG")
    assert decode_jpeg(data, read_jpeg_header(data), reduction).shape[:2] == shape


def test_missing_data_are_truncated(jpeg):
    with pytest.raises(Rejected, match=r"truncated: JPEG: .*premature end"):
        decode_jpeg(jpeg[: len(jpeg) * 2 // 3] + b"\xff\xd9", read_jpeg_header(jpeg))


def test_stray_bytes_are_left_to_pillow(jpeg):
    data = jpeg[:2] + b"junk" + jpeg[2:]
    with pytest.raises(UnusualJpeg, match="extraneous bytes"):
        decode_jpeg(data, read_jpeg_header(data))


def test_an_end_marker_is_asked_for_and_what_follows_it_is_not(jpeg):
    settings = ImageSettings(check="header")
    assert prepare_image(jpeg + b"trailing", settings).changes == ()
    with pytest.raises(Rejected, match="truncated: JPEG: no end of image marker"):
        prepare_image(jpeg[:-2], settings)


def repeat_scan(data, times):
    """The file with its last scan more often."""
    start = data.rindex(b"\xff\xda")
    return data[:start] + data[start:-2] * times + data[-2:]


def test_many_scans_of_a_small_image_are_borne_and_absurdly_many_refused(photo, save):
    data = save(photo, "JPEG", progressive=True)
    header = read_jpeg_header(data)
    scans = data.count(b"\xff\xda")
    most = repeat_scan(data, 1 + MAX_SCANS - scans)
    check_scans(most, header, DEFAULT_MAX_PIXELS)
    with pytest.raises(Rejected, match="too_much_work: JPEG: 501 scans of 96 x 64 pixels"):
        check_scans(repeat_scan(data, 2 + MAX_SCANS - scans), header, DEFAULT_MAX_PIXELS)


@pytest.mark.parametrize("marker", [0xC0, 0xC1, 0xC2])
def test_scans_times_pixels_are_bounded_whatever_the_process(save, marker):
    data = save(Image.new("RGB", (16, 16)), "JPEG")
    start = data.rindex(b"\xff\xda")
    of_one_component = b"\xff\xda\0\x08\1\1\0\0\x3f\0" + bytes(4)
    data = data[:start] + of_one_component * 28 + b"\xff\xd9"
    frame = data.index(b"\xff\xc0")
    data = data[: frame + 1] + bytes([marker]) + data[frame + 2 :]
    header = replace(read_jpeg_header(data), height=9_400, width=9_500)
    check_scans(data, header, DEFAULT_MAX_PIXELS)
    more = data[:-2] + of_one_component + b"\xff\xd9"
    with pytest.raises(Rejected, match="too_much_work: JPEG: 29 scans of 9500 x 9400 pixels"):
        check_scans(more, header, DEFAULT_MAX_PIXELS)
    check_scans(more, header, 2 * DEFAULT_MAX_PIXELS)  # who allows larger images allows their scans


def test_what_follows_the_only_scan_of_a_sequential_jpeg_does_not_count(jpeg):
    check_scans(jpeg + b"\xff\xda" * 501, read_jpeg_header(jpeg), DEFAULT_MAX_PIXELS)


@pytest.mark.parametrize("marker", [b"\xff\xda", b"\xff\xda\0\x0c\3\1\0\2\x11\3\x11\0\x3f\0"])
def test_what_follows_the_end_of_a_progressive_jpeg_does_not_count(photo, save, marker):
    data = save(photo, "JPEG", progressive=True)
    assert data.endswith(b"\xff\xd9")
    check_scans(data + marker * 501, read_jpeg_header(data), DEFAULT_MAX_PIXELS)
    with pytest.raises(Rejected, match="too_much_work: JPEG: 511 scans of 96 x 64 pixels"):
        check_scans(data[:-2] + marker * 501, read_jpeg_header(data), DEFAULT_MAX_PIXELS)


def test_the_marker_of_the_end_in_a_comment_between_scans_is_not_the_end(photo, save):
    data = save(photo, "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    hidden = data[:start] + b"\xff\xfe\0\x04\xff\xd9" + data[start:]
    check_scans(hidden, read_jpeg_header(data), DEFAULT_MAX_PIXELS)
    with pytest.raises(Rejected, match="too_much_work: JPEG: 510 scans of 96 x 64 pixels"):
        check_scans(repeat_scan(hidden, 501), read_jpeg_header(data), DEFAULT_MAX_PIXELS)


def test_encoding_keeps_size_mode_and_nearly_the_pixels(photo):
    for mode, subsampling, layout in [
        ("L", "4:2:0", (1, 1)),
        ("RGB", "4:4:4", (1, 1)),
        ("RGB", "4:2:0", (2, 2)),
    ]:
        image = photo.convert(mode)
        decoded = Image.open(
            io.BytesIO(encode_raster(to_raster(image), ImageSettings(subsampling=subsampling)))
        )
        assert (decoded.mode, decoded.size, decoded.layer[0][1:3]) == (mode, image.size, layout)
        assert np.abs(np.asarray(decoded).astype(int) - np.asarray(image)).mean() < 1.5
