import json
import math
import unicodedata

import carried_annotations
import pytest
from carried_annotations import carry
from hypothesis import given
from hypothesis import strategies as st

from recordmill import storage
from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.outline import Polygons
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.patterns import why_ignored
from recordmill.transforms.inputs.sources.labelme import LabelMe, LabelMeFile, find_labeled_image
from recordmill.transforms.inputs.sources.source import list_file

PATH = "street/1.v2.json"
IMAGE = "street/1.v2.jpg"
RECTANGLE = [1, 2, 30.5, 20]


def shape(label="dog", points=((1, 2), (30.5, 20)), kind="rectangle", group_id=None):
    said = {
        "label": label,
        "points": points,
        "group_id": group_id,
        "description": "",
        "shape_type": kind,
    }
    return {**said, "flags": {}, "mask": None}


def annotation(*shapes, **more):
    """What LabelMe 7 writes."""
    size = {"imageHeight": 30, "imageWidth": 40}
    said = {
        "version": "7.1.0",
        "flags": {},
        "shapes": shapes,
        "imagePath": "1.v2.jpg",
        "imageData": None,
    }
    return {**said, **size, **more}


def refer(folder, text, images=(IMAGE,), path=PATH, **settings):
    for name, data in (*((image, b"jpeg") for image in images), (path, text)):
        data = json.dumps(data).encode() if isinstance(data, dict | list) else data
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return list(list_file(LabelMe(**settings), path, ImageRef(path, str(folder / path), 7, "1")))


def boxes_in(refs):
    """(box, class) of each."""
    found = carried_annotations.boxes_in(refs[-1])
    return list(zip(found.boxes, found.labels, strict=True))


def test_the_image_of_a_file_has_its_boxes_whichever_corners_were_drawn(tmp_path):
    corners = [
        [(1, 2), (30.5, 20)],
        [(30.5, 20), (1, 2)],
        [(1, 20), (30.5, 2)],
        [(30.5, 2), (1, 20)],
    ]
    announced, ref = refer(
        tmp_path, annotation(*(shape(points=points) for points in corners), shape("é cat"))
    )
    file = ImageRef(PATH, str(tmp_path / PATH), 7, "1")
    assert announced == ClassNames.of(file, ["dog", "é cat"])
    image = tmp_path / IMAGE
    expected = boxes_of([RECTANGLE] * 5, ["dog"] * 4 + ["é cat"], drawn_on_size=(40, 30))
    place = {"key": IMAGE, "uri": str(image), "size": 4, "version": str(image.stat().st_mtime_ns)}
    assert ref == carry(file.replace(**place), expected)


@pytest.mark.parametrize(
    ("kind", "points", "box"),
    [
        ("polygon", [(5, 1), (9, 4), (3, 8)], [3, 1, 9, 8]),
        (None, [(5, 1), (9, 4), (3, 8)], [3, 1, 9, 8]),
        ("circle", [(10, 10), (13, 6)], [5, 5, 15, 15]),
        ("oriented_rectangle", [(4, 0), (8, 4), (4, 8), (0, 4)], [0, 0, 8, 8]),
        ("line", [(4, 6), (1, 9)], [1, 6, 4, 9]),
        ("linestrip", [(4, 6), (1, 9), (2, 2)], [1, 2, 4, 9]),
        ("point", [(4, 6)], [4, 6, 4, 6]),
        ("points", [(4, 6), (1, 2)], [1, 2, 4, 6]),
        ("mask", [(1, 2), (3, 4)], [1, 2, 4, 5]),
        ("rectangle", [(-3, -4), (99, 98.5)], [-3, -4, 99, 98.5]),
    ],
)
def test_the_box_around_each_shape(tmp_path, kind, points, box):
    refs = refer(tmp_path, annotation(shape(), shape("cat", points, kind)))
    assert boxes_in(refs)[1:] == [(box, "cat")]
    outlines = [(ref.reason, ref.count) for ref in refs if ref.status == "not_stored"]
    assert outlines == ([] if kind == "rectangle" else [("masks", 1)])


@given(
    st.floats(-50, 50),
    st.floats(-50, 50),
    st.floats(0, 99),
    st.lists(st.floats(0, 7), min_size=1),
    st.floats(0, 7),
)
def test_every_point_of_a_circle_is_in_its_box(x, y, radius, angles, rim):
    on_rim = [
        [x + radius * math.cos(angle), y + radius * math.sin(angle)] for angle in (rim, *angles)
    ]
    data = annotation(shape("a", [[x, y], on_rim[0]], "circle"))
    fields, *_ = LabelMe().read_annotation(LabelMeFile.model_validate_json(json.dumps(data)))
    ((left, top, right, bottom),) = fields.boxes
    for px, py in on_rim:
        assert left - 1e-9 <= px <= right + 1e-9
        assert top - 1e-9 <= py <= bottom + 1e-9
    assert right - left == pytest.approx(2 * radius, abs=1e-9)


def test_a_shape_that_is_not_a_rectangle_may_reject_the_image(tmp_path):
    (ref,) = refer(
        tmp_path, annotation(shape(), shape("cat", [(1, 2)], "point")), other_shapes="reject"
    )
    assert (ref.key, ref.status, ref.reason) == (PATH, "rejected", "refused_shape")
    assert ref.detail == "shape 2 is a 'point', and source.other_shapes is reject"
    (ref,) = refer(tmp_path, annotation(shape("cat", [(1, 2)], None)), other_shapes="reject")
    assert ref.detail == "shape 1 is a 'polygon', and source.other_shapes is reject"
    assert boxes_in(refer(tmp_path, annotation(shape()), other_shapes="reject")) == [
        (RECTANGLE, "dog")
    ]


def test_shapes_that_are_not_rectangles_may_be_dropped_and_are_counted(tmp_path):
    (_, ref) = refer(
        tmp_path, annotation(shape(), shape("cat", [(1, 2)], "point")), other_shapes="drop"
    )
    expected = boxes_of([RECTANGLE], ["dog"], drawn_on_size=(40, 30), shapes={"other_shape": 1})
    assert carried_annotations.boxes_in(ref) == expected
    assert expected.count == 2


@pytest.mark.parametrize("ending", ["jpg", "JPG", "png"])
def test_an_image_path_that_names_a_json_file_is_the_one_image_of_that_name(tmp_path, ending):
    found = f"street/1.v2.{ending}"
    (ref,) = refer(tmp_path, annotation(imagePath="1.v2.json"), [found, "street/other.jpg"])
    assert (ref.status, ref.key) == ("", found)
    (ref,) = refer(tmp_path, annotation(imagePath="1.v2.json"), ["street/1.v2.bmp"])
    assert (ref.status, ref.reason) == ("rejected", "bad_annotations")
    assert ref.detail == "its imagePath names no image, and there are 2 images called street/1.v2"


def test_shapes_of_one_class_and_group_are_one_object(tmp_path):
    parts = [
        shape("cow", [(1, 9), (4, 5), (2, 6)], "polygon", 0),
        shape("cow", [(20, 3), (30, 7)], "rectangle", 1),
        shape("cow", [(11, 2), (12, 4), (13, 2)], "polygon", 0),
        shape("head", [(11, 2), (12, 3)], "rectangle", 0),
        shape("cow", [(0, 0), (1, 1)]),
        shape("cow", [(0, 0), (2, 2)]),
    ]
    joined = [([1, 2, 13, 9], "cow"), ([20, 3, 30, 7], "cow"), ([11, 2, 12, 3], "head")]
    alone = [([0, 0, 1, 1], "cow"), ([0, 0, 2, 2], "cow")]
    assert boxes_in(refer(tmp_path, annotation(*parts))) == joined + alone
    apart = [([1, 5, 4, 9], "cow"), joined[1], ([11, 2, 13, 4], "cow"), joined[2], *alone]
    assert boxes_in(refer(tmp_path, annotation(*parts), groups="apart")) == apart


def attributes_in(refs):
    packed = dict(refs[-1].annotations).get("attributes")
    return None if packed is None else Attributes.unpack(packed).values


def test_flags_of_all_its_shapes_are_those_of_an_object(tmp_path):
    parts = [
        {**shape(group_id=7), "flags": {"wet": True, "old": False}},
        {**shape(group_id=7), "flags": {"wet": False, "new": True}},
        {**shape(), "flags": None},
    ]
    joined = [{"wet": "true", "old": "false", "new": "true"}, {}]
    assert attributes_in(refer(tmp_path, annotation(*parts))) == joined
    apart = [{"wet": "true", "old": "false"}, {"wet": "false", "new": "true"}]
    apart = [*({**each, "group_id": "7"} for each in apart), {}]
    assert attributes_in(refer(tmp_path, annotation(*parts), groups="apart")) == apart
    assert attributes_in(refer(tmp_path, annotation(shape(group_id=7)))) is None


@pytest.mark.parametrize(
    "size", [{}, {"imageHeight": None, "imageWidth": None}, {"imageHeight": None, "imageWidth": 40}]
)
def test_a_size_that_is_not_said_is_not_known(tmp_path, size):
    text = {"shapes": [], "imagePath": "1.v2.jpg", **size}
    (ref,) = refer(tmp_path, text)
    assert (ref.status, carried_annotations.boxes_in(ref)) == ("", boxes_of([], []))


def test_a_byte_order_mark_is_not_part_of_a_file(tmp_path):
    marked = f"\ufeff{json.dumps(annotation(shape()))}"
    assert boxes_in(refer(tmp_path, marked.encode())) == [(RECTANGLE, "dog")]


def test_an_image_in_the_file_is_not_looked_at_however_long(tmp_path):
    (ref,) = refer(tmp_path, annotation(imageData="A" * (17 * 2**20)))
    assert carried_annotations.boxes_in(ref) == boxes_of([], [], drawn_on_size=(40, 30))


@pytest.mark.parametrize(
    ("name", "there", "found"),
    [
        ("1.v2.jpg", ["street/1.v2.jpg", "street/1.v2.png"], "street/1.v2.jpg"),
        ("1.v2.png", ["street/1.v2.jpg", "street/1.v2.png"], "street/1.v2.png"),
        ("../images/1.v2.jpg", ["images/1.v2.jpg", "street/1.v2.jpg"], "images/1.v2.jpg"),
        (r"..\images\1.v2.jpg", ["images/1.v2.jpg"], "images/1.v2.jpg"),
        (r"..\images\1.v2.jpg", ["street/1.v2.jpg"], "street/1.v2.jpg"),
        (r"C:\work\DSC.jpg", ["street/1.v2.jpg"], "street/1.v2.jpg"),
        ("/home/ann/DSC.jpg", ["street/DSC.jpg"], "street/DSC.jpg"),
        ("DSC.jpg", ["street/DSC.jpg"], "street/DSC.jpg"),
        ("DSC.jpg", ["street/1.v2.jpg"], "street/1.v2.jpg"),
        ("./1.v2.jpg", ["street/1.v2.jpg"], "street/1.v2.jpg"),
        ("../../etc/1.v2.jpg", ["street/1.v2.jpg"], "street/1.v2.jpg"),
    ],
)
def test_the_image_is_the_named_one_or_else_its_sibling(tmp_path, name, there, found):
    (ref,) = refer(tmp_path, annotation(imagePath=name), there)
    assert (ref.status, ref.key, ref.uri) == ("", found, str(tmp_path / found))


@pytest.mark.parametrize("name", ["DSC.jpg", r"C:\work\DSC.jpg"])
def test_two_images_that_it_may_describe_stop_the_run(tmp_path, name):
    there = ["street/1.v2.jpg", "street/DSC.jpg"]
    (notice,) = refer(tmp_path, annotation(imagePath=name), there)
    assert (notice.status, notice.reason) == ("fatal", "bad_annotations")
    assert " or " in notice.detail
    assert "1.v2.jpg" in notice.detail
    assert "DSC.jpg" in notice.detail


@pytest.mark.parametrize(
    ("name", "key", "reason", "detail"),
    [
        ("2.jpg", "street/2.jpg", "vanished", "named by 1.v2.json: no such file or directory"),
        (
            "../../2.jpg",
            "../2.jpg",
            "outside_root",
            "named by 1.v2.json: '../2.jpg' points outside the input, or has .. in it",
        ),
    ],
)
def test_a_file_without_its_image_is_rejected(tmp_path, name, key, reason, detail):
    (ref,) = refer(tmp_path, annotation(shape(), imagePath=name), ["street/other.jpg"])
    assert (ref.key, ref.status, ref.reason, ref.detail) == (key, "rejected", reason, detail)


def test_a_store_is_asked_only_where_there_is_a_choice(monkeypatch):
    asked = []

    def size_of(uri):
        asked.append(uri)
        if uri.endswith("/DSC.jpg"):
            raise PermissionError
        return 1 if uri.endswith("/b/x.jpg") else None

    def stored(path):
        return DataFile(path, ImageRef(path, f"gs://a/in/{path}"))

    monkeypatch.setattr(storage, "size_of", size_of)
    assert find_labeled_image(stored("b/x.json"), "x.jpg") == "b/x.jpg"
    assert asked == []
    assert find_labeled_image(stored("b/x.json"), "../images/x.jpg") == "b/x.jpg"
    assert asked == ["gs://a/in/images/x.jpg", "gs://a/in/b/x.jpg"]
    assert find_labeled_image(stored("b/x.json"), "DSC.jpg") == "b/x.jpg"
    assert find_labeled_image(stored("c/x.json"), "../images/y.jpg") == "images/y.jpg"


def test_the_image_is_in_the_folder_as_the_store_spells_it(tmp_path):
    spelled = unicodedata.normalize("NFD", "é")
    for name, data in (
        ("x.json", json.dumps(annotation(imagePath="x.jpg")).encode()),
        ("x.jpg", b"jpeg"),
    ):
        (tmp_path / spelled).mkdir(exist_ok=True)
        (tmp_path / spelled / name).write_bytes(data)
    file = ImageRef(
        "é/x.json", str(tmp_path / spelled / "x.json"), 7, "1", spelling=f"{spelled}/x.json"
    )
    (ref,) = list_file(LabelMe(), "é/x.json", file)
    assert (ref.key, ref.uri, ref.status) == ("é/x.jpg", str(tmp_path / spelled / "x.jpg"), "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "Invalid JSON: "),
        (b'{"shapes": [', "Invalid JSON: "),
        (
            json.dumps(annotation(shape(points=[[math.nan, 1], [2, 3]]))).encode(),
            "shapes.0.points.0.0: Input should be",
        ),
        ([], "Input should be an object"),
        ({"images": [], "annotations": []}, "shapes: Field required"),
        ({"shapes": {}}, "shapes: Input should be a valid array"),
        ({"shapes": []}, "imagePath: Field required"),
        (annotation(imagePath=""), "imagePath: String should have at least 1 character"),
        (annotation(shape(), shape(" ")), "shapes.1.label: String should match"),
        (annotation(shape(3)), "shapes.0.label: Input should be a valid string"),
        (annotation(shape(points=[])), "shapes.0.points: List should have at least 1 item"),
        (annotation(shape(points=[(1, 2), (3,)])), "shapes.0.points.1.1: Field required"),
        (
            annotation(shape(points=[(1, 2), (3, True)])),
            "shapes.0.points.1.1: Input should be a valid number",
        ),
        (
            annotation(shape(points=[(1, 2)], kind="circle")),
            "a circle has 1 points, not its center and one on its rim",
        ),
        (annotation(imageWidth="40"), "imageWidth: Input should be a valid integer"),
        (annotation(imageHeight=-1), "imageHeight: Input should be greater than 0"),
    ],
)
def test_a_file_that_is_not_an_annotation_is_rejected_with_its_reason(tmp_path, text, why):
    (ref,) = refer(tmp_path, text)
    assert (ref.key, ref.status, ref.reason) == (PATH, "rejected", "bad_annotations")
    assert ref.detail.removeprefix("the JSON does not fit: ").startswith(why)


def test_a_file_that_is_too_long_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("recordmill.transforms.inputs.sources.labelme.MAX_JSON_BYTES", 99)
    (ref,) = refer(tmp_path, annotation())
    assert (ref.status, ref.reason) == ("rejected", "bad_annotations")
    assert ref.detail == "1.v2.json: it is longer than 99 bytes"


def test_json_files_alone_are_listed_in_whatever_case():
    listing = ListingSettings(include=LabelMe.files, not_included=LabelMe.other_files)
    assert [why_ignored(listing, path, False) for path in ("a/x.json", "x.JSON", "x.Json")] == [
        None
    ] * 3
    assert [why_ignored(listing, path, False) for path in ("a/x.jpg", "x.json.tmp")] == [
        "taken_only_by_name"
    ] * 2


def test_it_gives_boxes():
    assert LabelMe().annotations() == {"boxes": "", "masks": "", "attributes": "", "corners": ""}


@pytest.mark.parametrize(
    ("flags", "count"), [({"cat": True, "dog": False}, 1), ({}, 0), (None, 0), (["cat"], 0)]
)
def test_flags_of_images_are_counted_as_not_stored(tmp_path, flags, count):
    found = refer(tmp_path, annotation(flags=flags))
    notes = [(each.reason, each.count) for each in found if each.status == "not_stored"]
    assert notes == ([("flags of images", count)] if count else [])


def test_the_shapes_of_a_group_have_one_outline(tmp_path):
    triangle = ((1, 2), (9, 2), (9, 8))
    shapes = (
        shape(points=triangle, kind="polygon", group_id=1),
        shape("cat", points=((3, 3), (6, 5))),
        shape(points=((20, 20), (30, 20), (30, 28)), kind="polygon", group_id=1),
    )
    refer(tmp_path, annotation(*shapes))
    file = ImageRef(PATH, str(tmp_path / PATH), 7, "1")
    *_, ref = list_file(LabelMe(), PATH, file, ListingSettings(with_outlines=True))
    assert Masks.unpack(dict(ref.annotations)["masks"]).outlines == (
        Polygons(((1, 2, 9, 2, 9, 8), (20, 20, 30, 20, 30, 28))),
        Polygons(((3, 3, 6, 3, 6, 5, 3, 5),)),
    )
    assert carried_annotations.boxes_in(ref).labels == ["dog", "cat"]


def test_descriptions_are_counted_as_not_stored(tmp_path):
    shapes = [{**shape(), "description": text} for text in ("a red one", "", None)]
    found = refer(tmp_path, annotation(*shapes))
    notes = [(each.reason, each.count) for each in found if each.status == "not_stored"]
    assert notes == [("descriptions", 1)]
