import io

import pytest
from PIL import Image

from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.converting.annotations import resolve_annotations
from recordmill.transforms.converting.boxes import BoxSettings, boxes_of
from recordmill.transforms.imaging import ImageSettings, prepare_image
from recordmill.transforms.rejection import RejectedImage

LABELS = LabelMap({"cat": 0, "dög": 1, "other": 2})


@pytest.fixture
def resolve():
    file = io.BytesIO()
    Image.new("RGB", (40, 20)).save(file, "JPEG")
    settings = ImageSettings()
    image = prepare_image(file.getvalue(), settings)

    def run(fields, labels=LABELS):
        return resolve_annotations(fields, file.getvalue(), image, settings, BoxSettings(), labels), fields

    return run


def test_several_labels_get_their_ids(resolve):
    counts, fields = resolve({"label_texts": ["dög".encode(), b"cat"], "more": 1})
    assert counts is None
    assert fields == {"label_texts": ["dög".encode(), b"cat"], "labels": [1, 0], "more": 1}


def test_a_label_without_a_place_rejects_the_image_or_becomes_the_catch_all(resolve):
    with pytest.raises(RejectedImage, match="unknown_label: the label 'emu' is none of the classes"):
        resolve({"label_texts": [b"cat", b"emu"]})
    caught = LabelMap(LABELS.ids, "other")
    assert resolve({"label_texts": [b"emu"]}, caught)[1] == {"label_texts": [b"other"], "labels": [2]}


def test_boxes_become_the_fields_of_boxes(resolve):
    given = boxes_of([(0, 0, 20, 20)], ["dög".encode()], values={"pose": [b"Left"]})
    counts, fields = resolve({**given, "source_id": b"7"})
    assert counts == {"listed": 1, "written": 1}
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
