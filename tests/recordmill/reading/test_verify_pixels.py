import hashlib

import pytest

from recordmill.reading.dataset import Dataset
from recordmill.reading.example import ParsedExample, expect, find_image
from recordmill.reading.verify_processes import ImageDecoders, check_pixels

STRANGER = expect(Dataset("/x", "files", ()))


@pytest.fixture(scope="module")
def judge():
    with ImageDecoders(10**6, 1) as decoders:
        yield lambda record: check_pixels(STRANGER, decoders, ParsedExample(record))


@pytest.mark.runner
def test_an_image_is_what_its_record_says(judge, example, draw):
    image = draw(1, (24, 16))
    sound = {"image/encoded": image, "image/height": 16, "image/width": 24}
    assert judge(example(sound)) == ("", "")
    digest = hashlib.sha256(image).hexdigest().encode()
    assert judge(example(sound, **{"image/key/sha256": digest})) == ("", "")
    other = ("sha256", "the image's sha256 differs from image/key/sha256")
    assert judge(example(sound, **{"image/key/sha256": digest[::-1]})) == other
    size = ("pixels", "the image has 24 x 16 pixels and the record says 24 x 17")
    assert judge(example(sound, **{"image/height": 17})) == size
    kind, problem = judge(example(image=image[:100]))
    assert (kind, problem[:39]) == ("pixels", "the image cannot be decoded: truncated:")
    assert judge(example(sound)) == ("", "")


def test_raw_pixels_are_not_an_image(judge, example):
    assert judge(example(image=bytes(3072), label=1)) == ("", "")
    assert find_image(ParsedExample(example(image=bytes(3072))), STRANGER) == ("", b"")


def test_the_tutorials_image_is_found(example, draw):
    assert find_image(ParsedExample(example(image_raw=draw(1), label=1)), STRANGER) == ("image_raw", draw(1))


def test_larger_images_are_not_decoded(example, draw):
    with ImageDecoders(100, 1) as decoders:
        kind, problem = check_pixels(STRANGER, decoders, ParsedExample(example(image=draw(1))))
    assert (kind, problem[:45]) == ("pixels", "the image cannot be decoded: too_many_pixels:")


@pytest.mark.runner
def test_a_crashed_decoder_is_reported_and_replaced(example, draw):
    record = ParsedExample(example(image=draw(1)))
    with ImageDecoders(10**6, 1) as decoders:
        assert check_pixels(STRANGER, decoders, record) == ("", "")
        with decoders.borrow() as decoder:
            decoder._child.kill()
            decoder._child.wait()
        problem = "decoding it ended the decoder's process (exit code -9)"
        assert check_pixels(STRANGER, decoders, record) == ("pixels", problem)
        assert check_pixels(STRANGER, decoders, record) == ("", "")
