import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.transforms.inputs.sources.arrays import Arrays
from recordmill.transforms.inputs.sources.source import list_file

X_TRAIN = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
Y_TRAIN = np.array([[3], [10], [3], [0], [1], [2]])
X_TEST, Y_TEST = X_TRAIN[::-2], Y_TRAIN[::-2]


DEFAULT = Arrays()


def refer(path, source=DEFAULT):
    file = ImageRef(f"in/{path.name}", str(path), path.stat().st_size, f"{path.stat().st_mtime_ns}")
    return file, list(list_file(source, path.name, file))


def pixels(source, refs):
    return [source.read(ref, 10**6).image.tolist() for ref in refs]


@pytest.mark.parametrize(("save", "packed"), [(np.savez, False), (np.savez_compressed, True)])
def test_the_arrays_of_an_npz_file(tmp_path, save, packed):
    path = tmp_path / "data.npz"
    save(path, x_train=X_TRAIN, y_train=Y_TRAIN, x_test=X_TEST, y_test=Y_TEST)
    file, refs = refer(path)
    assert [ref for ref in refs if ref.status] == [
        ClassNames.of(file, {"0": 0, "1": 1, "2": 2, "3": 3, "10": 10}),
        ClassNames.of(file, {"0": 0, "2": 2, "10": 10}),
    ]
    refs = [ref for ref in refs if not ref.status]
    assert [(ref.key, ref.split, ref.label) for ref in refs] == [
        *(
            (f"in/data.npz/x_train#{index}", "train", str(label))
            for index, (label,) in enumerate(Y_TRAIN)
        ),
        *(
            (f"in/data.npz/x_test#{index}", "test", str(label))
            for index, (label,) in enumerate(Y_TEST)
        ),
    ]
    assert {ref.packing for ref in refs} == (
        {"member:x_train.npy", "member:x_test.npy"} if packed else {""}
    )
    assert pixels(Arrays(), refs) == [*X_TRAIN.tolist(), *X_TEST.tolist()]


def test_the_arrays_of_npy_files(tmp_path):
    for name, array in (("x_train", X_TRAIN), ("y_train", Y_TRAIN)):
        np.save(tmp_path / f"{name}.npy", array)
    _, refs = refer(tmp_path / "x_train.npy")
    assert [(ref.key, ref.split, ref.label) for ref in refs[1:]] == [
        (f"in/x_train.npy#{index}", "train", str(label)) for index, (label,) in enumerate(Y_TRAIN)
    ]
    assert pixels(Arrays(), refs[1:]) == X_TRAIN.tolist()
    for name, reason in (("y_train", "labels"), ("other", "not_included")):
        np.save(tmp_path / f"{name}.npy", Y_TRAIN)
        file, refs = refer(tmp_path / f"{name}.npy")
        assert refs == [file.notice("ignored", reason)]


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
    channels=st.sampled_from([0, 1, 3]),
    order=st.sampled_from(["interleaved", "planar"]),
    compressed=st.booleans(),
)
def test_every_shape_of_images(tmp_path_factory, shape, channels, order, compressed):
    images = np.random.default_rng(0).integers(0, 256, (*shape, max(channels, 1)), dtype=np.uint8)
    stored = (
        images[..., 0]
        if not channels
        else images.transpose(0, 3, 1, 2)
        if order == "planar"
        else images
    )
    path = tmp_path_factory.mktemp("arrays") / "x.npz"
    (np.savez_compressed if compressed else np.savez)(path, images=np.ascontiguousarray(stored))
    source = Arrays(images={"all": "images"}, labels={}, order=order)
    _, refs = refer(path, source)
    assert pixels(source, refs) == images.tolist()
    assert {ref.label for ref in refs} == {""}


def test_labels_that_are_names_and_numbers_that_have_names(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x_train=X_TRAIN[:2], y_train=np.array(["dög", "cat"]))
    assert [(ref.label, ref.status) for ref in refer(path)[1]] == [("dög", ""), ("cat", "")]
    np.savez(path, x_train=X_TRAIN[:2], y_train=np.array([1, 7]))
    source = Arrays(class_names=("cat", "dog"))
    assert [(ref.label, ref.status) for ref in refer(path, source)[1]] == [("dog", ""), ("7", "")]
    assert source.classes() == {"cat": 0, "dog": 1}


@pytest.mark.parametrize(
    ("arrays", "reason", "detail"),
    [
        (
            {"x_train": X_TRAIN / 255},
            "bad_array",
            "float64, 6 x 4 x 5 x 3 is not an array of images: uint8, N x height",
        ),
        (
            {"x_train": X_TRAIN[..., :2].copy()},
            "bad_array",
            "uint8, 6 x 4 x 5 x 2 is not an array of images",
        ),
        ({"x_train": np.asfortranarray(X_TRAIN)}, "bad_array", "it is stored column by column"),
        (
            {"x_train": np.array([{}])},
            "bad_array",
            "it holds pickled Python objects, which are never loaded",
        ),
        ({"y_train": Y_TRAIN[:5]}, "bad_labels", "y_train: int64, 5 x 1 is not an array of labels"),
        ({"y_train": np.eye(6)}, "bad_labels", "y_train: float64, 6 x 6 is not an array of labels"),
    ],
)
def test_a_bad_array_is_one_rejected_reference(tmp_path, arrays, reason, detail):
    np.savez(tmp_path / "x.npz", **{"x_train": X_TRAIN, "y_train": Y_TRAIN, **arrays})
    _, (ref,) = refer(tmp_path / "x.npz")
    assert (ref.status, ref.reason) == ("rejected", reason)
    assert ref.detail.startswith(detail)


def test_damaged_files_are_rejected(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"PK\3\4 and nothing more")
    (tmp_path / "x_train.npy").write_bytes(b"\x93NUMPY")
    np.save(tmp_path / "x_test.npy", X_TEST)
    np.save(tmp_path / "y_test.npy", Y_TEST)
    np.save(tmp_path / "y_train.npy", Y_TRAIN)
    (tmp_path / "x_test.npy").write_bytes((tmp_path / "x_test.npy").read_bytes()[:-7])
    found = {name: refer(tmp_path / name)[1] for name in ("x.npz", "x_train.npy", "x_test.npy")}
    assert {name: [(ref.status, ref.reason) for ref in refs] for name, refs in found.items()} == {
        "x.npz": [("rejected", "bad_packing")],
        "x_train.npy": [("rejected", "bad_array")],
        "x_test.npy": [("rejected", "wrong_length")],
    }
    assert (
        found["x_test.npy"][0].detail
        == "128 of header and 3 x 4 x 5 x 3 are 308 bytes, and the file has 301"
    )


def test_arrays_that_are_not_there_fail_the_run(tmp_path):
    np.savez(tmp_path / "x.npz", images=X_TRAIN, labels=Y_TRAIN)
    np.savez(tmp_path / "y.npz", x_train=X_TRAIN)
    np.save(tmp_path / "x_train.npy", X_TRAIN)
    for name, missing in (
        ("x.npz", "x_train or x_test in it or next to it, but images, labels"),
        ("y.npz", "y_train in it or next to it, but x_train"),
        ("x_train.npy", "y_train in it or next to it, but x_train"),
    ):
        file, refs = refer(tmp_path / name)
        detail = f"there is no array {missing}: correct source.images and source.labels"
        assert refs == [file.notice("fatal", "bad_labels", detail)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"images": {}}, "source.images must name arrays"),
        ({"labels": {"train": "y"}}, "and source.labels those of its words (train, test) or none"),
        (
            {"labels": {"train": "y", "test": ""}},
            "and source.labels those of its words (train, test) or none",
        ),
        ({"class_names": ("a", "a")}, "source.class_names: two classes are named 'a'"),
    ],
)
def test_wrong_settings_raise_and_name_the_key(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Arrays(**settings)
