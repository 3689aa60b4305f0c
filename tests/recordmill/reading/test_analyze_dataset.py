"""A dataset of real photographs from its images to a trained and served network."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recordmill.reading import analyze_dataset as module
from recordmill.reading.analyze_dataset import analyze_dataset, check_tensorflow
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import contents_digest, read_marker

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[4]


def write_photographs(root, shared):
    """Two classes: photographs where there are any; drawn ones, gray, rotated, transparent, of
    other formats."""
    for label in ("day", "night"):
        (root / label).mkdir(parents=True)
    for number, path in enumerate(sorted(shared.glob("imagenet-flat/*.JPEG"))[:60]):
        (root / ("day" if number % 2 else "night") / path.name).symlink_to(path)
    turned = Image.Exif()
    turned[0x0112] = 6
    for number in range(12):
        noise = np.random.default_rng(number).integers(0, 256, (5, 7, 3), np.uint8)
        image = Image.fromarray(noise).resize((60 + number, 40), Image.Resampling.BICUBIC)
        label = root / ("night" if number % 2 else "day")
        image.save(label / f"drawn{number}.jpg", quality=88)
        image.save(label / f"turned{number}.jpg", exif=turned)
        image.convert("L").save(label / f"gray{number}.jpg")
        image.convert("L").save(label / f"gray{number}.png")
        image.convert("RGBA").save(label / f"clear{number}.png")
        image.convert("CMYK").save(label / f"inks{number}.tiff")
    return root


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, convert_images, with_tensorflow):
    root, shared = tmp_path_factory.mktemp("analysis"), REPO.parent / "shared" / "data"
    photographs = write_photographs(root / "photographs", shared)
    settings = {
        "analyze": False,
        "images.moments": True,
        "splits.fractions": {"train": 0.8, "test": 0.2},
    }
    return convert_images(photographs, root / "dataset", {**settings, "shards.count": 3})


@pytest.fixture(scope="module")
def analyzed(dataset):
    """What the command said, and how it ended."""
    command = [sys.executable, "-m", "pipeline.analyze", str(dataset), "--size", "48x64"]
    ended = subprocess.run(
        command, cwd=REPO, capture_output=True, text=True, timeout=300, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


def stored_pixels(dataset, split):
    """The pixels of every stored image of a split, decoded by Pillow."""
    for shard in json.loads((dataset / "recordmill.json").read_bytes())["splits"][split]["shards"]:
        content = (dataset / shard["name"]).read_bytes()
        for row in map(json.loads, (dataset / shard["sidecar"]).read_text().splitlines()):
            record = content[row["offset"] + 12 : row["offset"] + 12 + row["length"]]
            image = Image.open(io.BytesIO(record[record.index(b"\xff\xd8\xff") :]))
            yield np.asarray(image.convert("RGB")).reshape(-1, 3).astype(np.float64), image.size


def note_of(dataset):
    return json.loads((dataset / "transform_fn" / "analysis.json").read_bytes())


@pytest.mark.slow
def test_the_process_ends_well(analyzed, dataset):
    code, stdout, stderr = analyzed
    assert code == 0, stderr
    line = json.loads(stdout)
    assert (line["status"], line["exit_code"], line["size"]) == ("analyzed", 0, [48, 64])
    assert stderr.splitlines()[-1] == line["message"]
    assert sorted(
        path.name for path in dataset.iterdir() if path.name.startswith((".", "transform"))
    ) == ["transform_fn"]


@pytest.mark.slow
def test_mean_and_variance_are_numpys(analyzed, dataset):
    pixels, sizes = zip(*stored_pixels(dataset, "train"), strict=True)
    everything, note = np.concatenate(pixels), note_of(dataset)
    assert (note["images"], note["pixels"]) == (len(sizes), len(everything))
    np.testing.assert_allclose(note["mean"], everything.mean(0), rtol=1e-9)
    np.testing.assert_allclose(note["variance"], everything.var(0), rtol=1e-9)
    widths, heights = zip(*sizes, strict=True)
    for name, sides in (("width", widths), ("height", heights)):
        assert (note[name]["least"], note[name]["most"]) == (min(sides), max(sides))
        for hundredth, quantile in enumerate(note[name]["quantiles"], start=1):
            below, up_to = np.mean(np.array(sides) < quantile), np.mean(np.array(sides) <= quantile)
            slack = note["rank_error"] + 1 / len(sides)
            assert below - slack <= hundredth / 100 <= up_to + slack


@pytest.mark.slow
def test_the_note_says_what_it_was_learned_from(analyzed, dataset):
    marker, note = read_marker(str(dataset)), note_of(dataset)
    assert (note["plan"], note["split"], note["size"]) == (marker.plan.id, "train", [48, 64])
    assert note["contents"] == contents_digest(marker, "train")
    assert note["labels"] == marker.labels == {"day": 0, "night": 1}


# Statistics of the model's own output, then a network trained through it, exported with it, and
# served a JPEG.
TRAIN_AND_SERVE = """
import json, sys
import numpy as np, tensorflow as tf
dataset, folder = sys.argv[1:]
loaded = tf.saved_model.load(f"{dataset}/transform_fn")
transform = loaded.signatures["serving_default"]
features = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/text": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64)}
files = sorted(tf.io.gfile.glob(f"{dataset}/train-*.tfrecord"))
note = json.load(open(f"{dataset}/transform_fn/analysis.json"))
sums, squares, pixels, wrong = np.zeros(3), np.zeros(3), 0, 0
for record in tf.data.TFRecordDataset(files):
    example = tf.io.parse_single_example(record, features)
    decoded = tf.io.decode_jpeg(
        example["image/encoded"], channels=3, dct_method="INTEGER_ACCURATE"
    ).numpy()
    decoded = decoded.reshape(-1, 3).astype(np.float64)
    sums += decoded.sum(0)
    squares += (decoded ** 2).sum(0)
    pixels += len(decoded)

def inputs(records):
    parsed = tf.io.parse_example(records, features)
    out = transform(encoded=parsed["image/encoded"], label_text=parsed["image/class/text"])
    return out["image"], out["label"], parsed["image/class/label"]

batches = tf.data.TFRecordDataset(files).batch(16).map(inputs)
wrong = sum(int(tf.reduce_sum(tf.cast(label != stored, tf.int32))) for _, label, stored in batches)
model = tf.keras.Sequential([
    tf.keras.Input([48, 64, 3]),
    tf.keras.layers.Conv2D(4, 3, strides=4, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(2),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(batches.map(lambda image, label, _: (image, label)), epochs=3, verbose=0)

class Served(tf.Module):
    def __init__(self):
        self.loaded, self.model = loaded, model
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "encoded")])
    def serve(self, encoded):
        transform = self.loaded.signatures["serving_default"]
        transformed = transform(encoded=encoded, label_text=tf.zeros_like(encoded))
        return {"logits": self.model(transformed["image"])}

served = Served()
tf.saved_model.save(served, folder, signatures={"serving_default": served.serve})
first = next(iter(tf.data.TFRecordDataset(files)))
jpeg = tf.io.parse_single_example(first, features)["image/encoded"]
serve = tf.saved_model.load(folder).signatures["serving_default"]
images, _, _ = next(iter(batches.unbatch().batch(1)))
print(json.dumps({
    "mean": (sums / pixels).tolist(),
    "variance": (squares / pixels - (sums / pixels) ** 2).tolist(),
    "wrong": wrong,
    "losses": history.history["loss"],
    "trained": model(images).numpy()[0].tolist(),
    "served": serve(encoded=tf.reshape(jpeg, [1]))["logits"].numpy()[0].tolist(),
}))
"""


@pytest.mark.slow
def test_a_network_is_trained_through_it_and_served_with_it(
    analyzed, dataset, run_python, tmp_path
):
    ended = run_python(TRAIN_AND_SERVE, dataset, tmp_path / "served")
    assert ended.returncode == 0, ended.stderr[-3000:]
    found, note = json.loads(ended.stdout), note_of(dataset)
    # Of the pixels that TensorFlow decodes.
    np.testing.assert_allclose(note["mean"], found["mean"], rtol=1e-9)
    np.testing.assert_allclose(note["variance"], found["variance"], rtol=1e-9)
    assert found["wrong"] == 0
    assert np.isfinite(found["losses"]).all()
    assert found["losses"][-1] < found["losses"][0]
    np.testing.assert_allclose(found["served"], found["trained"], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_what_fits_is_kept_and_tensorflow_stays_out(analyzed, dataset, monkeypatch):
    monkeypatch.setattr(
        module, "_import_tensorflow", lambda: pytest.fail("TensorFlow is not needed")
    )
    before = note_of(dataset)
    for split, size in [(None, None), ("train", (48, 64))]:
        kept = analyze_dataset(str(dataset), split, size)
        assert (kept.done, kept.note) == (False, before)


class Imported(Exception):
    """The analysis came to its import of TensorFlow."""


@pytest.mark.slow
@pytest.mark.parametrize(("split", "size"), [("test", None), (None, (48, 48))])
def test_another_size_or_split_is_analyzed_again(analyzed, dataset, monkeypatch, split, size):
    def stop():
        raise Imported

    monkeypatch.setattr(module, "_import_tensorflow", stop)
    with pytest.raises(Imported):
        analyze_dataset(str(dataset), split, size)


def test_without_the_extra_one_sentence_says_what_to_install(dataset, monkeypatch):
    monkeypatch.setattr(
        module, "find_spec", lambda name: None if name == "tensorflow_transform" else name
    )
    sentence = (
        "an analysis needs TensorFlow Transform, which is not installed: pip install "
        "'.[analyze]' in a clone"
    )
    with pytest.raises(LoadError) as error:
        check_tensorflow()
    assert str(error.value) == sentence
    with pytest.raises(LoadError) as error:
        analyze_dataset(str(dataset), "test")
    assert str(error.value) == sentence
