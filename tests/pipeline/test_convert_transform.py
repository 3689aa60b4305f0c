"""`recordmill.Convert`: the whole job as a part of a user's pipeline."""

import hashlib
import json
import os
from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.pvalue import PCollection
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_stream
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from eager_beam import assert_that, new_pipeline

import recordmill
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.errors import RecordmillError, UsageError

pytestmark = pytest.mark.usefixtures("cheap_fsync")

ONE_SPLIT = {"splits": {"fractions": {"train": 1.0}}, "report": False}


class Run:
    """What a pipeline gave."""

    def __init__(self, outcome, shards, rejected):
        (self.outcome,) = outcome
        self.shards = sorted(shards, key=lambda shard: shard.path)
        self.rejected = sorted(rejected, key=lambda row: row["key"])


def run(*arguments, source=None, **settings):
    """Runs a pipeline of one conversion."""
    found = [], [], []
    with new_pipeline() as pipeline:
        start = pipeline if source is None else source(pipeline)
        converted = start | recordmill.Convert(*arguments, **settings)
        for each, rows in zip(converted, found, strict=True):
            assert_that(each, rows.extend)
    return Run(*found)


@pytest.fixture
def faulty(photos):
    """A file is no image, and all files are old: one that changed just now has no sure version."""
    (photos / "dog/text.jpg").write_text("no picture")
    for path in photos.rglob("*.*"):
        os.utime(path, (1_500_000_000, 1_500_000_000))
    return photos


def test_its_files_are_those_of_the_command(faulty, tmp_path, convert):
    ours = convert(faulty, "--no-json", settings={"seed": 3, "report": False})
    done = run(faulty, tmp_path / "by-step", seed=3, report=False)
    assert (done.outcome.status, done.outcome.exit_code) == ("published", 0)
    names = {path.name for path in ours.output.iterdir()}
    assert {path.name for path in (tmp_path / "by-step").iterdir()} == names
    for name in names - {"recordmill.json", "README.md", "sidecars"}:
        assert (tmp_path / "by-step" / name).read_bytes() == (ours.output / name).read_bytes()
    marker = json.loads((tmp_path / "by-step/recordmill.json").read_bytes())
    assert {key: value for key, value in marker.items() if key != "run"} == ours.lasting_marker
    assert marker["run"]["runner"] == "FnApiRunner"


def test_its_results_come_from_the_dataset_in_place(faulty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    temporary = set(os.listdir("/tmp"))
    done = run("photos", "dataset", **ONE_SPLIT)
    (shard,) = done.shards
    path = tmp_path / "dataset/train-00000-of-00001.tfrecord"
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert shard == recordmill.Shard("train", str(path), 10, len(content), digest)
    (row,) = done.rejected
    lines = (tmp_path / "dataset/rejected.jsonl").read_text().splitlines()
    assert [row] == [json.loads(line) for line in lines]
    assert (row["key"], row["reason"]) == ("dog/text.jpg", "unknown_format")
    left = [name for name in set(os.listdir("/tmp")) - temporary if name.startswith("recordmill-")]
    assert left == []


def test_a_kept_and_an_updated_dataset_give_the_same_rows(faulty, tmp_path, picture):
    output = tmp_path / "dataset"
    first = run(faulty, output, **ONE_SPLIT)
    kept = run(faulty, output, **ONE_SPLIT)
    assert kept.outcome.status == "kept"
    assert (kept.shards, kept.rejected) == (first.shards, first.rejected)
    (faulty / "cat/new.jpg").write_bytes(picture("new"))
    updated = run(faulty, output, update=True, **ONE_SPLIT)
    assert updated.outcome.status == "published"
    assert json.loads((output / "recordmill.json").read_bytes())["run"]["images_reused"] == 10
    rebuilt = run(faulty, tmp_path / "rebuilt", **ONE_SPLIT)
    assert [replace(each, path="") for each in updated.shards] == [
        replace(each, path="") for each in rebuilt.shards
    ]
    assert updated.rejected == rebuilt.rejected == first.rejected


def test_versions(photos, tmp_path):
    done = run(photos, tmp_path / "dataset", versions=True, **ONE_SPLIT)
    version = done.outcome.numbers.version
    assert done.shards[0].path.startswith(f"{tmp_path}/dataset/{version}/train-")
    again = run(photos, tmp_path / "dataset", versions=True, **ONE_SPLIT)
    assert (again.outcome.status, again.shards) == ("kept", done.shards)


def test_a_failure_raises_with_its_message_first(faulty, tmp_path):
    output = tmp_path / "dataset"
    run(faulty, output, **ONE_SPLIT)
    before = (output / "recordmill.json").read_bytes()
    strict = {"max_rejected": {"count": 0, "share": 0}}
    with pytest.raises(RecordmillError, match=r"^1 of 11 images \(9\.09%\) was rejected"):
        run(faulty, output, overwrite=True, seed=1, **strict, **ONE_SPLIT)
    assert (output / "recordmill.json").read_bytes() == before


def test_a_failure_may_be_emitted_with_the_rejected_rows(faulty, tmp_path):
    strict = {"max_rejected": {"count": 0, "share": 0}}
    done = run(faulty, tmp_path / "dataset", on_failure="emit", **strict, **ONE_SPLIT)
    assert (done.outcome.status, done.outcome.exit_code, done.shards) == ("failed", 3, [])
    assert [row["key"] for row in done.rejected] == ["dog/text.jpg"]
    refused = run(faulty, tmp_path / "dataset", on_failure="emit", **ONE_SPLIT)
    assert (refused.outcome.status, len(refused.shards)) == ("published", 1)
    other = run(faulty, tmp_path / "dataset", on_failure="emit", seed=1, **ONE_SPLIT)
    assert (other.outcome.status, other.shards, other.rejected) == ("refused", [], [])


def test_earlier_datasets_are_opened_when_the_pipeline_runs(photos, tmp_path):
    first = run(photos, tmp_path / "first", **ONE_SPLIT)
    with new_pipeline() as pipeline:
        link = tmp_path / "link"
        step = recordmill.Convert(photos, tmp_path / "dataset", reuse=[link], **ONE_SPLIT)
        found = []
        assert_that((pipeline | step).outcome, found.extend)
        link.symlink_to(tmp_path / "first")
    assert found[0].status == "published"
    assert "the images of 10 of 10 records were taken from earlier datasets" in found[0].notes
    assert first.outcome.plan_id == found[0].plan_id


def test_an_earlier_dataset_that_is_missing_is_an_outcome(photos, tmp_path):
    done = run(
        photos, tmp_path / "dataset", reuse=[tmp_path / "no"], on_failure="emit", **ONE_SPLIT
    )
    assert (done.outcome.status, done.outcome.exit_code, done.outcome.message) == (
        "failed",
        2,
        f"--reuse: {tmp_path}/no holds no finished dataset: name one, or remove the flag",
    )
    assert not (tmp_path / "dataset").exists()


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("{photos}", "out"), {"imagess": {}}, "did you mean images?"),
        (("{photos}", "out"), {"images": {"quality": 0}}, "images.quality"),
        (("{photos}/no", "out"), {}, "no does not exist"),
        (("{photos}",), {}, "output is missing: name the folder for the dataset"),
        (("{photos}", "out"), {"on_failure": "log"}, "on_failure is 'log': give raise or emit"),
        ((None, "out"), {}, "source.kind is not set, and inputs that a PCollection gives"),
    ],
)
def test_wrong_arguments_are_errors_at_once(photos, arguments, settings, message):
    given = [each and each.format(photos=photos) for each in arguments]
    with pytest.raises(RecordmillError) as raised:
        recordmill.Convert(*given, **settings)
    assert message in str(raised.value)


def pipeline_on_runner():
    return beam.Pipeline(runner=FnApiRunner())


@pytest.mark.runner
def test_two_conversions_fit_into_one_pipeline(photos, class_folders, tmp_path):
    birds = class_folders(tmp_path / "birds", {"owl": 3, "tit": 2})
    with pipeline_on_runner() as pipeline:
        pipeline | "Pets" >> recordmill.Convert(photos, tmp_path / "pets", **ONE_SPLIT)
        pipeline | "Birds" >> recordmill.Convert(birds, tmp_path / "owls", **ONE_SPLIT)
    assert recordmill.open_dataset(tmp_path / "pets").counts == {"train": 10}
    assert recordmill.open_dataset(tmp_path / "owls").counts == {"train": 5}


def test_two_conversions_into_one_output_are_refused(photos, tmp_path):
    pipeline = pipeline_on_runner()
    pipeline | "One" >> recordmill.Convert(photos, tmp_path / "dataset", **ONE_SPLIT)
    with pytest.raises(UsageError) as raised:
        pipeline | "Two" >> recordmill.Convert(photos, f"{tmp_path}/dataset/", seed=1, **ONE_SPLIT)
    assert str(raised.value) == (
        f"two conversions of this pipeline write to {tmp_path}/dataset: give each an output of its "
        "own"
    )


FOLDERS = {"source": {"kind": "class_folders"}, **ONE_SPLIT}


def keep(rows):
    _FOUND.extend(rows)


_FOUND = []


@pytest.fixture
def convert_paths(tmp_path):
    """`convert_paths(paths)`: converts a PCollection of them between two other steps."""

    def go(paths, **settings):
        _FOUND.clear()
        with pipeline_on_runner() as pipeline:
            named = pipeline | beam.Create(paths) | beam.Map(lambda path: str(path))
            convert = recordmill.Convert(output=tmp_path / "dataset", **{**FOLDERS, **settings})
            done = named | convert
            done.outcome | "Keep" >> beam.Map(lambda row: keep([row]))
            done.shards | "Paths" >> beam.Map(lambda shard: keep([shard.path]))
        outcome = next(each for each in _FOUND if not isinstance(each, str))
        return outcome, [each for each in _FOUND if isinstance(each, str)]

    return go


@pytest.mark.runner
def test_paths_of_a_pcollection_are_one_collection(photos, class_folders, tmp_path, convert_paths):
    birds = class_folders(tmp_path / "birds", {"owl": 3})
    outcome, shards = convert_paths([f"birds={birds}", f"pets={photos}"])
    assert outcome.numbers.ledger.written == 13
    assert shards == [f"{tmp_path}/dataset/train-00000-of-00001.tfrecord"]
    marker = json.loads((tmp_path / "dataset/recordmill.json").read_bytes())
    assert marker["run"]["inputs"] == {"birds": str(birds), "pets": str(photos)}
    assert recordmill.verify_dataset(tmp_path / "dataset").failed == 0


@pytest.mark.runner
def test_a_pattern_selects_files_below_its_folder(faulty, tmp_path, convert_paths, convert):
    outcome, _ = convert_paths([faulty / "*/*[0-4].jpg"])
    expected = convert(
        faulty,
        output=tmp_path / "ours",
        settings={
            "source.kind": "class_folders",
            "include": ["/*/*[0-4].jpg"],
            "splits.fractions": {"train": 1.0},
        },
    )
    assert to_json(outcome.numbers.ledger) == expected.line["ledger"]
    name = "train-00000-of-00001.tfrecord"
    assert (tmp_path / "dataset" / name).read_bytes() == (tmp_path / "ours" / name).read_bytes()


@pytest.mark.runner
@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "the PCollection of inputs is empty: give at least one path"),
        (["{}/no"], "{}/no does not exist"),
    ],
)
def test_inputs_that_cannot_be_used_are_an_outcome(photos, convert_paths, paths, message):
    outcome, shards = convert_paths([each.format(photos) for each in paths], on_failure="emit")
    assert message.format(photos) in outcome.message
    assert (outcome.status, outcome.exit_code, shards) == ("failed", 2, [])


def test_what_it_is_applied_to_must_fit_its_inputs(photos, tmp_path):
    pipeline = pipeline_on_runner()
    named = recordmill.Convert(photos, tmp_path / "one", **FOLDERS)
    with pytest.raises(UsageError, match="Convert has inputs already: apply it to the pipeline"):
        pipeline | beam.Create(["photos"]) | named
    unnamed = recordmill.Convert(output=tmp_path / "two", **FOLDERS)
    with pytest.raises(UsageError, match="Convert has no inputs: name them, or apply it"):
        pipeline | "Unnamed" >> unnamed


def test_an_unbounded_input_is_refused(tmp_path):
    pipeline = pipeline_on_runner()
    paths: PCollection = pipeline | test_stream.TestStream().add_elements(["photos"])
    with pytest.raises(UsageError) as raised:
        paths | recordmill.Convert(output=tmp_path / "dataset", **FOLDERS)
    assert str(raised.value) == (
        "Convert cannot read an unbounded PCollection, since a dataset is published once: apply it "
        "to a bounded one"
    )


@pytest.mark.runner
def test_windows_of_the_input_do_not_matter(photos, tmp_path):
    with pipeline_on_runner() as pipeline:
        paths = pipeline | beam.Create([f"a={photos}/cat", f"b={photos}/dog"])
        timed = paths | beam.Map(lambda path: TimestampedValue(path, ord(path[0])))
        windowed = timed | beam.WindowInto(FixedWindows(1))
        source = {"kind": "class_folders", "class_from": "none"}
        windowed | recordmill.Convert(output=tmp_path / "dataset", **{**FOLDERS, "source": source})
    assert recordmill.open_dataset(tmp_path / "dataset").counts == {"train": 10}


def test_its_places_are_display_data(photos, tmp_path):
    shown = recordmill.Convert(photos, tmp_path / "dataset").display_data()
    assert shown == {"inputs": str(photos), "output": f"{tmp_path}/dataset"}
