import io
from collections import Counter

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.imaging import prepare_image
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample
from recordmill.schemas.image_ref import ImageRef, boxes_of
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.annotations import (
    AnnotationCounts,
    DroppedBox,
    add_image,
    count_rejected_labels,
    resolve_annotations,
)

LABELS = LabelMap({"cat": 0, "dög": 1, "other": 2})


@pytest.fixture
def resolve():
    file = io.BytesIO()
    Image.new("RGB", (40, 20)).save(file, "JPEG")
    settings = make_settings()
    image = prepare_image(file.getvalue(), settings.images)

    def run(fields, labels=LABELS):
        return resolve_annotations(fields, file.getvalue(), image, settings, labels), fields

    return run


def test_several_labels_get_their_ids(resolve):
    counts, fields = resolve({"label_texts": ["dög".encode(), b"cat"], "more": 1})
    assert counts == AnnotationCounts(labels=Counter(listed=2, written=2))
    assert fields == {"label_texts": ["dög".encode(), b"cat"], "labels": [1, 0], "more": 1}


def test_a_label_without_a_place_rejects_the_image_or_becomes_the_catch_all(resolve):
    with pytest.raises(Rejected, match="unknown_label: the label 'emu' is not one of the classes"):
        resolve({"label_texts": [b"cat", b"emu"]})
    caught = LabelMap(LABELS.ids, "other")
    assert resolve({"label_texts": [b"emu"]}, caught)[1] == {
        "label_texts": [b"other"],
        "labels": [2],
    }


def test_boxes_become_the_fields_of_boxes(resolve):
    given = boxes_of([(0, 0, 20, 20)], ["dög".encode()], values={"pose": [b"Left"]})
    counts, fields = resolve({**given, "source_id": b"7"})
    assert counts == AnnotationCounts(boxes=Counter(listed=1, written=1))
    assert fields == {
        "source_id": b"7",
        "xmin": [0.0],
        "xmax": [0.5],
        "ymin": [0.0],
        "ymax": [1.0],
        "bbox": [0.0, 0.0, 1.0, 0.5],
        "box_labels": [1],
        "box_label_texts": ["dög".encode()],
        "pose": [b"Left"],
    }


def test_an_image_without_annotations_is_left_alone(resolve):
    assert resolve({"label": 1}) == (None, {"label": 1})


def test_labels_of_rejected_images_are_counted_by_outcome():
    def count(reason, labels, features='{"label_texts":["cat","emu","gnu"]}'):
        ref = ImageRef("a.jpg", "/a.jpg", features=features)
        return count_rejected_labels(ref, reason, labels, "with_rejected_images")

    assert count("unknown_label", LABELS) == {
        "listed": 3,
        "unknown_label": 2,
        "with_rejected_images": 1,
    }
    chosen = LabelMap(LABELS.ids, is_chosen=True)
    assert count("unknown_label", chosen) == {
        "listed": 3,
        "not_chosen": 2,
        "with_rejected_images": 1,
    }
    assert count("truncated", LABELS) == {"listed": 3, "with_rejected_images": 3}
    assert count("truncated", LABELS, features='{"x":1}') == {}


def boxes(*dropped, written=0, lacks_file=False):
    counts = Counter(box.reason for box in dropped)
    counts.update(listed=len(dropped) + written, written=written)
    return AnnotationCounts(boxes=+counts, dropped=list(dropped), lacks_file=lacks_file)


def test_a_shard_tells_of_dropped_boxes_and_of_images_without_any():
    totals = AnnotationTotals()
    add_image(totals, "b.jpg", boxes(DroppedBox("outside", "cat", 2, True), written=1))
    add_image(
        totals,
        "a.jpg",
        boxes(DroppedBox("outside", "dog", 1, True), DroppedBox("cropped_away", "cat", 2, False)),
    )
    add_image(totals, "c.jpg", boxes(lacks_file=True))
    add_image(totals, "d.jpg", boxes())
    add_image(totals, "e.jpg", boxes(written=3))
    add_image(totals, "f.jpg", AnnotationCounts(labels=Counter(listed=2, written=2)))
    assert totals == AnnotationTotals(
        dropped={"outside": {"cat": 1, "dog": 1}, "cropped_away": {"cat": 1}},
        faulty={"outside": {"cat": 1, "dog": 1}},
        emptied={"outside": {"dog": 1}, "cropped_away": {"cat": 1}},
        without_boxes={"all_dropped": 1, "no_file": 1, "no_objects": 1},
        labels={"listed": 2, "written": 2},
        examples={"outside": BoxExample("a.jpg", 1, "box 1 of 2 of a.jpg (class dog)")},
    )


def test_shapes_that_a_source_dropped_are_of_any_class():
    totals = AnnotationTotals()
    add_image(totals, "a.jpg", AnnotationCounts(boxes=Counter(listed=2, other_shape=2)))
    add_image(totals, "b.jpg", AnnotationCounts(boxes=Counter(listed=3, written=2, other_shape=1)))
    assert totals == AnnotationTotals(
        dropped={"other_shape": {"": 3}},
        emptied={"other_shape": {"": 2}},
        without_boxes={"all_dropped": 1},
    )


def test_unknown_classes_are_distinguished_up_to_a_number():
    totals = AnnotationTotals()
    add_image(
        totals,
        "a.jpg",
        boxes(
            *(DroppedBox("unknown_class", str(number), number, True) for number in range(1, 131))
        ),
    )
    (counts,) = totals.dropped.values()
    assert (len(counts), counts["1"], counts["100"], counts["others"]) == (101, 1, 1, 30)
