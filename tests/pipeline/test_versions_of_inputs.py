"""Versions and configurations of one collection in sibling folders are not added up unasked."""

import pytest
from first_hour import parquet
from golden_inputs import as_tfrecord
from paired_inputs import photo
from plan_in_process import content_of, plan
from printed_commands import printed_flags, write_files


def table(*labels):
    rows = [
        {"image": {"bytes": photo(number), "path": f"{number}.jpg"}, "label": label}
        for number, label in enumerate(labels)
    ]
    return parquet(rows, {})


def records(*labels):
    return as_tfrecord(
        *(
            {"image/encoded": photo(number), "image/class/text": label.encode()}
            for number, label in enumerate(labels)
        )
    )


def listed(folder, *labels):
    """A CSV file and its images."""
    rows = "".join(f"{number}.jpg,{label}\n" for number, label in enumerate(labels))
    images = {f"{folder}/{number}.jpg": photo((folder, number)) for number in range(len(labels))}
    return images | {f"{folder}/train.csv": f"filename,label\n{rows}".encode()}


PARQUET = "{}/{}-00000-of-00001.parquet"
RECORDS = "{}/{}-00000-of-00001.tfrecord"
SAID = (
    "{0}: {1} hold files of the same names for the same splits, such as {2}, as versions and "
    "configurations of one collection do: to convert one of them, use --input {0}/{3} or --input "
    "{0}/{4}; to add up all of them, add --set source.kind={5} "
)
STOPPED = {
    "Hugging Face's configurations": (
        {
            PARQUET.format(folder, split): table(*labels)
            for folder, labels in (("full", "ab"), ("binary", "xy"))
            for split in ("train", "test")
        },
        ("binary, full", "test-00000-of-00001.parquet", "binary", "full", "manifest"),
        [(4, ["x", "y"]), (4, ["a", "b"]), (8, ["a", "b", "x", "y"])],
    ),
    "one split in one of them": (
        {
            PARQUET.format("v1", "train"): table(*"ab"),
            PARQUET.format("v2", "train"): table(*"abc"),
            PARQUET.format("v2", "test"): table(*"ab"),
        },
        ("v1, v2", "train-00000-of-00001.parquet", "v1", "v2", "manifest"),
        [(2, ["a", "b"]), (5, ["a", "b", "c"]), (7, ["a", "b", "c"])],
    ),
    "sets of TFRecords": (
        {
            RECORDS.format(folder, split): records(*labels)
            for folder, labels in (("full", "ab"), ("small", "a"))
            for split in ("train", "test")
        },
        ("full, small", "test-00000-of-00001.tfrecord", "full", "small", "tfrecords"),
        [(4, ["a", "b"]), (2, ["a"]), (6, ["a", "b"])],
    ),
}


@pytest.mark.parametrize("name", STOPPED)
def test_versions_and_configurations_stop_and_every_command_ends_right(name, tmp_path):
    files, told, ends = STOPPED[name]
    write_files(tmp_path, files)
    first = plan(tmp_path)
    assert first.exit_code == 2
    assert first.message.startswith(SAID.format(tmp_path, *told))
    found = []
    for flags in printed_flags(first.message):
        values = [each for each in flags if each != "--set"]
        after = plan(values[1]) if flags[0] == "--input" else plan(tmp_path, *values)
        assert (after.exit_code, after.message) == (0, "")
        found.append((content_of(after)[0], content_of(after)[2]))
    assert found == ends


TOGETHER = {
    "a folder for each split": {
        f"{split}/0000.parquet": table(*"ab") for split in ("train", "test")
    },
    "one folder": {PARQUET.format("data", split): table(*"ab") for split in ("train", "test")},
    "partitions": {f"year={year}/part-0.parquet": table(*"ab") for year in (2019, 2020)},
    "splits apart": {
        PARQUET.format("first", "train"): table(*"ab"),
        PARQUET.format("second", "test"): table(*"ab"),
    },
    "TFRecords of two splits": {
        f"{split}/{split}-00000-of-00001.tfrecord": records(*"ab") for split in ("train", "test")
    },
    "parts of TFRecords": {
        f"{part}/images.tfrecord": records(*"ab") for part in ("first", "second")
    },
}


@pytest.mark.parametrize("name", TOGETHER)
def test_splits_and_parts_convert_unasked(name, tmp_path):
    write_files(tmp_path, TOGETHER[name])
    planned = plan(tmp_path)
    assert (planned.exit_code, planned.message) == (0, "")
    assert (content_of(planned)[0], content_of(planned)[2]) == (4, ["a", "b"])
