import json
import re
import sys

import numpy as np
import pytest
from make_marker import make_marker, marker_json
from PIL import Image
from run_python import run_python

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.features import Feature, encode_example, feature_schema
from recordmill.storage.dataset_files import read_marker
from recordmill.storage.tfrecord_file import RecordSink
from recordmill.transforms.publishing.companions.describe_dataset import reading_snippet

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ENCODED = Feature("image", "bytes", "encoded", "the pixels")
LABEL = Feature("label", "int64", "label", "class id")
SIDES = (Feature("h", "int64", "height", "rows"), Feature("w", "int64", "width", "columns"))
BOXES = Feature("boxes", "float", "boxes", "edges\nof boxes", many=True)
TEXT = Feature('say "ä"', "bytes", "say", "words", default=b'\xc3\xb6"')

TAIL = """
import numpy as np
for element in tf.nest.flatten(list(dataset)):
    value = element.values if isinstance(element, tf.SparseTensor) else element
    numbers = np.asarray(value).tolist() if value.shape.rank < 2 else int(np.sum(value))
    print("VALUE", value.shape.as_list(), numbers)
"""


@pytest.fixture
def read(monkeypatch):
    """What the snippet prints in the dataset's folder, where nothing of ours can be imported: it
    stands alone."""
    pytest.importorskip("tensorflow")

    def read(folder, tail=""):
        (folder / "snippet.py").write_text(
            reading_snippet(read_marker(str(folder))) + tail, encoding="utf-8"
        )
        with monkeypatch.context() as patch:
            for name in [each for each in sys.modules if each.partition(".")[0] == "recordmill"]:
                patch.setitem(sys.modules, name, None)
            done = run_python(["python", "snippet.py"], folder)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return read


def convert(tmp_path, **settings):
    for name, shade in (("cat", 90), ("dog", 170)):
        (tmp_path / "in" / name).mkdir(parents=True)
        for number in range(4):
            image = Image.new("RGB", (20 + number, 10), (shade, shade + number, 0))
            image.save(tmp_path / "in" / name / f"{number}.jpg")
    flags = [
        f"--set={key.replace('__', '.')}={json.dumps(value)}" for key, value in settings.items()
    ]
    places = [f"--input={tmp_path / 'in'}", f"--output={tmp_path / 'out'}"]
    assert launch([*places, *flags], build) == 0
    return tmp_path / "out"


def publish(
    folder,
    features,
    records,
    *,
    store="encoded",
    rows=(),
    labels=None,
    classes=None,
    compression="none",
):
    """A dataset of one shard, put together by hand, for features that no source here has."""
    folder.mkdir()
    sink = RecordSink(str(folder / "x.tfrecord"), compression)
    for record in records:
        sink.write(encode_example(features, record))
    sink.close()
    (folder / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    shard = {"name": "x.tfrecord", "sidecar": "x.jsonl", "records": len(records)}
    split = {"records": len(records), "classes": classes or {}, "shards": [shard]}
    recipe = {"compression": compression, "images": {"store": store}}
    marker = marker_json(
        recipe,
        features=to_json(feature_schema(features)),
        labels=labels or {},
        splits={"all": split},
    )
    (folder / "recordmill.json").write_text(json.dumps(marker))
    return folder


@pytest.mark.parametrize(
    ("convention", "compression"),
    [("default", "gzip"), ("tutorial", "none"), ("image_tfrecord_builder", "gzip")],
)
def test_converted_datasets_are_read_with_tensorflow_alone(read, tmp_path, convention, compression):
    settings = {"convention": convention, "compression": compression, "name": "zoo"}
    folder = convert(
        tmp_path, splits__fractions={"test": 0.5, "train": 0.5}, shards__count=2, **settings
    )
    printed = read(folder, "print('COUNT', len(list(dataset)))")
    marker = json.loads((folder / "recordmill.json").read_bytes())
    assert f"COUNT {marker['splits']['train']['records']}" in printed
    assert re.search(r"^\(10, 2[0-3], 3\) (b')?(cat|dog)'?$", printed, re.MULTILINE)


@pytest.mark.parametrize("sized", [True, False])
def test_raw_pixels_are_read(read, tmp_path, sized):
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8)
    record = {"encoded": pixels.tobytes(), "label": 1, "height": 2, "width": 3}
    features = (ENCODED, LABEL, *SIDES) if sized else (ENCODED, LABEL)
    rows = [{"key": "x", "rejected": "empty"}, {"key": "y", "height": 2, "width": 3}]
    folder = publish(
        tmp_path / "raw", features, [record], store="raw", rows=rows, labels={"fox": 1}
    )
    printed = read(folder, TAIL)
    assert "(2, 3, 3) fox\n" in printed
    assert f"VALUE [2, 3, 3] {pixels.sum()}\n" in printed


def test_a_table_without_images_is_read(read, tmp_path):
    records = [{"say": b"hm", "boxes": [0.5, 1.5]}, {"boxes": []}]
    printed = read(publish(tmp_path / "table", (BOXES, TEXT), records, compression="gzip"), TAIL)
    assert [line for line in printed.splitlines() if line.startswith("VALUE")] == [
        "VALUE [2] [0.5, 1.5]",
        "VALUE [] b'hm'",
        "VALUE [0] []",
        """VALUE [] b'\\xc3\\xb6"'""",
    ]


def test_several_labels_and_none_are_read(read, tmp_path):
    image = Image.new("RGB", (4, 2), (9, 9, 9))
    image.save(tmp_path / "x.png")
    encoded = (tmp_path / "x.png").read_bytes()
    many = Feature("label", "int64", "labels", "class ids", many=True)
    folder = publish(
        tmp_path / "many",
        (ENCODED, many),
        [{"encoded": encoded, "labels": [3, 4]}],
        labels={"a": 3},
    )
    assert "(2, 4, 3) [3 4]\n" in read(folder)
    folder = publish(tmp_path / "none", (ENCODED,), [{"encoded": encoded}])
    assert read(folder) == "(2, 4, 3)\n"


def test_boxes_are_read_with_their_image(read, tmp_path):
    Image.new("RGB", (9, 5)).save(tmp_path / "x.jpg")
    encoded = (tmp_path / "x.jpg").read_bytes()
    label = Feature("label", "int64", "label", "class id", default=-1)
    boxes = Feature("bbox", "float", "bbox", "boxes", many=True)
    features = [Feature("image", "bytes", "encoded", "image"), label, boxes]
    records = [{"encoded": encoded, "bbox": [0.0, 0.25, 0.5, 1.0] * count} for count in (2, 0)]
    folder = publish(tmp_path / "boxes", features, records, labels={"cat": 0}, classes={"": 2})
    out = read(folder, TAIL)
    assert out.splitlines()[0] == "{'bbox': TensorShape([8]), 'image': TensorShape([5, 9, 3])}"
    assert "VALUE [8] [0.0, 0.25, 0.5, 1.0, 0.0, 0.25, 0.5, 1.0]" in out
    assert "VALUE [0] []" in out


def test_the_text_word_for_word():
    features = to_json(feature_schema((ENCODED, LABEL, BOXES, TEXT)))
    splits = {"empty": {}, "dev": {"classes": {"cat": 1}}}
    marker = make_marker(
        {"compression": "gzip"}, features=features, labels={"cat": 0}, splits=splits
    )
    assert (
        reading_snippet(marker)
        == """\
import json

import tensorflow as tf

folder, split = ".", "dev"  # the folder that holds recordmill.json
with tf.io.gfile.GFile(f"{folder}/recordmill.json") as file:
    marker = json.load(file)
shards = marker["splits"][split]["shards"]
files = [f"{folder}/{shard['name']}" for shard in shards]
names = {number: name for name, number in marker["labels"].items()}

features = {
    "boxes": tf.io.VarLenFeature(tf.float32),  # edges of boxes
    "image": tf.io.FixedLenFeature([], tf.string),  # the pixels
    "label": tf.io.FixedLenFeature([], tf.int64),  # class id
    "say \\"ä\\"": tf.io.FixedLenFeature([], tf.string, "ö\\""),  # words
}


def read(record):
    example = tf.io.parse_single_example(record, features)
    image = tf.io.decode_image(example["image"], channels=3, expand_animations=False)
    return image, example["label"]


records = tf.data.TFRecordDataset(\
files, compression_type="GZIP", num_parallel_reads=tf.data.AUTOTUNE)
dataset = records.map(read, num_parallel_calls=tf.data.AUTOTUNE)
for image, label in dataset.take(1):
    print(image.shape, names.get(int(label)))
"""
    )
