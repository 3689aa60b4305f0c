import pytest

from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    DUPLICATES,
    LABELS,
    MARKER,
    REJECTED,
    REPORT,
    beam_name,
    counts_from_one,
    fill_pattern,
    index_name,
    is_of_saved_model,
    looks_like_shard,
    parse_beam_name,
    shard_name,
    sidecar_name,
    staging_names,
    stem_of_shard,
)


def test_a_dataset_has_files_of_fixed_names():
    assert (MARKER, LABELS, REJECTED, CONFIGURATION) == (
        "recordmill.json",
        "labels.txt",
        "rejected.jsonl",
        "config.yaml",
    )
    assert (DUPLICATES, REPORT) == ("duplicates.jsonl", "report.html")


def test_files_of_a_shard_are_named_after_it():
    assert sidecar_name("train-0.tfrecord") == "sidecars/train-0.tfrecord.jsonl"
    assert index_name("train-0.tfrecord") == "sidecars/train-0.tfrecord.idx"
    assert shard_name("train", 7, "done.json") == "train-00007.done.json"


def test_staging_folders_are_known_by_their_names():
    assert staging_names(["a", ".staging-b", "staging-c"]) == [".staging-b"]


@pytest.mark.parametrize("name", convention_names())
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_conventions_shards_look_like_some(name, ending):
    pattern = load_convention(name).shard_name
    filled = fill_pattern(pattern, name="pets", split="train", index=3, count=12, records=5)
    assert looks_like_shard(filled + ending)


@pytest.mark.parametrize(
    "name",
    [
        "00-192x192-798.tfrec",
        "a.TFRecords",
        "a.tf_record",
        "train.record",
        "shard_0",
        "train.tfrecord-00000-of-00001",
        "01of02",
    ],
)
def test_the_names_that_people_use_do(name):
    assert looks_like_shard(name)


@pytest.mark.parametrize(
    "name", ["records", "a.recording", "tfrecords", "shard_x", "hazard_7", "shards_1", "7.jpg"]
)
def test_other_names_do_not(name):
    assert not looks_like_shard(name)


def test_variables_of_a_saved_model_are_known_by_their_names():
    assert is_of_saved_model("variables.data-00000-of-00001")
    assert not is_of_saved_model("train-00000-of-00001")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("train-00000-of-00005.tfrecord.gz", "train"),
        ("pets-train.tfrecord-00001-of-00002", "pets-train"),
        ("test_01of02.tfrec", "test"),
        ("00000-of-00005", ""),
    ],
)
def test_the_stem_of_a_shard_has_neither_number_nor_suffix(name, stem):
    assert stem_of_shard(name) == stem


@pytest.mark.parametrize(
    ("name", "numbers", "count", "from_one"),
    [
        ("a-00001-of-00003", {0, 1}, 3, False),
        ("a-00003-of-00003", {3}, 3, True),
        ("a-00001-of-00003", {1}, 3, False),
        ("a_01of03", {1}, 3, True),
        ("a_00of03", {0}, 3, False),
    ],
)
def test_sets_are_numbered_from_0_or_from_1(name, numbers, count, from_one):
    assert counts_from_one(name, numbers, count) is from_one


def test_files_of_beam_are_named_by_split_index_and_count():
    name = beam_name("my-train", 3, 10)
    assert name == "my-train-00003-of-00010.tfrecord"
    assert parse_beam_name(name) == ("my-train", 3)
