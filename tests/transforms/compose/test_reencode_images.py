import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.compose.reencode_images import ReencodeImages


def test_in_a_pipeline_images_are_prepared_and_bad_ones_left_out(draw):
    settings = ImageSettings(reencode="always", quality=50)
    images = [
        (ImageRef("a", "a"), draw(1)),
        (ImageRef("b", "b"), b"no image"),
        (ImageRef("c", "c"), draw(2, kind="PNG")),
    ]
    expected = [(ref, prepare_image(data, settings)) for ref, data in images if ref.key != "b"]
    pipeline = beam.Pipeline(runner=FnApiRunner())
    assert_that(pipeline | beam.Create(images) | ReencodeImages(settings), equal_to(expected))
    result = pipeline.run()
    (counter,) = result.metrics().query(beam.metrics.MetricsFilter().with_name("undecoded"))["counters"]
    assert counter.committed == 1
