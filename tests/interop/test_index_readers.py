"""Readers that seek: NVIDIA DALI, and PyTorch through the package `tfrecord`."""

import io
from pathlib import Path

import numpy as np
import pytest

REASON = "needs an environment of its own: make test-interop"
torch = pytest.importorskip("torch", reason=REASON)
tfrecord_torch = pytest.importorskip("tfrecord.torch.dataset", reason=REASON)
tfrecord2idx = pytest.importorskip("tfrecord.tools.tfrecord2idx", reason=REASON)
dali = pytest.importorskip("nvidia.dali", reason=REASON)

COLLECTIONS = pytest.mark.parametrize("collection", ["sample", "cifar", "imagenet"])


def test_the_indexes_are_those_that_the_packages_own_tool_makes(dataset, tmp_path):
    for split in dataset.marker["splits"]:
        for file, index in zip(dataset.files(split), dataset.indexes(split), strict=True):
            tfrecord2idx.create_index(file, str(tmp_path / "own.idx"))
            assert Path(index).read_bytes() == (tmp_path / "own.idx").read_bytes()


@COLLECTIONS
def test_torch_workers_share_a_file_by_its_index(convert, collection):
    from PIL import Image

    dataset = convert(collection)
    rows = {row["key"].rpartition("/")[2]: row for row in dataset.rows("train")}
    description = {"image/encoded": "byte", "image/class/label": "int", "image/filename": "byte"}
    seen = []
    for file, index in zip(dataset.files("train"), dataset.indexes("train"), strict=True):
        reader = tfrecord_torch.TFRecordDataset(file, index, description)
        for example in torch.utils.data.DataLoader(reader, batch_size=None, num_workers=2):
            with Image.open(io.BytesIO(bytes(example["image/encoded"]))) as image:
                seen.append((int(example["image/class/label"][0]), image.size))
    expected = [(row["label"], (row["width"], row["height"])) for row in dataset.rows("train")]
    assert sorted(seen) == sorted(expected)
    assert rows


@COLLECTIONS
def test_dali_reads_and_decodes(convert, collection):
    dataset = convert(collection)
    rows = dataset.rows("train")

    @dali.pipeline_def(batch_size=len(rows), num_threads=2, device_id=None)
    def read():
        example = dali.fn.readers.tfrecord(
            path=dataset.files("train"),
            index_path=dataset.indexes("train"),
            features={
                "image/encoded": dali.tfrecord.FixedLenFeature((), dali.tfrecord.string, ""),
                "image/class/label": dali.tfrecord.FixedLenFeature([1], dali.tfrecord.int64, -1),
            },
            name="reader",
        )
        return dali.fn.decoders.image(example["image/encoded"], device="cpu"), example[
            "image/class/label"
        ]

    pipeline = read()
    pipeline.build()
    assert pipeline.epoch_size("reader") == len(rows)
    images, labels = pipeline.run()
    assert np.asarray(labels.as_array()).ravel().tolist() == [row["label"] for row in rows]
    assert [tuple(image.shape()) for image in images] == [
        (row["height"], row["width"], 3) for row in rows
    ]
