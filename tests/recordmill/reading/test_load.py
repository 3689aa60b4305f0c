"""`load`, and each way of reading that the systems before it had."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from recordmill.reading.dataset import describe_split
from recordmill.reading.load import load
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync", "tf")
IDS = {"cat": 0, "dog": 1, "eel": 2}
ROWS = [
    {"feature0": n % 2, "feature1": n % 5, "feature2": b"goat" * (n % 3), "feature3": n / 7}
    for n in range(10_000)
]
OBSERVATION = (
    Feature("feature0", "int64", "feature0", "true or false", default=0),
    Feature("feature1", "int64", "feature1", "0 to 4", default=0),
    Feature("feature2", "bytes", "feature2", "goats", default=b""),
    Feature("feature3", "float", "feature3", "a seventh", default=0.0),
)
VECTOR = (
    Feature("sha256", "bytes", "sha256", "digest"),
    Feature("feature", "float", "feature", "values", many=True),
    Feature("label", "int64", "label", "class"),
)
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)


def rows_of(folder):
    lines = [
        line
        for path in sorted((folder / "sidecars").iterdir())
        for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


# What users ask first


def test_batches_of_resized_images_and_labels(tf, uneven_dataset, animal_dataset):
    train = load(str(animal_dataset), "train", batch_size=5, image_size=(32, 40), shuffle=True)
    assert train.element_spec == (
        tf.TensorSpec((None, 32, 40, 3), tf.float32),
        tf.TensorSpec((None,), tf.int64),
    )
    batches = list(train)
    assert [len(images) for images, _ in batches] == [5, 5, 5, 5, 4]
    labels = np.concatenate([labels for _, labels in batches])
    assert np.bincount(labels).tolist() == [13, 7, 4]
    assert load(str(uneven_dataset), batch_size=6, image_size=(8, 8)).cardinality() == 1


def test_every_pixel_and_label_is_that_of_the_source(tf, animals, animal_dataset):
    rows = {row["sha256"]: row for row in rows_of(animal_dataset)}
    keys = ("image/encoded", "image/class/label", "image/class/text", "image/key/sha256")
    seen = 0
    for image, label, text, digest in load(str(animal_dataset), features=keys):
        row = rows[digest.numpy().decode()]
        source = (animals / row["key"]).read_bytes()
        assert np.array_equal(image, tf.io.decode_jpeg(source, channels=3))
        assert label == IDS[row["class"]] == row["label"]
        assert text.numpy().decode() == row["class"]
        seen += 1
    assert seen == len(rows) == 24


def test_features_label_names_and_class_weights_are_available(animal_dataset):
    info = load(str(animal_dataset)).info
    assert info.class_names == ("cat", "dog", "eel")
    assert list(info.class_weights) == [0, 1, 2]
    assert [feature.key for feature in info.features][:2] == [
        "image/class/label",
        "image/class/text",
    ]


@pytest.mark.slow
def test_a_small_model_learns_from_it(tf, tmp_path, convert_with):
    for name, shade in (("dark", 40), ("light", 210)):
        (tmp_path / name).mkdir()
        for number in range(20):
            Image.new("RGB", (16, 16), (shade + number, shade, shade - number)).save(
                tmp_path / name / f"{number}.jpg"
            )
    train = load(
        str(convert_with(tmp_path, splits__fractions={"train": 1.0})),
        batch_size=8,
        shuffle=True,
        seed=1,
    )
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Rescaling(1 / 127.5, -1),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(2),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    for _ in range(6):  # Keras's own shuffle is for arrays
        model.fit(train, class_weight=train.info.class_weights, verbose=0, shuffle=False)
    assert model.evaluate(train, verbose=0)[1] == 1.0


@pytest.fixture(scope="module")
def folds(animals, convert_with):
    """Three folds of eight pictures or so, in two shards each."""
    fractions = {"fold0": 0.34, "fold1": 0.33, "fold2": 0.33}
    return convert_with(
        animals, splits__fractions=fractions, shards__count=2, splits__stratify=True
    )


def keys_of(dataset):
    return [digest.numpy() for (digest,) in dataset]


def test_several_splits_are_read_as_one(tf, folds):
    split = ["fold0", "fold2"]
    one, other = (
        keys_of(load(str(folds), name, features=("image/key/sha256",)))
        for name in ("fold0", "fold2")
    )
    both = load(str(folds), split, features=("image/key/sha256",))
    assert len(both) == both.info.num_examples == len(one) + len(other) > 8
    assert sorted(keys_of(both)) == sorted(one + other)
    assert keys_of(both) == keys_of(both) != one + other, "shards of both splits are read in turn"
    assert [shard.split for shard in both.info.shards] == ["fold0", "fold0", "fold2", "fold2"]
    assert both.info.split == "fold0+fold2"
    for spelling in (("fold0", "fold2"), "fold0+fold2"):
        assert load(str(folds), spelling).info == both.info
    counts = [load(str(folds), name).info.class_counts for name in ("fold0", "fold2", split)]
    assert counts[2] == {name: counts[0].get(name, 0) + counts[1].get(name, 0) for name in IDS}
    shuffled = load(str(folds), split, features=("image/key/sha256",), shuffle=True, seed=1)
    assert sorted(keys_of(shuffled)) == sorted(one + other)
    shares = [
        load(str(folds), split, features=("image/key/sha256",), num_replicas=3, index=index)
        for index in range(3)
    ]
    assert sorted(key for share in shares for key in keys_of(share)) == sorted(one + other)


def test_a_split_without_images_is_one_sentence(tmp_path, animals, convert_with):
    shutil.copytree(animals / "cat", tmp_path / "train/cat")
    (tmp_path / "test/cat").mkdir(parents=True)
    (tmp_path / "test/cat/broken.jpg").write_bytes(b"no picture")
    folder = str(convert_with(tmp_path, splits__from_folders={"train": "train", "test": "test"}))
    assert describe_split(folder, "test").num_examples == 0
    with pytest.raises(LoadError) as raised:
        load(folder, "test", batch_size=8)
    assert str(raised.value) == (
        f"the split test of {folder} has no images: choose another, or see its rejected.jsonl for "
        "the images that were rejected"
    )
    assert len(load(folder, ["train", "test"])) == len(load(folder, "train")) == 13


# The systems before it, each by its author's way of reading


def test_seed_1_cifars_raw_pixels_come_back_exactly(publish):
    features = (Feature("image", "bytes", "encoded", ""), Feature("label", "int64", "label", ""))
    records = [{"encoded": image.tobytes(), "label": n} for n, image in enumerate(PIXELS)]
    folder = publish(
        features, records, rows=[{"key": "a", "height": 4, "width": 5}], images={"store": "raw"}
    )
    ((images, labels),) = load(str(folder), batch_size=6)
    assert labels.numpy().tolist() == list(range(6))
    assert images.dtype == np.uint8
    assert np.array_equal(images, PIXELS)


def test_raw_pixels_of_several_sizes_take_them_from_their_records(publish):
    features = (
        Feature("image", "bytes", "encoded", ""),
        Feature("height", "int64", "height", ""),
        Feature("width", "int64", "width", ""),
        Feature("label", "int64", "label", ""),
    )
    shapes = [(4, 5), (5, 4)]
    records = [
        {"encoded": PIXELS[n].tobytes(), "height": h, "width": w, "label": n}
        for n, (h, w) in enumerate(shapes)
    ]
    folder = publish(features, records, images={"store": "raw"})
    found = [image.numpy() for image, _ in load(str(folder))]
    assert [image.shape for image in found] == [(4, 5, 3), (5, 4, 3)]
    assert np.array_equal(found[1], PIXELS[1].reshape(5, 4, 3))


def test_seed_2_feature_vectors_by_interleave_shuffle_repeat_map_and_batch(publish):
    records = [
        {"sha256": b"%d" % n, "feature": [n / 1, n + 0.5, -n / 1], "label": n % 2}
        for n in range(12)
    ]
    folder = publish(VECTOR, records, shards=4)
    vectors = load(
        str(folder), features=("feature", "label"), batch_size=8, shuffle=True, seed=2, repeat=2
    )
    batches = [(feature.to_tensor(), label) for feature, label in vectors]
    assert [feature.shape for feature, _ in batches] == [(8, 3)] * 3
    first = np.concatenate([feature[:, 0] for feature, _ in batches]).astype(int)
    assert sorted(first[:12]) == sorted(first[12:]) == list(range(12))
    assert first[:12].tolist() != first[12:].tolist()
    for feature, label in batches:
        assert np.array_equal(label, feature[:, 0].numpy() % 2)
        assert np.array_equal(feature[:, 1], feature[:, 0] + 0.5)


def test_seed_2_feature_vectors_half_with_images_is_decoded(tf, publish):
    features = (Feature("image", "bytes", "encoded", ""), Feature("label", "int64", "label", ""))
    encoded = tf.io.encode_jpeg(PIXELS[0]).numpy()
    ((image, label),) = load(str(publish(features, [{"encoded": encoded, "label": 7}], shards=1)))
    assert label == 7
    assert np.array_equal(image, tf.io.decode_jpeg(encoded))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_seed_3_the_tutorials_observations_are_parsed_in_batches(publish, compression):
    folder = publish(OBSERVATION, ROWS, compression=compression)
    batches = list(load(str(folder), batch_size=1000))
    assert len(batches) == 10
    for key in ROWS[0]:
        found = np.concatenate([batch[key] for batch in batches])
        expected = np.array([row[key] for row in ROWS], found.dtype)
        assert np.array_equal(found, expected)


def test_seed_3_the_tutorials_parse_single_example_with_defaults(publish):
    elements = list(
        load(str(publish(OBSERVATION, [{"feature1": 3}, {"feature2": b"cat"}], shards=1)))
    )
    assert [{key: value.numpy() for key, value in element.items()} for element in elements] == [
        {"feature0": 0, "feature1": 3, "feature2": b"", "feature3": 0.0},
        {"feature0": 0, "feature1": 0, "feature2": b"cat", "feature3": 0.0},
    ]


def test_seed_3_the_tutorials_images(animals, convert_with):
    folder = convert_with(
        animals, convention="tutorial", compression="gzip", splits__fractions={"train": 1.0}
    )
    elements = list(load(str(folder), features="all"))
    assert len(elements) == 24
    for element in elements:
        assert element["image_raw"].shape == (element["height"], element["width"], 3) == (16, 24, 3)
    assert sorted(int(element["label"]) for element in elements) == [0] * 13 + [1] * 7 + [2] * 4


def test_seed_4_one_file_with_labels_from_names(tmp_path, convert_with):
    source = tmp_path / "digits"
    source.mkdir()
    for number in range(10):
        Image.new("L", (28, 28), number).save(source / f"img_{number:05}_{number % 4}.jpg")
    folder = convert_with(
        source,
        source__kind="filename_labels",
        labels__ids="integers",
        splits__fractions={"train": 1.0},
        shards__count=1,
        shards__name="{split}.record",
    )
    dataset = load(str(folder), batch_size=10)
    ((images, labels),) = dataset
    assert images.shape == (10, 28, 28, 3)
    assert sorted(labels.numpy().tolist()) == sorted(n % 4 for n in range(10))
    assert (dataset.info.num_examples, dataset.info.num_classes) == (10, 4)
    assert dataset.info.labels_to_names == {0: "0", 1: "1", 2: "2", 3: "3"}


def test_seed_5_class_folders_with_class_names_for_labels(animals, convert_with):
    folder = convert_with(
        animals,
        convention="image_tfrecord_builder",
        name="zoo",
        splits__fractions={"train": 0.5, "test": 0.5},
    )
    counts = np.zeros(3, int)
    for split in ("train", "test"):
        for images, labels in load(str(folder), split, batch_size=30):
            assert images.shape[1:] == (16, 24, 3)
            counts += np.bincount(labels, minlength=3)
    assert counts.tolist() == [13, 7, 4]


# Shapes of elements


def test_several_labels_of_an_image_are_multi_hot(tf, publish):
    features = (
        Feature("image", "bytes", "encoded", ""),
        Feature("label", "int64", "labels", "", many=True),
    )
    encoded = tf.io.encode_png(PIXELS[0]).numpy()
    records = [{"encoded": encoded, "labels": ids} for ids in ([2], [], [1, 3])]
    rows = [{"key": "a", "height": 4, "width": 5}]
    folder = publish(features, records, shards=1, rows=rows, labels={"a": 1, "b": 2, "c": 3})
    ((images, labels),) = load(str(folder), batch_size=3)
    assert images.shape == (3, 4, 5, 3)
    assert labels.numpy().tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]]


def test_features_of_many_values_are_ragged_next_to_images(tf, publish):
    features = (
        Feature("image", "bytes", "encoded", ""),
        Feature("boxes", "float", "boxes", "", many=True),
    )
    encoded = tf.io.encode_png(PIXELS[0]).numpy()
    records = [{"encoded": encoded, "boxes": boxes} for boxes in ([0.5], [], [0.25, 1.0])]
    folder = str(publish(features, records, shards=1, rows=[{"key": "a", "height": 4, "width": 5}]))
    (batch,) = load(folder, batch_size=3)
    assert batch["image"].shape == (3, 4, 5, 3)
    assert batch["boxes"].to_list() == [[0.5], [], [0.25, 1.0]]
    assert [element["boxes"].numpy().tolist() for element in load(folder)] == [
        [0.5],
        [],
        [0.25, 1.0],
    ]


def test_images_of_several_sizes_need_image_size_to_be_batched(uneven_dataset):
    with pytest.raises(
        LoadError, match=r"differ in size: give image_size=\(height, width\), or no batch_size$"
    ):
        load(str(uneven_dataset), batch_size=3)
    shapes = {tuple(image.shape) for image, _ in load(str(uneven_dataset))}
    assert shapes == {(10 + n, 20 + n, 3) for n in range(6)}


def test_undecoded_images_are_the_bytes_stored(animals, animal_dataset):
    (images, _), *_ = load(str(animal_dataset), batch_size=24, decode=False)
    sources = sorted(path.read_bytes() for path in animals.rglob("*.jpg"))
    assert sorted(images.numpy().tolist()) == sources


# Numbers


@pytest.mark.parametrize(
    ("options", "cardinality", "batches"),
    [
        ({}, 24, None),
        ({"batch_size": 7}, 4, [7, 7, 7, 3]),
        ({"batch_size": 7, "decode": False}, 4, [7, 7, 7, 3]),
        ({"batch_size": 7, "repeat": 2}, 7, [7] * 6 + [6]),
        ({"batch_size": 5, "num_replicas": 3, "index": 1}, 2, [5, 2]),
    ],
)
def test_cardinality_is_known_and_true(animal_dataset, options, cardinality, batches):
    if "num_replicas" in options:
        sizes = [
            len(path.read_text().splitlines())
            for path in sorted((animal_dataset / "sidecars").iterdir())
        ]
        batches = [5] * (sizes[1] // 5) + [sizes[1] % 5] * (sizes[1] % 5 > 0)
        cardinality = len(batches)
    dataset = load(str(animal_dataset), **options)
    assert dataset.cardinality() == cardinality
    assert len(list(dataset)) == cardinality
    if batches:
        assert [len(labels) for _, labels in dataset] == batches


def test_for_ever_is_infinite(tf, animal_dataset):
    dataset = load(str(animal_dataset), batch_size=10, repeat=True)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert [len(labels) for _, labels in dataset.take(8)] == [10] * 8


def digests(dataset):
    return [digest for (batch,) in dataset for digest in batch.numpy()]


def test_order_is_the_same_when_asked(animal_dataset):
    options = {"features": "image/key/sha256", "batch_size": 4}
    plain = digests(load(str(animal_dataset), **options))
    assert plain == digests(load(str(animal_dataset), **options))
    seeded = [load(str(animal_dataset), shuffle=True, seed=5, **options) for _ in range(2)]
    first, second = digests(seeded[0]), digests(seeded[0])
    assert [first, second] == [digests(seeded[1]), digests(seeded[1])]
    assert first != second
    assert first != plain
    assert sorted(first) == sorted(second) == sorted(plain)


def test_another_seed_is_another_order(animal_dataset):
    options = {"features": "image/key/sha256", "batch_size": 4, "shuffle": True}
    assert digests(load(str(animal_dataset), seed=1, **options)) != digests(
        load(str(animal_dataset), seed=2, **options)
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0: give at least 1, or None for single elements"),
        ({"image_size": (0, 4)}, r"image_size is \(0, 4\): give \(height, width\) in pixels"),
        ({"image_size": (4,)}, r"image_size is \(4,\)"),
        ({"index": 2, "num_replicas": 2}, "index is 2 of num_replicas 2: count from 0 to 1"),
        ({"features": ("image",)}, "has no feature 'image': choose from image/class/label, "),
        (
            {"split": "val"},
            r"^split is 'val', and .* has train: name one of them, or several as \['a', 'b'\] or "
            r"'a\+b'",
        ),
        (
            {"split": ["train", "val"]},
            r"^split is \['train', 'val'\], and .* has train: name one of them, or several",
        ),
        ({"split": "train+val"}, r"^split is 'train\+val', and .* has train: name one of them"),
        (
            {"split": "train[:80%]"},
            r"^split is 'train\[:80%\]', and .* has train: name one of them",
        ),
        ({"split": ["train", "train"]}, r"^split is \['train', 'train'\], and .*, each once$"),
        ({"split": []}, r"^split is \[\], and .* has train: name one of them"),
        ({"split": [["train"]]}, r"^split is \[\['train'\]\], and .* has train: name one of them"),
    ],
)
def test_a_wrong_argument_is_one_sentence(animal_dataset, options, sentence):
    with pytest.raises(LoadError, match=sentence):
        load(str(animal_dataset), **options)


@pytest.mark.slow
def test_a_strategy_of_two_replicas_takes_it(tmp_path, animal_dataset):
    # In a process of its own: devices are fixed once TensorFlow has started.
    script = tmp_path / "strategy.py"
    script.write_text(f"""
import recordmill
import tensorflow as tf
device = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
def read(context):
    share = {{"num_replicas": context.num_input_pipelines, "index": context.input_pipeline_id}}
    batch_size = context.get_per_replica_batch_size(8)
    return recordmill.load({str(animal_dataset)!r}, batch_size=batch_size, **share)
seen = 0
for images, labels in strategy.distribute_datasets_from_function(read):
    seen += sum(len(part) for part in strategy.experimental_local_results(labels))
whole = recordmill.load({str(animal_dataset)!r}, batch_size=8)
for images, labels in strategy.experimental_distribute_dataset(whole):
    seen += sum(len(part) for part in strategy.experimental_local_results(labels))
print(seen)
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "48\n", done.stderr[-2000:]


def test_without_tensorflow_one_sentence_says_what_to_install(animal_dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(
        LoadError,
        match=r"^load needs TensorFlow, which is not installed: pip install '\.\[tensorflow\]' in "
        r"a clone$",
    ):
        load(str(animal_dataset))
