import io

import pytest
from PIL import Image

from recordmill.imaging.pillow_decode import (
    count_encoded_channels,
    decode_first_frame,
    has_more_frames,
    open_image,
)
from recordmill.schemas.rejection import Rejected


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_every_format_opens_unloaded_and_loads(photo, save, file_format):
    opened = open_image(save(photo, file_format), file_format)
    assert opened.size == photo.size
    loaded = decode_first_frame(opened, file_format)
    assert (loaded.image.size, loaded.orientation, loaded.icc_profile, loaded.changes) == (
        photo.size,
        1,
        None,
        frozenset(),
    )


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientations_are_found_or_applied(photo, save, file_format):
    exif = Image.Exif()
    exif[0x0112] = 6
    loaded = decode_first_frame(
        open_image(save(photo, file_format, exif=exif), file_format), file_format
    )
    if file_format == "TIFF":
        assert (loaded.orientation, loaded.image.size, loaded.changes) == (
            1,
            photo.size[::-1],
            {"rotated"},
        )
    else:
        assert (loaded.orientation, loaded.image.size, loaded.changes) == (
            6,
            photo.size,
            frozenset(),
        )


@pytest.mark.parametrize(
    ("file_format", "code"),
    [("PNG", "truncated"), ("GIF", "truncated"), ("BMP", "truncated"), ("WEBP", "bad_header")],
)
def test_half_a_file(photo, save, file_format, code):
    data = save(photo, file_format)
    with pytest.raises(Rejected) as caught:
        decode_first_frame(open_image(data[: len(data) // 2], file_format), file_format)
    assert caught.value.reason == code
    assert caught.value.detail.startswith(file_format)


def test_a_broken_header():
    with pytest.raises(Rejected) as caught:
        open_image(b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG")
    assert caught.value.reason == "bad_header"


@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_frames(photo, save, file_format):
    several = save(photo, file_format, save_all=True, append_images=[photo.rotate(90)])
    assert has_more_frames(open_image(several, file_format))
    one = save(photo, file_format)
    assert not has_more_frames(open_image(one, file_format))


@pytest.mark.parametrize("after", [b"", b";", b"junk;", b"!\xfe\1a\0" * 20_000])
def test_a_damaged_frame_of_a_gif_does_not_count(save, after):
    whole = save(Image.new("L", (3, 3)), "GIF")
    opened = open_image(whole.removesuffix(b";") + after, "GIF")
    decode_first_frame(opened, "GIF")
    assert not has_more_frames(opened)


@pytest.mark.parametrize(
    ("mode", "channels"),
    [("1", 1), ("L", 1), ("I;16", 1), ("P", 3), ("RGB", 3), ("LA", 2), ("RGBA", 4)],
)
def test_channels_of_the_file(save, mode, channels):
    assert (
        count_encoded_channels(open_image(save(Image.new(mode, (3, 3)), "PNG"), "PNG")) == channels
    )


@pytest.mark.parametrize(
    ("mode", "key", "channels"), [("P", 0, 4), ("L", 0, 2), ("RGB", (0, 0, 0), 4)]
)
def test_a_transparent_color_is_a_channel(save, mode, key, channels):
    assert (
        count_encoded_channels(
            open_image(save(Image.new(mode, (3, 3)), "PNG", transparency=key), "PNG")
        )
        == channels
    )


def test_pixels_of_another_mode_than_announced_are_refused(save, monkeypatch):
    opened = open_image(save(Image.new("L", (3, 3)), "PNG"), "PNG")
    monkeypatch.setattr(opened, "load", lambda: setattr(opened, "im", Image.core.new("P", (3, 3))))
    with pytest.raises(
        Rejected, match="decode_error: PNG: ValueError: P pixels in an image of mode L"
    ):
        decode_first_frame(opened, "PNG")


@pytest.mark.parametrize("file_format", ["WEBP", "AVIF"])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_loaded_image_keeps_no_frames_of_its_decoder(file_format, frames):
    pictures = [Image.new("RGBA", (32, 24), (shade, 0, 0, 255)) for shade in (200, 100, 0)]
    stream = io.BytesIO()
    pictures[0].save(
        stream, file_format, save_all=frames > 1, append_images=pictures[1:frames], lossless=True
    )
    loaded = decode_first_frame(open_image(stream.getvalue(), file_format), file_format)
    assert not hasattr(loaded.image, "_decoder")
    assert abs(loaded.image.convert("RGB").getpixel((16, 12))[0] - 200) < 4  # the first frame
