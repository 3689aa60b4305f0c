"""Each peer's convention as it comes out of a whole run: files' names, label files, and every key,
type and value."""

import base64
import hashlib
import io
import json

import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.imaging.masks.mask_file import encode_values
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.conventions import convention_names
from recordmill.schemas.features import Example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PICTURES = [(label, number) for label in ("daisy", "rose red") for number in range(3)]
FEATURE = "--set=features.feature=mean_std"


def pixels(content):
    return Image.open(io.BytesIO(content)).convert("RGB").tobytes()


def slim(label, name, content, split):
    return {
        "image/encoded": ("bytes_list", [content]),
        "image/format": ("bytes_list", [b"jpg"]),
        "image/class/label": ("int64_list", [["daisy", "rose red"].index(label)]),
        "image/height": ("int64_list", [10]),
        "image/width": ("int64_list", [20]),
    }


def default(label, name, content, split):
    return {
        **slim(label, name, content, split),
        "image/class/text": ("bytes_list", [label.encode()]),
        "image/filename": ("bytes_list", [name.encode()]),
        "image/key/sha256": ("bytes_list", [hashlib.sha256(content).hexdigest().encode()]),
    }


def tpu_imagenet(label, name, content, split):
    return {
        "image/height": ("int64_list", [10]),
        "image/width": ("int64_list", [20]),
        "image/colorspace": ("bytes_list", [b"RGB"]),
        "image/channels": ("int64_list", [3]),
        "image/class/label": ("int64_list", [["background", "daisy", "rose red"].index(label)]),
        "image/class/synset": ("bytes_list", [label.encode()]),
        "image/format": ("bytes_list", [b"JPEG"]),
        "image/filename": ("bytes_list", [name.encode()]),
        "image/encoded": ("bytes_list", [content]),
    }


def inception(*picture):
    features = tpu_imagenet(*picture)
    features["image/class/text"] = features.pop("image/class/synset")
    return features


def tf_object_detection(label, name, content, split):
    """Without `image/object/`: the images have no boxes. tests/configs/test_detection.py has
    some."""
    return {
        "image/height": ("int64_list", [10]),
        "image/width": ("int64_list", [20]),
        "image/filename": ("bytes_list", [name.encode()]),
        "image/source_id": ("bytes_list", [name.encode()]),
        "image/key/sha256": ("bytes_list", [hashlib.sha256(content).hexdigest().encode()]),
        "image/encoded": ("bytes_list", [content]),
        "image/format": ("bytes_list", [b"jpeg"]),
    }


def deeplab(label, name, content, split):
    return {
        "image/encoded": ("bytes_list", [content]),
        "image/filename": ("bytes_list", [name.encode()]),
        "image/format": ("bytes_list", [b"jpeg"]),
        "image/height": ("int64_list", [10]),
        "image/width": ("int64_list", [20]),
        "image/channels": ("int64_list", [3]),
        "image/segmentation/class/encoded": ("bytes_list", [MASK]),
        "image/segmentation/class/format": ("bytes_list", [b"png"]),
    }


def tfrecorder(label, name, content, split):
    return {
        "image": ("bytes_list", [base64.urlsafe_b64encode(pixels(content))]),
        "image_name": ("bytes_list", [name.encode()]),
        "image_height": ("int64_list", [10]),
        "image_width": ("int64_list", [20]),
        "image_channels": ("int64_list", [3]),
        "split": ("bytes_list", [split.upper().encode()]),
        "label": ("int64_list", [["daisy", "rose red"].index(label)]),
    }


def image_tfrecord_builder(label, name, content, split):
    return {
        "train/label": ("bytes_list", [label.encode()]),
        "train/image": ("bytes_list", [content]),
    }


def keras(label, name, content, split):
    return {
        "image": ("bytes_list", [content]),
        "label": ("int64_list", [["daisy", "rose red"].index(label)]),
    }


def tfds(label, name, content, split):
    return {**keras(label, name, content, split), "image/filename": ("bytes_list", [name.encode()])}


def raw_pixels(label, name, content, split):
    return keras(label, name, pixels(content), split)


def tutorial(label, name, content, split):
    return {
        "height": ("int64_list", [10]),
        "width": ("int64_list", [20]),
        "depth": ("int64_list", [3]),
        "label": ("int64_list", [["daisy", "rose red"].index(label)]),
        "image_raw": ("bytes_list", [content]),
    }


def feature_vector(label, name, content, split):
    return {
        "sha256": ("bytes_list", [hashlib.sha256(content).hexdigest().encode()]),
        "feature": ("float_list", "six numbers"),
        "label": ("int64_list", [["daisy", "rose red"].index(label)]),
    }


def feature_vector_by_name(label, name, content, split):
    return {
        **feature_vector(label, name, content, split),
        "sha256": ("bytes_list", [name.encode()]),
    }


def plain(label, name, content, split):
    return {"feature": ("float_list", "six numbers")}


EXAMPLES = {
    each.__name__: each
    for each in (
        default,
        slim,
        inception,
        tpu_imagenet,
        tf_object_detection,
        deeplab,
        tfrecorder,
        image_tfrecord_builder,
        tfds,
        raw_pixels,
        feature_vector,
        feature_vector_by_name,
        keras,
        tutorial,
        plain,
    )
}

# Names of the two files of `train` and of the two of `test`, for a dataset that is called flowers.
FILES = {
    "slim": "flowers_{}_00000-of-00002.tfrecord flowers_{}_00001-of-00002.tfrecord",
    "inception": "{}-00000-of-00002 {}-00001-of-00002",
    "tpu_imagenet": "{}-00000-of-00002 {}-00001-of-00002",
    "tfrecorder": "{}-00000-of-00002.tfrecord.gz {}-00001-of-00002.tfrecord.gz",
    "image_tfrecord_builder": "flowers_{}_01of02.tfrecord flowers_{}_02of02.tfrecord",
    "tfds": "flowers-{}.tfrecord-00000-of-00002 flowers-{}.tfrecord-00001-of-00002",
    "feature_vector": "{}_shard_0 {}_shard_1",
    "feature_vector_by_name": "{}_shard_0 {}_shard_1",
}
USUAL_FILES = "{}-00000-of-00002.tfrecord {}-00001-of-00002.tfrecord"

LABELS = {"inception": "daisy\nrose red\n", "tpu_imagenet": "daisy\nrose red\n"}
LABELS["tf_object_detection"] = ""
LABELS["deeplab"] = ""
UNLABELED = "--set=source.class_from=none"
MANIFEST = "--set=source={kind: manifest, columns: {uri: image, mask: mask}}"
MASK = encode_values(np.full((10, 20), 7, np.uint8))
USUAL_LABELS = "0:daisy\n1:rose red\n"


@pytest.fixture
def dataset(tmp_path, picture, capsys):
    """A whole run; gives the folder, called flowers, and its marker."""
    for label, number in PICTURES:
        (tmp_path / "photos" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / label / f"{label[0]}{number}.jpg").write_bytes(
            picture((label, number))
        )

    def run(convention, *more):
        output = tmp_path / "flowers"
        flags = [
            "--set=splits={fractions: {train: 0.5, test: 0.5}, stratify: true}",
            "--set=shards.count=2",
            *more,
        ]
        flags += [
            f"--input={tmp_path / 'photos'}",
            f"--output={output}",
            f"--set=convention={convention}",
        ]
        assert launch(flags, build) == 0, capsys.readouterr().err
        return output, json.loads((output / "recordmill.json").read_bytes())

    return run


def write_masks(root):
    """Writes a manifest that gives all pictures the same semantic mask."""
    rows = [f"{label}/{label[0]}{number}.jpg,mask.png" for label, number in PICTURES]
    (root / "mask.png").write_bytes(MASK)
    (root / "list.csv").write_text("\n".join(["image,mask", *rows]))


def show(record):
    """Each feature's kind and values, by key."""
    features = Example.FromString(bytes(record)).features.feature
    kinds = {key: feature.WhichOneof("kind") for key, feature in features.items()}
    shown = {key: (kind, list(getattr(features[key], kind).value)) for key, kind in kinds.items()}
    if len(shown.get("feature", ("", ()))[1]) == 6:
        shown["feature"] = ("float_list", "six numbers")
    return shown


def test_every_convention_is_among_these():
    assert sorted(EXAMPLES) == list(convention_names())


@pytest.mark.parametrize("convention", EXAMPLES)
def test_a_dataset_has_the_peers_files_labels_keys_types_and_values(
    convention, dataset, picture, tmp_path
):
    more = [FEATURE] if "feature" in convention or convention == "plain" else []
    more += [UNLABELED] if convention == "tf_object_detection" else []
    if convention == "deeplab":
        write_masks(tmp_path / "photos")
        more += [MANIFEST]
    output, marker = dataset(convention, *more)
    listed = {
        split: [shard["name"] for shard in said["shards"]]
        for split, said in marker["splits"].items()
    }
    words = {
        "train": "training" if convention == "image_tfrecord_builder" else "train",
        "test": "test",
    }
    pattern = FILES.get(convention, USUAL_FILES)
    assert listed == {split: pattern.format(word, word).split() for split, word in words.items()}
    assert (output / "labels.txt").read_text() == LABELS.get(convention, USUAL_LABELS)
    found = [
        show(record)
        for names in listed.values()
        for name in names
        for record in read_records(str(output / name))
    ]
    expected = [
        EXAMPLES[convention](
            label, name, picture((label, number)), split_of(output, f"{label}/{name}")
        )
        for label, number in PICTURES
        for name in [f"{label[0]}{number}.jpg"]
    ]
    assert sorted(sorted(each.items()) for each in found) == sorted(
        sorted(each.items()) for each in expected
    )


def split_of(output, key):
    """The split that an image is in, by the sidecars."""
    (split,) = (
        path.name.partition("-")[0]
        for path in (output / "sidecars").iterdir()
        if key in path.read_text()
    )
    return split


def test_the_object_detection_api_has_no_place_for_the_class_of_an_image(dataset, tmp_path, capsys):
    dataset("tf_object_detection", UNLABELED)
    flags = [f"--input={tmp_path / 'photos'}", f"--output={tmp_path / 'lost'}"]
    assert launch([*flags, "--set=convention=tf_object_detection"], build) == 2
    assert (
        "--set: convention (TensorFlow's Object Detection API) stores the classes of boxes only, "
        "and the images have a class and no boxes: choose another convention, such as default or "
        "slim"
    ) in capsys.readouterr().err
    assert launch([*flags, "--set=convention=slim"], build) == 0


def test_tensorflow_datasets_label_file(dataset):
    output, marker = dataset("tfds")
    assert (output / "label.labels.txt").read_text() == "daisy\nrose red\n"
    info = json.loads((output / "dataset_info.json").read_text())
    assert (info["fileFormat"], [split["name"] for split in info["splits"]]) == (
        "tfrecord",
        list(marker["splits"]),
    )
    assert (output / "features.json").exists()
