"""Gray images of 16 bits, from files to readers."""

import json

import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

import recordmill
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {"images.depth": 16, "images.store": "png", "splits.fractions": {"train": 1}}
VALUES = np.random.default_rng(16).integers(0, 2**16, (16, 24), np.uint16)


@pytest.fixture
def deep(tmp_path):
    """An image of 16 bits and one of 8, in two classes."""
    root = tmp_path / "deep"
    for name in ("wide", "usual"):
        (root / name).mkdir(parents=True)
    Image.fromarray(VALUES).save(root / "wide" / "1.tif")
    (root / "usual" / "2.jpg").write_bytes(encode_picture("usual"))
    return root


def read_images(done, tmp_path):
    found = {}
    for path in done.shards():
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            (name,) = features["image/filename"].bytes_list.value
            (data,) = features["image/encoded"].bytes_list.value
            (tmp_path / "stored.png").write_bytes(data)
            found[name.decode()] = np.asarray(Image.open(tmp_path / "stored.png"))
    return found


def test_images_of_16_bits_are_stored_next_to_images_of_8(convert, deep, tmp_path):
    done = convert(deep, settings=SETTINGS)
    assert done.code == 0, done.stderr
    found = read_images(done, tmp_path)
    assert np.array_equal(found["1.tif"], VALUES)
    assert found["1.tif"].dtype == np.uint16
    assert (found["2.jpg"].dtype, found["2.jpg"].shape) == (np.uint8, (16, 24, 3))
    made = json.loads((done.output / "recordmill.json").read_bytes())
    assert "depth_reduced" not in made["changes"]
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_readers_of_8_bits_get_the_high_byte(convert, deep):
    done = convert(deep, settings=SETTINGS)
    expected = np.repeat((VALUES >> 8).astype(np.uint8)[..., None], 3, axis=2)
    opened = [pixels for pixels, label in recordmill.open(done.output)["train"] if label == 1]
    loaded = recordmill.load(done.output, "train", batch_size=None, shuffle=False)
    for images in (opened, [image.numpy() for image, label in loaded if int(label) == 1]):
        assert np.array_equal(images, [expected])


def test_the_default_keeps_8_bits(convert, deep, tmp_path):
    done = convert(deep, settings=SETTINGS | {"images.depth": 8})
    assert np.array_equal(read_images(done, tmp_path)["1.tif"], VALUES >> 8)


def test_depth_without_png_is_refused(convert, deep):
    done = convert(deep, settings={"images.depth": 16})
    assert done.code == 2
    assert "set images.store to png" in done.stderr
