"""Oriented boxes: every format gives the same corners."""

import json
import math

import pytest

from recordmill.annotations.corners import OrientedBoxes
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.shape_corners import corners_of_rectangle
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.cvat import Cvat
from recordmill.transforms.inputs.sources.label_studio import LabelStudio
from recordmill.transforms.inputs.sources.labelme import LabelMe
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.voc import Voc

BOX, DEGREES = (10.0, 8.0, 30.0, 16.0), 30
CORNERS = corners_of_rectangle(BOX, DEGREES)
LEFT, TOP = CORNERS[:2]

OF_CVAT = f"""<annotations><version>1.1</version><image name="1.jpg" width="40" height="40">
<box label="a" xtl="10" ytl="8" xbr="30" ybr="16" rotation="{DEGREES}"/>
<box label="a" xtl="1" ytl="1" xbr="3" ybr="3" rotation="180"/></image></annotations>"""
ANGLE = "<attributes><attribute><name>rotation</name><value>{}</value></attribute></attributes>"
OF_VOC = f"""<annotation><filename>1.jpg</filename>
<object><name>a</name>{ANGLE.format(DEGREES)}
<bndbox><xmin>10</xmin><ymin>8</ymin><xmax>30</xmax><ymax>16</ymax></bndbox></object>
<object><name>a</name>{ANGLE.format("0.0")}
<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></object></annotation>"""
OF_COCO = {
    "images": [{"id": 1, "file_name": "1.jpg"}],
    "categories": [{"id": 1, "name": "a"}],
    "annotations": [
        {"id": number, "image_id": 1, "category_id": 1, "bbox": bbox, "attributes": {"rotation": r}}
        for number, (bbox, r) in enumerate([([10, 8, 20, 8], DEGREES), ([1, 1, 2, 2], 0.0)])
    ],
}
OF_LABELME = {
    "imagePath": "1.jpg",
    "shapes": [
        {
            "label": "a",
            "shape_type": "oriented_rectangle",
            "points": list(zip(CORNERS[0::2], CORNERS[1::2], strict=True)),
        },
        {"label": "a", "shape_type": "rectangle", "points": [[1, 1], [3, 3]]},
    ],
}


def region(x, y, width, height, degrees):
    percent = {"x": x, "y": y, "width": width, "height": height}
    value = {key: each * 2.5 for key, each in percent.items()}
    labels = {"rotation": degrees, "rectanglelabels": ["a"]}
    size = {"original_width": 40, "original_height": 40}
    return {"id": f"{x}", "value": {**value, **labels}, **size}


OF_LABEL_STUDIO = [
    {
        "data": {"image": "1.jpg"},
        "annotations": [{"result": [region(LEFT, TOP, 20, 8, DEGREES), region(1, 1, 2, 2, 0)]}],
    }
]

FORMATS = {
    "coco": (Coco(images="", split=r"a\.json"), "a.json", OF_COCO),
    "cvat": (Cvat(images=""), "a.xml", OF_CVAT),
    "label_studio": (LabelStudio(images=""), "a.json", OF_LABEL_STUDIO),
    "labelme": (LabelMe(), "a.json", OF_LABELME),
    "voc": (Voc(images="{folder}"), "a.xml", OF_VOC),
}


def refer(folder, name, without=frozenset()):
    source, path, content = FORMATS[name]
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / path).write_text(text, encoding="utf-8")
    (folder / "1.jpg").write_bytes(b"jpeg")
    file, settings = ImageRef(path, str(folder / path), 7, "1"), ListingSettings(without=without)
    return list(list_file(source, path, file, settings))


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_gives_the_corners_of_oriented_boxes(tmp_path, name):
    listed = refer(tmp_path, name)
    (ref,) = (each for each in listed if type(each) is ImageRef)
    first, second = OrientedBoxes.unpack(dict(ref.annotations)["corners"]).corners
    assert all(math.isclose(*pair, abs_tol=0.02) for pair in zip(first, CORNERS, strict=True))
    assert second is None
    assert "corners" in FORMATS[name][0].annotations()


@pytest.mark.parametrize("name", FORMATS)
def test_corners_that_are_not_stored_are_counted(tmp_path, name):
    listed = refer(tmp_path, name, without=frozenset({"corners"}))
    (ref,) = (each for each in listed if type(each) is ImageRef)
    assert "corners" not in dict(ref.annotations)
    counts = {each.reason: each.count for each in listed if each.status == "not_stored"}
    assert counts["oriented boxes"] == 1
