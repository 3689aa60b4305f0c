"""Vectors of files, from one command to the reader that their author uses."""

import hashlib
import io
import json
import sys

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.transforms.records.image_functions import find_function, mean_std

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

OWN = """
import hashlib

def embed(image):
    return image.mean(axis=(0, 1)) / 255

def digest_bytes(data, uri):
    assert uri.endswith((".txt", ".bin")), uri
    return [byte / 2 for byte in hashlib.sha256(data).digest()[:4]]

def first_bytes(data, uri):
    return [float(byte) for byte in data[:3]]

def count(image):
    return image.shape[0] * image.shape[1] * image.shape[2]

def fail(image):
    raise RuntimeError("no weights")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "own_vectors.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    find_function.cache_clear()
    yield folder / "own_vectors.py"
    find_function.cache_clear()
    sys.modules.pop("own_vectors", None)


@pytest.fixture
def images(tmp_path, picture):
    """Photographs in two classes, by their paths."""
    files = {
        f"{label}/{number}.jpg": picture(f"{label}{number}")
        for label in ("cat", "dog")
        for number in range(12)
    }
    write(tmp_path / "images", files)
    return files


def write(folder, files):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def digest(data):
    return hashlib.sha256(data).hexdigest().encode()


def pixels(data):
    return simplejpeg.decode_jpeg(data)


def as_float32(values):
    return [float(np.float32(value)) for value in values]


def sorted_examples(found):
    return sorted(
        (each for part in found.values() for each in part), key=lambda each: each["sha256"]
    )


def test_seed_2_a_vector_the_real_digest_and_the_label_of_each_image(tmp_path, images, convert):
    marker, found = convert("feature_vectors.yaml", tmp_path / "images")
    assert sorted_examples(found) == sorted(
        (
            {
                "sha256": [digest(data)],
                "feature": as_float32(mean_std(pixels(data))),
                "label": [int(path.startswith("dog"))],
            }
            for path, data in images.items()
        ),
        key=lambda each: each["sha256"],
    )
    assert [shard["name"] for split in marker["splits"].values() for shard in split["shards"]] == [
        "train_shard_0",
        "validation_shard_0",
    ]
    assert marker["features"]["feature"]["shape"] == [None]


def test_seed_2_a_users_own_function_of_the_image(tmp_path, images, own, convert):
    features = (
        "{feature: own_vectors:embed, values: {function: own_vectors:count, type: int64, shape: "
        "[]}}"
    )
    _, found = convert("feature_vectors.yaml", tmp_path / "images", "--set", f"features={features}")
    by_digest = {digest(data): pixels(data) for data in images.values()}
    examples = sorted_examples(found)
    assert len(examples) == 24
    for example in examples:
        image = by_digest[example["sha256"][0]]
        assert example["feature"] == as_float32(image.mean(axis=(0, 1)) / 255)
        assert example["values"] == [image.size]


def test_seed_2_files_of_any_kind_with_decode_none(tmp_path, own, convert):
    files = {
        f"{label}/{n}.{end}": f"{label}{n}{end}".encode()
        for label in "ab"
        for n in range(9)
        for end in ("txt",)
    }
    files["b/x.bin"] = b"\x00\xff"
    write(tmp_path / "files", files)
    features = "{feature: {function: own_vectors:digest_bytes, of: file}, file: file_sha256}"
    marker, found = convert(
        "feature_vectors.yaml",
        tmp_path / "files",
        "--set",
        "decode=none",
        "--set",
        f"features={features}",
    )
    assert marker["ledger"]["written"] == 19
    assert sorted_examples(found) == sorted(
        (
            {
                "sha256": [digest(data)],
                "file": [digest(data)],
                "feature": as_float32(byte / 2 for byte in hashlib.sha256(data).digest()[:4]),
                "label": [int(path.startswith("b"))],
            }
            for path, data in files.items()
        ),
        key=lambda each: each["sha256"],
    )


def test_seed_2_labels_from_names_without_a_function(tmp_path, convert):
    files = {f"img_{number}_{number % 2}.npy": bytes([number]) for number in range(20)}
    write(tmp_path / "files", files)
    own = "{features: {name: {field: filename, type: bytes}, class: {field: label, type: int64}}}"
    pattern = r"'.*_(?P<label>[0-9]+)\.npy'"
    _, found = convert(
        "filename_labels.yaml",
        tmp_path / "files",
        *(
            "--set",
            "decode=none",
            "--set",
            f"convention={own}",
            "--set",
            f"source.pattern={pattern}",
        ),
    )
    examples = [(each["name"], each["class"]) for part in found.values() for each in part]
    assert sorted(examples) == sorted(([name.encode()], [int(name[-5])]) for name in files)


def test_seed_2_the_base_name_mode_serves_old_readers(tmp_path, images, convert):
    _, found = convert(
        "feature_vectors.yaml", tmp_path / "images", "--set", "convention=feature_vector_by_name"
    )
    names = [each["sha256"] for part in found.values() for each in part]
    assert sorted(names) == sorted([path.rpartition("/")[2].encode()] for path in images)


def test_seed_2_the_authors_reader_gets_vectors_interleaved_shuffled_repeated_in_batches(
    tmp_path, images, convert
):
    tf = pytest.importorskip("tensorflow")
    marker, found = convert("feature_vectors.yaml", tmp_path / "images", "--set", "shards.count=3")
    output = tmp_path / "dataset-of-feature_vectors.yaml"
    description = {
        "sha256": tf.io.FixedLenFeature([], tf.string),
        "feature": tf.io.FixedLenFeature([6], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    files = tf.data.Dataset.list_files(str(output / "train_shard_*"), seed=0)
    batches = (
        files.interleave(tf.data.TFRecordDataset, cycle_length=3)
        .shuffle(100, seed=0)
        .repeat(2)
        .map(lambda record: tf.io.parse_single_example(record, description))
        .batch(4)
    )
    read = [
        (sha256, label, vector.tolist())
        for batch in batches.as_numpy_iterator()
        for sha256, label, vector in zip(
            batch["sha256"], batch["label"], batch["feature"], strict=True
        )
    ]
    expected = [(each["sha256"][0], each["label"][0], each["feature"]) for each in found["train"]]
    assert sorted(read) == sorted(expected * 2)
    assert len(marker["splits"]["train"]["shards"]) == 3


def test_seed_2_built_in_functions_for_those_without_one(tmp_path, images, convert):
    features = "{feature: color_histogram, look: difference_hash}"
    _, found = convert("feature_vectors.yaml", tmp_path / "images", "--set", f"features={features}")
    by_digest = {digest(data): pixels(data) for data in images.values()}
    examples = sorted_examples(found)
    assert len(examples) == len(images)
    for example in examples:
        image = by_digest[example["sha256"][0]]
        bins = [
            np.count_nonzero(image[..., channel] // 32 == each)
            for channel in range(3)
            for each in range(8)
        ]
        assert example["feature"] == as_float32(count / (image.size // 3) for count in bins)
        assert len(bytes.fromhex(example["look"][0].decode())) == 8


@pytest.mark.parametrize("decode", ["images", "none"])
def test_seed_2_labels_from_a_list(tmp_path, images, own, convert, decode):
    """As the original has it: paths in one list, labels in another."""
    rows = [f"{path},{number % 3}" for number, path in enumerate(images)]
    (tmp_path / "images" / "list.csv").write_text("\n".join(["file,class", *rows]))
    source = "source={kind: manifest, columns: {uri: file, label: class}}"
    settings = ["--set", source, "--set", f"decode={decode}", "--set", "labels.ids=integers"]
    if decode == "none":
        settings += ["--set", "features.feature={function: 'own_vectors:first_bytes', of: file}"]
    marker, found = convert("feature_vectors.yaml", tmp_path / "images" / "list.csv", *settings)
    vector = mean_std if decode == "images" else None
    assert sorted_examples(found) == sorted(
        (
            {
                "sha256": [digest(data)],
                "feature": as_float32(vector(pixels(data)) if vector else data[:3]),
                "label": [number % 3],
            }
            for number, data in enumerate(images.values())
        ),
        key=lambda each: each["sha256"],
    )
    assert marker["labels"] == {"0": 0, "1": 1, "2": 2}


def test_seed_2_splits_are_by_record_seeded_and_stable(tmp_path, images, convert):
    def split_digests(*more):
        _, found = convert("feature_vectors.yaml", tmp_path / "images", "--overwrite", *more)
        return {split: {each["sha256"][0] for each in part} for split, part in found.items()}

    first = split_digests()
    assert split_digests("--set", "shards.count=2") == first, "not whole shards are dealt out"
    assert split_digests("--set", "seed=1") != first
    write(
        tmp_path / "images",
        {f"cat/new{number}.jpg": images["cat/0.jpg"] + bytes(number + 1) for number in range(9)},
    )
    grown = split_digests()
    assert all(first[split] <= grown[split] for split in first), "what comes later moves nothing"
    assert sum(map(len, grown.values())) == len(images) + 9


def test_seed_2_its_second_half_stores_the_file_and_the_label(tmp_path, images, convert):
    """`image` is the file, which its reader decodes."""
    tf = pytest.importorskip("tensorflow")
    marker, _ = convert(
        "feature_vectors.yaml",
        tmp_path / "images",
        "--set",
        "features={}",
        "--set",
        "convention=keras",
    )
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    names = [shard["name"] for split in marker["splits"].values() for shard in split["shards"]]
    records = tf.data.TFRecordDataset(
        [str(tmp_path / "dataset-of-feature_vectors.yaml" / name) for name in names]
    )
    found = set()
    for record in records:
        example = tf.io.parse_single_example(record, description)
        assert tf.io.decode_jpeg(example["image"]).shape == (10, 20, 3)
        found.add((example["image"].numpy(), int(example["label"])))
    assert found == {(data, int(path.startswith("dog"))) for path, data in images.items()}


def run(tmp_path, capsys, *more):
    arguments = ["--config=configs/feature_vectors.yaml", f"--input={tmp_path / 'images'}"]
    code = launch([*arguments, f"--output={tmp_path / 'out'}", *more], build)
    return code, json.loads(capsys.readouterr().out)["message"]


def test_changed_code_makes_another_dataset(tmp_path, images, own, capsys):
    chosen = ("--set", "features.feature=own_vectors:embed")
    assert run(tmp_path, capsys, *chosen)[0] == 0
    assert "already" in run(tmp_path, capsys, *chosen)[1]
    own.write_text(OWN.replace("/ 255", "/ 256"), encoding="utf-8")
    code, sentence = run(tmp_path, capsys, *chosen)
    assert code == 1
    assert "functions" in sentence


@pytest.mark.parametrize("sizes", [("--set", "shards.count=2"), ()])
def test_a_function_that_fails_fails_the_run_in_one_sentence(tmp_path, images, own, capsys, sizes):
    code, sentence = run(tmp_path, capsys, "--set", "features.feature=own_vectors:fail", *sizes)
    assert code == 1
    assert "features.feature: own_vectors:fail failed on " in sentence
    assert ".jpg: RuntimeError: no weights" in sentence
    assert "\n" not in sentence
    assert not list(tmp_path.glob("out/*shard*"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            "features.feature=no_such:embed",
            "features.feature.function 'no_such:embed': the module cannot be imported",
        ),
        (
            "features.feature=mean",
            "features.feature.function is 'mean', which does not exist: write one of mean_std, ",
        ),
        (
            "features.feature={function: mean_std, often: 1}",
            "features.feature.often is not a setting",
        ),
        ("features={}", "features.feature is missing: the convention"),
        ("decode=none", "features.feature: mean_std takes images, and none is decoded"),
    ],
)
def test_a_function_that_is_not_there_is_an_error_of_the_configuration(
    tmp_path, images, capsys, settings, sentence
):
    code, said = run(tmp_path, capsys, "--set", settings)
    assert code == 2
    assert sentence in said
    assert not (tmp_path / "out").exists()


def test_pixels_are_those_that_are_stored(tmp_path, convert, picture):
    """Turned, resized and in full, whatever the format, also where images pass through by their
    headers."""
    png = io.BytesIO()
    Image.linear_gradient("L").resize((40, 20)).save(png, "PNG")
    files = {
        "a/turned.jpg": picture(1, (40, 20), 6),
        "a/gray.png": png.getvalue(),
        "b/plain.jpg": picture(2, (40, 20)),
    }
    write(tmp_path / "images", files)
    keep = (
        "--set",
        "convention={features: {name: {field: filename, type: bytes}}}",
        "--set",
        "splits.fractions={s: 1}",
    )
    features = ("--set", "features={p: pixels_sha256, h: difference_hash}")
    _, found = convert(
        "class_folders.yaml", tmp_path / "images", *keep, *features, "--set", "images.check=header"
    )
    by_name = {each["name"][0].decode(): each for each in found["s"]}
    plain = pixels(files["b/plain.jpg"])
    turned = np.rot90(pixels(files["a/turned.jpg"]), -1)
    gray = np.asarray(Image.open(io.BytesIO(files["a/gray.png"])))
    for name, image in (("plain.jpg", plain), ("turned.jpg", turned), ("gray.png", gray)):
        assert by_name[name]["p"] == [digest(image.tobytes())], name
