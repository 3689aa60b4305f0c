import json
import shutil

import pytest
from sidecar_lines import rejected

from recordmill.reading import inspect_dataset as find_record
from recordmill.reading.dataset import open_dataset
from recordmill.reading.example import expect
from recordmill.reading.inspect_dataset import find_key, find_source, read_record, read_records
from recordmill.schemas.errors import LoadError


@pytest.fixture(scope="module", params=["none", "gzip"])
def dataset(request, published):
    return open_dataset(str(published[request.param]))


def test_records_are_numbered_through_the_files_of_a_split(dataset):
    records = list(read_records(dataset))
    for split in dataset.splits:
        found = [each for each in records if each.shard.split == split]
        assert [each.number for each in found] == list(range(dataset.count(split)))
        for each in found:
            assert read_record(dataset, split, each.number) == each
            assert each.values()["image/filename"] == (
                "bytes",
                [each.row.key.rpartition("/")[2].encode()],
            )
            assert read_record(dataset, each.shard.name, each.place).data == each.data


def test_a_record_is_read_without_those_before_it(published, monkeypatch):
    dataset = open_dataset(str(published["none"]))
    every = list(read_records(dataset))
    monkeypatch.setattr(find_record, "RecordFile", None)
    for found in every:
        assert read_record(dataset, found.shard.split, found.number) == found
        assert read_record(dataset, found.shard.name, found.place).data == found.data
        assert find_key(dataset, found.row.key) == [found]


def test_a_key_that_is_not_there_is_one_sentence(dataset):
    with pytest.raises(LoadError, match=r"^no record of .+ comes from cat/none\.jpg$"):
        find_key(dataset, "cat/none.jpg")
    assert find_key(dataset, "owl/05.jpg") == find_source(dataset, "owl/05.jpg")


def test_the_record_of_a_file_by_name_and_by_bytes(dataset, tmp_path, draw):
    (found,) = find_source(dataset, "owl/05.jpg")
    assert found.row.key == "owl/05.jpg"
    assert found.image(expect(dataset)) == draw(5)
    (tmp_path / "renamed.jpg").write_bytes(draw(5))
    assert find_source(dataset, str(tmp_path / "renamed.jpg")) == [found]
    assert find_source(dataset, "/somewhere/photos/owl/05.jpg") == [found]


def test_in_other_files_images_are_compared(tmp_path, frame, example, draw):
    records = [example({"image/filename": b"a.jpg"}), example({"image/encoded": draw(1)}), b"\xff"]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(map(frame, records)))
    (tmp_path / "one.jpg").write_bytes(draw(1))
    stranger = open_dataset(str(tmp_path / "a.tfrecord"))
    with pytest.raises(LoadError, match=r"^no record of .* comes from photos/a\.jpg$"):
        find_source(stranger, "photos/a.jpg")
    assert [found.number for found in find_source(stranger, str(tmp_path / "one.jpg"))] == [1]


@pytest.mark.parametrize(
    ("split", "number", "sentence"),
    [
        ("val", 0, "there is no split and no file 'val' with records: the splits are train, test"),
        ("train", 24, "there is no record 24: this split has {count} records, numbered from 0"),
    ],
)
def test_an_unknown_split_or_record_number_is_an_error(dataset, split, number, sentence):
    with pytest.raises(LoadError) as caught:
        read_record(dataset, split, number)
    packed = "train has no intact record 24, counted from 0"
    assert str(caught.value) in (sentence.format(count=dataset.count("train")), packed)


def test_a_damaged_record_says_so(tmp_path, frame, example):
    content = frame(example(a=1))
    (tmp_path / "a.tfrecord").write_bytes(content + content[:-1] + b"\xff")
    with pytest.raises(LoadError, match=r"^record 1 of .*/a\.tfrecord, at byte .* is damaged: "):
        read_record(open_dataset(str(tmp_path / "a.tfrecord")), "a", 1)


def test_a_rejected_file_says_why(published, tmp_path):
    folder = shutil.copytree(published["none"], tmp_path / "dataset")
    rows = [rejected("cat/bad.jpg"), {**rejected("cat/small.jpg", None), "left_out": "too_small"}]
    with (folder / "sidecars" / "train-00000-of-00002.tfrecord.jsonl").open("a") as sidecar:
        sidecar.writelines(f"{json.dumps(row)}\n" for row in rows)
    with pytest.raises(LoadError, match=r"cat/bad\.jpg was rejected: empty \(nothing there\)"):
        find_source(open_dataset(str(folder)), "photos/cat/bad.jpg")
    with pytest.raises(
        LoadError, match=r"cat/small\.jpg was left out: too_small \(nothing there\)"
    ):
        find_source(open_dataset(str(folder)), "photos/cat/small.jpg")
    with pytest.raises(LoadError, match=r"no record of .* comes from nothing\.jpg"):
        find_source(open_dataset(str(folder)), "nothing.jpg")


def test_a_damaged_sidecar_is_one_sentence(published, tmp_path):
    folder = shutil.copytree(published["none"], tmp_path / "dataset")
    sidecar = folder / "sidecars" / "train-00000-of-00002.tfrecord.jsonl"
    sidecar.write_text('{"key"')
    dataset = open_dataset(str(folder))
    for look in (
        lambda: read_record(dataset, "train", 0),
        lambda: find_source(dataset, "owl/05.jpg"),
    ):
        with pytest.raises(LoadError, match=f"^the sidecar {sidecar} cannot be understood "):
            look()
