import pytest

from transforms.imaging.bad_image import BadImage
from transforms.imaging.limits import accepted_format, check_size
from transforms.imaging.settings import ImageSettings


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
    with pytest.raises(BadImage) as caught:
        accepted_format(data, ImageSettings(max_bytes=100, formats=("JPEG", "PNG")))
    assert caught.value.code == code


def test_allowed_files():
    assert accepted_format(b"\xff\xd8\xff" + bytes(97), ImageSettings(max_bytes=100)) == "JPEG"


@pytest.mark.parametrize(
    ("size", "code"), [((0, 5), "bad_header"), ((101, 1), "side_too_long"), ((100, 21), "too_many_pixels")]
)
def test_sizes(size, code):
    settings = ImageSettings(max_side=100, max_pixels=2_000)
    check_size(100, 20, settings)
    with pytest.raises(BadImage) as caught:
        check_size(*size, settings)
    assert caught.value.code == code
