import hashlib

import pytest

from recordmill.imaging import PreparedImage
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import IMAGE_FIELDS, Feature, encode_example, parse_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.convert_image import image_record, reference_record

IMAGE = PreparedImage(b"bytes", "JPEG", 6, 8, 3, None, ())
REF = ImageRef("in/cät/ü 1.jpg", "/x", label="cät", features='{"image/patient":"p\\u00e4"}')
LABELS = LabelMap({"cät": 3, "other": 4}, catch_all="other")


SHA256 = hashlib.sha256(b"bytes").hexdigest()


@pytest.mark.parametrize(
    ("label", "expected"), [("cät", ("cät", 3)), ("stray", ("other", 4)), ("", (None, None))]
)
def test_the_class_of_a_label(label, expected):
    assert find_class(label, LABELS) == expected


def test_a_label_without_a_place_is_rejected():
    with pytest.raises(Rejected) as caught:
        find_class("stray", LabelMap({"cat": 0}))
    assert (caught.value.stage, caught.value.reason) == ("encode", "unknown_label")
    assert caught.value.detail == "the label 'stray' is not one of the classes"


def record(ref, class_name, class_id, convention, split=""):
    image = image_record(IMAGE, load_convention(convention), SHA256)
    return image | reference_record(ref, class_name, class_id, split)


def test_the_fields_of_a_record_are_exact():
    assert record(REF, "cät", 3, "default") == {
        "encoded": b"bytes",
        "sha256": SHA256.encode(),
        "format": b"jpg",
        "height": 6,
        "width": 8,
        "channels": 3,
        "label": 3,
        "label_text": "cät".encode(),
        "filename": "ü 1.jpg".encode(),
        "source_id": "ü 1.jpg".encode(),
        "key": "in/cät/ü 1.jpg".encode(),
        "split": b"",
        "split_upper": b"",
        "image/patient": "pä".encode(),
    }


def test_a_format_without_a_name_of_its_own_is_lower_cased():
    assert image_record(IMAGE, load_convention("tutorial"), SHA256)["format"] == b"jpeg"


def test_the_names_of_fields_are_listed():
    fields = record(ImageRef("a", "a"), None, None, "tfrecorder", "train")
    assert set(fields) == IMAGE_FIELDS - {"file_sha256"}  # what convert_image adds of the file
    assert (fields["pixels_base64"], fields["split_upper"]) == (b"Ynl0ZXM=", b"TRAIN")


def test_an_image_without_a_label_has_no_label_features():
    fields = record(ImageRef("a", "a"), None, None, "default")
    parsed = parse_example(
        load_convention("default").example_features,
        encode_example(load_convention("default").example_features, fields),
    )
    assert (parsed["image/class/label"], parsed["image/class/text"], parsed["image/encoded"]) == (
        -1,
        b"",
        b"bytes",
    )


def test_a_sources_own_features_are_written():
    feature = Feature("image/patient", "bytes", "image/patient", "")
    fields = record(REF, "cät", 3, "default")
    assert parse_example([feature], encode_example([feature], fields)) == {
        "image/patient": "pä".encode()
    }
