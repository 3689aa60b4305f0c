import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.array_files import (
    ArrayHeader,
    ArrayPlace,
    check_images,
    interleave,
    list_stack,
    name_labels,
    read_label_array,
    read_stacked_image,
)


def header(shape, size=0):
    return ArrayHeader(shape, np.dtype(np.uint8), size)


shapes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))


@pytest.mark.parametrize("order", ["interleaved", "planar"])
@given(shape=shapes, channels=st.sampled_from([0, 1, 3]), offset=st.integers(0, 9))
def test_every_image_is_where_its_reference_says(tmp_path_factory, order, shape, channels, offset):
    images = (
        np.arange(np.prod(shape) * max(channels, 1), dtype=np.int64)
        .astype(np.uint8)
        .reshape(*shape, -1)
    )
    stored = (
        images[..., 0]
        if not channels
        else images.transpose(0, 3, 1, 2)
        if order == "planar"
        else images
    )
    path = tmp_path_factory.mktemp("stack") / "x"
    np.save(stream := io.BytesIO(), np.ascontiguousarray(stored))
    path.write_bytes(bytes(offset) + stream.getvalue() + b"more")
    place = ArrayPlace(str(path), offset=offset, size=len(stream.getvalue()))
    refs = list(list_stack(ImageRef("x", str(path), 99), "x", place, None, "train", order, {}))
    assert [(ref.key, ref.label, ref.split) for ref in refs] == [
        (f"x#{index}", "", "train") for index in range(len(images))
    ]
    for ref, image in zip(refs, images, strict=True):
        data, pixels = read_stacked_image(ref, 10**6, order)
        assert pixels.tolist() == image.tolist()
        assert len(data) == image.size == ref.length


@pytest.mark.parametrize(
    ("shape", "order", "detail"),
    [
        (
            (5,),
            "interleaved",
            "uint8, 5 is not an array of images: uint8, N x height x width, or N x height x width "
            "x channels (1 or 3)",
        ),
        ((), "interleaved", "uint8, a single value is not an array of images"),
        ((5, 3, 4, 4), "interleaved", "uint8, 5 x 3 x 4 x 4 is not an array of images"),
        (
            (5, 4, 4, 3),
            "planar",
            "uint8, 5 x 4 x 4 x 3 is not an array of images: uint8, N x height x width, or N x "
            "channels x height",
        ),
        ((0, 4, 4), "planar", "uint8, 0 x 4 x 4 is not an array of images"),
        ((-5, 4, 4), "planar", "uint8, -5 x 4 x 4 is not an array of images"),
    ],
)
def test_arrays_that_are_not_stacks_of_images(shape, order, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}"):
        check_images(header(shape), order)


@pytest.mark.parametrize("size", [8 + 39, 8 + 41])
def test_a_file_of_another_length(size):
    with pytest.raises(Rejected) as caught:
        ArrayPlace("x", size=size).check_size(header((10, 2, 2), 8), "10 x 2 x 2")
    assert caught.value.reason == "wrong_length"
    assert (
        caught.value.detail == f"8 of header and 10 x 2 x 2 are 48 bytes, and the file has {size}"
    )


def test_each_pixel_gets_its_channels():
    assert bytes(interleave(b"RSTGHIBCD", 3)) == b"RGBSHCTID"
    assert bytes(interleave(b"abc", 1)) == b"abc"


@given(st.sampled_from([1, 2, 3, 4]), st.binary(max_size=60))
def test_interleaving_is_a_transposed_copy(channels, data):
    planes = data[: len(data) // channels * channels]
    expected = np.frombuffer(planes, np.uint8).reshape(channels, -1).T.tobytes()
    assert bytes(interleave(planes, channels)) == expected


@pytest.fixture
def read(tmp_path):
    def run(array, count=3, change=lambda data: data):
        path = tmp_path / "y.npy"
        np.save(path, array, allow_pickle=True)
        path.write_bytes(change(path.read_bytes()))
        return read_label_array(
            ArrayPlace(str(path), size=path.stat().st_size, name="y_train"), count
        )

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
        (np.zeros(3), "float64, 3 is not an array of labels"),
        (np.zeros(3, bool), "bool, 3 is not an array of labels"),
        (np.zeros((3, 10), int), "int64, 3 x 10 is not an array of labels"),
        (np.zeros(4, int), "int64, 4 is not an array of labels"),
        (np.int64(3), "int64, a single value is not an array of labels"),
        (
            np.array(["x" * 2000] * 3),
            "<U2000, 3 is not an array of labels: an integer, or a text of at most 4,096 bytes, "
            "for",
        ),
        (np.array([{}, {}, {}]), "it holds pickled Python objects, which are never loaded"),
    ],
)
def test_arrays_that_are_not_labels(read, array, detail):
    with pytest.raises(Rejected, match=f"^bad_labels: y_train: {re.escape(detail)}"):
        read(array)


def test_a_file_that_was_cut(read):
    with pytest.raises(
        Rejected, match=r"^bad_labels: y_train: 128 of header and 3 labels are 152 bytes"
    ):
        read(np.arange(3), change=lambda data: data[:-1])


def test_numbers_become_names():
    assert name_labels([1, 0, 7], {"cat": 0, "dog": 1}) == ["dog", "cat", "7"]
    assert name_labels([2, 1, 2], {}) == ["2", "1", "2"]
    assert name_labels(["dog", "cat"], {}) == ["dog", "cat"]
    assert name_labels([], {}) == []


@given(st.lists(st.integers(-300, 300)))
def test_each_label_is_the_class_of_its_number(labels):
    assert [int(name) for name in name_labels(labels, {})] == labels
