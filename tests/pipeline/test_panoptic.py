"""COCO's panoptic format, from JSON and PNG to semantic masks and the masks of things."""

import io
import json
import re
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.annotations.segmentation import SEGMENTATION
from recordmill.reading.example import ParsedExample
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example
from recordmill.viewing.viewed_dataset import open_viewed

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

INPUT = Path(__file__).parents[1] / "golden/inputs/coco_panoptic"
CLASSES = {
    "source": {"kind": "coco_panoptic", "images": "{split}2017"},
    "splits.from_source": {"train": "train", "val": "validation"},
    "convention": "deeplab",
}
THINGS = CLASSES | {
    "source": {**CLASSES["source"], "masks_of": "objects"},
    "convention": "tf_object_detection",
    "labels.ids": "integers",
    "masks": "png",
}


@pytest.fixture
def panoptic(tmp_path):
    return shutil.copytree(INPUT, tmp_path / "panoptic")


def read_features(done):
    found = {}
    for path in done.shards():
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            (name,) = features["image/filename"].bytes_list.value
            found[name.decode()] = features
    return found


def decode(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def semantic(features):
    (mask,) = features["image/segmentation/class/encoded"].bytes_list.value
    return decode(mask)


def segments(panoptic, name):
    """The id of each pixel's segment, as panopticapi computes it."""
    colors = np.asarray(Image.open(panoptic / f"annotations/panoptic_train2017/{name}.png"))
    red, green, blue = colors.astype(np.int64).transpose(2, 0, 1)
    return red + 256 * green + 256 * 256 * blue


def marker(done):
    return json.loads((done.output / "recordmill.json").read_bytes())


def test_semantic_masks_have_the_ids_of_the_label_map(convert, panoptic):
    done = convert(panoptic, settings=CLASSES)
    assert done.code == 0, done.stderr
    found = read_features(done)
    assert found.keys() == {"plain.jpg", "crowd.jpg", "empty_segment.jpg", "turned.jpg", "a.jpg"}
    assert marker(done)["labels"] == {"person": 0, "car": 1, "sky": 2}
    table = {0: 255, 300: 0, 5: 1, 70000: 2, 9: 0}
    for name in ("plain", "crowd", "empty_segment", "turned"):
        expected = np.vectorize(table.get)(segments(panoptic, name))
        assert np.array_equal(semantic(found[f"{name}.jpg"]), expected)
    entry = marker(done)["annotations"]["segmentation"]
    assert entry["dropped"] == {
        "mask_size": 1,
        "no_mask_file": 1,
        "unknown_mask_value": 2,
        "with_rejected_images": 1,
    }
    lines = map(json.loads, (done.output / "rejected.jsonl").read_text("utf-8").splitlines())
    assert {each["key"]: each["detail"] for each in lines}["train2017/no_png.jpg"] == (
        "annotations/panoptic_train2017/no_png.png: named by panoptic_train2017.json: no such file "
        "or directory"
    )
    ledger = marker(done)["ledger"]
    assert (ledger["listed"], ledger["ignored"]) == (12, {"without_annotation": 1})
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_things_have_boxes_and_masks(convert, panoptic):
    done = convert(panoptic, settings=THINGS)
    assert done.code == 0, done.stderr
    assert marker(done)["labels"] == {"person": 1, "car": 3}
    features = read_features(done)["crowd.jpg"]
    ids = segments(panoptic, "crowd")
    masks = [decode(mask) for mask in features["image/object/mask"].bytes_list.value]
    assert [
        np.array_equal(mask, ids == number) for mask, number in zip(masks, (5, 9, 300), strict=True)
    ] == [True] * 3
    assert features["image/object/class/label"].int64_list.value[:] == [3, 1, 1]
    assert features["image/object/is_crowd"].int64_list.value[:] == [0, 1, 0]
    assert features["image/object/area"].float_list.value[:] == [64, 8, 36]
    assert np.allclose(features["image/object/bbox/xmin"].float_list.value, [0.5, 20 / 24, 2 / 24])
    entry = marker(done)["annotations"]["masks"]
    assert entry["dropped"] == {
        "empty_mask": 1,
        "mask_size": 2,
        "no_mask_file": 2,
        "with_rejected_images": 2,
    }
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_without_masks_a_note_counts_them(convert, panoptic):
    done = convert(panoptic, settings=THINGS | {"masks": "none"})
    assert done.code == 0, done.stderr
    assert "not stored: PNGs of masks (10), masks (22); --set masks=png stores masks" in done.stderr
    assert marker(done)["ledger"]["ignored"] == {"known_sibling": 10}


def test_a_convention_of_ones_own_stores_both(convert, panoptic):
    fields = {
        "image/filename": ("filename", "bytes"),
        "image/encoded": ("encoded", "bytes"),
        "image/segmentation/class/encoded": ("segmentation", "bytes"),
    }
    features = {key: {"field": field, "type": kind} for key, (field, kind) in fields.items()}
    for key, field, kind in (
        ("masks", "masks", "bytes"),
        ("xmin", "xmin", "float"),
        ("classes", "box_labels", "int64"),
    ):
        features[key] = {"field": field, "type": kind, "shape": [None]}
    source = {**CLASSES["source"], "masks_of": "both"}
    settings = CLASSES | {"source": source, "masks": "png", "convention": {"features": features}}
    done = convert(panoptic, settings=settings)
    assert done.code == 0, done.stderr
    plain = read_features(done)["plain.jpg"]
    assert set(np.unique(semantic(plain)).tolist()) == {0, 1, 2, 255}
    assert len(plain["masks"].bytes_list.value) == 2
    assert plain["classes"].int64_list.value[:] == [1, 0]
    assert marker(done)["names_pixel_ids"] is True
    report = (done.output / "report.html").read_text(encoding="utf-8")
    *_, shown = re.findall(r'<figcaption><bdi class="key">[^<]*plain.jpg.*?</figcaption>', report)
    assert sorted(re.findall(r'class="region"[^>]*>(\w+)<', shown)) == ["car", "person", "sky"]
    tracer = open_viewed(str(done.output)).tracer
    records = (record for path in done.shards() for record in read_records(path))
    shapes = [tracer.trace(ParsedExample(record), SEGMENTATION) for record in records]
    named = {(shape.class_id, shape.class_name) for shape in chain.from_iterable(shapes)}
    assert named == {(0, "person"), (1, "car"), (2, "sky")}


def test_an_edited_png_changes_its_record_in_an_update(convert, panoptic):
    assert convert(panoptic, settings=CLASSES).code == 0
    path = panoptic / "annotations/panoptic_train2017/plain.png"
    Image.new("RGB", (24, 16), (5, 0, 0)).save(path)
    again = convert(panoptic, "--update", settings=CLASSES)
    assert again.code == 0, again.stderr
    rebuilt = convert(panoptic, settings=CLASSES, output=panoptic.parent / "rebuilt")
    made = [[path.read_bytes() for path in sorted(done.shards())] for done in (again, rebuilt)]
    assert made[0] == made[1]
    assert (semantic(read_features(again)["plain.jpg"]) == 1).all()


def test_classes_are_renamed_and_dropped_in_semantic_masks(convert, panoptic):
    done = convert(panoptic, settings=CLASSES | {"labels.rename": {"car": "person", "sky": None}})
    assert done.code == 0, done.stderr
    ids = segments(panoptic, "plain")
    expected = np.where(np.isin(ids, (5, 300)), 0, 255)
    assert np.array_equal(semantic(read_features(done)["plain.jpg"]), expected)


def test_pixels_of_classes_that_are_not_chosen_are_ignored(convert, panoptic):
    done = convert(panoptic, settings=CLASSES | {"labels.classes": ["sky", "car"]})
    assert done.code == 0, done.stderr
    table = {0: 255, 300: 255, 5: 1, 70000: 0}
    expected = np.vectorize(table.get)(segments(panoptic, "plain"))
    assert np.array_equal(semantic(read_features(done)["plain.jpg"]), expected)
    assert marker(done)["annotations"]["segmentation"]["dropped"]["unknown_mask_value"] == 2


def test_folders_of_pngs_are_found_in_the_input_or_named(convert, panoptic):
    for split in ("train", "val"):
        (panoptic / f"annotations/panoptic_{split}2017").rename(panoptic / f"panoptic_{split}2017")
    done = convert(panoptic, settings=CLASSES)
    assert done.code == 0, done.stderr
    assert len(read_features(done)) == 5
    (panoptic / "panoptic_train2017").rename(panoptic / "segments_train")
    (panoptic / "panoptic_val2017").rename(panoptic / "segments_val")
    source = {**CLASSES["source"], "pngs": "segments_{split}"}
    named = convert(panoptic, settings=CLASSES | {"source": source}, output=panoptic.parent / "n")
    assert len(read_features(named)) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda each: each["annotations"].append(each["annotations"][0]), "has two annotations"),
        (
            lambda each: each["annotations"][0]["segments_info"].append(
                {"id": 5, "category_id": 1}
            ),
            "two segments of image 1 have the id 5",
        ),
        (
            lambda each: each["annotations"][0]["segments_info"].append(
                {"id": 2**24, "category_id": 1}
            ),
            "Input should be less than 16777216",
        ),
        (lambda each: each.pop("annotations"), "nothing in it has segments_info"),
        (lambda each: each.pop("images"), "Field required"),
    ],
)
def test_malformed_annotations_reject_their_file(convert, panoptic, change, said):
    path = panoptic / "annotations/panoptic_train2017.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    done = convert(panoptic, settings=CLASSES)
    assert done.code != 0
    assert said in done.stderr
