import pickle

from recordmill.imaging.bad_image import BadImage, describe


def test_it_crosses_process_borders():
    copy = pickle.loads(pickle.dumps(BadImage("truncated", "ends early")))
    assert (copy.code, copy.detail, str(copy)) == ("truncated", "ends early", "truncated: ends early")


def test_a_description_is_one_short_line_without_addresses():
    error = OSError("cannot identify image file <_io.BytesIO object at 0x7f00deadbeef>\n  in " + "x" * 300)
    assert describe(error) == ("OSError: cannot identify image file <_io.BytesIO> in " + "x" * 300)[:200]
