import gzip
import subprocess
import sys
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordmill
from recordmill.reading.example import examples_as_numpy
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Example, Feature, encode_example
from recordmill.storage.tfrecord_file import RecordSink

OBSERVATION = (
    Feature("feature0", "int64", "feature0", ""),
    Feature("feature1", "int64", "feature1", ""),
    Feature("feature2", "bytes", "feature2", ""),
    Feature("feature3", "float", "feature3", ""),
)
ROW = {"feature0": 0, "feature1": 4, "feature2": b"goat", "feature3": 0.9876}
VALUES = st.one_of(
    st.tuples(st.just("bytes_list"), st.lists(st.binary(max_size=5), max_size=4)),
    st.tuples(st.just("int64_list"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)),
    st.tuples(st.just("float_list"), st.lists(st.floats(width=32, allow_nan=False), max_size=4)),
)


def write(path, records, compression="none"):
    sink = RecordSink(str(path), compression)
    for record in records:
        sink.write(record)
    sink.close()
    return str(path)


def plain(example):
    return {key: (value.dtype, value.tolist()) for key, value in example.items()}


def test_the_tutorials_example_becomes_a_dict_of_numpy_arrays(tmp_path):
    path = write(tmp_path / "test.tfrecord", [encode_example(OBSERVATION, ROW)] * 3)
    examples = list(examples_as_numpy(path))
    assert len(examples) == 3
    assert {key: (value.dtype, value.shape) for key, value in examples[0].items()} == {
        "feature0": (np.int64, (1,)),
        "feature1": (np.int64, (1,)),
        "feature2": (object, (1,)),
        "feature3": (np.float32, (1,)),
    }
    assert examples[2]["feature2"].tolist() == [b"goat"]
    assert examples[2]["feature3"] == np.float32(0.9876)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_every_value_comes_back(tmp_path_factory, features):
    example = Example()
    for key, (kind, values) in features.items():
        entry = getattr(example.features.feature[key], kind)
        entry.SetInParent()
        entry.value.extend(values)
    path = write(tmp_path_factory.mktemp("any") / "x.tfrecord", [example.SerializeToString()])
    (found,) = examples_as_numpy(path)
    assert {key: value.tolist() for key, value in found.items()} == {
        key: values for key, (_, values) in features.items()
    }


def test_bytes_keep_zeros_at_their_end_and_keys_without_a_value_are_empty(tmp_path):
    example = Example()
    example.features.feature["a"].bytes_list.value.extend([b"x\0\0", b"", b"\0"])
    example.features.feature["b"].SetInParent()
    (found,) = examples_as_numpy(write(tmp_path / "x", [example.SerializeToString()]))
    assert plain(found) == {"a": (object, [b"x\0\0", b"", b"\0"]), "b": (object, [])}


def test_gzip_is_recognized_by_its_bytes_not_by_its_name(tmp_path):
    records = [encode_example(OBSERVATION, {**ROW, "feature1": n}) for n in range(5)]
    packed = write(tmp_path / "packed.tfrecord", records, "gzip")
    misnamed = write(tmp_path / "plain.gz", records)
    for path in (packed, misnamed):
        assert [int(example["feature1"][0]) for example in examples_as_numpy(path)] == [
            0,
            1,
            2,
            3,
            4,
        ]


def test_a_first_record_whose_length_looks_like_gzip_is_read(tmp_path):
    feature = Feature("a", "bytes", "a", "")
    around = len(encode_example([feature], {"a": bytes(0x88B00)})) - 0x88B00
    path = write(tmp_path / "x", [encode_example([feature], {"a": bytes(0x88B1F - around)})])
    with open(path, "rb") as file:
        assert file.read(3) == b"\x1f\x8b\x08"
    (found,) = examples_as_numpy(path)
    assert found["a"].tolist() == [bytes(0x88B1F - around)]


def test_files_of_tensorflows_own_writer_are_read_file_after_file(tmp_path):
    tf = pytest.importorskip("tensorflow")
    for shard, options in enumerate(["", "GZIP"]):
        with tf.io.TFRecordWriter(str(tmp_path / f"train-0000{shard}-of-00002"), options) as writer:
            for n in range(4):
                values = tf.train.Int64List(value=[10 * shard + n] * n)
                features = tf.train.Features(feature={"n": tf.train.Feature(int64_list=values)})
                writer.write(tf.train.Example(features=features).SerializeToString())
    for path in (tmp_path, tmp_path / "train-*"):
        found = [example["n"].tolist() for example in examples_as_numpy(str(path))]
        assert found == [[n] * (n % 10) for n in (0, 1, 2, 3, 10, 11, 12, 13)]


def test_damage_names_the_file_and_the_record(tmp_path):
    path = write(tmp_path / "x.tfrecord", [encode_example(OBSERVATION, ROW)] * 3)
    content = bytearray((tmp_path / "x.tfrecord").read_bytes())
    content[-6] ^= 1
    (tmp_path / "x.tfrecord").write_bytes(content)
    examples = examples_as_numpy(path)
    assert [plain(next(examples)) for _ in range(2)]
    with pytest.raises(
        LoadError,
        match=rf"^{path} is damaged: record 2 at byte \d+: the data do not match their checksum",
    ):
        next(examples)


def test_a_cut_gzip_file_is_named(tmp_path):
    path = write(tmp_path / "x.gz", [encode_example(OBSERVATION, ROW)] * 300, "gzip")
    content = (tmp_path / "x.gz").read_bytes()
    assert gzip.decompress(content)
    (tmp_path / "x.gz").write_bytes(content[:-9])
    with pytest.raises(LoadError, match=f"^{path} is damaged: "):
        list(examples_as_numpy(path))


def test_records_that_are_not_examples_are_named(tmp_path):
    path = write(tmp_path / "x", [b"", b"\xff\xff"])
    with pytest.raises(LoadError, match=f"^{path}: record 1 is not "):
        list(examples_as_numpy(path))


def test_nothing_to_read_is_an_error_at_once(tmp_path):
    with pytest.raises(LoadError, match="does not exist or is empty: name a"):
        examples_as_numpy(str(tmp_path / "x"))


def test_a_split_is_asked_of_anybodys_files(tmp_path):
    for split, number in (("train", 1), ("test", 2)):
        write(
            tmp_path / f"{split}-00000-of-00001",
            [encode_example(OBSERVATION, {**ROW, "feature1": number})],
        )
    assert [
        int(example["feature1"][0]) for example in examples_as_numpy(str(tmp_path), "test")
    ] == [2]
    with pytest.raises(
        LoadError, match=r"split is 'val', and .* has test, train: name one of them"
    ):
        examples_as_numpy(str(tmp_path), "val")


def test_order_is_that_of_the_file(tmp_path):
    records = [encode_example(OBSERVATION, {**ROW, "feature1": n}) for n in range(1000)]
    numbers = [
        int(example["feature1"][0]) for example in examples_as_numpy(write(tmp_path / "x", records))
    ]
    assert all(after == before + 1 for before, after in pairwise(numbers))
    assert len(numbers) == 1000


def test_seed_3_no_tensorflow_is_imported(tmp_path):
    path = write(tmp_path / "x.tfrecord", [encode_example(OBSERVATION, ROW)] * 2)
    script = "import sys, recordmill; n = len(list(recordmill.examples_as_numpy(sys.argv[1])))"
    script += "; sys.exit(0 if n == 2 and 'tensorflow' not in sys.modules else 1)"
    assert subprocess.run([sys.executable, "-c", script, path], cwd=tmp_path).returncode == 0


def test_several_splits_of_a_dataset(published):
    folder = str(published["none"])

    def keys(split):
        return [example["image/key/sha256"][0] for example in examples_as_numpy(folder, split)]

    assert keys(["test", "train"]) == keys("test+train") == keys("test") + keys("train")
    assert len(set(keys("train+test"))) == 24


def test_zlib_files_are_read(tmp_path, frame, example):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(zlib.compress(frame(example(a=1)) + frame(example(a=2))))
    assert [each["a"].tolist() for each in examples_as_numpy(path)] == [[1], [2]]
    with pytest.raises(LoadError, match=r"a\.tfrecord is compressed, and a record cannot be found"):
        len(recordmill.open(path, form="numpy")["a"])
