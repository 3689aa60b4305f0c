"""The chain of steps on a runner: metrics, labels, windows, and errors of a step in between."""

import logging

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue

import recordmill


@pytest.fixture
def images(draw):
    """Four pairs of a key and bytes, of which one is no image."""
    return [("cat/text.jpg", b"text"), *((f"cat/{n}.jpg", draw(n)) for n in range(3))]


def chain(elements, labels=("cat",)):
    read = elements | recordmill.ReadImages(label="folder")
    encoded = read | recordmill.ReencodeImages()
    built = encoded | recordmill.BuildExamples(list(labels))
    return encoded, built


def test_each_step_counts_and_times_its_images(images, caplog):
    pipeline = beam.Pipeline(runner=FnApiRunner())
    with caplog.at_level(logging.WARNING):
        _, built = chain(pipeline | beam.Create(images))
        built | recordmill.SplitExamples({"train": 1.0})
        result = pipeline.run()
        result.wait_until_finish()
    assert [record.getMessage() for record in caplog.records] == []
    query = beam.metrics.MetricsFilter().with_namespace("recordmill")
    found = result.metrics().query(query)
    assert {each.key.metric.name: each.committed for each in found["counters"]} == {
        "images_read": 4,
        "bytes_read": sum(len(data) for _, data in images),
        "images_encoded": 3,
        "rejected_unknown_format": 1,
        "examples_built": 3,
        "examples_train": 3,
    }
    assert {each.key.metric.name: each.committed.count for each in found["distributions"]} == {
        "read_microseconds": 4,
        "reencode_microseconds": 3,
        "build_microseconds": 3,
        "split_microseconds": 3,
    }
    names = {each.key.step for each in (*found["counters"], *found["distributions"])}
    assert names == {
        "ReadImages/Read/EachImage",
        "ReencodeImages/Reencode/EachImage",
        "BuildExamples/Build/EachImage",
        "SplitExamples/Split/EachExample",
    }


def test_images_in_windows_stay_there(images):
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        timed = pipeline | beam.Create(images) | beam.Map(lambda pair: TimestampedValue(pair, 7))
        encoded, built = chain(timed | beam.WindowInto(FixedWindows(5)))
        (train,) = built | recordmill.SplitExamples({"train": 1.0})
        for name, rows in {"train": train, "rejected": encoded.rejected}.items():
            found = rows | name >> beam.Map(
                lambda _, window=beam.DoFn.WindowParam: window.start.seconds()
            )
            expected = [5] * {"train": 3, "rejected": 1}[name]
            assert_that(found, equal_to(expected), label=f"{name} windows")


def break_down(image):
    raise ZeroDivisionError(f"at {image.key}")


def test_a_step_of_ones_own_that_fails_shows_where(images):
    pipeline = beam.Pipeline(runner=FnApiRunner())
    encoded, _ = chain(pipeline | beam.Create(images[1:2]))
    encoded | beam.Map(break_down)
    with pytest.raises(Exception, match=r"at cat/0\.jpg") as raised:
        pipeline.run()
    text = "".join(map(str, (raised.value, raised.value.__cause__, raised.getrepr())))
    assert "break_down" in text
