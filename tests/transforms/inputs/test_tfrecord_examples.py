import base64

import numpy as np
import pytest

from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.example_proto import Example
from recordmill.schemas.features import Feature, encode_example
from recordmill.schemas.image_ref import boxes_of
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tfrecord_examples import (
    class_of,
    find_convention,
    kind_of,
    own_features,
    parse_entries,
    read_boxes,
    read_fields,
    read_image_of,
    read_kept,
    text_in,
    text_of,
    values_of,
)


@pytest.fixture
def make_example():
    """A serialised Example of values: bytes, an int or a float, or a list of them."""

    def make(values):
        example = Example()
        for key, value in values.items():
            many = value if isinstance(value, list) else [value]
            entry = example.features.feature[key]
            kinds = {bytes: entry.bytes_list, int: entry.int64_list, float: entry.float_list}
            if many:
                kinds[type(many[0])].value.extend(many)
        return example.SerializeToString()

    return make


VALUES = {"bytes": b"x", "int64": 7, "float": 0.5}
ENCODED = [
    name
    for name in convention_names()
    if load_convention(name).stores == "jpeg"
    and any(feature.field == "encoded" for feature in load_convention(name).features)
]


def record_of(name, without=()):
    features = [feature for feature in load_convention(name).features if feature.key not in without]
    record = {each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind] for each in features if each.field}
    return encode_example(features, record)


@pytest.mark.parametrize("name", ENCODED)
def test_each_conventions_records_are_known_by_their_keys(name):
    entries = parse_entries(record_of(name))
    assert find_convention(entries) is load_convention(name)
    expected = {
        each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind]
        for each in load_convention(name).features
        if each.field
    }
    assert read_fields(entries, load_convention(name)) == expected


def test_further_keys_and_missing_ones_with_defaults_do_not_matter(make_example):
    slim = parse_entries(record_of("slim", without=("image/format", "image/width")))
    assert find_convention(slim) is load_convention("slim")
    more = make_example({"image": b"x", "label": 1, "more": 0.5})
    assert find_convention(parse_entries(more)) is load_convention("keras")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": b"x", "b": 1}, r"its keys are those of no known convention \(a, b\): set source\.convention"),
        ({"image": 1, "label": 1}, "no known convention"),
        ({"image": b"x", "label": b"cat"}, "no known convention"),
    ],
)
def test_other_records_are_of_no_known_convention(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        find_convention(parse_entries(make_example(values)))


@pytest.mark.parametrize("record", [b"", b"\xff\xff", b"\x0a\x00"])
def test_records_that_are_not_examples_are_reported(record):
    with pytest.raises(Rejected, match=r"the record is not a tf\.train\.Example"):
        parse_entries(record)


CONVENTION = Convention(
    title="a test's",
    features=(
        Feature("i", "bytes", "encoded", ""),
        Feature("n", "int64", "label", ""),
        Feature("f", "float", "xmin", "", many=True),
        Feature("c", "bytes", "", "", constant=b"RGB"),
    ),
)


def test_fields_are_read_by_their_keys(make_example):
    entries = parse_entries(make_example({"i": b"x", "f": [0.5, 1.0], "n": [], "other": b"y", "c": b"any"}))
    assert read_fields(entries, CONVENTION) == {"encoded": b"x", "xmin": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": 1}, "it has no image: there is no feature i"),
        ({"i": 1}, "feature i is a int64_list, not a bytes_list"),
        ({"i": [b"x", b"y"]}, "feature i holds 2 values where one is expected"),
    ],
)
def test_features_that_do_not_fit_the_convention_are_reported(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        read_fields(parse_entries(make_example(values)), CONVENTION)


def test_features_are_passed_on_with_their_types(make_example):
    entries = parse_entries(make_example({"a": b"\xff", "b": [1, 2], "c": [1.0]}))
    assert read_kept(entries, {"a": "bytes", "b": "int64[]", "c": "float", "d": "bytes[]"}) == {
        "a": b"\xff",
        "b": [1, 2],
        "c": 1.0,
        "d": [],
    }
    assert [kind_of(stated) for stated in ("bytes", "float[]")] == ["bytes", "float"]
    assert (values_of(entries, "a", "bytes"), values_of(entries, "z", "bytes")) == ([b"\xff"], None)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"z": "bytes"}, r"feature z holds 0 values where source\.keep expects one"),
        ({"b": "int64"}, "feature b holds 2 values"),
        ({"b": "bytes[]"}, "feature b is a int64_list, not a bytes_list"),
    ],
)
def test_features_that_are_not_as_declared_are_reported(make_example, keep, message):
    with pytest.raises(Rejected, match=message):
        read_kept(parse_entries(make_example({"b": [1, 2]})), keep)


def test_a_key_is_a_text_or_an_integer(make_example):
    entries = parse_entries(make_example({"a": "u\u0308".encode(), "b": 7, "c": b"\xff", "d": b"", "e": 1.0}))
    assert (text_in(entries, "a"), text_in(entries, "b")) == ("ü", "7")
    for key, message in (
        ("c", "feature c is not UTF-8"),
        ("d", "missing or empty"),
        ("z", "missing"),
        ("e", "is a float"),
    ):
        with pytest.raises(Rejected, match=message):
            text_in(entries, key)
    assert (text_of(None, "it"), text_of(b"a", "it")) == ("", "a")


def test_a_class_is_a_name_or_a_number():
    assert (class_of(3, {}, ""), class_of(-1, {}, "")) == ("3", "-1")
    assert class_of(2, {1: "a", 2: "b"}, "labels.txt") == "b"


@pytest.mark.parametrize("number", [0, 3])
def test_a_number_without_a_name_is_reported(number):
    with pytest.raises(Rejected, match=rf"^\w+: its label is {number}, where labels\.txt names those of 1 to 2$"):
        class_of(number, {1: "a", 2: "b"}, "labels.txt")


def test_examples_without_images(make_example):
    convention = load_convention("feature_vector")
    entries = parse_entries(make_example({"sha256": b"abc", "feature": [0.5, 2.0], "label": 3}))
    assert read_fields(entries, convention) == {"file_sha256": b"abc", "feature": [0.5, 2.0], "label": 3}
    assert [feature.field for feature in own_features(convention)] == ["feature"]
    assert own_features(load_convention("default")) == own_features(load_convention("plain")) == ()
    with pytest.raises(Rejected, match=r"^\w+: there is no feature feature$"):
        read_fields(parse_entries(make_example({"label": 3})), convention)
    with pytest.raises(Rejected, match=r"\(feature, label, sha256\): set source\.convention: feature_vector$"):
        find_convention(entries)


SIDES = {"xmin": [0.0, 0.25], "ymin": [0.5, 0.5], "xmax": [0.5, 1.0], "ymax": [1.0, 0.75]}
BOXES = [(0.0, 0.5, 0.5, 1.0), (0.25, 0.5, 1.0, 0.75)]


def name_of(text, number):
    return text or f"class {number}"


def test_sides_become_boxes():
    fields = {**SIDES, "box_label_texts": [b"cat", b"dog"], "box_labels": [1, 2], "is_crowd": [0, 1], "area": [2.0]}
    expected = boxes_of(BOXES, ["cat", "dog"], values={"is_crowd": [0, 1]}, fractions=True)
    assert read_boxes(fields, name_of) == expected


def test_boxes_in_one_list_are_top_left_bottom_right():
    fields = {"bbox": [0.5, 0.0, 1.0, 0.5, 0.5, 0.25, 0.75, 1.0], "box_labels": [1, 2]}
    assert read_boxes(fields, name_of) == boxes_of(BOXES, ["class 1", "class 2"], fractions=True)


def test_no_boxes_are_boxes_and_no_features_are_none():
    empty = {side: [] for side in SIDES}
    assert read_boxes({**empty, "is_crowd": []}, name_of) == boxes_of([], [], values={"is_crowd": []}, fractions=True)
    assert read_boxes({"encoded": b"x"}, name_of) == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bbox": [0.0] * 5}, "its boxes have 5 sides, which is not a multiple of 4"),
        ({**SIDES, "xmax": [0.5]}, "its lists of boxes' sides differ in length"),
        ({**SIDES, "xmax": None}, "differ in length"),
        ({**SIDES, "box_labels": [1]}, "it has 2 boxes and 1 labels of boxes"),
        ({**SIDES, "box_label_texts": [b"a"] * 3}, "it has 2 boxes and 3 classes' names of boxes"),
        (SIDES, "it has 2 boxes without labels"),
        ({**SIDES, "box_label_texts": [b"a", b"\xff"]}, "the class of a box is not UTF-8"),
    ],
)
def test_mismatched_lists_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        read_boxes({key: value for key, value in fields.items() if value is not None}, name_of)


PIXELS = np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7
SIZE = {"height": 3, "width": 4, "channels": 3}


def test_an_encoded_image_is_its_bytes():
    assert read_image_of({"encoded": b"image", **SIZE}, False, (9, 9, 3)) == (b"image", b"image")


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"encoded": PIXELS.tobytes()}, (3, 4, 3)),
        ({"encoded": PIXELS.tobytes(), **SIZE}, ()),
        ({"encoded": PIXELS.tobytes(), **SIZE}, (9, 9, 3)),
        ({"pixels_base64": base64.urlsafe_b64encode(PIXELS.tobytes()), **SIZE}, ()),
    ],
)
def test_raw_pixels_have_the_shape_of_the_example_or_the_declared_one(fields, shape):
    data, image = read_image_of(fields, True, shape)
    assert data == PIXELS.tobytes()
    np.testing.assert_array_equal(image, PIXELS)


def test_gray_pixels_have_one_channel():
    _, image = read_image_of({"encoded": bytes(range(12))}, True, (3, 4, 1))
    assert image.shape == (3, 4, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoded": b"x" * 36}, r"raw pixels of unknown height, width and channels: set source\.shape"),
        ({"encoded": b"x" * 35, **SIZE}, "its image has 35 bytes, where 3 x 4 x 3 are declared"),
        ({"encoded": b"x" * 36, **SIZE, "height": -3}, "36 bytes, where -3 x 4 x 3"),
        ({"encoded": b"x" * 48, **SIZE, "channels": 4}, "its image has 4 channels, where 1 or 3 can be stored"),
        ({"pixels_base64": b"a", **SIZE}, "not url-safe base64"),
        ({"pixels_base64": b"!!!!", **SIZE}, "not url-safe base64"),
    ],
)
def test_pixels_that_do_not_fit_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        read_image_of(fields, True, ())
