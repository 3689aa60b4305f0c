from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.splits import SplitSettings
from recordmill.transforms.compose import BuildExamples, ReadImages, ReencodeImages, SplitExamples
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs

EXAMPLES = [(f"cat/{number}", b"%d" % number) for number in range(200)]


def check(elements, transform, expected, counter):
    """What a transform makes of elements, of which it leaves out and counts one."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    assert_that(pipeline | beam.Create(elements) | transform, equal_to(expected))
    (found,) = pipeline.run().metrics().query(beam.metrics.MetricsFilter().with_name(counter))["counters"]
    assert found.committed == 1


def test_images_are_read_and_missing_ones_left_out(tmp_path):
    path = tmp_path / "a[1].gz"
    path.write_bytes(b"0123456789")
    ref = ImageRef("a", str(path), 10)
    check([ref, replace(ref, key="gone", uri=f"{ref.uri}x")], ReadImages(), [(ref, b"0123456789")], "unread")


def test_images_are_prepared_and_bad_ones_left_out(draw):
    settings = ImageSettings(reencode="always", quality=50)
    images = [
        (ImageRef("a", "a"), draw(1)),
        (ImageRef("b", "b"), b"no image"),
        (ImageRef("c", "c"), draw(2, kind="PNG")),
    ]
    expected = [(ref, prepare_image(data, settings)) for ref, data in images if ref.key != "b"]
    check(images, ReencodeImages(settings), expected, "undecoded")


def test_examples_are_exact_and_unknown_labels_left_out(draw):
    image = prepare_image(draw(1), ImageSettings())
    images = [(ImageRef("cat/1", "", label="cat"), image), (ImageRef("dog/1", "", label="dog"), image)]
    record = {"height": 6, "width": 8, "channels": 3, "label": 5, "encoded": draw(1)}
    expected = ("cat/1", encode_example(load_convention("tutorial").features, record))
    check(images, BuildExamples({"cat": 5}, "tutorial"), [expected], "unlabelled")


def test_an_unknown_convention_raises_when_the_pipeline_is_written():
    with pytest.raises(ValueError, match="there is no convention 'x'"):
        BuildExamples({}, "x")


@pytest.mark.parametrize("fractions", [{"train": 0.8, "test": 0.2}, {"train": 0.5, "validation": 0.2}, {"all": 1.0}])
def test_examples_are_split_as_the_main_job_splits(fractions):
    splitter = ImageSplitter(4, SplitSettings(fractions=fractions), SplitCutoffs())
    expected = {name: [] for name in fractions}
    for key, example in EXAMPLES:
        if split := splitter.place(ImageRef(key, key))[1]:
            expected[split].append(example)
    assert all(expected.values())
    with beam.Pipeline(runner=FnApiRunner()) as root:
        splits = root | beam.Create(EXAMPLES) | SplitExamples(fractions, seed=4)
        assert list(splits) == list(fractions)
        for name, examples in splits.items():
            assert_that(examples, equal_to(expected[name]), label=name)


def test_impossible_fractions_raise_when_the_pipeline_is_built():
    pipeline = beam.Pipeline(runner=FnApiRunner())
    with pytest.raises(ValueError, match=r"sum to 1\.5"):
        pipeline | beam.Create(EXAMPLES) | SplitExamples({"a": 0.9, "b": 0.6})
    with pytest.raises(ValueError, match=r"b is -0\.2: give a share above 0"):
        pipeline | "More" >> beam.Create(EXAMPLES) | "Negative" >> SplitExamples({"a": 0.9, "b": -0.2})
