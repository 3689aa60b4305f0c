"""Elements are those that `load` yields, as numpy's arrays."""

import io
import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

import recordmill
from recordmill.reading.records import decode
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Rejected

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)


@pytest.fixture
def put(publish):
    """As `publish`, in one shard and without sidecars, which hold rows of other records."""

    def put(*arguments, **more):
        folder = publish(*arguments, shards=1, **more)
        shutil.rmtree(folder / "sidecars")
        return folder

    return put


def save(mode, kind, **more):
    stream = io.BytesIO()
    Image.effect_mandelbrot((16, 12), (-2, -1, 1, 1), 20).convert(mode).save(stream, kind, **more)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("RGB", "JPEG"), ("L", "JPEG"), ("RGB", "PNG"), ("L", "PNG"), ("RGBA", "PNG"), ("RGB", "BMP")],
)
def test_pixels_are_those_that_tensorflow_decodes(mode, kind):
    tf = pytest.importorskip("tensorflow")
    data = save(mode, kind)
    expected = tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
    found = decode(data)
    assert (found.shape, found.dtype) == (expected.shape, np.uint8)
    assert found.flags.writeable
    most = 2 if kind == "JPEG" or mode == "RGBA" else 0  # other roundings
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= most


def test_a_jpeg_is_decoded_where_it_fits():
    data = save("RGB", "JPEG")
    buffer = np.zeros((12, 16, 3), np.uint8)
    assert decode(data, buffer) is buffer
    assert np.array_equal(buffer, decode(data))
    for other in (np.zeros((16, 12, 3), np.uint8), np.zeros((13, 16, 3), np.uint8)):
        assert np.array_equal(decode(data, other), buffer)
        assert not other.any()
    assert np.array_equal(decode(save("RGB", "PNG"), buffer), decode(save("RGB", "PNG")))


def test_a_damaged_image_says_so():
    for data in (save("RGB", "JPEG")[:400], b"\xff\xd8\xff", b"no image"):
        with pytest.raises(Rejected):
            decode(data)


def test_features_by_name_and_all(converted, dataset_rows):
    row = next(dataset_rows(converted, "train"))
    names = ("image/class/text", "image/height", "image/encoded")
    text, height, image = recordmill.open(converted, features=names)["train"][0]
    assert (text, height, height.dtype, image.shape) == (
        row["class"].encode(),
        16,
        np.int64,
        (16, 24, 3),
    )
    every = recordmill.open(converted, features="all")["train"][0]
    plain = recordmill.open(converted, form="numpy")["train"][0]
    assert every.keys() == plain.keys()
    assert {key: value.tolist() for key, value in plain.items() if key != "image/encoded"} == {
        key: [value] for key, value in every.items() if key != "image/encoded"
    }
    assert np.array_equal(every["image/encoded"], image)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"form": "jpeg"}, "form is 'jpeg': choose image, numpy or raw"),
        (
            {"form": "raw", "features": "image"},
            "features is 'image': it is only supported with form='image' and a dataset's folder; "
            "other forms give all features",
        ),
        ({"damaged": "ignore"}, "damaged is 'ignore': choose raise or skip"),
    ],
)
def test_a_form_that_does_not_exist_is_one_sentence(converted, arguments, sentence):
    with pytest.raises(LoadError) as caught:
        recordmill.open(converted, **arguments)["train"]
    assert str(caught.value) == sentence


def test_an_unknown_feature_is_one_sentence(converted):
    with pytest.raises(LoadError, match="has no feature 'mask': choose from image/class/label, "):
        recordmill.open(converted, features=["mask"])["train"]


def test_class_names_become_ids(put):
    features = (
        Feature("image", "bytes", "encoded", ""),
        Feature("name", "bytes", "label_text", "", default=b""),
    )
    records = [
        {"encoded": save("L", "PNG"), "label_text": name} for name in (b"dog", b"cat", b"eel")
    ]
    folder = put(features, records, labels={"cat": 4, "dog": 7})
    assert [int(label) for _, label in recordmill.open(folder)["train"]] == [7, 4, -1]


def test_several_labels_become_a_vector(put):
    features = (
        Feature("image", "bytes", "encoded", ""),
        Feature("labels", "int64", "labels", "", many=True),
    )
    records = [{"encoded": save("L", "PNG"), "labels": labels} for labels in ([0, 2], [], [9])]
    folder = put(features, records, labels={"a": 0, "b": 1, "c": 2})
    found = [label for _, label in pickle.loads(pickle.dumps(recordmill.open(folder)["train"]))]
    assert [label.tolist() for label in found] == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found[0].dtype == np.float32


def test_raw_pixels_have_the_shape_that_the_records_say(put):
    features = (
        Feature("image_raw", "bytes", "encoded", ""),
        Feature("height", "int64", "height", ""),
        Feature("width", "int64", "width", ""),
        Feature("label", "int64", "label", ""),
    )
    records = [
        {"encoded": pixels.tobytes(), "height": 4, "width": 5, "label": number}
        for number, pixels in enumerate(PIXELS)
    ]
    folder = put(features, records, images={"store": "raw"})
    found = list(recordmill.open(folder)["train"])
    assert [int(label) for _, label in found] == list(range(6))
    assert np.array_equal(np.stack([image for image, _ in found]), PIXELS)


def test_raw_pixels_of_unknown_shape_are_one_sentence(put):
    features = (
        Feature("image_raw", "bytes", "encoded", ""),
        Feature("label", "int64", "label", ""),
    )
    folder = put(features, [{"encoded": bytes(12), "label": 1}], images={"store": "raw"})
    with pytest.raises(
        LoadError, match="holds raw pixels of several sizes, and its records do not say which"
    ):
        recordmill.open(folder)["train"][0]


def test_images_in_files_without_metadata_are_decoded(tmp_path, frame, example, draw):
    records = [example({"image/encoded": draw(1), "image/class/label": 3}), example(a=[1, 2])]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(map(frame, records)))
    first, second = recordmill.open(tmp_path / "a.tfrecord")["a"]
    assert first["image/encoded"].shape == (16, 24, 3)
    assert first["image/class/label"].tolist() == [3]
    assert {key: value.tolist() for key, value in second.items()} == {"a": [1, 2]}
