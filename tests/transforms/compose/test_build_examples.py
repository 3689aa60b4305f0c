import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.imaging import ImageSettings, PreparedImage, prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.compose.build_examples import BuildExamples

IMAGE = PreparedImage(b"bytes", "JPEG", 6, 8, 3, None, ())
REF = ImageRef("in/cät/ü 1.jpg", "/x", label="cät", features='{"image/patient":"p\\u00e4"}')
LABELS = LabelMap({"cät": 3, "other": 4}, catch_all="other")


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
