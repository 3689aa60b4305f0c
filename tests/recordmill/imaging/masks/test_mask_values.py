import numpy as np
import pytest
from PIL import Image, ImageDraw

from recordmill.imaging.masks.mask_file import DecodedMask, pack_color
from recordmill.imaging.masks.mask_values import (
    MaskLevels,
    apply_table,
    check_ids,
    find_levels,
    find_numbers,
    read_gray,
    read_indices,
    split_levels,
    table_of_voc,
)
from recordmill.imaging.masks.outline import OutlineError


def test_the_palette_of_voc_is_that_of_its_development_kit():
    table = table_of_voc()
    assert len(table) == 256
    known = {(0, 0, 0): 0, (128, 0, 0): 1, (0, 128, 0): 2, (192, 0, 128): 13, (0, 64, 128): 20}
    assert {color: table[pack_color(*color)] for color in known} == known
    assert table[pack_color(224, 224, 192)] == 255


@pytest.mark.parametrize(
    ("values", "has_colors", "indices"),
    [
        ([0, 128, 255], False, [0, 128, 255]),
        ([0, 128, pack_color(224, 224, 192)], True, [0, 1, 255]),
        ([0, 128], True, [0, 1]),
        ([pack_color(128, 128, 128)], False, [7]),  # colors that are all gray
    ],
)
def test_indices_of_voc_may_be_written_as_colors(values, has_colors, indices):
    decoded = DecodedMask(np.array([values], np.int32), False, has_colors)
    assert read_indices(decoded).tolist() == [indices]


def test_a_color_outside_the_palette_of_voc_is_unknown():
    with pytest.raises(OutlineError, match=r"unknown_mask_value: .* such as \(1, 2, 3\)"):
        read_indices(DecodedMask(np.array([[pack_color(1, 2, 3)]], np.int32), False, True))


def test_objects_have_numbers_up_to_their_count():
    values = np.array([[0, 2, 255]], np.int32)
    assert find_numbers(values, 2) == {2}
    with pytest.raises(OutlineError) as caught:
        find_numbers(values, 1)
    assert caught.value.reason == "unknown_mask_value"
    assert caught.value.detail == "the mask has an object 2, and the image 1 object"


def test_a_table_gives_an_id_for_each_value():
    values = np.array([[7, 9], [9, 65_536]], np.int32)
    assert apply_table(values, {7: 1, 9: 300, 65_536: -1, 5: 2}).tolist() == [[1, 300], [300, -1]]


def test_values_without_an_id_are_named():
    values = np.array([[1, 2, pack_color(1, 2, 3), 4, 5]], np.int32)
    with pytest.raises(OutlineError) as caught:
        apply_table(values, {1: 1})
    assert caught.value.reason == "unknown_mask_value"
    assert caught.value.detail == "4 values are not in the table, such as 2, 4, 5"
    with pytest.raises(OutlineError, match=r"such as \(1, 2, 3\)"):
        apply_table(values[:, 2:3], {})


def smooth_disc():
    image = Image.new("L", (400, 400))
    ImageDraw.Draw(image).ellipse((60, 80, 330, 300), fill=255)
    return np.asarray(image.resize((100, 100), Image.Resampling.BOX)).astype(np.int32)


def test_two_levels_are_found_also_with_smooth_borders():
    assert find_levels(np.array([[0, 255]], np.int32)) == MaskLevels(0, 255, is_exact=True)
    levels = find_levels(smooth_disc())
    assert levels == MaskLevels(0, 255, is_exact=False)
    assert levels.threshold == 128
    assert split_levels(np.array([[127, 128]]), levels.threshold).tolist() == [[0, 1]]


@pytest.mark.parametrize("ids", [range(12), (0, 20, 70, 120, 170), (0, 1, 2, 255)])
def test_ids_are_not_levels(ids):
    values = np.repeat(np.repeat(np.array([ids], np.int32), 9, axis=1), 9, axis=0)
    assert find_levels(values) is None


def test_gray_values_are_read_from_colors_that_are_all_gray():
    grays = np.array([[pack_color(7, 7, 7), pack_color(255, 255, 255), 0]], np.int32)
    assert read_gray(grays).tolist() == [[7, 255, 0]]
    for others in (grays + 1, np.array([[3, 300]], np.int32)):
        assert read_gray(others).tolist() == others.tolist()


def test_ids_over_the_largest_are_named():
    values = np.array([[0, 255]], np.int32)
    assert check_ids(values, 255).tolist() == [[0, 255]]
    with pytest.raises(OutlineError) as caught:
        check_ids(values, 254)
    assert caught.value.reason == "unknown_mask_value"
    remedy = "--set masks=png16 stores ids up to 65,535"
    assert caught.value.detail == f"the mask has values over 254, such as 255; {remedy}"
