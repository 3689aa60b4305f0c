"""Boxes that are fractions of the image, in formats whose boxes are in pixels or percent."""

import json

import pytest
from first_hour import Files, cvat, voc
from paired_inputs import counted, photo, photos
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(3)
PHOTOS = {f"{n}.jpg": photo(n) for n in N}


def _label_studio() -> Files:
    value = {"x": 0.25, "y": 0.25, "width": 0.5, "height": 0.5, "rectanglelabels": ["cat"]}
    region = {"type": "rectanglelabels", "original_width": 24, "original_height": 16}
    tasks = [
        {
            "data": {"image": f"images/{n}.jpg"},
            "annotations": [{"result": [region | {"value": value}]}],
        }
        for n in N
    ]
    return photos("images", N) | {"export.json": json.dumps(tasks).encode()}


def _labelme() -> Files:
    shape = {"label": "cat", "points": [[0.25, 0.25], [0.75, 0.75]], "shape_type": "rectangle"}
    size = {"imageWidth": 24, "imageHeight": 16}
    return PHOTOS | {
        f"{n}.json": json.dumps(
            {"shapes": [shape], "flags": {}, "imagePath": f"{n}.jpg", **size}
        ).encode()
        for n in N
    }


def _in_fractions(data: bytes) -> bytes:
    for side in (6, 4, 18, 12):
        for form in (f'"{side}.00"', f">{side}<"):
            data = data.replace(form.encode(), form.replace(str(side), f"0.{side:02}").encode())
    return data.replace(b".00", b"")


IN_PIXELS = (
    "its boxes are fractions of the image, the largest {}, and are read in pixels: multiply x by "
    "the image's width, and y by its height"
)
CASES = {
    "VOC": (PHOTOS | {f"{n}.xml": _in_fractions(voc(f"{n}.jpg")) for n in N}, 0.18),
    "CVAT": (
        photos("images", N) | {"annotations.xml": _in_fractions(cvat(f"{n}.jpg" for n in N))},
        0.18,
    ),
    "LabelMe": (_labelme(), 0.75),
}


@pytest.mark.parametrize("name", CASES)
def test_boxes_in_fractions_are_not_read_as_pixels(name, tmp_path, run_in):
    files, largest = CASES[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 3
    assert IN_PIXELS.format(largest) in err


def test_boxes_in_fractions_are_not_read_as_percent(tmp_path, run_in):
    write_files(tmp_path / "in", _label_studio())
    code, _, err = run_in(["--input", "in"])
    assert code == 3
    assert (
        "task 1: its boxes are fractions of the image, the largest 0.75, and are read in percent: "
        "multiply them by 100"
    ) in err


def test_a_single_image_is_converted_by_the_printed_command(tmp_path, run_in):
    write_files(tmp_path / "in", photos("images", N) | {"a.xml": cvat(["000.jpg"])})
    code, _, err = run_in(["--input", "in"])
    assert code == 1, err
    (end,) = follow(["--input", "in"], run_in)
    assert end.marker["splits"].keys() == {"train"}
    assert end.code == 0
