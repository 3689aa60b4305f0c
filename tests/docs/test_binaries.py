import json
import struct

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def pictures(count, shape):
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


def idx(array):
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


@pytest.fixture
def collections(tmp_path):
    """Small collections under the names that the page gives them."""
    for folder, files, labels in (
        ("cifar-10-batches-bin", {"data_batch_1.bin": 20, "test_batch.bin": 5}, 1),
        ("cifar-100-binary", {"train.bin": 20, "test.bin": 5}, 2),
    ):
        (tmp_path / folder).mkdir()
        for name, count in files.items():
            numbers = np.arange(count * labels, dtype=np.uint8).reshape(count, labels) % 10
            records = np.concatenate([numbers, pictures(count, (3072,))], axis=1)
            (tmp_path / folder / name).write_bytes(records.tobytes())
    names = "".join(f"class {number}\n" for number in range(10))
    (tmp_path / "cifar-10-batches-bin" / "batches.meta.txt").write_text(names)
    (tmp_path / "cifar-100-binary" / "coarse_label_names.txt").write_text(names)
    (tmp_path / "mnist").mkdir()
    arrays = {}
    for split, word, count in (("train", "train", 20), ("test", "t10k", 5)):
        images, labels = pictures(count, (28, 28)), np.arange(count, dtype=np.uint8) % 10
        (tmp_path / "mnist" / f"{word}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / "mnist" / f"{word}-labels-idx1-ubyte").write_bytes(idx(labels))
        arrays |= {f"x_{split}": images, f"y_{split}": labels}
    np.savez(tmp_path / "mnist.npz", **arrays)
    return tmp_path


def test_the_page_does_what_it_says(collections, run_page):
    pytest.importorskip("tensorflow")
    results = run_page("docs/binaries.md", collections)
    assert "(8, 32, 32, 3)" in [
        line.strip() for result in results for line in result.stdout.splitlines()
    ]

    def marker(name):
        return json.loads((collections / name / "recordmill.json").read_text(encoding="utf-8"))

    for name in ("cifar10", "cifar100", "mnist-dataset", "arrays-dataset", "cifar10-png"):
        assert {split: said["records"] for split, said in marker(name)["splits"].items()} == {
            "train": 20,
            "test": 5,
        }
        assert len(marker(name)["labels"]) == 10
    assert "fine_label" in marker("cifar100")["features"]
    assert marker("cifar10-png")["plan"]["recipe"]["images"]["store"] == "png"
    assert marker("mnist-dataset")["labels"] == marker("arrays-dataset")["labels"]
