from collections import Counter
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io import tfrecordio
from apache_beam.pvalue import AsSingleton
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from make_settings import make_settings
from stored_records import read_records

from recordmill.imaging import prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.schemas.digests import add_digests, digest_of
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import ShardSettings, SplitSettings
from recordmill.schemas.settings.images import ImageSettings
from recordmill.storage.tfrecord_file import DamagedFileError
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.steps.elements import BuiltExample, RejectedReference
from recordmill.transforms.write_with_beam import (
    WriteWithBeam,
    count_example,
    count_rejected,
    read_written,
)

LABELS = LabelMap({"cat": 5})


@pytest.fixture
def refs(tmp_path, draw):
    """Twenty JPEGs, a PNG and what is rejected: a file without an image, and two that are gone, one
    of them of another class, for which it is not read."""
    files = {f"cat/{number}.jpg": draw(number) for number in range(20)}
    files |= {"cat/20.png": draw(20, kind="PNG"), "cat/text.jpg": b"no image"}
    found = []
    for key, content in files.items():
        path = tmp_path / "photos" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        found.append(ImageRef(key, str(path), len(content), label=key.partition("/")[0]))
    gone = ("cat/gone.jpg", "dog/1.jpg")
    return [*found, *(ImageRef(key, str(tmp_path / "gone"), 10, label=key[:3]) for key in gone)]


def run_chain(listed, settings, folder):
    """What the steps count."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _FOUND.clear()
    batches = pipeline | beam.Create([ReferenceBatch.of(listed[:9]), ReferenceBatch.of(listed[9:])])
    plan = DatasetPlan(label_map=LABELS, starts={split: [0] for split in settings.splits.names})
    side = AsSingleton(pipeline | "Plan" >> beam.Create([plan]))
    batches | WriteWithBeam(settings, str(folder), side, Progress()) | beam.Map(_keep)
    pipeline.run().wait_until_finish()
    (found,) = _FOUND
    return found


_FOUND = []


def _keep(finished):
    _FOUND.append(finished)


def written_name(split, index, count):
    return f"{split}-{index:05d}-of-{count:05d}.tfrecord"


def written(folder):
    return {
        path.name: [bytes(each) for each in read_records(str(path))]
        for path in sorted(folder.glob("*"))
    }


def test_examples_are_exact_and_counted_where_they_are_written(refs, tmp_path):
    images = ImageSettings(reencode="always", quality=50)
    settings = make_settings(images=images, shards=ShardSettings(count=2), convention="tutorial")
    finished = run_chain(refs, settings, tmp_path / "out")
    splitter, convention = (
        ImageSplitter(0, settings.splits, SplitCutoffs()),
        load_convention("tutorial"),
    )
    expected = {"train": [], "test": []}
    for ref in refs[:21]:
        image = prepare_image(Path(ref.uri).read_bytes(), images)
        size = {
            "height": image.height,
            "width": image.width,
            "channels": 3,
            "label": 5,
            "encoded": image.encoded,
        }
        expected[splitter.place(ref)[1]].append(encode_example(convention.example_features, size))
    assert expected["train"]
    assert expected["test"]
    files = written(tmp_path / "out")
    assert list(files) == [
        written_name(split, index, 2) for split in ("test", "train") for index in (0, 1)
    ]
    for split, examples in expected.items():
        found = [files[written_name(split, index, 2)] for index in (0, 1)]
        assert sorted([*found[0], *found[1]]) == sorted(examples)
        counts = {file.index: file.records for file in finished.reports if file.split == split}
        assert counts == {0: len(found[0]), 1: len(found[1])}
        assert finished.splits[split].records == len(examples)
    assert finished.find_problem() is None
    assert {reason: example.key for reason, example in finished.rejected_examples.items()} == {
        "vanished": "cat/gone.jpg",
        "unknown_format": "cat/text.jpg",
        "unknown_label": "dog/1.jpg",
    }


def test_notices_of_the_listing_are_counted_and_not_written(refs, tmp_path):
    notices = [
        refs[0].replace(key="a").notice("rejected", "no_class", "why"),
        refs[0].replace(key="b").notice("ignored", "hidden"),
        refs[0].replace(key="c").notice("left_out", "duplicate"),
    ]
    finished = run_chain(
        [refs[0], *notices], make_settings(shards=ShardSettings(count=1)), tmp_path / "out"
    )
    assert finished.splits["train"].rejected == {"no_class": 1}
    assert finished.rejected_examples["no_class"].text == "a (why)"
    assert sum(file.records for file in finished.reports) == 1


def test_a_listing_that_fails_raises(tmp_path):
    batch = ReferenceBatch.of(
        [ImageRef("", "photos").notice("fatal", "missing_input", "the input cannot be read")]
    )
    with pytest.raises(Exception, match="photos: the input cannot be read"):
        run_chain([*batch.notices], make_settings(shards=ShardSettings(count=1)), tmp_path / "out")


def test_images_are_split_as_the_main_job_splits(refs, tmp_path):
    fractions = {"train": 0.5, "validation": 0.2}
    settings = make_settings(
        splits=SplitSettings(fractions=fractions), seed=4, shards=ShardSettings(count=1)
    )
    splitter = ImageSplitter(4, settings.splits, SplitCutoffs())
    placed = Counter(split for ref in refs[:21] if (split := splitter.place(ref)[1]))
    finished = run_chain(refs[:21], settings, tmp_path / "out")
    assert {file.split: file.records for file in finished.reports if file.records} == placed


def test_a_function_that_always_fails_is_one_problem_and_no_rejection(refs, tmp_path, monkeypatch):
    from recordmill.schemas.settings.feature_function import FeatureFunction

    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_features.py").write_text("def fail(image):\n    raise KeyError('x')\n")
    features = {"f": FeatureFunction(function="own_features:fail")}
    settings = make_settings(features=features, shards=ShardSettings(count=1))
    finished = run_chain(refs[:20], settings, tmp_path / "out")
    assert (
        finished.find_problem()
        == "features.f: own_features:fail failed on cat/0.jpg: KeyError: 'x'"
    )
    assert list(finished.rejected_examples) == [""]


def test_a_record_that_beam_loses_is_missed(refs, tmp_path, monkeypatch):
    write, seen = tfrecordio._TFRecordUtil.write_record, []

    def lose_the_third(file, value):
        seen.append(value)
        if len(seen) != 3:
            write(file, value)

    monkeypatch.setattr(tfrecordio._TFRecordUtil, "write_record", lose_the_third)
    settings = make_settings(
        shards=ShardSettings(count=1), splits=SplitSettings(fractions={"all": 1.0})
    )
    finished = run_chain(refs, settings, tmp_path / "out")
    assert finished.find_problem() == (
        "split all has 21 Examples, and its files hold 20: something was lost or written twice"
    )


def test_a_damaged_file_raises(refs, tmp_path):
    settings = make_settings(
        shards=ShardSettings(count=1), splits=SplitSettings(fractions={"all": 1.0})
    )
    finished = run_chain(refs, settings, tmp_path / "out")
    path = tmp_path / "out" / written_name("all", 0, 1)
    assert [read_written(str(path))] == finished.reports
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match="record 20 at byte "):
        read_written(str(path))


REFS = [ImageRef(key, key, 5, label="cat") for key in "abc"]


def file_of(split, records, index=0):
    return ShardReport(split, index, 0, RowTotals(), records=records)


def reject(ref, split, why):
    error = Rejected(*why)
    return RejectedReference(ref.key, error.reason, error.detail, ref, split, error)


def parts():
    """Of two images of split x that were built, one of y that was rejected, and the files of
    both."""
    built = [
        BuiltExample(
            ref.key,
            "",
            b"r",
            "x",
            ref,
            ConvertedImage(b"r", SidecarRow(ref.key, 5, "", "cat", 0)),
        )
        for ref in REFS[:2]
    ]
    rejected = reject(REFS[2], "y", ("decode", "unknown_format", "it is a text"))
    progress = Progress()
    counted = [count_example(each, progress) for each in built]
    counted.append(count_rejected(rejected, LABELS, progress))
    assert progress.done == 3
    return [*counted, file_of("x", 1), file_of("x", 1, 1), file_of("y", 0)]


def test_outcomes_are_added_in_any_order():
    total = gather_reports(parts())
    assert gather_reports([gather_reports(parts()[::-1])]).splits == total.splits
    assert total.splits["x"].classes == {"cat": 2}
    assert total.splits["y"].rejected == {"unknown_format": 1}
    assert total.rejected_examples["unknown_format"].text == "c (it is a text)"
    assert int(total.digest, 16) == add_digests(*map(digest_of, REFS))


def test_the_first_rejected_image_by_key_is_named():
    images = [reject(ref, "x", ("read", "vanished", "gone")) for ref in REFS]
    counted = [count_rejected(image, LABELS, Progress()) for image in images[::-1]]
    assert gather_reports(counted).rejected_examples["vanished"].text == "a (gone)"


def test_there_is_no_problem_where_each_split_adds_up():
    assert gather_reports(parts()).find_problem() is None


def test_a_split_that_lacks_a_record_is_named_though_another_has_one_more():
    total = gather_reports(
        [*parts()[:3], file_of("x", 0), file_of("x", 1, 1), file_of("y", 0), file_of("y", 1, 1)]
    )
    assert total.find_problem() == (
        "split x has 2 Examples, and its files hold 1: something was lost or written twice"
    )
