import unicodedata
from pathlib import Path

import pytest
from carried_annotations import boxes_in

from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.masks import Masks
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging.masks.outline import MaskFile, NumberedObject
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ClassNames, ImageRef, SourceFile
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.claims import Claims
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.inputs.unclaimed_files import find_sibling

PATH = "old/Annotations/1.xml"
OBJECT = (
    "<object><name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>\n"
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30.5</xmax><ymax>20</ymax></bndbox></object>"
)
BARE = (
    "<object><name> cat "
    "</name><bndbox><xmax>4</xmax><xmin>3</xmin><ymin>5</ymin><ymax>6</ymax></bndbox></object>"
)
SIZE = "<size><width>40</width><height>30</height><depth>3</depth></size>"

ADVICE = "correct the list, or leave it out with --set 'ignore=[\"/old/ImageSets/Main/val.txt\"]'"


def annotation(body, name="1.jpg"):
    return f"<annotation><folder>x</folder><filename>{name}</filename>{body}</annotation>"


def refer(folder, text, **settings):
    for path, data in ((PATH, text.encode()), ("old/JPEGImages/1.jpg", b"jpeg")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return list(list_file(Voc(**settings), PATH, ImageRef(PATH, str(folder / PATH), 7, "1")))


def test_the_image_of_a_file_has_its_boxes(tmp_path):
    announced, ref = refer(tmp_path, annotation(SIZE + OBJECT + BARE))
    assert announced == ClassNames.of(ImageRef(PATH, str(tmp_path / PATH)), ["dog", "cat"])
    image = tmp_path / "old/JPEGImages/1.jpg"
    assert (ref.key, ref.uri, ref.size) == ("old/JPEGImages/1.jpg", str(image), 4)
    assert ref.version == str(image.stat().st_mtime_ns)
    assert boxes_in(ref) == boxes_of(
        [(1, 2, 30.5, 20), (3, 5, 4, 6)],
        ["dog", "cat"],
        values={"difficult": [0, 0], "truncated": [1, 0], "view": ["Left", ""]},
        drawn_on_size=(40, 30),
    )


def test_objects_have_the_attributes_that_cvat_writes_and_are_occluded(tmp_path):
    color = "<attribute><name>color</name><value> red </value></attribute>"
    angle = "<attribute><name>rotation</name><value>0.0</value></attribute>"
    more = f"<occluded>1</occluded><attributes>{color}{angle}</attributes></object>"
    found = refer(tmp_path, annotation(OBJECT.replace("</object>", more) + BARE))[-1]
    packed = dict(found.annotations)["attributes"]
    assert Attributes.unpack(packed).values == [{"occluded": "1", "color": "red"}, {}]
    plain = refer(tmp_path, annotation(OBJECT + BARE))[-1]
    assert "attributes" not in dict(plain.annotations)


def test_what_else_objects_have_is_counted(tmp_path):
    more = (
        "<polygon><x1>1</x1><y1>2</y1></polygon><part><name>head</name></part><part><name>hand"
        "</name></part><trackid>7</trackid><id></id></object>"
    )
    listed = refer(tmp_path, annotation(OBJECT.replace("</object>", more)))
    assert [(each.reason, each.count) for each in listed if each.status == "not_stored"] == [
        ("polygons", 1),
        ("parts of objects", 2),
        ("trackid", 1),
    ]


def test_an_image_without_objects_has_no_boxes(tmp_path):
    (ref,) = refer(tmp_path, annotation(""))
    assert (ref.status, boxes_in(ref).boxes) == ("", [])


def test_a_bomb_of_entities_is_not_lit(tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;&b;">]>' + annotation(
        "", "&c;.jpg"
    )
    (ref,) = refer(tmp_path, bomb)
    assert (ref.status, ref.reason) == ("rejected", "bad_annotations")
    assert ref.detail.startswith("not a VOC annotation: EntitiesForbidden(name='b'")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<annotation>", "no element found"),
        ("", "no element found"),
        ('<?xml version="1.0" encoding="utf-99"?><annotation/>', "unknown encoding"),
        ("<annotation/>", "<annotation> has no <filename>"),
        (annotation("<object><name>a</name></object>"), "an <object> has no <bndbox>"),
        (annotation(OBJECT.replace("dog", "")), "<object> has no <name>"),
        (annotation(OBJECT.replace("30.5", "wide")), "<xmax> in <bndbox> is not a number"),
        (annotation(OBJECT.replace("<xmin>1</xmin>", "")), "<xmin> in <bndbox> is not a number"),
        (
            annotation("<size><width>1e999</width><height>4</height></size>"),
            "<width> in <size> is not a possible number",
        ),
        (
            annotation(OBJECT.replace("<difficult>0", "<difficult>nan")),
            "<difficult> in <object> is no",
        ),
        (annotation("<size><width>4</width></size>"), "<height> in <size> is not a number"),
    ],
)
def test_a_file_that_is_not_an_annotation_is_rejected_with_its_reason(tmp_path, text, why):
    (ref,) = refer(tmp_path, text)
    assert (ref.key, ref.status, ref.reason) == (PATH, "rejected", "bad_annotations")
    assert ref.detail.startswith("not a VOC annotation: ")
    assert why in ref.detail


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2.jpg", "vanished"),
        (".", "not_a_file"),
        ("../../../etc/passwd", "outside_root"),
        ("http://example.com/1.jpg", "outside_root"),
    ],
)
def test_an_image_that_is_not_there_or_elsewhere_is_rejected(tmp_path, name, reason):
    (ref,) = refer(tmp_path, annotation(OBJECT, name))
    assert (ref.status, ref.reason) == ("rejected", reason)


def test_images_may_be_next_to_their_files(tmp_path):
    (tmp_path / "old/Annotations").mkdir(parents=True)
    Path(tmp_path / "old/Annotations/1.jpg").write_bytes(b"x")
    assert (
        refer(tmp_path, annotation(OBJECT), images="Annotations")[1].key == "old/Annotations/1.jpg"
    )


def test_the_image_is_in_the_folder_as_the_store_spells_it(tmp_path):
    spelled = unicodedata.normalize("NFD", "é")
    for name, data in (
        ("Annotations/1.xml", annotation(OBJECT).encode()),
        ("JPEGImages/1.jpg", b"jpeg"),
    ):
        (tmp_path / spelled / name).parent.mkdir(parents=True)
        (tmp_path / spelled / name).write_bytes(data)
    uri = str(tmp_path / spelled / "Annotations/1.xml")
    _, ref = list_file(Voc(), "é/Annotations/1.xml", ImageRef("é/Annotations/1.xml", uri))
    assert (ref.key, ref.uri) == (
        "é/JPEGImages/1.jpg",
        str(tmp_path / spelled / "JPEGImages/1.jpg"),
    )


def test_it_gives_boxes_and_masks():
    assert Voc().annotations() == {"boxes": "", "masks": "", "attributes": "", "corners": ""}


@pytest.mark.parametrize("path", ["1.xml", "a/1.xml", "train/a/1.xml"])
def test_an_image_may_be_next_to_its_file(tmp_path, path):
    image = path.replace(".xml", ".jpg")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(annotation(""))
    (tmp_path / image).write_bytes(b"jpeg")
    (ref,) = list_file(Voc(images="{folder}"), path, ImageRef(path, str(tmp_path / path)))
    assert (ref.key, ref.status) == (image, "")


def test_an_image_that_is_not_there_names_the_setting(tmp_path):
    (ref,) = refer(tmp_path, annotation(""), images="pictures")
    assert (ref.key, ref.reason) == ("old/pictures/1.jpg", "vanished")
    assert (
        Voc(images="pictures")
        .remedies["vanished"]
        .startswith("correct source.images, which is 'pictures'")
    )


@pytest.mark.parametrize("images", ["{split}", "{", "{folder.x}", "{folder[x]}"])
def test_a_folder_that_cannot_be_is_refused(images):
    with pytest.raises(
        ValueError, match=r"^source.images is .*: it can use only {folder} in braces$"
    ):
        Voc(images=images)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"train": "1\n2\n", "trainval": "1\n2\n3\n"}, ("train", "")),
        ({"val": "2  1\n1 -1\n", "trainval": "1"}, ("val", "")),
        ({"trainval": "1"}, ("trainval", "")),
        ({"train": "2", "test": "3", "cat_val": "1"}, ("", "in_no_set")),
        ({"cat_val": "1"}, ("", "bad_annotations")),
        ({"train": b"1\xff"}, ("", "bad_annotations")),
        ({"train": b"\xef\xbb\xbf1\r\n2\r\n"}, ("train", "")),
        ({"train": "2.jpg", "val": "1.JPG 1"}, ("val", "")),
        ({"train": "1.x", "val": "1.jpg.x"}, ("", "in_no_set")),
        ({"train": "my 1\n1  1\n"}, ("train", "")),
    ],
)
def test_lists_give_splits(tmp_path, lists, expected):
    (tmp_path / "old/ImageSets/Main").mkdir(parents=True)
    for word, text in lists.items():
        (tmp_path / f"old/ImageSets/Main/{word}.txt").write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    (ref,) = refer(tmp_path, annotation(""), sets="ImageSets/Main")
    assert (ref.split, ref.reason) == expected
    assert ref.status == {"": "", "in_no_set": "ignored"}.get(
        ref.reason, "rejected" if "train" in lists else "fatal"
    )


def test_a_list_that_has_changed_is_read_again(tmp_path):
    (tmp_path / "old/ImageSets/Main").mkdir(parents=True)
    for word in ("train", "val"):
        for other in ("train", "val"):
            (tmp_path / f"old/ImageSets/Main/{other}.txt").write_text("1" if word == other else "")
        (ref,) = refer(tmp_path, annotation(""), sets="ImageSets/Main")
        assert ref.split == word


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (b"\xef\xbb\xbf1\n", []),
        ("", []),
        (
            "1\n99.jpg",
            [("warning", f"no XML file matches 1 name in it, such as '99.jpg': {ADVICE}")],
        ),
        (
            "1.jpeg\n98.x\n99",
            [("warning", f"no XML file matches 2 names in it, such as '98.x': {ADVICE}")],
        ),
        ("my photo\nmy photo 2 -1\n1  1\n", []),
        (
            "my  photo\n1 0",
            [("warning", f"no XML file matches 1 name in it, such as 'my  photo': {ADVICE}")],
        ),
        ("1.x\n2", [("fatal", f"no XML file matches 2 names in it, such as '1.x': {ADVICE}")]),
        ("test", [("warning", f"no XML file matches 1 name in it, such as 'test': {ADVICE}")]),
    ],
)
def test_names_on_lists_are_those_of_xml_files(tmp_path, names, expected):
    path = "old/ImageSets/Main/val.txt"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(names if isinstance(names, bytes) else names.encode())
    refer(tmp_path, annotation(""))
    for name in ("my photo", "my photo 2"):
        (tmp_path / f"old/Annotations/{name}.xml").touch()
    (tmp_path / "old/JPEGImages").mkdir(exist_ok=True)
    (tmp_path / "old/JPEGImages/test.jpg").touch()
    source = Voc(sets="ImageSets/Main")
    found = [
        (each.status, each.detail)
        for each in list_file(source, path, ImageRef(path, str(tmp_path / path)))
    ]
    assert found == [*expected, ("ignored", "")]


def test_an_image_may_be_named_without_its_extension(tmp_path):
    *_, ref = refer(tmp_path, annotation(BARE, name="1"))
    assert (ref.key, ref.status) == ("old/JPEGImages/1.jpg", "")
    *_, ref = refer(tmp_path, annotation(BARE, name="2"))
    assert (ref.key, ref.status, ref.reason) == ("old/JPEGImages/2", "rejected", "vanished")


def test_lists_are_read_if_they_are_asked_for():
    lists = [f"**/ImageSets/Main/{word}.txt" for word in ("train", "val", "test", "trainval")]
    assert Voc().files == ("*.xml",)
    assert Voc(sets="ImageSets/Main").files == ("*.xml", *lists)


def test_lists_that_give_splits_are_used():
    ref = ImageRef("1.jpg", "in/JPEGImages/1.jpg", 1)
    lists = [f"in/ImageSets/Main/{word}.txt" for word in ("train", "val", "test", "trainval")]
    assert list(Voc(sets="ImageSets/Main").uses(ref)) == [ref.uri, *lists]
    assert list(Voc().uses(ref)) == [ref.uri]


@pytest.mark.parametrize(
    ("value", "box", "shapes"),
    [
        ("0.0", [10, 45, 90, 55], {}),
        (" 90.0 ", [45, 10, 55, 90], {"enclosed": 1}),
        ("-45", [18.1802, 18.1802, 81.8198, 81.8198], {"enclosed": 1}),
        ("left", [10, 45, 90, 55], {}),
        ("", [10, 45, 90, 55], {}),
    ],
)
def test_a_rotated_box_of_cvat_is_enclosed(tmp_path, value, box, shapes):
    bar = (
        "<object><name>bar</name><bndbox><xmin>10</xmin><ymin>45</ymin><xmax>90</xmax>"
        "<ymax>55</ymax></bndbox><attributes><attribute><name>color</name><value>30</value>"
        f"</attribute><attribute><name>rotation</name><value>{value}</value></attribute>"
        "</attributes></object>"
    )
    *_, ref = refer(tmp_path, annotation(bar))
    found = boxes_in(ref)
    assert found.boxes[0] == pytest.approx(box, abs=1e-4)
    assert found.shapes == shapes


@pytest.mark.parametrize(
    "name", ["C:\\pets\\1.jpg", "/home/me/1.jpg", "..\\1.jpg", "1.png", "1.JPEG", "%31.jpg"]
)
def test_an_image_that_is_named_otherwise_is_found(tmp_path, name):
    note, _, ref = refer(tmp_path, annotation(OBJECT, name))
    assert (note.status, ref.status, ref.key) == ("respelled", "", "old/JPEGImages/1.jpg")
    assert note.detail.endswith(" for old/JPEGImages/1.jpg")


def test_a_rejected_annotation_keeps_its_boxes_for_the_ledger(tmp_path):
    (ref,) = refer(tmp_path, annotation(OBJECT + BARE, "gone.jpg"))
    assert (ref.status, ref.reason, boxes_in(ref).count) == ("rejected", "vanished", 2)


MASK = "old/SegmentationObject/1.png"
OUTLINED = annotation(
    "<size><width>8</width><height>6</height></size>"
    "<object><name>dog</name>"
    "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></object>"
    "<object><name>cat</name>"
    "<bndbox><xmin>5</xmin><ymin>2</ymin><xmax>8</xmax><ymax>6</ymax></bndbox></object>"
)


def refer_outlined(folder, text=OUTLINED):
    refer(folder, text)
    file = ImageRef(PATH, str(folder / PATH), 7, "1")
    *_, ref = list_file(Voc(), PATH, file, ListingSettings(with_outlines=True))
    return ref


def outlines_in(ref):
    return Masks.unpack(dict(ref.annotations)["masks"]).outlines


def write_mask(folder):
    """Writes a file that is no mask: nothing reads it while images are listed."""
    (folder / MASK).parent.mkdir(parents=True)
    (folder / MASK).write_bytes(b"no image")


def test_objects_have_their_number_in_the_order_of_the_file(tmp_path):
    write_mask(tmp_path)
    ref = refer_outlined(tmp_path)
    assert outlines_in(ref) == tuple(NumberedObject(MaskFile(MASK, ""), n, 2) for n in (1, 2))
    written = tmp_path / MASK
    version = str(written.stat().st_mtime_ns)
    assert ref.files == (SourceFile(MASK, str(written), 8, version),)
    assert {*Voc().uses(ref)} == {ref.uri, str(written)}


def test_an_image_without_the_file_of_its_masks_is_rejected(tmp_path):
    ref = refer_outlined(tmp_path)
    assert (ref.status, ref.reason) == ("rejected", "no_mask_file")
    assert ref.detail == f"there is no {MASK} with the masks of its objects"
    assert boxes_in(ref).count == 2
    ref = refer_outlined(tmp_path, annotation(SIZE))
    assert (ref.status, outlines_in(ref)) == ("", ())


NAMED = {"segmentation": "SegmentationClass", "class_names": ("background", "cat", "dog")}


def test_an_image_has_its_semantic_mask(tmp_path):
    (tmp_path / "old/SegmentationClass").mkdir(parents=True)
    path = "old/SegmentationClass/1.png"
    (tmp_path / path).write_bytes(b"ids")
    ref = refer(tmp_path, OUTLINED, **NAMED)[-1]
    packed = dict(ref.annotations)
    assert sorted(packed) == ["boxes", "segmentation"]
    assert Segmentation.unpack(packed["segmentation"]) == Segmentation(path, has_palette=True)
    assert [file.key for file in ref.files] == [path]


def test_an_image_without_its_semantic_mask_is_rejected(tmp_path):
    ref = refer(tmp_path, annotation(SIZE), **NAMED)[-1]
    assert (ref.status, ref.reason) == ("rejected", "no_mask_file")
    assert ref.detail == "there is no old/SegmentationClass/1.png with its semantic mask"
    assert "segmentation" in dict(ref.annotations)


def test_semantic_masks_need_names_for_their_ids():
    assert Voc(**NAMED).names_pixel_ids
    assert Voc(**NAMED).annotations()["segmentation"] == "source.segmentation"
    with pytest.raises(SettingError, match=r"^source.segmentation needs the names of the ids"):
        Voc(segmentation="SegmentationClass")


def test_masks_are_read_only_if_they_are_asked_for(tmp_path):
    write_mask(tmp_path)
    *_, ref = refer(tmp_path, OUTLINED)
    assert [kind for kind, _ in ref.annotations] == ["boxes"]
    assert ref.files == ()


@pytest.mark.parametrize(
    ("with_outlines", "lost"),
    [(False, {"masks": 1, "semantic masks": 1}), (True, {"semantic masks": 1})],
)
def test_masks_of_objects_are_lost_unless_they_are_read(with_outlines, lost):
    claims = Claims(Voc(), ListingSettings(with_outlines=with_outlines))
    for path in (MASK, "old/SegmentationClass/1.png"):
        claims.place(ImageRef(path, path).notice("ignored", "taken_only_by_name"), path)
    assert claims.unclaimed.siblings == lost


def test_labelmes_list_of_classes_stops_no_run_and_says_that_masks_have_other_classes_than_vocs():
    voc, lost = Voc(), ("lists of classes", "semantic masks")
    assert find_sibling("export/class_names.txt", voc.siblings) == "lists of classes"
    assert find_sibling("export/class_names.txt", Voc(**NAMED).siblings) == ""
    ways = voc.remedy_for(lost), voc.remedy_for(("semantic masks",))
    assert ["configs/voc_masks.yaml" in way for way in ways] == [False, True]
