import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.image_stack import list_array_images, locate_images, read_stacked_image
from recordmill.transforms.inputs.arrays.place import Place

FILE = ImageRef("in/x.npy", "/nowhere/x.npy", 0, "1")

shapes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))


@pytest.mark.parametrize("order", ["interleaved", "planar"])
@given(shape=shapes, channels=st.sampled_from([0, 1, 3]), header=st.integers(0, 9), offset=st.integers(0, 9))
def test_every_image_is_where_its_reference_says(tmp_path_factory, order, shape, channels, header, offset):
    images = np.arange(np.prod(shape) * max(channels, 1), dtype=np.int64).astype(np.uint8).reshape(*shape, -1)
    stored = images[..., 0] if not channels else images.transpose(0, 3, 1, 2) if order == "planar" else images
    path = tmp_path_factory.mktemp("stack") / "x"
    path.write_bytes(bytes(offset + header) + stored.tobytes() + b"more")
    place = Place(str(path), offset=offset, size=header + stored.size)
    stack = locate_images(place, header, stored.shape, order)
    labels = [f"class {index}" for index in range(len(images))]
    refs = list(list_array_images(ImageRef("x", str(path), 99), "x", stack, labels, "train"))
    assert [(ref.key, ref.label, ref.split) for ref in refs] == [
        (f"x#{index}", label, "train") for index, label in enumerate(labels)
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
            "5 is not an array of images: N x height x width, or N x height x width x channels (1 or 3)",
        ),
        ((), "interleaved", "a single value is not an array of images"),
        ((5, 3, 4, 4), "interleaved", "5 x 3 x 4 x 4 is not an array of images"),
        (
            (5, 4, 4, 3),
            "planar",
            "5 x 4 x 4 x 3 is not an array of images: N x height x width, or N x channels x height",
        ),
        ((0, 4, 4), "planar", "an array of 0 x 4 x 4 holds no image"),
        ((-5, 4, 4), "planar", "an array of -5 x 4 x 4 holds no image"),
    ],
)
def test_arrays_that_are_not_stacks_of_images(shape, order, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}"):
        locate_images(Place("x", size=1), 0, shape, order)


@pytest.mark.parametrize("size", [8 + 39, 8 + 41])
def test_a_file_of_another_length(size):
    with pytest.raises(Rejected) as caught:
        locate_images(Place("x", size=size), 8, (10, 2, 2), "interleaved")
    assert caught.value.reason == "wrong_length"
    assert caught.value.detail == f"8 of header and 10 x 2 x 2 are 48 bytes, and the file has {size}"


def test_labels_of_another_number():
    stack = locate_images(Place("x", size=40), 0, (10, 2, 2), "interleaved")
    with pytest.raises(Rejected, match=r"^bad_labels: there are 9 labels for 10 images$"):
        list(list_array_images(FILE, "x", stack, ["a"] * 9, ""))
    assert {ref.label for ref in list_array_images(FILE, "x", stack, None, "")} == {""}
