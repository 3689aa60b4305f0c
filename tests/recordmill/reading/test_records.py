"""Any record at once, whoever wrote the files and wherever they are."""

import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest

import recordmill
from recordmill import storage
from recordmill.reading import records as module
from recordmill.reading.records import Records
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def train(converted, dataset_rows, stored_record):
    """The records of train, and what they are by their sidecars."""
    raw = recordmill.open(converted, form="raw")["train"]
    return raw, [stored_record(converted, row) for row in dataset_rows(converted, "train")]


def test_numbers_slices_length_and_iteration(train):
    raw, expected = train
    count = len(expected)
    assert (len(raw), list(raw)) == (count, expected)
    assert [raw[number] for number in range(-count, count)] == expected * 2
    assert raw[np.int64(2)] == expected[2]
    for chosen in (
        slice(None),
        slice(2, 9),
        slice(-3, None),
        slice(None, None, -1),
        slice(1, -1, 3),
        slice(5, 2),
    ):
        assert raw[chosen] == expected[chosen]
    numbers = [5, 3, 5, -1, 0, 4]
    assert raw.__getitems__(numbers) == [expected[number] for number in numbers]


def test_however_the_index_is_known(known_by, train, dataset_rows):
    _, expected = train
    opened = recordmill.open(known_by, form="raw")
    assert list(opened) == ["train", "test"]
    assert len(opened) == 2
    assert list(opened["train"]) == expected
    assert list(opened["train+test"]) == [*expected, *opened["test"]]


def test_opened_records_have_the_datasets_marker(converted):
    assert recordmill.open(converted).marker == recordmill.open_dataset(converted).marker


def test_a_split_that_is_not_there_is_not_in_the_dataset(converted):
    opened = recordmill.open(converted)
    assert ("train" in opened, "validation" in opened) == (True, False)


@pytest.mark.parametrize("number", [0, -1, np.int64(3), slice(2), None])
def test_a_number_is_not_a_split_and_the_error_says_where_records_are(converted, number):
    with pytest.raises(TypeError) as caught:
        recordmill.open(converted)[number]
    assert str(caught.value) == (
        f"a dataset has splits, and {number!r} is not the name of one: records are in a split, as "
        "in recordmill.open(...)['train'][0]; the splits are train, test"
    )


def test_a_file_of_a_dataset_has_no_labels_and_the_error_says_to_name_the_folder(converted):
    path = str(next(converted.glob("test-*")))
    assert len(recordmill.open(path, form="raw")["test"]) > 0
    with pytest.raises(LoadError) as caught:
        recordmill.open(path)["test"]
    what = (
        f"some files of {converted} are named, which its recordmill.json describes: name the folder"
    )
    assert str(caught.value) == what


def test_features_of_files_without_metadata_cannot_be_chosen(tmp_path, frame, example):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(example({"name": [b"x"]})))
    assert [*recordmill.open(str(path), features="all")["a"][0]] == ["name"]
    with pytest.raises(LoadError) as caught:
        recordmill.open(str(path), features=["name"])["a"]
    assert str(caught.value) == (
        "features is ['name']: it is only supported with form='image' and a dataset's folder; "
        "other forms give all features"
    )


def test_a_record_by_its_key(converted, dataset_rows, stored_record):
    opened = recordmill.open(converted, form="raw")
    for split in ("train", "test", "test+train"):
        for row in (row for name in split.split("+") for row in dataset_rows(converted, name)):
            assert opened[split].by_key(row["key"]) == stored_record(converted, row)
    with pytest.raises(LoadError) as caught:
        opened["train"].by_key("cat/none.jpg")
    assert str(caught.value) == (
        f"no record of this split in {converted} comes from 'cat/none.jpg': name a key of its "
        "sidecars"
    )


def test_images_and_labels(converted, dataset_rows):
    images = recordmill.open(converted)["train"]
    for (image, label), row in zip(images, dataset_rows(converted, "train"), strict=True):
        assert (image.shape, image.dtype) == ((row["height"], row["width"], 3), np.uint8)
        assert (label, label.dtype) == (row["label"], np.int64)
    halves = recordmill.open(converted, transform=lambda pair: (pair[0][::2, ::2], int(pair[1])))[
        "train"
    ]
    assert np.array_equal(halves[3][0], images[3][0][::2, ::2])


@pytest.mark.parametrize("number", [24, -25, 10**30])
def test_a_number_out_of_range_is_one_sentence(converted, number):
    every = recordmill.open(converted)["train+test"]
    for read in (every.__getitem__, lambda number: every.__getitems__([0, number])):
        with pytest.raises(LoadError) as caught:
            read(number)
        assert (
            str(caught.value)
            == f"there is no record {number:,}: this split has 24 records, numbered from 0"
        )


def test_any_bit_of_a_shard_may_be_wrong(tmp_path, frame):
    records = [b"first", b"", b"the last"]
    content = b"".join(map(frame, records))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    opened = recordmill.open(path, form="raw")["a"]
    starts = [0, 21, 37, len(content)]
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        hit = next(number for number in range(3) if at < starts[number + 1])
        for number, record in enumerate(records):
            if number != hit:
                assert opened[number] == record
        for read in (lambda: opened[hit], lambda: opened[:]):  # noqa: B023  # called at once
            with pytest.raises(LoadError) as caught:
                read()
            assert str(caught.value) == (
                f"record {hit} of {path}, at byte {starts[hit]}, is damaged: its frame, or a "
                "checksum, does not match"
            )


def test_damaged_records_are_left_out_and_counted_if_asked(folder, train, dataset_rows):
    _, expected = train
    rows = list(dataset_rows(folder, "train"))
    for row in (rows[2], rows[7]):
        with (folder / row["shard"]).open("r+b") as file:
            file.seek(row["offset"] + 40)
            file.write(b"????")
    opened = recordmill.open(folder, form="raw", damaged="skip")["train"]
    whole = [record for number, record in enumerate(expected) if number not in (2, 7)]
    assert list(opened) == whole
    assert [sentence.partition(", at byte ")[0] for sentence in opened.skipped] == [
        f"record {[each for each in rows if each['shard'] == row['shard']].index(row)} of "
        f"{folder / row['shard']}"
        for row in (rows[2], rows[7])
    ]
    assert opened.__getitems__([7, 1, 2]) == [expected[1]]
    assert len(opened.skipped) == 4
    with pytest.raises(LoadError):
        opened[2]


def test_pickled_records_are_transformed_and_left_out_as_before(tmp_path, frame):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"one") + b"?" * 30 + frame(b"two"))
    opened = recordmill.open(path, form="raw", transform=bytes.upper, damaged="skip")["a"]
    other = pickle.loads(pickle.dumps(opened))
    assert list(other) == [b"ONE", b"TWO"]
    assert (len(other.skipped), opened.skipped) == (1, [])


def test_what_cannot_be_parsed_or_decoded_is_damaged(tmp_path, frame, example):
    (tmp_path / "a.tfrecord").write_bytes(
        frame(b"\xff") + frame(example({"image/encoded": b"\xff\xd8\xff\xe0"}))
    )
    for form, number, why in (
        ("numpy", 0, "the data cannot be parsed as a tf.train.Example"),
        ("image", 1, "truncated: JPEG"),
    ):
        with pytest.raises(
            LoadError, match=rf"record {number} of .+, at byte .+, is damaged: .*{why}"
        ):
            recordmill.open(tmp_path / "a.tfrecord", form=form)["a"][number]


def test_files_of_other_people_whose_parts_are_damaged(tmp_path, frame):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"one") + b"?" * 30 + frame(b"two") + frame(b"three")[:-2])
    opened = recordmill.open(path, form="raw", damaged="skip")["a"]
    assert list(opened) == [b"one", b"two"]
    assert len(opened.skipped) == 2


def test_a_shard_that_is_missing_or_of_another_size_is_one_sentence(folder, dataset_rows):
    row = next(dataset_rows(folder, "train"))
    path = folder / row["shard"]
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(LoadError) as caught:
        recordmill.open(folder)["train"][0]
    assert (
        str(caught.value)
        == f"the shard {path} has {size + 4:,} bytes where {size:,} were written: restore it"
    )
    path.unlink()
    with pytest.raises(LoadError) as caught:
        recordmill.open(folder)["train"][0]
    assert (
        str(caught.value)
        == f"the shard {path} is missing: restore it, or convert the dataset again"
    )


def read_all(opened, answers):
    answers.put(list(opened))


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_other_processes_read_at_the_same_time(train, start):
    raw, expected = train
    assert raw[0] == expected[0]  # a file is open
    context = multiprocessing.get_context(start)
    answers = context.Queue()
    processes = [context.Process(target=read_all, args=(raw, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    assert list(raw) == expected
    assert [answers.get(timeout=60) for _ in processes] == [expected, expected]
    for process in processes:
        process.join()


def test_pickled_records_read_the_same(train):
    raw, expected = train
    assert raw[0] == expected[0]
    assert list(pickle.loads(pickle.dumps(raw))) == expected


def test_threads_read_at_the_same_time_while_files_are_closed(train, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OPEN", 1)
    raw, expected = train
    found = {}

    def read(thread):
        numbers = np.random.default_rng(thread).integers(0, len(expected), 500).tolist()
        found[thread] = all(raw[number] == expected[number] for number in numbers)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_files_are_closed(train):
    raw, _ = train
    before = len(os.listdir("/proc/self/fd"))
    list(raw)
    assert len(os.listdir("/proc/self/fd")) > before
    del raw._files
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_store_is_asked_once_for_neighbors(train, monkeypatch):
    raw, expected = train
    asked = []

    def read_range(path, offset, length):
        asked.append((path, offset, length))
        with open(path.removeprefix("gs://"), "rb") as file:
            file.seek(offset)
            return file.read(length)

    monkeypatch.setattr(storage, "is_local", lambda path: False)
    monkeypatch.setattr(storage, "read_range", read_range)
    numbers = [0, 1, 2, len(raw) - 1]
    assert raw.__getitems__(numbers) == [expected[number] for number in numbers]
    entries = raw.places.entries
    assert sorted(length for _, _, length in asked) == sorted(
        [int(entries[:3, 1].sum()) + 3 * 16, int(entries[-1, 1]) + 16]
    )
    assert raw[5] == expected[5]
    asked.clear()
    assert list(raw) == expected
    assert len(asked) == len(raw.places.shards)


def test_far_records_are_read_apart(train, monkeypatch):
    raw, expected = train
    monkeypatch.setattr(module, "_GAP_BYTES", 0)
    assert [piece for piece in raw._join([0, 1, 3])] == [[0, 1], [3]]
    monkeypatch.setattr(module, "_MOST_BYTES", 0)
    assert [piece for piece in raw._join([0, 1])] == [[0], [1]]
    assert list(raw) == expected


def test_opening_reads_the_index_alone(folder, monkeypatch):
    asked = []
    read_range = storage.read_range
    monkeypatch.setattr(
        storage, "read_range", lambda path, *range: asked.append(path) or read_range(path, *range)
    )
    opened = recordmill.open(folder, form="raw")["train"]
    assert isinstance(opened, Records)
    assert {os.path.basename(path) for path in asked} == {"recordmill.json", "records.index"}
    assert not opened._files
