import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import GifImagePlugin, Image

from recordmill.imaging.pillow_decode import has_second_frame

SCREEN = b"GIF89a" + b"\4\0\4\0" + b"\0\0\0"
FRAME = b"," + bytes(4) + b"\4\0\4\0\0" + b"\2\1\0\0"


def of_pillow(data) -> bool:
    opened = GifImagePlugin.GifImageFile(io.BytesIO(data))
    try:
        return opened.is_animated
    except (IndexError, OSError, struct.error):
        return False


@pytest.mark.parametrize(
    ("after_the_first", "found"),
    [
        (b";", False),
        (b"", False),
        (FRAME, True),
        (b"junk" + FRAME + b";", True),
        (b"!\xfe\3abc\0" + FRAME, True),
        (b"!\xfe\3abc\0;" + FRAME, False),
        (b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0" + FRAME, True),
        (b"!\x01\0\3abc\0" + FRAME, True),
        (FRAME[:9], False),
        (FRAME[:10], False),
        (FRAME[:11], True),
    ],
)
def test_what_follows_the_first_frame(after_the_first, found):
    assert has_second_frame(SCREEN + FRAME + after_the_first) == found == of_pillow(SCREEN + FRAME + after_the_first)


def test_palettes_are_passed_over(save):
    frames = [Image.effect_noise((9, 9), 90).quantize(8), Image.effect_noise((9, 9), 50).quantize(256)]
    animated = save(frames[0], "GIF", save_all=True, append_images=[frames[1]])
    assert has_second_frame(animated)
    assert not has_second_frame(save(frames[0], "GIF"))


@given(
    st.lists(st.sampled_from([FRAME, b"!\xfe\1a\0", b"!\xff\0", b"!\xf9\4\0\0\0\0\0", b"\0", b"!", b",", b";", b"\2"]))
)
def test_it_walks_as_pillow_does(pieces):
    data = SCREEN + FRAME + b"".join(pieces)
    assert has_second_frame(data) == of_pillow(data)
