import hashlib

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.imaging import ImageSettings, PreparedImage, prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import Feature, encode_example, parse_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.record_fields import IMAGE_FIELDS
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.compose.build_examples import BuildExamples, check_source_features, find_class, image_record

IMAGE = PreparedImage(b"bytes", "JPEG", 6, 8, 3, None, ())
REF = ImageRef("in/cät/ü 1.jpg", "/x", label="cät", features='{"image/patient":"p\\u00e4"}')
LABELS = LabelMap({"cät": 3, "other": 4}, catch_all="other")


@pytest.mark.parametrize(("label", "expected"), [("cät", ("cät", 3)), ("stray", ("other", 4)), ("", (None, None))])
def test_the_class_of_a_label(label, expected):
    assert find_class(label, LABELS) == expected


def test_a_label_without_a_place_is_rejected():
    with pytest.raises(Rejected) as caught:
        find_class("stray", LabelMap({"cat": 0}))
    assert (caught.value.stage, caught.value.reason) == ("encode", "unknown_label")
    assert caught.value.detail == "the label 'stray' is not one of the classes"


def test_the_fields_of_a_record_are_exact():
    assert image_record(REF, IMAGE, "cät", 3, load_convention("default")) == {
        "encoded": b"bytes",
        "sha256": hashlib.sha256(b"bytes").hexdigest().encode(),
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
    assert image_record(REF, IMAGE, None, None, load_convention("tutorial"))["format"] == b"jpeg"


def test_the_names_of_fields_are_listed():
    fields = image_record(ImageRef("a", "a"), IMAGE, None, None, load_convention("tfrecorder"), "train")
    assert set(fields) == IMAGE_FIELDS - {"sha256", "file_sha256"}  # what convert_image adds of the file
    assert (fields["pixels_base64"], fields["split_upper"]) == (b"Ynl0ZXM=", b"TRAIN")


def test_an_image_without_a_label_has_no_label_features():
    fields = image_record(ImageRef("a", "a"), IMAGE, None, None, load_convention("default"))
    parsed = parse_example(
        load_convention("default").features, encode_example(load_convention("default").features, fields)
    )
    assert (parsed["image/class/label"], parsed["image/class/text"], parsed["image/encoded"]) == (-1, b"", b"bytes")


def test_a_sources_own_features_are_written():
    feature = Feature("image/patient", "bytes", "image/patient", "")
    fields = image_record(REF, IMAGE, "cät", 3, load_convention("default"))
    assert parse_example([feature], encode_example([feature], fields)) == {"image/patient": "pä".encode()}


def test_in_a_pipeline_examples_are_exact_and_unknown_labels_left_out(draw):
    image = prepare_image(draw(1), ImageSettings())
    images = [(ImageRef("cat/1", "", label="cat"), image), (ImageRef("dog/1", "", label="dog"), image)]
    record = {"height": 6, "width": 8, "channels": 3, "label": 5, "encoded": draw(1)}
    expected = ("cat/1", encode_example(load_convention("tutorial").features, record))
    pipeline = beam.Pipeline(runner=FnApiRunner())
    assert_that(pipeline | beam.Create(images) | BuildExamples({"cat": 5}, "tutorial"), equal_to([expected]))
    result = pipeline.run()
    (counter,) = result.metrics().query(beam.metrics.MetricsFilter().with_name("unlabelled"))["counters"]
    assert counter.committed == 1


def test_an_unknown_convention_raises_when_the_pipeline_is_written():
    with pytest.raises(ValueError, match="there is no convention 'x'"):
        BuildExamples({}, "x")


def test_a_taken_name_that_the_key_fills_says_so():
    feature = Feature("image/source_id", "bytes", "image/source_id", "")
    with pytest.raises(ValueError, match=r"^source: the feature name 'image/source_id' is taken: choose") as told:
        check_source_features([feature], True, load_convention("tf_object_detection"))
    assert str(told.value).endswith("x/image/source_id; in a manifest the column under source.columns.key fills it")
    feature = Feature("image/height", "int64", "image/height", "")
    with pytest.raises(ValueError, match=r"is taken: choose another, such as x/image/height$"):
        check_source_features([feature], True, load_convention("tf_object_detection"))
