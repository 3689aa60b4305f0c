from html import escape

import numpy as np
import pytest
from carried_annotations import boxes_in, labels_in

from recordmill.annotations.attributes import Attributes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources.cvat import Cvat
from recordmill.transforms.inputs.sources.source import list_file

PATH = "task/annotations.xml"
BOX = '<box label="car" xtl="1" ytl="2.5" xbr="9" ybr="8" occluded="0"/>'
ROTATED = '<box label="car" xtl="0" ytl="2" xbr="4" ybr="4" rotation="90" occluded="1"/>'
MASK = '<mask label="cat" rle="0, 6" left="3" top="4" width="2" height="3" occluded="0"/>'


def image(*inside, name="1.jpg", more=""):
    return f'<image id="0" name="{name}" width="40" height="30" {more}>{"".join(inside)}</image>'


def xml(*images):
    return (
        f"<?xml version='1.0'?><annotations><version>1.1</version>{''.join(images)}</annotations>"
    )


def refer(folder, text, images=("task/images/1.jpg",), outlines=False, **settings):
    for name, data in (*((each, b"jpeg") for each in images), (PATH, text.encode())):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    file = ImageRef(PATH, str(folder / PATH), 7, "1")
    return list(list_file(Cvat(**settings), PATH, file, ListingSettings(with_outlines=outlines)))


def notices(listed):
    return [
        (each.status, each.reason, each.count) for each in listed if each.status == "not_stored"
    ]


def rejections(listed):
    return [
        (each.key, each.status, each.reason, each.detail)
        for each in listed
        if each.status in ("rejected", "fatal")
    ]


def references(listed):
    return [each for each in listed if type(each) is ImageRef]


def test_each_image_has_the_boxes_around_its_shapes(tmp_path):
    text = xml(image(BOX, ROTATED, MASK), image(name="2.jpg"))
    listed = refer(tmp_path, text, images=("task/images/1.jpg", "task/images/2.jpg"))
    first, second = references(listed)
    assert (first.key, second.key) == ("task/images/1.jpg", "task/images/2.jpg")
    boxes = boxes_in(first)
    assert boxes.boxes == [[1, 2.5, 9, 8], [1, 1, 3, 5], [3, 4, 5, 7]]
    assert boxes.labels == ["car", "car", "cat"]
    assert boxes.values == {"occluded": [0, 1, 0]}
    assert boxes.drawn_on_size == [40, 30]
    assert boxes.shapes == {"enclosed": 2}
    assert boxes_in(second).boxes == []
    assert listed[0] == ClassNames.of(first.replace(uri=str(tmp_path / PATH)), ["car", "cat"])
    assert notices(listed) == [("not_stored", "masks", 2)]


def test_shapes_come_from_back_to_front_and_else_in_the_order_of_the_file(tmp_path):
    orders = {"a": "10", "b": "x", "c": "2", "d": "-1", "e": None, "f": "0", "g": "2"}
    shapes = [
        BOX.replace('"car"', f'"{name}"').replace("/>", f' z_order="{order}"/>' if order else "/>")
        for name, order in orders.items()
    ]
    assert boxes_in(references(refer(tmp_path, xml(image(*shapes))))[0]).labels == [*"dbefcga"]


def test_outlines_are_carried_if_they_are_wanted(tmp_path):
    listed = refer(tmp_path, xml(image(BOX, ROTATED, MASK)), outlines=True)
    none, rotated, mask = Masks.unpack(dict(references(listed)[0].annotations)["masks"]).outlines
    assert none is None
    assert np.argwhere(rasterize(rotated, (40, 30))).tolist() == [
        [row, column] for row in range(1, 5) for column in (1, 2)
    ]
    assert rasterize(mask, (40, 30))[4:7, 3:5].sum() == rasterize(mask, (40, 30)).sum() == 6
    assert notices(listed) == []


TAG = '<tag label="night"/>'
SKELETON = (
    '<skeleton label="cat"><points label="ear" outside="0" occluded="1" points="3,4"/>'
    '<points label="tail" outside="1" occluded="0" points="0,0"/>'
    '<points label="nose" outside="0" occluded="0" points="5,6.5"/></skeleton>'
)
POINTS = '<points label="car" occluded="0" points="7,8;9,10"/>'


def test_points_of_skeletons_are_key_points_under_the_names_of_the_whole_file(tmp_path):
    names = [f"task/images/{number}.jpg" for number in (1, 2)]
    text = xml(image(BOX, SKELETON), image(POINTS, name="2.jpg"))
    first, second = references(refer(tmp_path, text, images=names))
    named = ["ear", "tail", "nose", "1", "2"]
    of_skeleton = [3, 4, 1, 0, 0, 0, 5, 6.5, 2, 0, 0, 0, 0, 0, 0]
    assert key_points_in(first) == KeyPoints(named, [None, of_skeleton])
    of_points = [0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 2, 9, 10, 2]
    assert key_points_in(second) == KeyPoints(named, [of_points])
    assert boxes_in(first).boxes[1] == [3, 4, 5, 6.5]


def circle(number, name):
    return f'<circle r="1" data-node-id="{number}" data-label-name="{name}"></circle>'


def line(start, end):
    return f'<line data-type="edge" data-node-from="{start}" data-node-to="{end}"></line>'


def test_points_of_a_skeleton_with_one_label_are_counted(tmp_path):
    listed = refer(tmp_path, xml(image(SKELETON.replace('"nose"', '"ear"'))))
    assert notices(listed) == [("not_stored", "repeated key points", 1)]


def test_lines_in_the_drawing_of_a_skeleton_join_its_points(tmp_path):
    circles = [circle(1, "ear"), circle(3, "tail"), circle(4, "nose"), circle(5, "never used")]
    drawings = [
        "".join([line(4, 1), line(3, 4), line(1, 9), line(4, 5), *circles]),
        "".join([line(4, 1), circle(1, "ear"), circle(4, "nose")]),
        "<line",
    ]
    labels = [f"<label><svg>{escape(drawing)}</svg></label>" for drawing in drawings]
    head = f"<annotations><meta><task><labels>{''.join(labels)}</labels></task></meta>"
    text = xml(image(SKELETON)).replace("<annotations>", head)
    listed = refer(tmp_path, text)
    assert listed[0].skeleton == (("nose", "ear"), ("tail", "nose"))
    assert notices(listed) == [("not_stored", "lines of skeletons", 2)]


def key_points_in(ref):
    return KeyPoints.unpack(dict(ref.annotations)["keypoints"])


def test_files_without_points_and_tags_have_no_key_points(tmp_path):
    for text, settings in ((xml(image(BOX)), {}), (xml(image(TAG, SKELETON)), {"labels": "tag"})):
        (ref,) = references(refer(tmp_path, text, **settings))
        assert "keypoints" not in dict(ref.annotations)
    found = {labels: Cvat(labels=labels).annotations() for labels in ("shapes", "tag", "tags")}
    assert found == {
        "shapes": {"boxes": "", "masks": "", "keypoints": "", "attributes": "", "corners": ""},
        "tag": {},
        "tags": {"labels": "source.labels"},
    }


def test_a_point_that_is_not_a_number_is_not_finite(tmp_path):
    (ref,) = references(refer(tmp_path, xml(image(SKELETON.replace("3,4", "a,b")))))
    assert key_points_in(ref).points == [[None, None, 1, 0, 0, 0, 5, 6.5, 2]]


def test_shapes_may_be_dropped_or_refused(tmp_path):
    boxes = boxes_in(references(refer(tmp_path, xml(image(MASK, BOX)), other_shapes="drop"))[0])
    assert (boxes.labels, boxes.shapes) == (["car"], {"other_shape": 1})
    listed = refer(
        tmp_path,
        xml(image(BOX, MASK), image(BOX, name="2.jpg")),
        images=("task/images/1.jpg", "task/images/2.jpg"),
        other_shapes="reject",
    )
    detail = "shape 2 is a mask, and source.other_shapes is reject"
    assert rejections(listed) == [("task/images/1.jpg", "rejected", "refused_shape", detail)]
    assert [each.key for each in references(listed)] == ["task/images/2.jpg"]


def test_a_tag_is_the_class_of_its_image(tmp_path):
    both = image('<tag label="day"/><tag label="rain"/>', BOX, name="2.jpg")
    listed = refer(
        tmp_path,
        xml(image('<tag label="day"/>', BOX), both),
        images=("task/images/1.jpg", "task/images/2.jpg"),
        labels="tag",
    )
    (ref,) = references(listed)
    assert (ref.key, ref.label, ref.annotations) == ("task/images/1.jpg", "day", ())
    detail = "it has 2 tags, and source.labels is tag, which needs one"
    assert rejections(listed) == [("task/images/2.jpg", "rejected", "bad_annotations", detail)]
    assert notices(listed) == [("not_stored", "shapes", 2)]


def test_tags_are_the_classes_of_their_image(tmp_path):
    tags = '<tag label="day"/><tag label="rain"/><tag label="day"/>'
    listed = refer(
        tmp_path,
        xml(image(tags), image(name="2.jpg")),
        images=("task/images/1.jpg", "task/images/2.jpg"),
        labels="tags",
    )
    assert [labels_in(each) for each in references(listed)] == [["day", "rain"], []]


def test_a_file_of_tags_alone_names_the_setting(tmp_path):
    listed = refer(tmp_path, xml(image('<tag label="day"/>')))
    ((_, status, reason, detail),) = rejections(listed)
    assert (status, reason) == ("fatal", "bad_annotations")
    assert detail.startswith("it has 1 tag and no shapes: add --set source.labels=tag ")


def test_tags_next_to_shapes_are_counted(tmp_path):
    listed = refer(tmp_path, xml(image(BOX, '<tag label="day"/>')))
    assert notices(listed) == [("not_stored", "tags", 1)]


LABEL = """<meta><job><labels><label><name>a</name><attributes>
<attribute><name>b</name><default_value>d</default_value></attribute>
<attribute><name>none</name><default_value></default_value></attribute>
</attributes></label></labels></job></meta>"""


def test_shapes_have_attributes_and_the_defaults_of_their_labels(tmp_path):
    box = '<box label="{}" xtl="1" ytl="2" xbr="3" ybr="4">{}</box>'
    boxes = [
        box.format("a", '<attribute name="b">c</attribute><attribute name="on">true</attribute>'),
        box.format("a", '<attribute name="empty"></attribute>'),
        box.format("a", '<attribute name="b"></attribute>'),
        box.format("other", ""),
    ]
    text = xml(image(*boxes), image(box.format("other", ""), name="2.jpg"))
    text = text.replace("</version>", f"</version>{LABEL}")
    listed = refer(tmp_path, text, images=("task/images/1.jpg", "task/images/2.jpg"))
    first, second = (dict(ref.annotations) for ref in references(listed))
    assert Attributes.unpack(first["attributes"]).values == [
        {"b": "c", "on": "true"},
        {"b": "d"},
        {},
        {},
    ]
    assert "attributes" not in second
    assert notices(listed) == []


def test_subsets_are_words_for_splits_and_folders(tmp_path):
    text = xml(image(BOX, more='subset="Train"'), image(BOX, more='subset="Test"'))
    source = Cvat(images="{folder}/images/{subset}")
    for name in ("Train", "Test"):
        (tmp_path / f"task/images/{name}").mkdir(parents=True)
        (tmp_path / f"task/images/{name}/1.jpg").write_bytes(b"jpeg")
    (tmp_path / PATH).write_text(text)
    listed = list(list_file(source, PATH, ImageRef(PATH, str(tmp_path / PATH), 7, "1")))
    found = {each.key: each.split for each in references(listed)}
    assert found == {"task/images/Train/1.jpg": "Train", "task/images/Test/1.jpg": "Test"}


def test_a_missing_image_is_rejected_with_its_boxes(tmp_path):
    listed = refer(tmp_path, xml(image(BOX, name="other.jpg")))
    ((key, status, reason, _),) = rejections(listed)
    assert (key, status, reason) == ("task/images/other.jpg", "rejected", "vanished")
    assert boxes_in(next(each for each in listed if each.status == "rejected")).labels == ["car"]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("no xml", "not CVAT's XML: syntax error"),
        ("<annotation/>", "not CVAT's XML: its root is <annotation>, not <annotations>"),
        ("<annotations><track id='0'/></annotations>", "it has tracks of a video: export it"),
        ('<annotations><image id="7"/></annotations>', "image '7' has no name"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>',
            "not CVAT's XML: EntitiesForbidden",
        ),
    ],
)
def test_other_files_are_rejected(tmp_path, text, detail):
    ((key, status, reason, why),) = rejections(refer(tmp_path, text))
    assert (key, status, reason) == (PATH, "rejected", "bad_annotations")
    assert why.startswith(detail)


def test_a_damaged_file_keeps_the_images_before_the_damage(tmp_path):
    listed = refer(tmp_path, xml(image(BOX), "<image"))
    assert [each.key for each in references(listed)] == ["task/images/1.jpg"]
    assert [each[:3] for each in rejections(listed)] == [(PATH, "rejected", "bad_annotations")]


def test_a_shape_without_a_label_rejects_its_image(tmp_path):
    listed = refer(tmp_path, xml(image(BOX, '<polygon label="" points="1,2;3,4;5,6"/>')))
    detail = "shape 2, a polygon, has no label"
    assert rejections(listed) == [("task/images/1.jpg", "rejected", "bad_annotations", detail)]


def test_the_template_of_the_folder_is_checked():
    with pytest.raises(SettingError, match=r"source\.images is '\{split\}'"):
        Cvat(images="{split}")


HEAD = b"<?xml version='1.0'?>\n<annotations>\n  <version>1.1</version>"


@pytest.mark.parametrize(
    ("files", "source"),
    [
        (["annotations.xml", "images/1.jpg"], {}),
        (["task/annotations.xml", "task/images/1.jpg"], {}),
        (["annotations.xml", "1.jpg"], {"images": "{folder}"}),
        (["annotations.xml", "frames/1.jpg"], {"images": "frames"}),
        (
            ["annotations.xml", "images/Train/1.jpg", "images/Test/1.jpg"],
            {"images": "{folder}/images/{subset}"},
        ),
    ],
)
def test_the_folder_of_the_images_is_recognized(files, source):
    heads = {name: HEAD for name in files if name.endswith(".xml")}
    (found,) = Cvat.recognize(FolderSketch.of(files, heads))
    assert found.settings["source"] == {"kind": "cvat", **source}
    assert found.needs is None


def test_several_folders_of_images_are_asked_about():
    files = ["annotations.xml", "a/1.jpg", "b/1.jpg"]
    (found,) = Cvat.recognize(FolderSketch.of(files, {"annotations.xml": HEAD}))
    assert "if they are in a, add --set source.images=a" in found.needs


def test_other_xml_is_not_recognized():
    voc = FolderSketch.of(["1.xml", "1.jpg"], {"1.xml": b"<annotation>"})
    assert [*Cvat.recognize(voc)] == []
    without_images = FolderSketch.of(["annotations.xml"], {"annotations.xml": HEAD})
    assert [*Cvat.recognize(without_images)] == []
