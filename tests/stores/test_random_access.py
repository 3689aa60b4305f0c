"""Any record of a dataset in a store, in few requests, and in forked processes."""

import json
import os

import pytest

import recordmill

pytestmark = pytest.mark.slow


def reads_of(folder, before):
    """The requests that read a range of a shard."""
    return [
        path
        for _, path in folder.served.requests()[before:]
        if ".tfrecord" in path and "sidecars" not in path
    ]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_records_by_ranges(folder):
    assert folder.convert("--overwrite").returncode == 0
    files = folder.files()
    marker = json.loads(files["recordmill.json"])
    expected, keys = [], []
    for shard in marker["splits"]["train"]["shards"]:
        rows = [json.loads(line) for line in files[shard["sidecar"]].splitlines()]
        for row in (row for row in rows if "rejected" not in row):
            begin = row["offset"] + 12
            expected.append(files[shard["name"]][begin : begin + row["length"]])
            keys.append(row["key"])
    train = recordmill.open(f"{folder.url}dataset", form="raw")["train"]
    before = len(folder.served.requests())
    assert train[3] == expected[3]
    assert train.by_key(keys[-1]) == expected[-1]
    assert len(reads_of(folder, before)) == 2
    before = len(folder.served.requests())
    assert train[:] == expected
    assert len(reads_of(folder, before)) == len(marker["splits"]["train"]["shards"])
    assert list(train) == expected
    child = os.fork()
    if child == 0:
        os._exit(0 if train[5] == expected[5] else 1)
    assert train[6] == expected[6]
    assert os.waitpid(child, 0)[1] == 0
