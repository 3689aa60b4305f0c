import io
from collections import Counter

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.annotation import AnnotatedImage, ListedLabels, PlacedObjects
from recordmill.annotations.attributes import ATTRIBUTES, Attributes, read_attribute
from recordmill.imaging import prepare_image
from recordmill.schemas.attribute_words import AttributeText
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import Contract

WORDS = {"color": {"blue": 0, "red": 1}, "count": {}}


def image_with(objects, unwanted=()):
    file = io.BytesIO()
    Image.new("RGB", (10, 8)).save(file, "JPEG")
    settings = make_settings(convention="tf_object_detection")
    labels = LabelMap({"cat": 0}, attributes=WORDS)
    on = AnnotatedImage(
        file.getvalue(), prepare_image(file.getvalue(), settings.images), settings, labels
    )
    on.objects, on.unwanted = objects, dict(unwanted)
    return on


def place(*values, stored=None, unwanted=()):
    stored = list(range(len(values)) if stored is None else stored)
    objects = PlacedObjects(len(values), stored, ["cat"] * len(values), "displayed")
    return ATTRIBUTES.place(Attributes(values).pack(), image_with(objects, unwanted))


def test_each_stored_box_has_one_number_for_each_attribute():
    placed = place({"color": "red", "count": "3"}, {}, {"count": "true"}, stored=[2, 1, 0])
    assert placed.fields == {"attribute:color": [-1, -1, 1], "attribute:count": [1, -1, 3]}
    assert placed.outcome.counts == AnnotationCounts(3, 3)


def test_values_without_a_place_are_counted_as_not_stored():
    placed = place({"color": "green", "plate": "x", "count": "3"}, {"plate": "y"})
    assert placed.fields == {"attribute:color": [-1, -1], "attribute:count": [3, -1]}
    assert placed.outcome.counts == AnnotationCounts(4, 1, Counter(not_stored=3))
    assert not any(each.is_faulty for each in placed.outcome.dropped)


def test_attributes_of_boxes_that_are_dropped_are_dropped_with_them():
    placed = place({"count": "1"}, {"count": "2", "color": "red"}, {}, stored=[0])
    assert placed.outcome.counts == AnnotationCounts(3, 1, Counter(without_box=2))
    placed = place({"count": "1"}, {"count": "2"}, stored=[0], unwanted={1: "empty_mask"})
    assert placed.outcome.counts == AnnotationCounts(2, 1, Counter(empty_mask=1))


def test_an_image_whose_objects_have_none_gets_no_values():
    objects = PlacedObjects(3, [0, 2], ["cat"] * 3, "displayed")
    empty = {"attribute:color": [-1, -1], "attribute:count": [-1, -1]}
    assert ATTRIBUTES.fill(image_with(objects)) == empty
    assert ATTRIBUTES.fill(image_with(None)) == {}


def test_attributes_of_images_that_are_not_stored_are_counted():
    packed = Attributes([{"count": "1"}, {}]).pack()
    placed = ATTRIBUTES.place(packed, image_with(None))
    assert placed.outcome.counts == AnnotationCounts(1, dropped=Counter(not_decoded=1))
    lost = ATTRIBUTES.lose(packed, Rejected("read", "vanished", ""), LabelMap({}))
    assert lost.counts == AnnotationCounts(1, dropped=Counter(with_rejected_images=1))
    assert ATTRIBUTES.list_labels(packed) == ListedLabels((), 1)
    assert list(ATTRIBUTES.list_attributes(packed)) == [AttributeText("count", "1")]
    assert ATTRIBUTES.most_lost(Contract(lost_attributes=0.5)) == 0.5


def test_equal_attributes_are_packed_into_equal_bytes():
    one, two = ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    assert Attributes([one]).pack() == Attributes([two]).pack()
    assert Attributes.unpack(Attributes([one]).pack()) == Attributes([one])
    broken = Attributes([{" a\n b": "1"}, {}])
    assert Attributes.unpack(broken.pack()) == Attributes([{"a b": "1"}, {}])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (3.0, "3"),
        (0.5, "0.5"),
        (" red ", "red"),
        ("", None),
        (None, None),
        (["red"], None),
        ({}, None),
        (float("nan"), "nan"),
    ],
)
def test_values_are_read_as_text(value, text):
    assert read_attribute(value) == text


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"attribute:a": [1, 2], "xmin": [0, 0], "box_labels": [1, 1]}, None),
        ({"attribute:a": [1], "xmin": [0, 0]}, "it has 1 of a for 2 boxes"),
        ({"attribute:a": [], "box_labels": [1, 1]}, "it has 0 of a for 2 boxes"),
        ({"xmin": [0, 0]}, None),
        ({"attribute:a": [1]}, None),
    ],
)
def test_an_example_has_one_value_for_each_box(values, problem):
    assert ATTRIBUTES.check(values) == problem
