"""Drawings next to images, whose names no word tells, without a file system."""

import pytest

from recordmill.transforms.inputs.drawn_twins import MOST_FORMS, find_drawn_twins
from recordmill.transforms.inputs.image_looks import Appearance
from recordmill.transforms.inputs.pair_names import cores_of
from recordmill.transforms.inputs.twins import find_twins

PHOTO = Appearance(3, 256)
GRAY = Appearance(1, 200, 0.7)
MASK = Appearance(1, 2)
COLORED = Appearance(3, 5, 0.7)
SKETCH = Appearance(1, 30)
COUNTED = tuple(map(str, range(12)))
TWO = ("000", "001")
WORDS = ("abbey", "bar", "castle", "dome", "arch", "arcade")


def names(*forms, keys=COUNTED):
    """Names of these forms, with each key in place of `#`."""
    return [form.replace("#", key) for key in keys for form in forms]


def looking(seconds, drawn=MASK, first=PHOTO):
    """Looks at images of which these are drawings."""
    return lambda path: drawn if path.rpartition("/")[2] in seconds else first


def find(folders, look):
    return find_twins(folders, {at: cores_of(images) for at, images in folders.items()}, look)


def patterns_for(folder, firsts, seconds, look=None):
    folders = {folder: sorted((*firsts, *seconds))}
    found = find(folders, look or looking(seconds))
    return found and list(found.patterns)


@pytest.mark.parametrize("folder", ["", "a/b"])
@pytest.mark.parametrize(
    ("firsts", "seconds", "patterns"),
    [
        (names("img#.jpg"), names("outline-#.png"), ["outline-*.png"]),
        (names("#.jpg"), names("#m.jpg"), ["*[0-9]m.jpg"]),
        (names("#.jpg"), names("m#.jpg"), ["m[0-9]*.jpg"]),
        (names("img#.png"), names("#.png"), ["[0-9]*.png"]),
        (names("img#.jpg"), names("#.png"), ["*.png"]),
        (names("#.jpg", keys=WORDS), names("#m.jpg", keys=WORDS), ["*m.jpg"]),
        (names("#.jpg", keys=WORDS), names("o_#.jpg", keys=WORDS), ["o_*.jpg"]),
        (names("photo_#.jpg", keys=WORDS), names("o_#.jpg", keys=WORDS), ["o_*.jpg"]),
        (
            names("#.jpg"),
            names("#_a.png", "#_b_1.png", "#_b_2.png"),
            ["*[0-9]_a.png", "*[0-9]_b_*.png"],
        ),
        (names("a_#_x.png"), names("b_#_x.png"), ["b_[0-9]*_x.png"]),
        (names("s_a_#.png"), names("s_b_#.png"), ["s_b_[0-9]*.png"]),
        ([*names("#.jpg"), "album.jpg"], names("#m.jpg"), ["*[0-9]m.jpg"]),
        (
            names("#.jpg", keys=("000", "001")),
            names("#m.jpg", keys=("000", "001")),
            ["*[0-9]m.jpg"],
        ),
    ],
)
def test_drawings_of_the_same_numbers_or_names_are_left_out(firsts, seconds, patterns, folder):
    assert patterns_for(folder, firsts, seconds) == patterns


def test_a_pattern_keeps_the_images_of_other_folders():
    folders = {"a": names("#.jpg", "#m.jpg"), "b": names("am#.jpg", "1#m.jpg")}
    found = find(folders, looking(names("#m.jpg")[:10]))
    assert found.patterns == ("/a/*[0-9]m.jpg",)


@pytest.mark.parametrize(
    ("firsts", "seconds", "look"),
    [
        (names("cat#.jpg"), names("cat#_flip.jpg"), (PHOTO, PHOTO)),
        (names("cat_#.jpg"), names("dog_#.jpg"), (PHOTO, PHOTO)),
        (names("#.jpg"), names("#_gray.jpg"), (GRAY, PHOTO)),
        (names("circle_#.png"), names("square_#.png"), (MASK, MASK)),
        (names("line_#.png"), names("spot_#.png"), (SKETCH, GRAY)),
        (names("img#.jpg"), names("logo#.png", keys=COUNTED[:4]), (MASK, PHOTO)),
        (names("#.jpg"), ["1m.jpg"], (MASK, PHOTO)),
        (names("#.jpg"), names("#1.jpg"), (MASK, PHOTO)),
    ],
)
def test_other_images_stay(firsts, seconds, look):
    drawn, first = look
    assert patterns_for("", firsts, seconds, looking(seconds, drawn, first)) is None


def test_some_drawings_next_to_images_of_the_same_name_are_enough():
    seconds = names("#m.jpg", keys=COUNTED[:2])
    assert patterns_for("", names("#.jpg"), seconds) == ["*[0-9]m.jpg"]
    colored = looking(seconds, COLORED)
    assert patterns_for("", names("#.jpg"), seconds, colored) == ["*[0-9]m.jpg"]


def test_second_images_next_to_those_known_by_name_need_no_look():
    firsts, masks, parts = names("#.jpg"), names("#_seg.png"), names("#_parts_1.png")
    folders = {"": [*firsts, *masks, *parts]}
    found = find(folders, lambda path: PHOTO)
    assert found.patterns == ("*_parts_*.png", "*_seg.png")
    assert found.count == 24


def test_folders_of_one_form_are_not_compared():
    folders = {f"{n}": names("img_#.jpg") for n in range(500)}
    assert find_drawn_twins(folders, folders, {}, pytest.fail) == {}
    many = {"": names(*(f"{chr(97 + at)}_#.jpg" for at in range(MOST_FORMS + 1)))}
    assert find_drawn_twins(many, many, {}, pytest.fail) == {}
