import io

import numpy as np
import pytest
from PIL import Image

from recordmill.transforms.imaging import jpeg_codec
from recordmill.transforms.imaging.bad_image import BadImage
from recordmill.transforms.imaging.jpeg_codec import UnusualJpeg, check_end, check_scans, decode_jpeg, encode_jpeg
from recordmill.transforms.imaging.jpeg_header import read_jpeg_header
from recordmill.transforms.imaging.pixels import to_image, to_raster


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("progressive", [False, True])
def test_pixels_equal_pillows(photo, save, mode, progressive):
    data = save(photo.convert(mode), "JPEG", progressive=progressive)
    decoded = to_image(decode_jpeg(data, read_jpeg_header(data)))
    assert (decoded.mode, decoded.tobytes()) == (mode, Image.open(io.BytesIO(data)).tobytes())


@pytest.mark.parametrize(("reduction", "shape"), [(1, (64, 95)), (2, (32, 48)), (4, (16, 24)), (8, (8, 12))])
def test_reductions_round_up(photo, save, reduction, shape):
    data = save(photo.crop((0, 0, 95, 64)), "JPEG")
    assert decode_jpeg(data, read_jpeg_header(data), reduction).shape[:2] == shape


def test_missing_data_are_truncated(jpeg):
    with pytest.raises(BadImage, match=r"truncated: JPEG: .*premature end"):
        decode_jpeg(jpeg[: len(jpeg) * 2 // 3] + b"\xff\xd9", read_jpeg_header(jpeg))


def test_stray_bytes_are_left_to_pillow(jpeg):
    data = jpeg[:2] + b"junk" + jpeg[2:]
    with pytest.raises(UnusualJpeg, match="extraneous bytes"):
        decode_jpeg(data, read_jpeg_header(data))


def test_an_end_marker_is_asked_for_and_what_follows_it_is_not(jpeg):
    header = read_jpeg_header(jpeg)
    check_end(jpeg + b"trailing", header)
    with pytest.raises(BadImage, match="truncated"):
        check_end(jpeg[:-2], header)


def test_absurdly_many_scans_are_refused(photo, save, monkeypatch):
    data = save(photo, "JPEG", progressive=True)
    check_scans(data, read_jpeg_header(data))
    monkeypatch.setattr(jpeg_codec, "MAX_SCANS", 3)
    with pytest.raises(BadImage, match="decode_error"):
        check_scans(data, read_jpeg_header(data))


def test_encoding_keeps_size_mode_and_nearly_the_pixels(photo):
    for mode, subsampling, layout in [("L", "4:2:0", (1, 1)), ("RGB", "4:4:4", (1, 1)), ("RGB", "4:2:0", (2, 2))]:
        image = photo.convert(mode)
        decoded = Image.open(io.BytesIO(encode_jpeg(to_raster(image), 95, subsampling)))
        assert (decoded.mode, decoded.size, decoded.layer[0][1:3]) == (mode, image.size, layout)
        assert np.abs(np.asarray(decoded).astype(int) - np.asarray(image)).mean() < 1.5
