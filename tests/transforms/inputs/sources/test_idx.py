import gzip
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.transforms.inputs.sources.idx import Idx
from recordmill.transforms.inputs.sources.source import list_file

IMAGES = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
LABELS = np.array([9, 10, 0, 10, 2], np.uint8)


def idx(array):
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


DEFAULT, IDX_IMAGES, IDX_LABELS = Idx(), idx(IMAGES), idx(LABELS)


@pytest.fixture
def refer(tmp_path):
    """The references of a file of images, its labels beside it."""

    def run(
        images=IDX_IMAGES,
        labels=IDX_LABELS,
        name="train-images-idx3-ubyte",
        beside=None,
        source=DEFAULT,
    ):
        for file, content in ((name, images), (beside or "train-labels-idx1-ubyte", labels)):
            if content is not None:
                (tmp_path / file).write_bytes(
                    gzip.compress(content) if file.endswith(".gz") else content
                )
        path = tmp_path / name
        file = ImageRef(f"in/{name}", str(path), path.stat().st_size, "7")
        return file, list(list_file(source, name, file))

    return run


@pytest.mark.parametrize("images_end", ["", ".gz"])
@pytest.mark.parametrize("labels_end", ["", ".gz"])
@pytest.mark.parametrize("dot", ["-", "."])
def test_images_and_labels_in_their_order_plain_or_gzipped(refer, images_end, labels_end, dot):
    name, beside = (
        f"t10k-images{dot}idx3-ubyte{images_end}",
        f"t10k-labels{dot}idx1-ubyte{labels_end}",
    )
    file, (announced, *refs) = refer(name=name, beside=beside)
    assert announced == ClassNames.of(file, {"0": 0, "2": 2, "9": 9, "10": 10})
    packing = "gzip" if images_end else ""
    assert refs == [
        replace(
            file,
            key=f"in/{name}#{index}",
            label=label,
            split="t10k",
            packing=packing,
            offset=16 + 12 * index,
            length=12,
            features='{"array_shape":[4,3]}',
        )
        for index, label in enumerate(["9", "10", "0", "10", "2"])
    ]
    for ref, image in zip(refs, IMAGES, strict=True):
        content = Idx().read(ref, 100)
        assert content.image.tolist() == image[:, :, None].tolist()
        assert (content.data, content.label) == (image.tobytes(), None)


@given(
    images=arrays(
        np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.just(3))
    )
)
def test_colors_are_a_fourth_dimension(tmp_path_factory, images):
    path = tmp_path_factory.mktemp("idx") / "all-images-idx4-ubyte"
    path.write_bytes(idx(images))
    source = Idx(labels="")
    refs = list_file(source, path.name, ImageRef(path.name, str(path), path.stat().st_size))
    assert [source.read(ref, 1000).image.tolist() for ref in refs] == images.tolist()


def test_images_stored_column_by_column(refer):
    source = Idx(transposed=True)
    _, (_, *refs) = refer(source=source)
    assert [source.read(ref, 100).image[:, :, 0].tolist() for ref in refs] == IMAGES.transpose(
        0, 2, 1
    ).tolist()


def test_classes_with_names(refer):
    names = tuple(f"class {number}" for number in range(10))
    source = Idx(class_names=names)
    _, refs = refer(source=source)
    assert [ref.label for ref in refs] == ["class 9", "10", "class 0", "10", "class 2"]
    assert list(source.classes()) == list(names)


def test_images_without_labels(refer):
    _, refs = refer(labels=None, source=Idx(labels=""))
    assert [ref.label for ref in refs] == [""] * 5


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("train-labels-idx1-ubyte", "labels"),
        ("train-labels.idx1-ubyte.gz", "labels"),
        ("readme.txt", "not_included"),
        ("train-images-idx3-ubyte.bak", "not_included"),
    ],
)
def test_other_files_are_ignored(name, reason):
    file = ImageRef(name, f"/nowhere/{name}", 1)
    assert list(list_file(Idx(), name, file)) == [file.notice("ignored", reason)]


BAD_LABELS = "train-labels-idx1-ubyte"
PIXELS = "height x width"
NONE = (
    "is not an array of labels: an integer, or a text of at most 4,096 bytes, for each of 5 images"
)


@pytest.mark.parametrize(
    ("given", "reason", "detail"),
    [
        (
            {"images": b"\x89PNG"},
            "bad_array",
            "it does not begin like a .npy file, or an IDX file of unsigned bytes: 89 50 4e 47",
        ),
        (
            {"images": idx(LABELS)},
            "bad_array",
            f"uint8, 5 is not an array of images: uint8, N x {PIXELS}, or N x {PIXELS} x channels "
            "(1 or 3)",
        ),
        (
            {"images": idx(IMAGES[:0])},
            "bad_array",
            f"uint8, 0 x 4 x 3 is not an array of images: uint8, N x {PIXELS}, or N x {PIXELS} x "
            "channels (1 or 3)",
        ),
        (
            {"images": idx(IMAGES)[:-1]},
            "wrong_length",
            "16 of header and 5 x 4 x 3 are 76 bytes, and the file has 75",
        ),
        (
            {"images": idx(IMAGES) + b"1", "name": "train-images-idx3-ubyte.gz"},
            "wrong_length",
            "16 of header and 5 x 4 x 3 are 76 bytes, and the file has more or fewer",
        ),
        (
            {"images": idx(IMAGES)[:-1], "name": "train-images-idx3-ubyte.gz"},
            "wrong_length",
            "16 of header and 5 x 4 x 3 are 76 bytes, and the file has more or fewer",
        ),
        ({"labels": idx(LABELS[:4])}, "bad_labels", f"{BAD_LABELS}: uint8, 4 {NONE}"),
        (
            {"labels": idx(LABELS)[:-1]},
            "bad_labels",
            f"{BAD_LABELS}: 8 of header and 5 labels are 13 bytes, and the file has 12",
        ),
        (
            {"labels": idx(IMAGES)},
            "bad_labels",
            f"{BAD_LABELS}: uint8, 5 x 4 x 3 {NONE}",
        ),
    ],
)
def test_a_bad_file_is_one_rejected_reference(refer, given, reason, detail):
    file, refs = refer(**given)
    assert refs == [file.notice("rejected", reason, detail)]


def test_a_damaged_gzip_stream(refer, tmp_path):
    file, _ = refer(name="train-images-idx3-ubyte.gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    (ref,) = list_file(Idx(), path.name, replace(file, version="8"))
    assert (ref.status, ref.reason) == ("rejected", "bad_packing")
    assert ref.detail.startswith("the gzip file is damaged: ")


def test_labels_that_are_not_there_fail_the_run(refer):
    file, refs = refer(labels=None)
    detail = (
        "there is no train-labels-idx1-ubyte next to it: "
        "add it, or add --set source.labels='' for images without labels"
    )
    assert refs == [file.notice("fatal", "bad_labels", detail)]


def test_labels_outside_the_input_are_not_read(refer):
    _, refs = refer(source=Idx(labels="../{split}"))
    assert [(ref.status, ref.reason) for ref in refs] == [("rejected", "bad_labels")]
    assert "points outside" in refs[0].detail


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"images": "("}, "source.images '(' is not a regular expression"),
        (
            {"labels": "{spilt}"},
            "source.labels is '{spilt}': it can use only {dot} and {split} in braces",
        ),
        ({"labels": "{"}, "source.labels is '{'"),
        ({"class_names": ("a", "a")}, "source.class_names: two classes are named 'a'"),
    ],
)
def test_wrong_settings_raise_and_name_the_key(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Idx(**settings)
