"""TIFFs whose first page is not the main picture, raw photographs, and unreadable Exif pointers."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.tiff_pages import read_pages
from recordmill.schemas.rejection import Rejected

REDUCED = (254, 4, 1)
SENSOR, LINEAR = (262, 3, 32803), (262, 3, 34892)
FORMS = [("<", False), ("<", True), (">", False)]  # Pillow does not open other BigTIFFs


def tiff(pages, order="<", big=False, mark=b""):
    """A TIFF of gray pages, each of (pixels, more tags, pages below); it holds them one by one."""
    start, count, entry = ("Q", "Q", "HHQ") if big else ("I", "H", "HHI")
    number = "+" if big else "*"
    head = b"II" + number.encode() + b"\0" if order == "<" else b"MM\0" + number.encode()
    head += struct.pack(order + "HHQ", 8, 0, 0) if big else struct.pack(order + "I", 0)
    body = bytearray(head + mark.ljust(8, b"\0"))
    links = [8 if big else 4]

    def write(pixels, tags=(), below=()):
        offsets = []
        for each in below:
            offsets.append(write(*each))
        at = len(body)
        body.extend(pixels.tobytes())
        height, width = pixels.shape
        values = {256: (4, width), 257: (4, height), 258: (3, 8), 259: (3, 1), 262: (3, 1)}
        values |= {273: (4, at), 277: (3, 1), 278: (4, height), 279: (4, pixels.size)}
        values |= {tag: (kind, value) for tag, kind, value in tags}
        packed = {
            tag: (kind, 1, struct.pack(order + {3: "H", 4: "I"}[kind], value))
            for tag, (kind, value) in values.items()
        }
        if offsets:
            numbers = struct.pack(f"{order}{len(offsets)}I", *offsets)
            if len(offsets) > 1 and len(numbers) > struct.calcsize(start):
                place = len(body)
                body.extend(numbers)
                numbers = struct.pack(order + start, place)
            packed[330] = (4, len(offsets), numbers)
        directory = len(body)
        body.extend(struct.pack(order + count, len(packed)))
        for tag, (kind, number_of_values, value) in sorted(packed.items()):
            body.extend(struct.pack(order + entry, tag, kind, number_of_values))
            body.extend(value.ljust(struct.calcsize(start), b"\0"))
        links.append(len(body))
        body.extend(bytes(struct.calcsize(start)))
        return directory

    for page in pages:
        link = links[-1] if len(links) == 1 else links[0]
        links[:] = [link]
        directory = write(*page)
        struct.pack_into(order + start, body, link, directory)
        links[:] = [links[-1]]
    return bytes(body)


def shaded(height, width, first=0):
    return (np.arange(height * width).reshape(height, width) + first).astype(np.uint8)


SMALL, WHOLE = shaded(12, 16, 100), shaded(40, 60)


def outcome(data, **settings):
    try:
        return prepare_image(data, ImageSettings(store="raw", **settings))
    except Rejected as bad:
        return bad.reason


def pixels_of(image):
    return np.frombuffer(image.encoded, np.uint8).reshape(image.height, image.width)


@pytest.mark.parametrize(("order", "big"), FORMS)
def test_the_whole_page_is_taken_instead_of_the_reduced_one(order, big):
    data = tiff([(SMALL, [REDUCED]), (WHOLE,)], order, big)
    assert np.array_equal(np.array(Image.open(io.BytesIO(data))), SMALL)  # as others decode it
    assert np.array_equal(pixels_of(outcome(data)), WHOLE)


@pytest.mark.parametrize(("order", "big"), FORMS)
@pytest.mark.parametrize("below", [1, 2])
def test_the_whole_page_is_found_below_the_reduced_one(order, big, below):
    pages = [(shaded(20, 30), [REDUCED]), (WHOLE,)][-below:]
    data = tiff([(SMALL, [REDUCED], pages)], order, big)
    image = outcome(data)
    assert np.array_equal(pixels_of(image), WHOLE)
    assert image.changes == ("reencoded",)


@pytest.mark.parametrize(
    "mark", [(254, 4, 1), (254, 4, 5), (254, 3, 1), (254, 4, 4), (255, 3, 2), (254, 4, 65537)]
)
def test_each_way_to_mark_a_page_that_is_not_whole_is_known(mark):
    assert np.array_equal(pixels_of(outcome(tiff([(SMALL, [mark]), (WHOLE,)]))), WHOLE)
    assert outcome(tiff([(SMALL, [mark])])) == "raw_photograph"


def test_the_largest_whole_page_is_taken():
    pages = [(SMALL, [REDUCED]), (shaded(20, 30),), (WHOLE,), (shaded(8, 8),)]
    image = outcome(tiff(pages))
    assert np.array_equal(pixels_of(image), WHOLE)
    assert image.changes == ("first_frame", "reencoded")


@pytest.mark.parametrize("mark", [(254, 4, 0), (254, 4, 2), (255, 3, 1), (255, 3, 3)])
def test_a_whole_first_page_is_taken_whatever_follows(mark):
    pages = [(SMALL, [mark]), (WHOLE, [REDUCED])]
    image = outcome(tiff(pages))
    assert np.array_equal(pixels_of(image), SMALL)
    assert image.changes == ("reencoded",)  # a reduced picture of it is no loss


@pytest.mark.parametrize(
    "sensor", [SENSOR, LINEAR, (259, 3, 34713), (259, 3, 32767), (259, 3, 65535)]
)
@pytest.mark.parametrize("mark", [REDUCED, (254, 4, 0)])
def test_a_raw_photograph_is_rejected_by_name(sensor, mark):
    page = (WHOLE, [sensor])
    for pages in ([(SMALL, [mark], [page])], [(SMALL, [mark]), page], [page]):
        assert outcome(tiff(pages)) == "raw_photograph"
        with pytest.raises(Rejected, match="TIFF: it holds the data of a camera's sensor: develop"):
            prepare_image(tiff(pages), ImageSettings())


@pytest.mark.parametrize("mark", [b"CR\2\0", b"IIII", b"MMMM"])
def test_raw_photographs_that_do_not_mark_their_previews_are_rejected(mark):
    assert outcome(tiff([(SMALL,)], mark=mark)) == "raw_photograph"


@pytest.mark.parametrize(
    "start",
    [
        b"\0\0\0\x18ftypcrx \0\0\0\1crx isom",
        b"FUJIFILMCCD-RAW 0201FF129502X-T1",
        b"IIRO\x08\0\0\0",
        b"IIRS\x08\0\0\0",
        b"MMOR\0\0\0\x08",
        b"IIU\0\x18\0\0\0",
        b"II\x1a\0\0\0HEAPCCDR",
        b"FOVb\0\0\2\0",
        b"\0MRM\0\0\0\0",
    ],
)
def test_raw_photographs_of_other_forms_are_rejected(start):
    assert outcome(start + bytes(100)) == "raw_photograph"


def test_a_whole_page_that_cannot_be_decoded_makes_it_a_raw_photograph():
    unknown = (259, 3, 12345)
    data = tiff([(SMALL, [REDUCED]), (WHOLE, [unknown])])
    with pytest.raises(Rejected, match="whole one cannot be decoded") as caught:
        prepare_image(data, ImageSettings())
    assert caught.value.reason == "raw_photograph"
    assert outcome(tiff([(WHOLE, [unknown])])) == "bad_header"


def test_a_reduced_first_page_is_not_copied():
    data = tiff([(SMALL, [REDUCED]), (WHOLE,)])
    for check in ("header", "decode"):
        with pytest.raises(Rejected, match="its first page is a reduced picture, and reencode"):
            prepare_image(data, ImageSettings(reencode="never", check=check))


def test_pages_that_name_one_another_are_read_once():
    data = bytearray(tiff([(SMALL,), (WHOLE,)]))
    first, second = read_pages(bytes(data))
    end = len(data) - 4
    struct.pack_into("<I", data, end, first.offset)
    assert read_pages(bytes(data)) == [first, second]
    assert (first.area, second.area) == (12 * 16, 40 * 60)


@pytest.mark.parametrize("data", [b"", b"II*\0", b"II*\0\xff\xff\xff\xff", b"MM\0+" + bytes(12)])
def test_a_damaged_file_has_no_pages(data):
    assert read_pages(data) == []


@pytest.mark.parametrize("mode", ["RGB", "CMYK"])
def test_several_parts_of_damaged_exif_do_not_reject_whole_pixels(mode, save):
    damaged = b"II*\0\x08\0\0\0\xff\xff" + struct.pack("<HHII", 1, 3, 2**30, 2**31) * 5_000
    part = b"\xff\xe1" + struct.pack(">H", 8 + len(damaged)) + b"Exif\0\0" + damaged
    data = save(Image.fromarray(WHOLE).convert(mode), "JPEG")
    image = prepare_image(data[:2] + 3 * part + data[2:], ImageSettings())
    assert (image.height, image.width, image.channels) == (40, 60, 3)


@pytest.mark.parametrize("tag", [34665, 34853, 40965])
@pytest.mark.parametrize("value", [0, 1, 8, 17, 100, 4_000_000, 2**32 - 1])
@pytest.mark.parametrize("order", ["<", ">"])
def test_an_unreadable_exif_pointer_does_not_reject_whole_pixels(tag, value, order):
    image = outcome(tiff([(WHOLE, [(tag, 4, value)])], order))
    assert np.array_equal(pixels_of(image), WHOLE)
