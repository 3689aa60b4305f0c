from recordmill.reading.verify.decode_images import Decoded, ImageDecoder


def test_images_are_decoded_one_after_the_other(draw):
    with ImageDecoder(10**6) as decoder:
        assert decoder.decode(draw(1, (24, 16))) == Decoded(16, 24)
        assert decoder.decode(draw(2, (30, 10), "PNG")) == Decoded(10, 30)
        assert decoder.decode(draw(3)[:200]).problem.startswith("the image cannot be decoded: truncated: ")
        assert decoder.decode(b"").problem == "the image cannot be decoded: empty: no bytes"
        assert decoder.decode(draw(4)) == Decoded(16, 24)


def test_larger_images_are_not_decoded(draw):
    with ImageDecoder(100) as decoder:
        assert decoder.decode(draw(1)).problem.startswith("the image cannot be decoded: too_many_pixels: ")


def test_a_crashed_decoder_is_reported_and_replaced(draw):
    with ImageDecoder(10**6) as decoder:
        decoder.decode(draw(1))
        decoder._child.kill()
        decoder._child.wait()
        assert decoder.decode(draw(1)).problem == "decoding it ended the decoder's process (exit code -9)"
        assert decoder.decode(draw(1)) == Decoded(16, 24)
