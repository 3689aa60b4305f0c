import io
import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms
from walk_metadata import leftovers

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.exif import orientation_only
from recordmill.imaging.strip_metadata import UnstrippableError, find_metadata, strip_metadata
from recordmill.schemas.rejection import Rejected

HEADER = ImageSettings(check="header")
STRIP = ImageSettings(metadata="strip")
NEVER = ImageSettings(reencode="never", formats=("JPEG", "PNG", "WEBP"))
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
GPS = Image.Exif()
GPS[0x010F] = "maker"
GPS.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0)})


def segment(marker, body):
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def riff(kind, body):
    return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def webp(*chunks):
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def shown(data):
    """Everything that a reader of pixels sees, of all frames."""
    image = Image.open(io.BytesIO(data))
    frames = []
    for frame in range(getattr(image, "n_frames", 1) if image.format != "MPO" else 1):
        image.seek(frame)
        frames.append((image.mode, image.size, image.tobytes()))
    return (
        frames,
        image.info.get("icc_profile"),
        image.info.get("transparency"),
        image.info.get("gamma"),
    )


@pytest.fixture(scope="module")
def plain(photo, save):
    """Small files without metadata, by name."""
    small = photo.resize((24, 16))
    frames = {"save_all": True, "append_images": [small.rotate(90)]}
    return {
        "baseline": save(small, "JPEG"),
        "progressive": save(small, "JPEG", progressive=True),
        "restarts": save(small, "JPEG", restart_marker_blocks=1),
        "profile": save(small, "JPEG", icc_profile=PROFILE + bytes(70_000)),
        "cmyk": save(small.convert("CMYK"), "JPEG"),
        "png": save(small, "PNG"),
        "palette": save(small.convert("P"), "PNG", transparency=3, icc_profile=PROFILE),
        "apng": save(small, "PNG", **frames),
        "webp": save(small.convert("RGBA"), "WEBP", lossless=True),
        "animation": save(small, "WEBP", icc_profile=PROFILE, **frames),
    }


def test_files_without_metadata_are_left_alone(plain):
    for data in plain.values():
        file_format = {b"\xff": "JPEG", b"\x89": "PNG", b"R": "WEBP"}[data[:1]]
        assert leftovers(data) == []
        assert strip_metadata(data, file_format) is data
        assert find_metadata(data, file_format) == []


JPEG_EXTRAS = {
    "Exif": segment(0xE1, GPS.tobytes()),
    "Exif of nothing": segment(0xE1, b"Exif\0\0"),
    "XMP": segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
    "thumbnail": segment(0xE0, b"JFXX\0\x13\1\1\1\2\3"),
    "multi-picture index": segment(0xE2, b"MPF\0MM\0*"),
    "IPTC": segment(0xED, b"Photoshop 3.0\x008BIM"),
    "comment": segment(0xFE, b"\xff\xd9\xff\xda taken by"),
    "APP11": segment(0xEB, b"JP\0\0jumb"),
    "segment dc": segment(0xDC, b"\0\x10"),
}


@pytest.mark.parametrize("name", JPEG_EXTRAS)
@pytest.mark.parametrize("kind", ["baseline", "progressive", "restarts", "profile", "cmyk"])
def test_a_segment_of_a_jpeg_is_found_and_removed(plain, kind, name):
    data = plain[kind]
    marked = data[:2] + JPEG_EXTRAS[name] + data[2:]
    assert strip_metadata(marked, "JPEG") == data
    position = ["GPS position"] if name == "Exif" else []
    assert find_metadata(marked, "JPEG") == sorted([name.removesuffix(" of nothing"), *position])


def test_segments_between_the_scans_of_a_jpeg_are_removed(plain):
    data = plain["progressive"]
    places = [at for at in range(len(data)) if data.startswith((b"\xff\xda", b"\xff\xc4"), at)][2:]
    for at in places:
        marked = data[:at] + JPEG_EXTRAS["comment"] + JPEG_EXTRAS["Exif"] + data[at:]
        assert strip_metadata(marked, "JPEG") == data
        assert find_metadata(marked, "JPEG") == ["Exif", "GPS position", "comment"]


def test_the_thumbnail_in_jfif_is_removed_and_its_density_stays(plain):
    body = b"JFIF\0\1\2\1\0\x48\0\x48\2\1" + bytes(range(6))
    marked = plain["baseline"][:2] + segment(0xE0, body) + plain["baseline"][20:]
    stripped = strip_metadata(marked, "JPEG")
    assert find_metadata(marked, "JPEG") == ["thumbnail"]
    assert stripped[:20] == b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\2\1\0\x48\0\x48\0\0"
    assert stripped[20:] == plain["baseline"][20:]


def test_more_than_the_color_transform_in_an_adobe_segment_is_removed(plain):
    data = plain["cmyk"]
    at = data.index(b"\xff\xee")
    body = data[at + 4 : at + 16]
    marked = data[:at] + segment(0xEE, body + b"written by") + data[at + 16 :]
    assert find_metadata(marked, "JPEG") == ["APP14"]
    assert strip_metadata(marked, "JPEG") == data


@pytest.mark.parametrize(
    "tail", [b"\0", b"\xff\xd8\xff\xe0 another \xff\xd9", b"....ftypmp42 a motion photo"]
)
@pytest.mark.parametrize("kind", ["baseline", "restarts", "png", "webp"])
def test_data_after_the_end_are_removed(plain, kind, tail):
    data = plain[kind]
    file_format = "JPEG" if kind not in ("png", "webp") else kind.upper()
    assert strip_metadata(data + tail, file_format) == data
    assert find_metadata(data + tail, file_format) == ["data after the end"]


def test_bytes_between_segments_are_removed(plain):
    data = plain["baseline"]
    at = data.index(b"\xff\xdb")
    assert find_metadata(data[:at] + b"stray" + data[at:], "JPEG") == ["bytes between segments"]
    assert strip_metadata(data[:at] + b"stray" + data[at:], "JPEG") == data


@pytest.mark.parametrize("marker", [0xC8, 0xDE, 0xDF, 0xF0, 0xFD])
def test_a_jpeg_with_a_segment_that_libjpeg_rejects_is_not_stripped(plain, marker):
    data = plain["baseline"]
    at = data.index(b"\xff\xdb")
    odd = data[:at] + segment(marker, b"x") + data[at:]
    with pytest.raises(UnstrippableError, match=f"segment {marker:02x}"):
        strip_metadata(odd, "JPEG")
    assert prepare_image(odd, HEADER).encoded == odd
    with pytest.raises(Rejected, match="JPEG: "):
        prepare_image(odd, replace(HEADER, metadata="strip"))


def test_a_png_with_an_unknown_critical_chunk_is_not_stripped(plain):
    at = plain["png"].index(b"IDAT") - 4
    odd = plain["png"][:at] + chunk(b"CgBI", b"x") + plain["png"][at:]
    with pytest.raises(UnstrippableError, match="critical chunk CgBI"):
        strip_metadata(odd, "PNG")


def test_a_png_whose_end_has_content_is_not_stripped(plain):
    at = plain["apng"].index(b"fdAT") - 4
    odd = plain["apng"][:at] + chunk(b"IEND", b"x") + plain["apng"][at:]
    with pytest.raises(UnstrippableError, match=f"no chunk can be read at byte {at:,}"):
        strip_metadata(odd, "PNG")


PNG_EXTRAS = {
    "Exif": chunk(b"eXIf", GPS.tobytes()),
    "XMP": chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x/>"),
    "text": chunk(b"tEXt", b"Author\0somebody") + chunk(b"zTXt", b"a\0\0" + zlib.compress(b"b")),
    "time": chunk(b"tIME", bytes(7)),
    "chunk pHYs": chunk(b"pHYs", bytes(9)),
    "chunk prVt": chunk(b"prVt", b"x"),
}


@pytest.mark.parametrize("name", PNG_EXTRAS)
@pytest.mark.parametrize("before", [b"IDAT", b"IEND"])
@pytest.mark.parametrize("kind", ["png", "palette", "apng"])
def test_a_chunk_of_a_png_is_found_and_removed(plain, kind, before, name):
    data = plain[kind]
    at = data.index(before) - 4
    marked = data[:at] + PNG_EXTRAS[name] + data[at:]
    assert strip_metadata(marked, "PNG") == data
    assert find_metadata(marked, "PNG") == ([name, "GPS position"] if name == "Exif" else [name])


def test_the_colors_of_a_png_stay(plain):
    kinds = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"sBIT": 3, b"cICP": 4, b"mDCV": 24, b"cLLI": 8}
    data = plain["png"]
    colored = (
        data[:33]
        + b"".join(chunk(kind, bytes([1] * size)) for kind, size in kinds.items())
        + data[33:]
    )
    assert strip_metadata(colored, "PNG") is colored


@pytest.mark.parametrize("kind", ["webp", "animation"])
def test_chunks_of_a_webp_are_removed_and_its_flags_corrected(plain, photo, save, kind):
    data = plain[kind]
    image = Image.open(io.BytesIO(data))
    options = {"exif": GPS, "xmp": b"<x/>", "lossless": True, "save_all": kind == "animation"}
    marked = save(image, "WEBP", **options, icc_profile=image.info.get("icc_profile"))
    stripped = strip_metadata(marked, "WEBP")
    assert find_metadata(marked, "WEBP") == ["Exif", "GPS position", "XMP"]
    assert leftovers(stripped) == []
    assert shown(stripped) == shown(marked)


def test_chunks_inside_the_frames_of_an_animation_are_removed(plain):
    data = plain["animation"]
    at = data.index(b"ANMF")
    size = int.from_bytes(data[at + 4 : at + 8], "little")
    frame = data[at + 8 : at + 8 + size] + riff(b"note", b"abc") + riff(b"ANMF", bytes(16))
    marked = webp(data[12:at], riff(b"ANMF", frame), data[at + 8 + size + size % 2 :])
    assert find_metadata(marked, "WEBP") == ["chunk ANMF", "chunk note"]
    assert strip_metadata(marked, "WEBP") == data


@pytest.mark.parametrize("orientation", range(2, 9))
def test_the_orientation_alone_stays_where_asked(photo, save, orientation):
    exif = Image.Exif()
    exif.load(GPS.tobytes())
    exif[0x0112] = orientation
    small = photo.resize((24, 16))
    settings = replace(NEVER, metadata="orientation")
    for file_format in ("JPEG", "PNG", "WEBP"):
        data = save(
            small, file_format, exif=exif, **({"comment": b"x"} if file_format == "JPEG" else {})
        )
        image = prepare_image(data, settings)
        header_only = prepare_image(data, replace(settings, check="header"))
        assert image == header_only
        assert image.changes == ("metadata_stripped",)
        stored = Image.open(io.BytesIO(image.encoded))
        assert dict(stored.getexif()) == {0x0112: orientation}
        assert shown(image.encoded) == shown(data)
        assert find_metadata(image.encoded, file_format) == []
        assert strip_metadata(image.encoded, file_format, orientation) is image.encoded
        assert leftovers(strip_metadata(image.encoded, file_format)) == []


def test_an_orientation_in_xmp_or_after_the_pixels_of_a_png_stays(plain):
    xmp = b'<x tiff:Orientation="8"/>'
    jpeg = (
        plain["baseline"][:2]
        + segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)
        + plain["baseline"][2:]
    )
    at = plain["png"].index(b"IEND") - 4
    png = plain["png"][:at] + chunk(b"eXIf", orientation_only(8)) + plain["png"][at:]
    for data in (jpeg, png):
        for check in ("decode", "header"):
            image = prepare_image(data, replace(NEVER, metadata="orientation", check=check))
            assert Image.open(io.BytesIO(image.encoded)).getexif()[0x0112] == 8


def test_rotated_images_are_reencoded_upright_without_metadata(photo, save):
    exif = Image.Exif()
    exif.load(GPS.tobytes())
    exif[0x0112] = 6
    data = save(photo, "JPEG", exif=exif, comment=b"x")
    image = prepare_image(data, STRIP)
    assert image.changes == ("reencoded", "rotated")
    assert image == prepare_image(data, ImageSettings())
    assert leftovers(image.encoded) == []


def test_a_position_is_reported_where_it_is_stored(photo, save, plain):
    jpeg, png = save(photo, "JPEG", exif=GPS), save(photo, "PNG", exif=GPS)
    webp_file, tiff = (
        save(photo, "WEBP", exif=GPS),
        save(photo, "TIFF", tiffinfo={0x8825: {2: (48.0, 8.0, 0.0)}}),
    )
    for check in ("decode", "header"):
        keep = ImageSettings(reencode="never", check=check)
        assert [
            prepare_image(data, keep).has_position for data in (jpeg, png, webp_file, tiff)
        ] == [True] * 4
        assert not any(prepare_image(data, keep).has_position for data in plain.values())
    assert prepare_image(jpeg, ImageSettings(check="header")).has_position
    assert not prepare_image(jpeg, STRIP).has_position
    assert not prepare_image(jpeg, ImageSettings(reencode="always")).has_position
    assert not prepare_image(png, ImageSettings()).has_position
    assert prepare_image(png, ImageSettings(store="png")).has_position


@pytest.mark.parametrize("bad", [segment(0xEE, b"Adobe"), segment(0xE0, b"JFIF")])
def test_a_segment_that_pillow_cannot_read_does_not_matter_where_it_is_removed(plain, bad):
    data = plain["progressive"][:20] + bad + plain["progressive"][20:]
    assert prepare_image(data, ImageSettings()).changes == ("reencoded",)
    for check in ("decode", "header"):
        image = prepare_image(data, replace(STRIP, check=check))
        assert (image.encoded, image.changes) == (plain["progressive"], ("metadata_stripped",))


def test_a_file_with_unreadable_parts_is_reencoded_or_rejected(plain):
    at = plain["progressive"].rindex(b"\xff\xda")
    odd = (
        plain["progressive"][:at] + segment(0xFE, b"comment") + b"stray" + plain["progressive"][at:]
    )
    for keep in (ImageSettings(), HEADER):
        assert prepare_image(odd, keep).encoded == odd
        image = prepare_image(odd, replace(keep, metadata="strip"))
        assert (image.changes, leftovers(image.encoded)) == (("reencoded",), [])
    with pytest.raises(
        Rejected, match=r"bad_header: JPEG: no marker can be read at byte .*, and reencode is never"
    ):
        prepare_image(odd, replace(NEVER, metadata="orientation", check="header"))


@pytest.mark.parametrize(
    ("kind", "at"), [("baseline", 4), ("baseline", 400), ("png", 30), ("webp", 30), ("webp", 10)]
)
def test_a_truncated_file_cannot_be_stripped(plain, kind, at):
    file_format = "JPEG" if kind == "baseline" else kind.upper()
    with pytest.raises(UnstrippableError):
        strip_metadata(plain[kind][:at], file_format)
    with pytest.raises(UnstrippableError):
        find_metadata(plain[kind][:at], file_format)


EXTRAS = st.lists(
    st.tuples(st.sampled_from([*range(0xE0, 0xF0), 0xFE]), st.binary(max_size=40)), max_size=6
)


@given(EXTRAS, EXTRAS, st.binary(max_size=20), st.data())
def test_drawn_segments_are_removed_wherever_they_are(plain, first, second, tail, draw):
    data = plain[draw.draw(st.sampled_from(["progressive", "restarts", "profile", "cmyk"]))]
    # What a decoder heeds would change the image itself, and is not metadata.
    heeded = (b"JFIF\0", b"Adobe", b"ICC_PROFILE\0")
    before, between = (
        [segment(*each) for each in some if not each[1].startswith(heeded)]
        for some in (first, second)
    )
    scans = [at for at in range(len(data)) if data.startswith(b"\xff\xda", at)]
    at = draw.draw(st.sampled_from([2, *scans]))
    marked = data[:2] + b"".join(before) + data[2:at] + b"".join(between) + data[at:] + tail
    stripped = strip_metadata(marked, "JPEG")
    assert leftovers(stripped) == []
    assert stripped == data
    assert bool(find_metadata(marked, "JPEG")) == (marked != data)


@given(
    st.lists(st.tuples(st.from_regex(rb"\A[a-z]{4}\Z"), st.binary(max_size=40)), max_size=5),
    st.data(),
)
def test_drawn_chunks_are_removed_wherever_they_are(plain, extras, draw):
    png, animation = plain["png"], plain["animation"]
    at = draw.draw(st.sampled_from([33, png.index(b"IDAT") - 4, png.index(b"IEND") - 4]))
    assert (
        strip_metadata(png[:at] + b"".join(chunk(*each) for each in extras) + png[at:], "PNG")
        == png
    )
    at = draw.draw(st.sampled_from([30, animation.index(b"ANMF"), len(animation)]))
    marked = webp(animation[12:at], *(riff(*each) for each in extras), animation[at:])
    assert strip_metadata(marked, "WEBP") == animation


@given(st.sampled_from(["baseline", "progressive", "png", "apng", "webp", "animation"]), st.data())
def test_nothing_but_unstrippable_is_raised(plain, kind, draw):
    data = bytearray(plain[kind])
    for at, value in draw.draw(
        st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)
    ):
        data[at] = value
    file_format = (
        "JPEG" if kind in ("baseline", "progressive") else "PNG" if "png" in kind else "WEBP"
    )
    for orientation in (1, 6):
        try:
            stripped = strip_metadata(bytes(data), file_format, orientation)
        except UnstrippableError:
            continue
        assert find_metadata(stripped, file_format) == []


ODD_PARTS = [
    *JPEG_EXTRAS.values(),
    *(
        b"\xff",
        b"\xff\xff\xff",
        b"\xff\xd9",
        b"\xff\xd8",
        b"\0",
        b"\xff\xfe\0\0",
        b"\xff\xfe\xff\xff",
        segment(0xF7, b""),
    ),
    segment(0xE1, b"Exif\0\0\xff\xd8\xff\xe0 a thumbnail \xff\xda\0\x0c\xff\xd9"),
    segment(0xE0, b"JFIF\0\1\2"),
    segment(0xEE, b"Adobe\0d\0\0\0\0"),
]


@given(st.data())
def test_a_damaged_jpeg_is_stored_as_it_was_seen_or_rejected(plain, draw):
    data = plain[draw.draw(st.sampled_from(["baseline", "progressive", "restarts", "cmyk"]))]
    for part in draw.draw(st.lists(st.sampled_from(ODD_PARTS), max_size=3)):
        places = [at for at in range(2, len(data)) if data[at] == 0xFF]
        at = draw.draw(st.sampled_from(places) | st.integers(2, len(data)))
        data = data[:at] + part + data[at:]
    for at in draw.draw(st.lists(st.integers(2, len(data) - 1), max_size=1)):
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    data = data[: draw.draw(st.none() | st.integers(20, len(data)))] + draw.draw(
        st.sampled_from([b"", b"\xff\xd9", data])
    )
    try:
        before = prepare_image(data, ImageSettings(), keep_pixels=True)
    except Rejected:
        before = None
    try:
        after = prepare_image(data, STRIP)
    except Rejected:
        assert before is None
        return
    assert before is not None
    assert leftovers(after.encoded) == []
    if after.changes == ("metadata_stripped",):
        again = prepare_image(after.encoded, ImageSettings(), keep_pixels=True)
        assert (again.encoded, again.changes) == (after.encoded, ())
        assert (again.raster == before.raster).all()


@pytest.mark.slow
def test_odd_images_look_the_same_without_metadata(shared_data):
    changed = 0
    for path in sorted((shared_data / "odd-images").rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if data.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF")):
            changed += look_without_metadata(path.name, data)
    assert changed > 700


def look_without_metadata(name, data):
    """How often a file is stored without metadata that it had."""
    changed = 0
    for metadata, keep in (("strip", HEADER), ("orientation", replace(NEVER, check="header"))):
        try:
            before, after = (
                prepare_image(data, keep),
                prepare_image(data, replace(keep, metadata=metadata)),
            )
        except Rejected:
            continue
        if after.encoded is data or before.changes:
            continue
        changed += 1
        assert (before.encoded, after.changes) == (data, ("metadata_stripped",)), name
        assert find_metadata(after.encoded, after.format) == []
        bare = strip_metadata(after.encoded, after.format)
        assert leftovers(bare) == []
        assert shown_first(data) == shown_first(after.encoded) == shown_first(bare), name
    return changed


def shown_first(data):
    image = Image.open(io.BytesIO(data))
    try:
        image.load()
    except (OSError, SyntaxError) as error:  # with `check: header`
        return type(error)
    return (
        image.mode,
        image.size,
        image.tobytes(),
        image.info.get("icc_profile"),
        image.info.get("transparency"),
    )
