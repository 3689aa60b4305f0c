"""AVIFs and HEICs of more than 8 bits per sample."""

import base64
import struct

import pytest

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.heif_depth import read_bits

ALL = ImageSettings(formats=("AVIF", "HEIC"))

AVIFS = {
    8: (
        "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAA"
        "AAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAIAAAAChpaW5mAAAA"
        "AAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAAAEtpcGNvAAAAFGlzcGUAAAAAAAAAEAAAABAA"
        "AAAQcGl4aQAAAAADCAgIAAAADGF2MUOBAAwAAAAAE2NvbHJuY2x4AAIAAgAGgAAAABdpcG1hAAAAAAAAAAEAAQQB"
        "AoMEAAAAKG1kYXQSAAoJGAz/2yBAQNCAMhEcR4eF3cAALAAAIHV9XblOXA=="
    ),
    10: (
        "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAA"
        "AAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAIAAAAChpaW5mAAAA"
        "AAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAAAEtpcGNvAAAAFGlzcGUAAAAAAAAAEAAAABAA"
        "AAAQcGl4aQAAAAADCgoKAAAADGF2MUOBAEwAAAAAE2NvbHJuY2x4AAIAAgAGgAAAABdpcG1hAAAAAAAAAAEAAQQB"
        "AoMEAAAAKG1kYXQSAAoJGAz/26BAQNCAMhEcR4eF3cAALAAAIHV9XblOXA=="
    ),
    12: (
        "AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOttZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAA"
        "AAAAAAAAAAAAAA5waXRtAAAAAAABAAAAHmlsb2MAAAAARAAAAQABAAAAAQAAAQ8AAAAfAAAAKGlpbmYAAAAAAAEA"
        "AAAaaW5mZQIAAAAAAQAAYXYwMUNvbG9yAAAAAGppcHJwAAAAS2lwY28AAAAUaXNwZQAAAAAAAAAQAAAAEAAAABBw"
        "aXhpAAAAAAMMDAwAAAAMYXYxQ4FAbAAAAAATY29scm5jbHgAAgACAAaAAAAAF2lwbWEAAAAAAAAAAQABBAECgwQA"
        "AAAnbWRhdBIACglYDP/a0CAgbhAyEBxHh4XdwAAsAAh1fV25Tlw="
    ),
}
"""Gray AVIFs of 16 x 16 pixels by their bits, as libavif writes them."""

HEIC_OF_10_BITS = (
    "AAAAHGZ0eXBoZWl4AAAAAG1pZjFoZWl4bWlhZgAAAVNtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAA"
    "AAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABdwABAAAAAAAAABIAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABo"
    "dmMxAAAAAA5waXRtAAAAAAABAAAA02lwcnAAAAC0aXBjbwAAAHVodmNDAQQIAAAAnbgAAAAAHvAA/P36+gAADwNgAAEA"
    "F0ABDAH//wQIAAADAJ24AAADAAAeugJAYQABAClCAQEECAAAAwCduAAAAwAAHqAggQTZbqSSmubgIaDAgAAADIAAAAMA"
    "hGIAAQAHRAHBcrAiQAAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAAAAAAAABAAAAAQAAAABBwaXhpAAAAAAMKCgoA"
    "AAAXaXBtYQAAAAAAAAABAAEEgQIDBAAAABptZGF0AAAADigBrwQY/B3nfpt5N3HG"
)
"""A gray HEIC of 64 x 64 pixels, as libheif writes it."""


def box(kind, *content):
    return struct.pack(">I4s", 8 + sum(map(len, content)), kind) + b"".join(content)


def av1c(flags):
    return box(b"av1C", bytes([0x81, 0, flags, 0]))


def pixi(*bits):
    return box(b"pixi", bytes([0, 0, 0, 0, len(bits), *bits]))


def heif(properties, associations, main=1):
    """A file of these properties; those of each item by number, counted from 1."""
    entries = b"".join(
        struct.pack(">HB", item, len(of_item)) + bytes(of_item)
        for item, of_item in associations.items()
    )
    ipma = box(b"ipma", bytes(4), struct.pack(">I", len(associations)), entries)
    iprp = box(b"iprp", box(b"ipco", *properties), ipma)
    pitm = box(b"pitm", bytes(4), struct.pack(">H", main))
    return box(b"ftyp", b"avif") + box(b"meta", bytes(4), pitm, iprp)


@pytest.mark.parametrize("bits", AVIFS)
def test_avifs_of_more_than_8_bits_are_counted_as_reduced(bits):
    data = base64.b64decode(AVIFS[bits])
    assert read_bits(data) == bits
    without_pixi = data.replace(b"pixi", b"free")
    assert read_bits(without_pixi) == bits
    for each in (data, without_pixi):
        image = prepare_image(each, ALL)
        assert ("depth_reduced" in image.changes, image.losses) == (bits > 8, {})


def test_a_heic_of_10_bits_is_counted_as_reduced():
    data = base64.b64decode(HEIC_OF_10_BITS)
    assert [read_bits(data), read_bits(data.replace(b"pixi", b"free"))] == [10, 10]
    pytest.importorskip("pillow_heif")
    assert prepare_image(data, ALL).changes == ("depth_reduced", "reencoded")


@pytest.mark.parametrize(
    ("data", "bits"),
    [
        (heif([av1c(0), av1c(0x40)], {1: [1], 2: [2]}), 8),  # another item has 10 bits
        (heif([av1c(0), av1c(0x60)], {1: [1], 2: [2]}, main=2), 12),
        (heif([pixi(10, 8, 8), av1c(0x40)], {1: [1]}), 10),
        (heif([pixi(8), av1c(0x40)], {1: [0x81]}), 8),  # of essential properties, bit 7 is set
        (heif([av1c(0x40)], {1: [9]}), 10),  # there is no such property
        (heif([av1c(0x40)], {2: [1]}), 10),  # a grid of tiles
        (heif([box(b"ispe", bytes(12))], {1: [1]}), 8),
        (b"", 8),
        (box(b"meta"), 8),
        (box(b"ftyp") + b"\0\0\0\1meta" + b"\xff" * 8, 8),
        (b"\xff\xff\xff\xffmeta", 8),
    ],
)
def test_the_main_picture_decides(data, bits):
    assert read_bits(data) == bits


@pytest.mark.parametrize("bits", AVIFS)
def test_damaged_files_have_some_number_of_bits(bits):
    data = base64.b64decode(AVIFS[bits])
    for end in range(len(data)):
        assert read_bits(data[:end]) in (8, bits)
        damaged = data[:end] + bytes([data[end] ^ 0xFF]) + data[end + 1 :]
        assert 8 <= max(8, read_bits(damaged)) <= 255


def test_many_boxes_take_little_work():
    assert read_bits(box(b"free") * 100_000 + heif([av1c(0x40)], {1: [1]})) == 8
