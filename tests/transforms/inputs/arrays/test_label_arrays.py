import re

import numpy as np
import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.label_arrays import read_label_array
from recordmill.transforms.inputs.arrays.place import Place


@pytest.fixture
def read(tmp_path):
    def run(array, count=3, change=lambda data: data):
        path = tmp_path / "y.npy"
        np.save(path, array, allow_pickle=True)
        path.write_bytes(change(path.read_bytes()))
        return read_label_array(Place(str(path), size=path.stat().st_size), "y_train", count)

    return run


@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "i2"])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_integers(read, dtype, shape):
    assert read(np.array([7, 0, 100], dtype).reshape(shape)) == [7, 0, 100]


def test_texts(read):
    assert read(np.array(["cat", "dög", ""])) == ["cat", "dög", ""]


@pytest.mark.parametrize(
    ("array", "detail"),
    [
        (np.zeros(3), "values of type float64 are not labels: store integers or texts"),
        (np.zeros(3, bool), "values of type bool are not labels"),
        (np.zeros((3, 10), int), "an array of 3 x 10 has no label for each of 3 images"),
        (np.zeros(4, int), "an array of 4 has no label for each of 3 images"),
        (np.int64(3), "an array of a single value has no label for each of 3 images"),
        (np.array(["x" * 2000] * 3), "texts of up to 8,000 bytes are too long for labels"),
        (np.array([{}, {}, {}]), "it holds pickled Python objects, which are never loaded"),
    ],
)
def test_arrays_that_are_not_labels(read, array, detail):
    with pytest.raises(Rejected, match=f"^bad_labels: y_train: {re.escape(detail)}"):
        read(array)


def test_a_file_that_was_cut(read):
    with pytest.raises(Rejected, match=r"^bad_labels: y_train: 128 of header and 3 labels are 152 bytes"):
        read(np.arange(3), change=lambda data: data[:-1])
