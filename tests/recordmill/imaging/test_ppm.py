import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import PpmImagePlugin

from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.schemas.rejection import Rejected


def loaded(data):
    image = decode_first_frame(open_image(data, "PPM"), "PPM").image
    return image.mode, image.size, image.format, image.tobytes()


def of_pillow(data):
    image = PpmImagePlugin.PpmImageFile(io.BytesIO(data))
    image.load()
    return image.mode, image.size, image.format, image.tobytes()


def ppm(kind, width, height, largest, values, between=b" "):
    head = b"P%d %d %d\n" % (kind, width, height) + (b"" if kind == 1 else b"%d\n" % largest)
    if kind in (5, 6):
        return head + np.array(values).astype(">u2" if largest > 255 else np.uint8).tobytes()
    return head + between.join(b"%d" % value for value in values) + b"\n"


@pytest.mark.parametrize("kind", [2, 3, 5, 6])
@pytest.mark.parametrize("largest", [1, 254, 256, 65_535])
def test_samples_of_every_depth_are_scaled_as_pillow_scales_them(kind, largest):
    values = (
        np.linspace(0, largest, 4_096 * 3).astype(int)
        if kind in (3, 6)
        else np.arange(65_536) % (largest + 1)
    )
    data = ppm(kind, 64, len(values) // (192 if kind in (3, 6) else 64), largest, values)
    assert loaded(data) == of_pillow(data)


@pytest.mark.parametrize("kind", [5, 6])
@pytest.mark.parametrize("largest", [3, 200, 999])
def test_samples_above_the_maximum_are_white(kind, largest):
    data = ppm(kind, 2, 1, largest, [0, 1, largest, largest + 1, 255, 0][: 2 if kind == 5 else 6])
    assert loaded(data) == of_pillow(data)


@given(
    st.lists(st.integers(0, 1), min_size=6, max_size=6),
    st.sampled_from([b"", b" ", b"\n", b"#c\n", b" #c 1\r", b"\t#\n#\n "]),
    st.sampled_from([b"", b" ", b"\n#end", b"101"]),
)
def test_bits_need_no_space_and_comments_are_left_out(bits, between, after):
    data = ppm(1, 3, 2, 1, bits, between) + after
    assert loaded(data) == of_pillow(data)


@pytest.mark.parametrize(
    "between", [b" ", b"\n", b"\r\n", b" #a comment\n", b"\t#\r ", b"\n#12 13\n"]
)
@pytest.mark.parametrize("after", [b"", b"7 8 9", b" junk", b"#comment without an end"])
def test_numbers_may_have_anything_between_and_after_them(between, after):
    data = ppm(2, 2, 2, 300, [0, 17, 299, 300], between) + after
    assert loaded(data) == of_pillow(data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"P1 2 2 1 0 1", "truncated"),
        (b"P1 2 2 1 0 1 2", "decode_error"),
        (b"P2 2 2 9 1 2 3", "truncated"),
        (b"P2 2 2 9 1 2 3 x", "decode_error"),
        (b"P2 2 2 9 1 2 3 12x", "decode_error"),
        (b"P2 2 2 9 1 2 3 -1", "decode_error"),
        (b"P2 2 2 9 1 2 3 10", "decode_error"),
        (b"P2 2 2 9 1 2 3 00000000001", "decode_error"),
        (b"P5 2 2 9\n\1\2\3", "truncated"),
        (b"P6 2 2 999\n" + bytes(23), "truncated"),
    ],
)
def test_damage(data, code):
    with pytest.raises(Rejected) as caught:
        loaded(data)
    assert caught.value.reason == code
    with pytest.raises((ValueError, OSError), match=r"oken|not enough|value|literal"):
        of_pillow(data)


@pytest.mark.parametrize("text", [b"P2 4096 4097 9 7", b"P2 1 1 9 " + b"#\n" * 2**18 + b" 7"])
def test_long_texts_are_too_much_work(text):
    with pytest.raises(
        Rejected, match="too_much_work: PPM: more than 16,777,216 numbers or comments as text"
    ):
        loaded(text)
