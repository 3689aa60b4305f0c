"""Files that would take minutes: each is refused by what its structure says, and one step less is
borne."""

import io
import struct
import zlib

import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, acceptance, prepare_image
from recordmill.imaging.acceptance import CountedReads, check_directories, check_runs
from recordmill.schemas.rejection import Rejected


def chunk(kind, body=b""):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(9 * 8)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + pixels + chunk(b"IEND")


def gif(extensions, pixels=b"\2\2\x84\x51\0"):
    return (
        b"GIF89a\1\0\1\0\x80\0\0"
        + bytes(6)
        + extensions
        + b","
        + bytes(4)
        + b"\1\0\1\0\0"
        + pixels
        + b";"
    )


def bmp(side, runs):
    palette = bytes(4 * 256)
    info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(runs), 0, 0, 256, 0)
    return (
        b"BM"
        + struct.pack("<IHHI", 54 + len(palette) + len(runs), 0, 0, 54 + len(palette))
        + info
        + palette
        + runs
    )


def tiff(*entries, side=8, rest=b""):
    known = [
        (256, 4, 1, side),
        (257, 4, 1, side),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
    ]
    strips = (
        []
        if any(entry[0] == 324 for entry in entries)
        else [(273, 4, 1, 8), (278, 4, 1, side), (279, 4, 1, 64)]
    )
    packed = b"".join(struct.pack("<HHII", *entry) for entry in sorted([*known, *strips, *entries]))
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(packed) // 12) + packed + bytes(4) + rest


def outcome(data):
    try:
        return prepare_image(data, ImageSettings()).changes
    except Rejected as bad:
        return str(bad)


MANY = 2**18
SHARED = bytes(2**20)
# In these tests, instead of up to a thousand times as many.
READS = {
    "PNG": 5_000,
    "GIF": 500,
    "PPM": 5_000,
    "BMP": 5_000,
}
FILES = {
    "chunks of a PNG": (
        lambda count: png(chunk(b"abCd") * count),
        (1_000, 2_600),
        ("reencoded",),
        "too_much_work: PNG: more than 5,000 pieces",
    ),
    "pixels of a PNG a byte at a time": (
        lambda count: png(chunk(b"IDAT") * count),
        (1_000, 6_000),
        ("reencoded",),
        "too_much_work: PNG: more than 5,000 pieces",
    ),
    "profiles of a PNG": (
        lambda count: png(
            chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(300_000), 9) + bytes(800)) * count
        ),
        (1_000, 1_001),
        ("icc_ignored", "reencoded"),
        "too_much_work: PNG: 1,001 profiles",
    ),
    "comments of a GIF": (
        lambda count: gif(b"!\xfe\1a\0" * count),
        (90, 130),
        ("palette_expanded", "reencoded"),
        "too_much_work: GIF: more than 500 pieces",
    ),
    "blocks of a GIF's comment": (
        lambda count: gif(b"!\xfe" + b"\1a" * count + b"\0"),
        (200, 260),
        ("palette_expanded", "reencoded"),
        "too_much_work: GIF: more than 500 pieces",
    ),
    "a comment in a PPM's header": (
        lambda count: b"P5\n#" + b"a" * count + b"\n1 1 255 \0",
        (4_900, 5_000),
        ("reencoded",),
        "too_much_work: PPM: more than 5,000 pieces",
    ),
    "steps of a BMP that paint nothing": (
        lambda count: bmp(8, b"\0\2\0\0" * count + b"\x08\1\0\0" * 8),
        (1_600, 1_700),
        ("palette_expanded", "reencoded"),
        "too_much_work: BMP: more than 5,000 pieces",
    ),
    "values of a TIFF that share their bytes": (
        lambda count: tiff(
            *((1_000 + tag, 7, len(SHARED), 8) for tag in range(count)), rest=SHARED
        ),
        (66, 67),
        ("reencoded",),
        "too_much_work: directories (TIFF, Exif) of more values than bytes",
    ),
    "values of a TIFF's tag": (
        lambda count: tiff((282, 3, count, 8), rest=bytes(2 * MANY)),
        (MANY, MANY + 1),
        ("reencoded",),
        "too_much_work: directories (TIFF, Exif): 262,145 values of tag 282",
    ),
    "tiles of a TIFF": (
        lambda count: tiff(
            (322, 4, 1, 1),
            (323, 4, 1, 1),
            (324, 4, count, 134),
            (325, 4, count, 134),
            rest=bytes(4 * MANY),
        ),
        (64, MANY + 1),
        ("reencoded",),
        "too_much_work: directories (TIFF, Exif): 262,145 values of tag 324",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_limit_itself_is_accepted_and_one_more_is_rejected(name, monkeypatch):
    monkeypatch.setattr(acceptance, "_MAX_READS", READS)
    make, (borne, refused), changes, reason = FILES[name]
    assert outcome(make(borne)) == changes
    assert outcome(make(refused)) == reason


def test_one_that_repeats_its_exif_prefix_is_read_in_one_pass():
    many = 2**17
    turned = b"II*\0\x08\0\0\0" + struct.pack("<HHHIHH", 1, 0x0112, 3, 1, 6, 0) + bytes(4)
    assert outcome(png(chunk(b"eXIf", b"Exif\0\0" * many + turned))) == ("reencoded", "rotated")


def test_limits_are_far_above_what_real_files_have():
    assert acceptance._MAX_READS == {"GIF": 2**15, "BMP": 2**22}
    assert acceptance._MAX_READS_ELSEWHERE == 2**19


def test_what_follows_the_first_frame_of_a_gif_is_not_decoded(save):
    frames = [Image.new("L", (8, 8), shade) for shade in range(200)]
    data = save(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert outcome(data[:-1] + b"!\xfe" + b"\1a" * 1_000_000 + b"\0;") == (
        "first_frame",
        "palette_expanded",
        "reencoded",
    )


def test_reads_are_counted_and_the_last_one_is_refused(monkeypatch):
    monkeypatch.setattr(acceptance, "_MAX_READS", {"BMP": 2})
    file = CountedReads(b"abcdef", "BMP")
    assert (file.read(1), file.read(), file.getvalue()) == (b"a", b"bcdef", b"abcdef")
    with pytest.raises(Rejected, match="too_much_work: BMP: more than 2 pieces"):
        file.read(1)


def test_a_bmp_of_runs_is_smaller_than_others():
    check_runs(8_192, 4_096)
    with pytest.raises(
        Rejected, match="too_much_work: BMP: 8192 x 4097 pixels, run-length encoded"
    ):
        check_runs(8_192, 4_097)
    assert outcome(bmp(6_000, b"")) == "too_much_work: BMP: 6000 x 6000 pixels, run-length encoded"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("big", [False, True])
def test_directories_of_both_orders_and_sizes_are_walked_with_those_below(order, big):
    many = 100
    mark = (b"II" if order == "<" else b"MM") + (
        b"+\0" if big else b"*\0" if order == "<" else b"\0*"
    )
    entry, count, start = (("HHQQ", "Q", "Q"), ("HHII", "H", "I"))[not big]
    first = 16 if big else 8
    size = struct.calcsize(order + entry)
    below = first + struct.calcsize(order + count) + size
    values = b"".join(struct.pack(order + entry, tag, 2, 2**20, 0) for tag in range(many))
    data = mark + (
        struct.pack(order + "HHQ", 8, 0, first) if big else struct.pack(order + start, first)
    )
    data += struct.pack(order + count, 1) + struct.pack(order + entry, 34665, 4, 1, below)
    data += struct.pack(order + count, many) + values + bytes(2**20)
    with pytest.raises(Rejected, match="of more values than bytes"):
        check_directories(data)
    check_directories(data[: -(2**20)])


@pytest.mark.parametrize(
    "data",
    [b"", b"II*\0", b"II*\0\xff\xff\xff\xff", b"II*\0\x08\0\0\0\xff\xff", b"MM\0+" + bytes(9)],
)
def test_damaged_directories_are_left_to_pillow(data):
    check_directories(data)


def test_a_directory_that_names_itself_is_walked_once():
    check_directories(tiff((34665, 4, 1, 8)))


def test_memory_is_a_file(save):
    data = save(Image.new("L", (8, 8)), "TIFF")
    assert (
        Image.open(CountedReads(data, "TIFF")).tobytes() == Image.open(io.BytesIO(data)).tobytes()
    )


@pytest.mark.parametrize(("blocks", "is_refused"), [(100, False), (1000, True)])
def test_a_png_of_empty_blocks_is_refused(save, monkeypatch, blocks, is_refused):
    monkeypatch.setattr(acceptance, "_MAX_EMPTY_BYTES", 2000)
    small = save(Image.new("RGB", (2, 2), (9, 8, 7)), "PNG")
    at = small.index(b"IDAT")
    pixels = zlib.decompress(small[at + 4 : at + 4 + int.from_bytes(small[at - 4 : at])])
    body = zlib.compress(pixels)
    packed = body[:2] + b"\0\0\0\xff\xff" * blocks + body[2:]  # stored blocks of no bytes
    chunk = b"IDAT" + packed
    end = small.index(b"IEND") - 4
    data = (
        small[: at - 4]
        + struct.pack(">I", len(packed))
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + small[end:]
    )
    if is_refused:
        with pytest.raises(Rejected, match=r"too_much_work: PNG: .* bytes of 2 x 2 pixels"):
            prepare_image(data, ImageSettings())
    else:
        assert prepare_image(data, ImageSettings()).height == 2
