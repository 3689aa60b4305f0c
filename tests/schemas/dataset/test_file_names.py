from recordmill.schemas.dataset.file_names import (
    CONFIGURATION,
    DUPLICATES,
    LABELS,
    MARKER,
    REJECTED,
    REPORT,
    index_name,
    shard_name,
    sidecar_name,
    staging_names,
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
