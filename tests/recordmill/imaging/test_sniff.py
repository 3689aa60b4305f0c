import pytest

from recordmill.imaging.sniff import sniff, sniff_other


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_what_pillow_writes_is_recognised(photo, save, file_format):
    assert sniff(save(photo, file_format)) == file_format


@pytest.mark.parametrize(
    ("start", "file_format"),
    [(b"GIF87a", "GIF"), (b"MM\0*", "TIFF"), (b"II+\0", "TIFF"), (b"P1\n", "PPM"), (b"P4#", "PPM"), (b"Pf\n", "PPM")],
)
def test_rarer_beginnings(start, file_format):
    assert sniff(start + bytes(40)) == file_format


@pytest.mark.parametrize("start", [b"", b"\xff\xd8", b"RIFF____WAVE", b"Please", b"P7\n", b"GIF88a", b"\x89PNG\n"])
def test_other_beginnings_are_not(start):
    assert sniff(start) is None


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"8BPS\0\1", "Photoshop"),
        (b"\0\0\2" + bytes(13) + b"\x18\0", "TGA"),
        (b"%PDF-1.7", "PDF"),
        (b"\0\0\2\0\1\0\x20\x20", "CUR"),
        (b"icns\0\0\x9b\xa2", "ICNS"),
        (b"\1\xda\1\1", "SGI"),
        (b"\n\5\1\x08", "PCX"),
        (b"LinS", "MSP"),
        (b"GRIB", "GRIB"),
        (b"\xb1\x68\xde\x3a", "DCX"),
        (b"\x59\xa6\x6a\x95", "Sun raster"),
        (b"\xd7\xcd\xc6\x9a", "WMF"),
        (b"/* XPM */\n", "XPM"),
        (b"#define im_width 16\n", "XBM"),
        (b"BLP2", "BLP"),
        (b"hello, world and all", None),
    ],
)
def test_known_formats_have_names(start, name):
    assert sniff_other(start) == name


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\0\0\0\x1cftypavif", "AVIF"),
        (b"\0\0\0\x1cftypavis", "AVIF"),
        (b"\0\0\0\x20ftypmif1\0\0\0\0mif1miafavif", "AVIF"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x1cftypheic", "HEIC"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG2000"),
        (b"\xff\x4f\xff\x51", "JPEG2000"),
    ],
)
def test_optional_formats(start, name):
    assert sniff(start) == name
