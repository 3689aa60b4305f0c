"""The time that the scans of a JPEG take is bounded by their bytes, too."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image, scan_work
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.scan_work import MAX_SECONDS, estimate_seconds
from recordmill.schemas.rejection import Rejected


@pytest.fixture(scope="module")
def noise():
    """A progressive JPEG of noise, and the parts of it that are whole scans with their tables."""
    values = np.random.default_rng(0).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, "JPEG", quality=100, progressive=True, subsampling=0)
    data = stream.getvalue()
    marks = [found.start() for found in re.finditer(b"\xff[\xc4\xda\xd9]", data)]
    return data, list(zip(marks[1::2], marks[2::2], strict=False))


def repeat_last_scan(data, times):
    start = data.rindex(b"\xff\xda")
    return data[:start] + data[start:-2] * times + data[-2:]


def test_bytes_of_refining_scans_cost_more_than_those_of_first_ones(noise, monkeypatch):
    data, _ = noise
    header = read_jpeg_header(data)
    scans = data.count(b"\xff\xda")
    starts = [found.start() for found in re.finditer(b"\xff\xda", data)]
    # Of the ten scans that libjpeg writes, the last byte of the header says which refine.
    seconds = scans * 96 * 128 * 3e-9
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        last = start + 1 + int.from_bytes(data[start + 2 : start + 4], "big")
        seconds += (end - start) / (12e6 if data[last] >> 4 else 30e6)
    monkeypatch.setattr(scan_work, "MAX_SECONDS", 0.0)
    assert scans == 10
    assert estimate_seconds(data, header, scans) == pytest.approx(seconds, rel=1e-12)
    assert estimate_seconds(data, header, scans) < (len(data) / 12e6)


def test_many_bytes_in_many_scans_are_refused(noise, monkeypatch):
    data, _ = noise
    more = repeat_last_scan(data, 41)
    assert prepare_image(more, ImageSettings()).changes == ()
    # Scans out of order are unusual: two decoders may read them.
    seconds = 2 * estimate_seconds(more, read_jpeg_header(more), 50)
    monkeypatch.setattr("recordmill.imaging.pixels.MAX_SECONDS", seconds * 0.99)
    size = len(more) - read_jpeg_header(more).scan_start
    with pytest.raises(Rejected) as caught:
        prepare_image(more, ImageSettings())
    assert caught.value.reason == "too_much_work"
    assert caught.value.detail == f"JPEG: 50 scans of 128 x 96 pixels in {size:,} bytes"
    larger = ImageSettings(max_pixels=2 * ImageSettings().max_pixels)
    assert prepare_image(more, larger).changes == ()
    monkeypatch.setattr("recordmill.imaging.pixels.MAX_SECONDS", seconds * 1.01)
    assert prepare_image(more, ImageSettings()).changes == ()


def test_an_unusual_jpeg_is_not_decoded_twice_at_the_limit(noise, monkeypatch):
    data, _ = noise
    at = data.index(b"\xff\xdb")  # after the first segment
    unusual = data[:at] + b"junk" + data[at:]
    assert prepare_image(unusual, ImageSettings(quality=90)).changes == ("reencoded",)
    seconds = estimate_seconds(unusual, read_jpeg_header(unusual), 10)
    monkeypatch.setattr("recordmill.imaging.pixels.MAX_SECONDS", seconds * 1.5)
    with pytest.raises(Rejected, match="too_much_work"):
        prepare_image(unusual, ImageSettings(quality=90))


def test_the_bytes_of_one_scan_are_not_limited(save, monkeypatch):
    monkeypatch.setattr("recordmill.imaging.pixels.MAX_SECONDS", 0.0)
    data = save(Image.linear_gradient("L").convert("RGB"), "JPEG")
    assert prepare_image(data, ImageSettings()).changes == ()


def test_the_files_that_took_up_to_22_seconds_are_refused():
    for width, height, scans, size, is_refused in (
        (2_000, 2_000, 310, 171_000_000, True),
        (2_500, 2_500, 160, 130_000_000, True),
        (9_400, 4_700, 38, 144_000_000, True),
        (9_400, 9_400, 25, 500_000, False),
        (4_000, 6_000, 10, 40_000_000, False),
    ):
        stream = io.BytesIO()
        Image.new("RGB", (16, 16)).save(stream, "JPEG", progressive=True)
        header = read_jpeg_header(stream.getvalue())
        header.width, header.height = width, height
        # As if all scans refined: the first parts of such files hardly count.
        start = header.scan_start
        scan = b"\xff\xda\0\x08\1\1\0\1\x3f\x21"
        length = (size - start) // scans
        data = stream.getvalue()[:start] + (scan + bytes(length - len(scan))) * scans
        assert (estimate_seconds(data, header, scans) > MAX_SECONDS) == is_refused
