"""A dataset of three shards, each other way to know where its records are, and files without metadata."""

import hashlib
import json
import shutil
import struct

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recordmill"


@pytest.fixture(scope="session")
def converted(tmp_path_factory, convert):
    """24 pictures in train and test, as converted."""
    return convert(tmp_path_factory.mktemp("converted"), "--set", "shards.count=3")


@pytest.fixture
def folder(converted, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(converted, tmp_path / "dataset")


def rows_of(folder, split):
    """The rows of a split's records, each with its shard's name."""
    marker = json.loads((folder / "recordmill.json").read_bytes())
    for shard in marker["splits"][split]["shards"]:
        for line in (folder / shard["sidecar"]).read_text(encoding="utf-8").splitlines():
            if "rejected" not in (row := json.loads(line)):
                yield {**row, "shard": shard["name"]}


def record_of(folder, row):
    """A record, read as the sidecar says."""
    begin = row["offset"] + 12
    return (folder / row["shard"]).read_bytes()[begin : begin + row["length"]]


def index_as_documented(folder):
    """The index that docs/format.md describes."""
    marker = json.loads((folder / "recordmill.json").read_bytes())
    seed = marker["plan"]["recipe"]["seed"]
    shards, entries = b"", b""
    count = 0
    for split in sorted(marker["splits"]):
        for shard in marker["splits"][split]["shards"]:
            count += 1
            shards += struct.pack("<Q", shard["records"]) + bytes.fromhex(shard["sha256"])
        for row in rows_of(folder, split):
            hashed = hashlib.sha256(f"{seed}\0key\0{row['key']}".encode()).digest()[16:24]
            entries += struct.pack("<QQ", row["offset"], row["length"]) + hashed[::-1]
    head = struct.pack("<8sQQ", b"RMINDEX2", count, len(entries) // 24)
    return head + shards + entries


@pytest.fixture
def dataset_rows():
    return rows_of


@pytest.fixture
def stored_record():
    return record_of


@pytest.fixture
def documented_index():
    return index_as_documented


@pytest.fixture(params=["index", "sidecars", "frames"])
def known_by(request, folder):
    """The dataset's folder, where records are known by its index, its sidecars, or the frames alone."""
    if request.param != "index":
        (folder / "records.index").unlink()
    if request.param != "sidecars":
        shutil.move(folder / "sidecars", folder.parent / "sidecars")
    return folder
