"""The steps, and `Convert`, in pipelines as users write them: the records of DirectRunner on every
engine."""

import dataclasses
import json
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io import fileio
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from stored_records import read_records

import recordmill

CLASSES = ["cat", "dog"]
FRACTIONS = {"train": 0.6, "test": 0.4}
SMALL = recordmill.ImageSettings(reencode="always", quality=70)


@pytest.fixture
def photos(class_folders, tmp_path):
    """Ten images of two classes, and a text in the place of one more."""
    root = class_folders(tmp_path / "photos", {"cat": 6, "dog": 4})
    (root / "dog/text.jpg").write_bytes(b"no picture")
    return root


def build_examples(images, settings=SMALL):
    return images | recordmill.ReencodeImages(settings) | recordmill.BuildExamples(CLASSES)


def split(examples):
    return dict(zip(FRACTIONS, examples | recordmill.SplitExamples(FRACTIONS), strict=True))


def read_paths(pipeline, root):
    paths = sorted(map(str, root.glob("*/*.jpg")))
    return pipeline | beam.Create(paths) | recordmill.ReadImages(root=str(root), label="folder")


def from_paths(pipeline, root):
    return split(build_examples(read_paths(pipeline, root)))


def from_matches(pipeline, root):
    files = pipeline | fileio.MatchFiles(f"{root}/*/*") | fileio.ReadMatches()
    read = files | recordmill.ReadImages(root=str(root), label="folder")
    return split(build_examples(read))


def row_of(path):
    path = Path(path)
    label = path.parent.name
    return {"key": f"{label}/{path.name}", "bytes": path.read_bytes(), "label": label}


def from_rows(pipeline, root):
    paths = pipeline | beam.Create(sorted(map(str, root.glob("*/*.jpg"))))
    return split(build_examples(paths | beam.Map(row_of) | recordmill.ReadImages()))


def by_first_letter(example, count):
    return (ord(example.key[0]) - ord("c")) % count


def with_partition(pipeline, root):
    examples = build_examples(read_paths(pipeline, root))
    cats, dogs = examples | beam.Partition(by_first_letter, 2)
    return {
        "cats": cats | "CatRecords" >> beam.Map(lambda example: example.record),
        "dogs": dogs | "DogRecords" >> beam.Map(lambda example: example.record),
    }


class KeepEvenNumbers(beam.DoFn):
    def process(self, image):
        if int(image.key.rpartition("/")[2].removesuffix(".jpg")) % 2 == 0:
            yield image


def with_other_name(image):
    return dataclasses.replace(image, features={"source_id": f"my {image.key}"})


def with_record_twice(example):
    return [example, dataclasses.replace(example, key=f"{example.key} again")]


def with_steps_between(pipeline, root):
    read = read_paths(pipeline, root) | beam.Filter(lambda image: image.data != b"no picture")
    settings = recordmill.ImageSettings(function="golden_hooks:invert")
    even = read | beam.ParDo(KeepEvenNumbers()) | recordmill.ReencodeImages(settings)
    built = even | beam.Map(with_other_name) | recordmill.BuildExamples(CLASSES)
    return split(built | beam.FlatMap(with_record_twice))


def in_windows(pipeline, root):
    paths = sorted(map(str, root.glob("*/*.jpg")))
    timed = [TimestampedValue(path, 10 * number) for number, path in enumerate(paths)]
    arriving = pipeline | beam.Create(timed) | beam.Map(lambda value: value)
    windows = arriving | beam.WindowInto(FixedWindows(30))
    read = windows | recordmill.ReadImages(root=str(root), label="folder")
    return split(build_examples(read))


def with_rejected_rows(pipeline, root):
    read = read_paths(pipeline, root)
    encoded = read | recordmill.ReencodeImages(SMALL)
    built = encoded | recordmill.BuildExamples(["cat"])
    rejected = (read.rejected, encoded.rejected, built.rejected) | beam.Flatten()
    lines = rejected | beam.Map(lambda image: json.dumps(dataclasses.asdict(image)).encode())
    return {"rejected": lines, **split(built)}


CASES = {
    from_paths: {"train": 7, "test": 3},
    from_matches: {"train": 7, "test": 3},
    from_rows: {"train": 7, "test": 3},
    with_partition: {"cats": 6, "dogs": 4},
    with_steps_between: {"train": 8, "test": 2},
    in_windows: {"train": 7, "test": 3},
    with_rejected_rows: {"rejected": 5, "train": 3, "test": 3},
}
"""What users build, and how many records it gives by name."""


def options_of(engine):
    return PipelineOptions(list(engine.flags()))


def records_in(folder):
    """The records of all files, by the name of what wrote them, in the order of their bytes."""
    found = {}
    for path in sorted(folder.iterdir()):
        records = found.setdefault(path.name.partition("-")[0], [])
        records.extend(map(bytes, read_records(str(path))))
    return {name: sorted(records) for name, records in found.items()}


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_the_chain_writes_the_records_of_direct_runner(engine, build, photos, tmp_path):
    for place, pipeline in {
        "direct": beam.Pipeline(runner=FnApiRunner()),
        "engine": beam.Pipeline(options=options_of(engine)),
    }.items():
        with pipeline:
            for name, records in build(pipeline, photos).items():
                records | f"Write {name}" >> beam.io.WriteToTFRecord(f"{tmp_path}/{place}/{name}")
    found = records_in(tmp_path / "engine")
    assert {name: len(records) for name, records in found.items()} == CASES[build]
    assert found == records_in(tmp_path / "direct")


def test_elements_are_compared_in_a_test_pipeline(engine, photos):
    with test_pipeline.TestPipeline(options=options_of(engine)) as pipeline:
        read = read_paths(pipeline, photos)
        encoded = read | recordmill.ReencodeImages(SMALL)
        assert_that(read.rejected, equal_to([]), label="read")
        reasons = encoded.rejected | beam.Map(lambda image: (image.key, image.reason))
        assert_that(reasons, equal_to([("dog/text.jpg", "unknown_format")]), label="encoded")


def pattern_of(animal, root):
    """Stands for a step of a user's that writes images, and names them to `Convert`."""
    return f"{animal}={root}/{animal}/*.jpg"


def test_the_whole_job_between_steps_of_ones_own(engine, photos, tmp_path):
    source = {"kind": "class_folders", "class_from": "none"}
    for place, pipeline in {
        "direct": beam.Pipeline(runner=FnApiRunner()),
        "engine": beam.Pipeline(options=options_of(engine)),
    }.items():
        with pipeline:
            patterns = pipeline | beam.Create(CLASSES) | beam.Map(pattern_of, root=str(photos))
            output = f"{tmp_path}/{place}-dataset"
            done = patterns | recordmill.Convert(output=output, source=source)
            texts = {
                "shards": done.shards | "Digest" >> beam.Map(lambda shard: shard.sha256.encode()),
                "rejected": done.rejected | "Key" >> beam.Map(lambda row: row["key"].encode()),
            }
            for name, lines in texts.items():
                lines | f"Write {name}" >> beam.io.WriteToTFRecord(f"{tmp_path}/{place}/{name}")
    found = records_in(tmp_path / "engine")
    assert (len(found["shards"]), found["rejected"]) == (2, [b"dog/text.jpg"])
    assert found == records_in(tmp_path / "direct")
