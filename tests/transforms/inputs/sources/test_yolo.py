import os
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from carried_annotations import boxes_in
from faster_coco_eval import COCO
from hypothesis import given
from hypothesis import strategies as st

from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.masks.outline import Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms.inputs.patterns import why_ignored
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.inputs.yolo_names import read_names
from recordmill.transforms.list_images import list_images


def refer(folder, path, text=None, with_outlines=False, without=(), **settings):
    beside = path.replace("images", "labels").replace(".jpg", ".txt")
    for name, data in ((path, "image"), (beside, text)):
        if data is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(data, encoding="utf-8")
    file, listing = (
        ImageRef(path, str(folder / path), 5, "1"),
        ListingSettings(with_outlines=with_outlines, without=frozenset(without)),
    )
    return list(list_file(Yolo(**settings), path, file, listing))


@pytest.mark.parametrize(
    ("path", "word"),
    [("images/train/1.jpg", "train"), ("val/images/1.jpg", "val"), ("images/1.jpg", "")],
)
def test_boxes_come_from_the_file_below_labels(tmp_path, path, word):
    (ref,) = refer(tmp_path, path, "1 0.5 0.25 0.5 0.5\n\n0 0.125 0.5 0.25 1\n")
    assert (ref.key, ref.split, ref.status) == (path, word, "")
    boxes = [(0.25, 0.0, 0.75, 0.5), (0.0, 0.0, 0.25, 1.0)]
    assert boxes_in(ref) == boxes_of(boxes, [1, 0], fractions=True)


@pytest.mark.parametrize("below", ["", "train/"])
def test_names_are_those_of_the_store_however_they_are_spelled(tmp_path, below):
    spelled = unicodedata.normalize("NFD", "é")
    for name, text in (
        (f"{spelled}/images/{spelled}.jpg", "image"),
        (f"{spelled}/labels/{spelled}.txt", "1 0.5 0.25 0.5 0.5"),
    ):
        (tmp_path / below / name).parent.mkdir(parents=True)
        (tmp_path / below / name).write_text(text, encoding="utf-8")
    listing = ListingSettings(
        include=Yolo().files, from_folders={"train": "train"} if below else {}
    )
    found = list_images(Input(str(tmp_path)), Yolo(), listing)
    (ref,) = (each for each in found if type(each) is ImageRef)
    assert (ref.key, ref.split) == (f"{below}é/images/é.jpg", below.rstrip("/"))
    assert boxes_in(ref).boxes == [[0.25, 0.0, 0.75, 0.5]]


def test_a_class_that_the_settings_name_twice_is_refused():
    with pytest.raises(ValueError, match=r"^source\.names: two classes are named 'a'$"):
        Yolo(names=("a", "b", "a"))


def test_an_image_without_a_file_has_no_boxes(tmp_path):
    (ref,) = refer(tmp_path, "images/1.jpg")
    assert boxes_in(ref) == boxes_of([], [], fractions=True)


@pytest.mark.parametrize(
    "line", ["1 0.5 0.5 0.5", "cat 0.5 0.5 0.5 0.5", "1 a b c d", "-1 0 0 1 1"]
)
def test_a_line_that_is_not_a_box_rejects_the_image_and_is_named(tmp_path, line):
    (ref,) = refer(tmp_path, "images/1.jpg", f"0 0.5 0.5 1 1\n{line}\n")
    assert (ref.key, ref.status, ref.reason) == ("images/1.jpg", "rejected", "bad_annotations")
    assert ref.detail == "labels/1.txt: line 2 is not a class number and four numbers or more"


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("data.yaml", "names: [cat, dog]", {"cat": 0, "dog": 1}),
        ("data.yaml", "nc: 2\nnames: {0: cat, 3: dog}", {"cat": 0, "dog": 3}),
        ("classes.txt", "cat\ndog\n", {"cat": 0, "dog": 1}),
        ("classes.txt", "cat \r\ndog\r\n\r\n \n", {"cat": 0, "dog": 1}),
    ],
)
def test_classes_come_from_the_files_that_tools_write(tmp_path, path, text, names):
    (tmp_path / path).write_text(text, encoding="utf-8")
    file = ImageRef(path, str(tmp_path / path), 5, "1")
    announced, ignored = list_file(Yolo(), path, file)
    assert announced == ClassNames.of(ImageRef(path, str(tmp_path / path)), names)
    assert (ignored.status, ignored.reason) == ("ignored", "class_names")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("data.yaml", "[]"),
        ("data.yaml", "a: ["),
        ("data.yaml", "names: 5"),
        ("data.yaml", "names: cat"),
        ("data.yaml", "names: [[a], [b]]"),
        ("data.yaml", "names: [null, a]"),
        ("data.yaml", "names: {x: a}"),
        ("data.yaml", "names: {no: a}"),
        ("data.yaml", "[" * 2_000),
        ("classes.txt", "\n"),
        ("classes.txt", "a\na"),
    ],
)
def test_a_file_that_names_no_classes_fails_the_run(tmp_path, path, text):
    (tmp_path / path).write_text(text, encoding="utf-8")
    (ref,) = list_file(Yolo(), path, ImageRef(path, str(tmp_path / path)))
    assert (ref.status, ref.detail.startswith("it names no classes: ")) == ("fatal", True)


@pytest.mark.parametrize(
    ("names", "written", "read"),
    [
        ("[cat, 010]", "010", "8"),
        ("[1_000]", "1_000", "1000"),
        ("[4:2:0]", "4:2:0", "14520"),
        ("[1.10]", "1.10", "1.1"),
        ("{010: cat}", "010", "8"),
        ("[0x1F]", "0x1F", "31"),
    ],
)
def test_numbers_that_yaml_reads_as_others_must_be_quoted(names, written, read):
    with pytest.raises(ValueError, match=rf"^`names` has {written}, which YAML reads as {read}: "):
        read_names("data.yaml", f"names: {names}\n")


def test_numbers_that_yaml_reads_as_they_are_name_classes():
    text = "nc: 010\nversion: 1.10\nnames: [0, -7, 2.5, '010', 1e3]\n"
    assert list(read_names("data.yaml", text)) == ["0", "-7", "2.5", "010", "1e3"]


@pytest.mark.parametrize(
    ("names", "number"), [("[no, yes]", 0), ("{0: a, 3: on}", 3), ("['no', y, true]", 2)]
)
@pytest.mark.parametrize("name", ["data.yaml", "coco8.yaml"])
def test_words_that_are_truth_values_in_yaml_must_be_quoted(tmp_path, names, number, name):
    (tmp_path / name).write_text(f"names: {names}\n", encoding="utf-8")
    file = ImageRef(name, str(tmp_path / name), 5)
    why = "is not a text under a number: quote it (no is a boolean)"
    detail = f"it names no classes: class {number} of `names` {why}"
    other = (
        ""
        if name == "data.yaml"
        else "; if it is not about this dataset, add --set 'ignore=[\"/coco8.yaml\"]'"
    )
    assert list(list_file(Yolo(), name, file)) == [
        file.notice("fatal", "bad_annotations", f"{detail}{other}")
    ]


@pytest.mark.parametrize("name", ["coco8.yaml", "pets.yml"])
def test_any_yaml_file_of_the_input_may_name_the_classes(tmp_path, name):
    """As Ultralytics' own collections have it."""
    (tmp_path / name).write_text(
        "path:\ntrain: images/train\nnames:\n  0: person\n", encoding="utf-8"
    )
    file = ImageRef(name, str(tmp_path / name), 5, "1")
    announced, ignored = list_file(Yolo(), name, file)
    assert announced == ClassNames.of(file, {"person": 0})
    assert (ignored.status, ignored.reason) == ("ignored", "class_names")
    (tmp_path / name).write_text("services: {}", encoding="utf-8")
    (ref,) = list_file(Yolo(), name, file)
    assert (ref.status, ref.reason) == ("ignored", "read_only_with_images")
    listing = ListingSettings(include=Yolo().files)
    assert [why_ignored(listing, path, False) for path in (name, f"a/{name}")] == [
        None,
        "not_included",
    ]


@pytest.mark.parametrize(
    ("text", "line"), [("person\n\nbike\n", 2), ("\nbike", 1), ("a\nb\n \n\nc", 3)]
)
@pytest.mark.parametrize(
    ("name", "text_files"), [("classes.txt", "labels"), ("obj.names", "beside")]
)
def test_a_blank_line_before_a_name_could_move_numbers(tmp_path, text, line, name, text_files):
    """Darknet and LabelImg count lines."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = ImageRef(name, str(tmp_path / name), 5)
    why = f"line {line} is blank, and a name follows: remove the line, or name the class"
    notice = file.notice("fatal", "bad_annotations", f"it names no classes: {why}")
    assert list(list_file(Yolo(text_files=text_files), name, file)) == [notice]


def test_byte_order_marks_count_for_nothing(tmp_path):
    """Editors on Windows write them, and they are invisible."""
    (ref,) = refer(tmp_path, "images/1.jpg", "\ufeff1 0.5 0.25 0.5 0.5\n")
    assert boxes_in(ref) == boxes_of([(0.25, 0.0, 0.75, 0.5)], [1], fractions=True)
    for name, text in (("classes.txt", "person\nbike\n"), ("data.yaml", "names: [person, bike]\n")):
        (tmp_path / name).write_text(f"\ufeff{text}", encoding="utf-8")
        file = ImageRef(name, str(tmp_path / name), 5)
        announced, _ = list_file(Yolo(), name, file)
        assert announced == ClassNames.of(file, {"person": 0, "bike": 1})


def test_a_bomb_of_aliases_is_not_lit():
    """Nine lines that are a list of 43 million names."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]"
        for other, one in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    with pytest.raises(ValueError, match=r"^class 0 of `names` is not a text under a number: "):
        read_names("data.yaml", "\n".join([*lines, "names: *i"]))


def test_a_file_that_is_not_utf_8_is_reported(tmp_path):
    (tmp_path / "classes.txt").write_bytes(b"caf\xe9\n")
    (ref,) = list_file(
        Yolo(), "classes.txt", ImageRef("classes.txt", str(tmp_path / "classes.txt"))
    )
    assert ref.detail == "it names no classes: it is not UTF-8, from byte 3 on"


def test_names_of_the_settings_outweigh_those_of_files(tmp_path):
    source = Yolo(names=("a", "b"))
    assert source.classes() == {"a": 0, "b": 1}
    (tmp_path / "data.yaml").write_text("names: [c]", encoding="utf-8")
    (ref,) = list_file(source, "data.yaml", ImageRef("data.yaml", str(tmp_path / "data.yaml")))
    assert ref.status == "ignored"


MIXED = "1 0.5 0.25 0.5 0.5\n0 0.1 0.2 0.4 0.1 0.3 0.6\n"
"""A box and a triangle, as Roboflow exports them in one file."""

BOX, TRIANGLE = [0.25, 0.0, 0.75, 0.5], [0.1, 0.1, 0.4, 0.6]


def test_polygons_among_boxes_become_the_boxes_around_them_and_are_counted(tmp_path):
    unstored, ref = refer(tmp_path, "images/1.jpg", MIXED)
    assert (unstored.status, unstored.reason, unstored.count) == ("not_stored", "masks", 1)
    assert boxes_in(ref) == boxes_of(
        [BOX, TRIANGLE], [1, 0], fractions=True, shapes={"enclosed": 1}
    )
    (ref,) = refer(tmp_path, "images/1.jpg", MIXED, other_shapes="drop")
    assert boxes_in(ref) == boxes_of([BOX], [1], fractions=True, shapes={"other_shape": 1})
    (ref,) = refer(tmp_path, "images/1.jpg", MIXED, other_shapes="reject")
    assert (ref.status, ref.reason) == ("rejected", "refused_shape")
    assert ref.detail == "labels/1.txt: line 2 is a polygon, and source.other_shapes is reject"


def test_polygons_are_not_key_points(tmp_path):
    refs = refer(tmp_path, "images/1.jpg", "0 0.5 0.5 0.5 0.5\n0 0.1 0.1 0.2 0.2 0.1 0.3\n")
    assert [(ref.status, ref.reason) for ref in refs] == [("not_stored", "masks"), ("", "")]


@pytest.mark.parametrize("shape", ["[2, 2]  # x, y", "\n- 2\n- 2"])
def test_key_points_in_pairs_need_the_setting(tmp_path, shape):
    text = "0 0.5 0.5 0.5 0.5 0.3 0.4 0.6 0.7\n"
    for settings in ({"lines": "boxes"}, {"kpt_shape": (2, 2)}):
        *lost, ref = refer(tmp_path, "images/1.jpg", text, **settings)
        assert boxes_in(ref) == boxes_of([(0.25, 0.25, 0.75, 0.75)], [0], fractions=True)
        unstored = [("not_stored", "key points", 1)] if "lines" in settings else []
        assert [(each.status, each.reason, each.count) for each in lost] == unstored
    (tmp_path / "data.yaml").write_text(f"names: [cat]\nkpt_shape: {shape}\n", encoding="utf-8")
    file = ImageRef("data.yaml", str(tmp_path / "data.yaml"), 5)
    (refused, *names) = list_file(Yolo(), "data.yaml", file)
    detail = (
        "its kpt_shape announces key points: add --set 'source.kpt_shape=[2, 2]' to read the "
        "boxes before them"
    )
    assert refused == file.notice("fatal", "bad_annotations", detail)
    assert list(list_file(Yolo(lines="boxes"), "data.yaml", file)) == names
    assert list(list_file(Yolo(kpt_shape=(2, 2)), "data.yaml", file)) == names


@pytest.mark.parametrize(
    "further", ["0.1 0.1", "0.1 0.1 0.2 0.2 0.1 0.3", "0.3 0.4 2 0.6 0.7 1 0.8 0.8 1"]
)
def test_polygons_among_poses_do_not_become_boxes(further):
    line = f"0 0.5 0.5 0.5 0.5 {further}"
    count = len(line.split()) - 1
    sentence = (
        f"^bad_annotations: line 1 has {count} numbers after its class, not 8 by source.kpt_shape$"
    )
    with pytest.raises(Rejected, match=sentence):
        Yolo(kpt_shape=(2, 2)).read_lines(line)
    one_box = boxes_of([(0.25, 0.25, 0.75, 0.75)], [0], fractions=True)
    assert Yolo(kpt_shape=(2, 2)).read_lines("0 0.5 0.5 0.5 0.5 0.9").boxes == one_box
    assert Yolo(kpt_shape=(2, 2), lines="boxes").read_lines(line).boxes == one_box


def test_a_data_yaml_that_cannot_be_read_is_reported(tmp_path):
    """PyYAML raises a plain ValueError for a date that does not exist."""
    (tmp_path / "data.yaml").write_text("names: [cat]\ndate: 2024-13-45\n", encoding="utf-8")
    file = ImageRef("data.yaml", str(tmp_path / "data.yaml"), 5)
    detail = "it names no classes: month must be in 1..12"
    assert list(list_file(Yolo(), "data.yaml", file)) == [
        file.notice("fatal", "bad_annotations", detail)
    ]


def test_only_files_below_images_and_text_files_below_labels_are_listed():
    listing = ListingSettings(include=Yolo().files, not_included=Yolo.other_files)
    assert [
        why_ignored(listing, path, False)
        for path in (
            *("images/a/1.jpg", "a/images/1.jpg", "data.yaml"),
            *("labels/1.txt", "labels/a/b/1.txt", "a/labels/1.txt"),
        )
    ] == [None] * 6
    assert [
        why_ignored(listing, path, False)
        for path in ("labels/a.cache", "a/data.yaml", "README.md", "notes.txt")
    ] == ["read_only_with_images"] * 4


def test_it_gives_boxes_and_masks_and_key_points_if_their_number_is_known():
    assert Yolo().annotations() == {"boxes": "", "masks": ""}
    poses = Yolo(kpt_shape=(17, 3)).annotations()
    assert poses == {"boxes": "", "masks": "", "keypoints": "source.kpt_shape"}


BOX_LINE = "0 0.5 0.25 0.5 0.5"
CORNERS = (0.25, 0.0, 0.75, 0.5)

POSE = BOX_LINE + " 0.3 0.4 2 0.6 0.1 1 0 0 0"  # three key points with flags
EVEN_POSE = POSE + " 0.5 0.5 2"  # four, so that the numbers are even
PEOPLE = "0 0.5 0.25 0.5 0.5 90 175 1 50 1"  # coco8-human: weight, height, gender, age, ethnicity


@pytest.mark.parametrize(
    "line",
    [
        BOX_LINE,
        "0.0 0.5 0.25 0.5 0.5",
        BOX_LINE + " 0.93",
        POSE,
        EVEN_POSE,
        PEOPLE,
        BOX_LINE + " 0 1 0",
        BOX_LINE + " 17.5 0 3",
    ],
)
def test_a_line_that_begins_with_a_box(line):
    assert Yolo().read_lines(f"\n{line}\n").boxes == boxes_of([CORNERS], [0], fractions=True)


@pytest.mark.parametrize(
    ("line", "box"),
    [
        ("3 0.1 0.2 0.4 0.1 0.3 0.6", (0.1, 0.1, 0.4, 0.6)),
        # DOTA's oriented boxes are four corners, which may stick out.
        (
            "3 0.779296 0.690429 0.625976 0.451171 0.88965 0.266601 1.04199 0.51465",
            (0.625976, 0.266601, 1.04199, 0.690429),
        ),
    ],
)
def test_pairs_are_a_polygon(line, box):
    enclosed = boxes_of([CORNERS, box], [0, 3], fractions=True, shapes={"enclosed": 1})
    assert Yolo().read_lines(f"{BOX_LINE}\n{line}\n").boxes == enclosed
    dropped = boxes_of([CORNERS], [0], fractions=True, shapes={"other_shape": 1})
    assert Yolo(other_shapes="drop").read_lines(f"{BOX_LINE}\n{line}\n").boxes == dropped
    with pytest.raises(
        Rejected, match=r"^refused_shape: line 2 is a polygon, and source.other_shapes is reject$"
    ):
        Yolo(other_shapes="reject").read_lines(f"{BOX_LINE}\n{line}\n")


@pytest.mark.parametrize(
    "line", [BOX_LINE + " 0.9 17", BOX_LINE + " 0.3 0.4 0.9", BOX_LINE + " nan 0.1"]
)
def test_a_line_that_may_be_anything_names_the_setting(line):
    count = len(line.split()) - 1
    with pytest.raises(Rejected) as raised:
        Yolo().read_lines(line)
    assert raised.value.detail == (
        f"line 1 has {count} numbers after its class, which are neither a box nor the points of a "
        "polygon: "
        "if the first four are a box, set source.lines=boxes"
    )
    assert Yolo(lines="boxes").read_lines(line).boxes == boxes_of([CORNERS], [0], fractions=True)


@pytest.mark.parametrize(
    "line",
    [
        "1 0.5 0.5 0.5",
        "cat 0.5 0.5 0.5 0.5",
        "-1 0 0 1 1",
        "0.5 0 0 1 1",
        "1 a b c d",
        "9999999999 0 0 1 1",
    ],
)
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(
        Rejected, match=r"^\w+: line 2 is not a class number and four numbers or more$"
    ):
        Yolo().read_lines(f"{BOX_LINE}\n{line}")


ODD_WORDS = ["0", "1", "2", "nan", "inf", "1e999", "-", "9" * 5000, "7"]
WORDS = st.one_of(st.floats(-3, 3).map(str), st.sampled_from(ODD_WORDS))


@given(st.lists(st.lists(WORDS, max_size=20).map(" ".join), max_size=3).map("\n".join))
def test_any_text_is_boxes_or_a_bad_line(text):
    with suppress(Rejected):
        found = Yolo().read_lines(text).boxes
        count = len([line for line in text.splitlines() if line.strip()])
        assert len(found.boxes) == len(found.labels) == count
        assert Boxes.unpack(found.pack()).labels == found.labels


@pytest.mark.parametrize("text", ["1 5 6 25 16\n", "0 320 240 100 80\n1 12 9 20 10 0.87\n"])
def test_boxes_in_pixels_reject_the_image(tmp_path, text):
    (notice,) = refer(tmp_path, "images/1.jpg", text)
    assert (notice.status, notice.reason) == ("rejected", "bad_annotations")
    assert notice.detail == (
        "labels/1.txt: its boxes are not fractions of the image: divide x and width by the image's "
        "width, and y and height by its height"
    )


def test_one_box_far_outside_rejects_no_other(tmp_path):
    (ref,) = refer(tmp_path, "images/1.jpg", "1 0.5 0.25 0.5 0.5\n0 5 0.5 0.5 0.5\n")
    boxes = [(0.25, 0.0, 0.75, 0.5), (4.75, 0.25, 5.25, 0.75)]
    assert boxes_in(ref) == boxes_of(boxes, [1, 0], fractions=True)


def test_a_list_of_classes_among_text_files_is_announced(tmp_path):
    path = "train/labels/classes.txt"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("dog\ncat\n")
    file = ImageRef(path, str(tmp_path / path), 8, "1")
    announced, ignored = list_file(Yolo(), path, file)
    assert announced == ClassNames.of(file, {"dog": 0, "cat": 1})
    assert ignored == file.notice("ignored", "class_names")


OBLIQUE = "0 0.1 0.2 0.3 0.1 0.4 0.3 0.2 0.4\n"


def unpack(ref, kind):
    return kind.unpack(dict(ref.annotations)[kind.kind])


def count_unstored(refs):
    return {each.reason: each.count for each in refs if each.status == "not_stored"}


def test_polygons_are_outlines_in_fractions_of_the_image_and_boxes_have_none(tmp_path):
    (ref,) = refer(tmp_path, "images/1.jpg", MIXED, with_outlines=True)
    triangle = Polygons(((0.1, 0.2, 0.4, 0.1, 0.3, 0.6),), fractions=True)
    assert unpack(ref, Masks).outlines == (None, triangle)
    (ref,) = refer(tmp_path, "images/1.jpg", MIXED, with_outlines=True, other_shapes="drop")
    assert unpack(ref, Masks).outlines == (None,)


def test_oriented_boxes_are_counted_as_such_and_give_no_masks(tmp_path):
    settings = {"with_outlines": True, "without": ["corners"], "task": "obb"}
    ref, unstored = refer(tmp_path, "images/1.jpg", OBLIQUE * 2, **settings)
    assert (unstored.reason, unstored.count) == ("oriented boxes", 2)
    assert unpack(ref, Masks).outlines == (None, None)
    box = (0.1, 0.1, 0.4, 0.4)
    enclosed = boxes_of([box, box], [0, 0], fractions=True, shapes={"enclosed": 2})
    assert boxes_in(ref) == enclosed
    *refs, _ = refer(tmp_path, "images/1.jpg", OBLIQUE * 2)
    assert count_unstored(refs) == {"masks": 2}


def test_key_points_have_the_flags_of_their_lines_and_none_for_a_box_alone(tmp_path):
    text = f"{BOX_LINE} 0.3 0.4 2 0.6 0.1 1 0 0 0\n{BOX_LINE}\n"
    (ref,) = refer(tmp_path, "images/1.jpg", text, kpt_shape=(3, 3))
    points = [[0.3, 0.4, 2, 0.6, 0.1, 1, 0, 0, 0], None]
    assert unpack(ref, KeyPoints) == KeyPoints(["1", "2", "3"], points, fractions=True)


def test_key_points_in_pairs_are_visible_unless_a_coordinate_is_negative(tmp_path):
    """As in `verify_image_label` of ultralytics/data/utils.py."""
    text = f"{BOX_LINE} 0.3 0.4 0 0 -1 -1\n"
    names = ("nose", "tail", "ear")
    (ref,) = refer(tmp_path, "images/1.jpg", text, kpt_shape=(3, 2), kpt_names=names)
    points = [[0.3, 0.4, 2, 0, 0, 2, -1, -1, 0]]
    assert unpack(ref, KeyPoints) == KeyPoints([*names], points, fractions=True)


def test_a_note_on_key_points_names_the_setting_that_stores_them():
    remedy = "source.kpt_shape, as in data.yaml, stores key points"
    assert Yolo().remedy_for(["key points", "other"]) == remedy
    assert Yolo().remedy_for(["oriented boxes"]) is None
    assert Yolo(lines="boxes").remedy_for(["key points"]) is None


def test_texts_without_an_image_lose_their_outlines_and_key_points_too(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "labels/1.txt").write_text(f"{BOX_LINE} 0.3 0.4 2\n", encoding="utf-8")
    file = ImageRef("labels/1.txt", str(tmp_path / "labels/1.txt"), 5, "1")
    listing = ListingSettings(with_outlines=True)
    (lost,) = list_file(Yolo(kpt_shape=(1, 3)), "labels/1.txt", file, listing)
    assert (lost.status, lost.reason) == ("rejected", "no_image")
    assert [kind for kind, _ in lost.annotations] == ["boxes", "keypoints", "masks"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"kpt_shape": (17,)},
            "source.kpt_shape is [17]: it must be the number of key points, and 2 or 3 numbers a "
            "point, such as [17, 3]",
        ),
        (
            {"kpt_shape": (17, 4)},
            "source.kpt_shape is [17, 4]: it must be the number of key points, and 2 or 3 numbers "
            "a point, such as [17, 3]",
        ),
        (
            {"kpt_shape": (2, 3), "kpt_names": ("a",)},
            "source.kpt_names has 1 name: give each of the points in source.kpt_shape a name of "
            "its own",
        ),
        (
            {"kpt_names": ("a", "b")},
            "source.kpt_names has 2 names: give each of the points in source.kpt_shape a name of "
            "its own",
        ),
        (
            {"kpt_shape": (2, 3), "task": "obb"},
            "source.task is obb, and source.kpt_shape is set: oriented boxes have no points",
        ),
    ],
)
def test_settings_of_key_points_that_do_not_fit_are_refused(settings, problem):
    with pytest.raises(SettingError) as raised:
        Yolo(**settings)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ("{0: [nose, tail], 1: [nose, tail]}", 2),
        ("[nose, tail]", 2),
        ("{0: [nose, tail], 1: [ear, tail]}", 0),
        ("[nose]", 0),
        ("{}", 0),
        ("[nose, nose]", 0),
        ("[1, 2]", 0),
    ],
)
def test_names_of_key_points_that_no_setting_has_are_not_stored(tmp_path, names, count):
    text = f"names: [cat]\nkpt_shape: [2, 3]\nkpt_names: {names}\n"
    (tmp_path / "data.yaml").write_text(text, encoding="utf-8")
    file = ImageRef("data.yaml", str(tmp_path / "data.yaml"), 5)
    found = list(list_file(Yolo(kpt_shape=(2, 3)), "data.yaml", file))
    assert count_unstored(found) == ({"names of key points": count} if count else {})
    named = Yolo(kpt_shape=(2, 3), kpt_names=("a", "b"))
    assert count_unstored(list_file(named, "data.yaml", file)) == {}


CLONE = Path(os.environ.get("RECORDMILL_CLONES", "no clones"), "lightly-ai/labelformat")
OUTLINED = CLONE / "tests/fixtures/instance_segmentation"


@pytest.mark.skipif(
    not OUTLINED.exists(), reason="needs RECORDMILL_CLONES with lightly-ai/labelformat"
)
def test_masks_of_yolo_are_those_of_coco_of_the_same_photographs():
    """labelformat has both forms of three outlines."""
    coco = COCO(str(OUTLINED / "COCO/instances.json"))
    seen = 0
    for entry in coco.loadImgs(coco.getImgIds()):
        path = f"images/{entry['file_name']}"
        file = ImageRef(path, str(OUTLINED / "YOLOv8" / path), 5, "1")
        (ref,) = list_file(Yolo(), path, file, ListingSettings(with_outlines=True))
        annotations = coco.loadAnns(coco.getAnnIds(entry["id"]))
        outlines = unpack(ref, Masks).outlines
        assert boxes_in(ref).labels == [each["category_id"] for each in annotations]
        for outline, annotation in zip(outlines, annotations, strict=True):
            ours = rasterize(outline, (entry["width"], entry["height"])).astype(bool)
            theirs = coco.annToMask(annotation).astype(bool)
            assert (ours & theirs).sum() >= 0.98 * (ours | theirs).sum()
            seen += 1
    assert seen == 3
