"""A run that is followed from outside, by real runs that stop after each shard."""

import json
import shutil

import pytest

from recordmill.reading.follow_run import RunProgress, follow_run
from recordmill.schemas.errors import LoadError
from recordmill.transforms.shards.shard_writer import ShardWriter

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

FLAGS = ("--set=shards.count=2", "--set=splits.fractions={train: 0.7, test: 0.3}", "--overwrite")


@pytest.fixture
def after_each_shard(monkeypatch):
    """`after_each_shard(call)`: `call` is called whenever a shard is finished."""

    def set_up(call):
        finish = ShardWriter.finish

        def finish_and_call(writer, shard):
            report = finish(writer, shard)
            call()
            return report

        monkeypatch.setattr(ShardWriter, "finish", finish_and_call)

    return set_up


def refuse_to_wait():
    raise AssertionError("it should have ended")


def test_a_run_is_followed_in_its_version(tmp_path, convert, after_each_shard):
    output = convert(tmp_path, "--versions", "--set=seed=7")
    following, seen = follow_run(str(output), wait=lambda: None), []
    after_each_shard(lambda: seen.append(next(following)))
    assert convert(tmp_path, "--versions", *FLAGS) == output
    assert list(following) == []
    current = json.loads((output / "recordmill.json").read_bytes())["current"]
    assert [(each.plan, each.shards, each.shards_planned) for each in seen] == [
        (current, n, 4) for n in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("replaces", [False, True])
def test_each_finished_shard_is_seen_until_the_dataset_is_complete(
    tmp_path, convert, after_each_shard, replaces
):
    output = convert(tmp_path, "--set=seed=7") if replaces else tmp_path / "dataset"
    following, seen = follow_run(str(output), wait=lambda: None), []
    after_each_shard(lambda: seen.append(next(following)))
    assert convert(tmp_path, *FLAGS) == output
    assert list(following) == []
    marker = json.loads((output / "recordmill.json").read_bytes())
    total = RunProgress(
        marker["plan"]["id"],
        4,
        4,
        marker["ledger"]["written"],
        marker["ledger"]["written"],
        0,
        marker["output_bytes"],
    )
    assert [each.shards for each in seen] == [1, 2, 3, 4]
    assert [each.images for each in seen] == sorted(each.images for each in seen)
    assert seen[-1] == total


def test_a_finished_dataset_is_complete_at_once(tmp_path, convert):
    assert list(follow_run(str(convert(tmp_path)), refuse_to_wait)) == []


def test_the_end_of_a_run_without_a_dataset_is_an_error(tmp_path, convert, after_each_shard):
    output = tmp_path / "dataset"
    following = follow_run(str(output), wait=lambda: None)
    copies = []

    def copy():
        next(following)
        # Another shard's thread may rename its temporary files while they are copied.
        ignore = shutil.ignore_patterns("*.tmp")
        copies.append(shutil.copytree(output, tmp_path / f"copy{len(copies)}", ignore=ignore))

    after_each_shard(copy)
    convert(tmp_path, *FLAGS)
    following = follow_run(str(copies[0]), wait=lambda: shutil.rmtree(copies[0]))
    assert next(following).shards == 1
    with pytest.raises(
        LoadError,
        match=r"copy0 ended without a dataset: run the same command again to continue it$",
    ):
        next(following)
    for claim in copies[1].glob(".staging-*/claim-*"):
        claim.unlink()
    with pytest.raises(
        LoadError, match=r"^no run is at work in .*/copy1, which holds no finished dataset: "
    ):
        next(follow_run(str(copies[1]), refuse_to_wait))


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(
        LoadError,
        match=r"which holds no finished dataset: a run can be followed once it has listed",
    ):
        next(follow_run(str(tmp_path), refuse_to_wait))


def test_files_of_other_versions_are_passed_over(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    (staging / "claim-1.json").write_text('{"run": "1", "since": "2025"}')
    (staging / "claim-2.json").write_text("[]")
    (staging / "train-00000.done.json").write_text('{"report": {}}')
    (staging / "train-00001.done.json").write_text(
        '{"report": {"references": 3, "records": 2, "bytes": 2048}}'
    )
    progress = next(follow_run(str(tmp_path), refuse_to_wait))
    assert progress == RunProgress("p", 1, 0, 3, 0, 1, 2048)
    assert (
        str(RunProgress("p", 1, 4, 3, 12, 1, 2048))
        == "1 of 4 shards, 3 of 12 images (25%), 1 rejected, 2.0 KiB"
    )
