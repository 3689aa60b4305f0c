import pytest

from recordmill.imaging.limits import accepted_format, check_size
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import ImageSettings


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff" + bytes(98), "too_many_bytes"),
        (b"what is this?", "unknown_format"),
        (b"8BPS", "format_not_allowed"),
        (b"GIF89a", "format_not_allowed"),
    ],
)
def test_files(data, code):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings(max_bytes=100, formats=("JPEG", "PNG")))
    assert caught.value.reason == code


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"<html>\n<body>", "3c 68 74 6d 6c 3e 0a 3c ('<html>')"),
        (b"version https://git-lfs.github.com/spec/v1", "76 65 72 73 69 6f 6e 20 ('version https://git-lfs.')"),
        (b"abc\0", "61 62 63 00"),
        (b"\0abcdefgh", "00 61 62 63 64 65 66 67"),
    ],
)
def test_what_begins_as_text_is_shown_as_text_too(data, shown):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings())
    assert caught.value.detail == f"unknown format: the file begins with {shown}"


@pytest.mark.parametrize(
    ("data", "name"), [(b"....ftypavif", "AVIF"), (b"....ftypheic", "HEIC"), (b"\xff\x4f\xff\x51", "JPEG2000")]
)
def test_the_setting_that_accepts_a_file_is_named(data, name):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings(formats=("JPEG", "PNG")))
    assert caught.value.detail == f"{name}; accepted are JPEG, PNG; to accept it, add {name} to images.formats"
    assert accepted_format(data, ImageSettings(formats=(name,))) == name


def test_allowed_files():
    assert accepted_format(b"\xff\xd8\xff" + bytes(97), ImageSettings(max_bytes=100)) == "JPEG"


@pytest.mark.parametrize(
    ("size", "code"), [((0, 5), "bad_header"), ((101, 1), "side_too_long"), ((100, 21), "too_many_pixels")]
)
def test_sizes(size, code):
    settings = ImageSettings(max_side=100, max_pixels=2_000)
    check_size(100, 20, settings)
    with pytest.raises(Rejected) as caught:
        check_size(*size, settings)
    assert caught.value.reason == code
