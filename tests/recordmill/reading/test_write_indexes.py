"""Index files for readers that seek, of datasets that were made without them."""

import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.split_index import write_indexes
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_they_are_those_that_a_conversion_writes(tmp_path, convert):
    indexed = convert(tmp_path, "--set", "index_files=true").rename(tmp_path / "indexed")
    plain = open_dataset(str(convert(tmp_path)))
    paths = write_indexes(plain, str(tmp_path / "own"))
    expected = {path.name: path.read_bytes() for path in (indexed / "sidecars").glob("*.idx")}
    assert len(expected) == 4
    assert {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()} == expected
    assert paths == [f"{tmp_path}/own/{shard.name}.idx" for shard in plain.shards]


def test_files_of_other_people(tmp_path, frame):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/a.tfrecord").write_bytes(frame(b"one") + frame(b"three"))
    (tmp_path / "b.tfrecord").write_bytes(frame(b""))
    write_indexes(open_dataset(str(tmp_path)), str(tmp_path / "own"))
    assert (tmp_path / "own/a/a.tfrecord.idx").read_text() == "0 19\n19 21\n"
    assert (tmp_path / "own/b.tfrecord.idx").read_text() == "0 16\n"


def test_nothing_is_replaced_and_nothing_damaged_is_indexed(tmp_path, frame):
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.idx"
    path.write_bytes(frame(b"one"))
    index.write_text("mine")
    with pytest.raises(LoadError) as caught:
        write_indexes(open_dataset(str(path)), str(tmp_path))
    assert (
        str(caught.value) == f"{index} already exists and is not an index of this split: rename it"
    )
    assert index.read_text() == "mine"
    index.unlink()
    path.write_bytes(frame(b"one") + b"?" * 20)
    with pytest.raises(LoadError) as caught:
        write_indexes(open_dataset(str(path)), str(tmp_path))
    assert (
        str(caught.value)
        == f"{path} is damaged, and has no index: recordmill verify lists the damage"
    )
    assert not index.exists()
