"""The configurations for collections with semantic masks, each run on a small copy of one."""

import io
import json
from pathlib import Path

import golden_inputs as of
import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.features import Example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CONFIGS = Path(__file__).parents[2] / "configs"


def convert(folder, files, config, *more):
    for path, data in files.items():
        (folder / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / path).write_bytes(data)
    flags = [f"--input={folder / 'in'}", f"--output={folder / 'out'}", "--set=report=false", *more]
    assert launch([f"--config={CONFIGS / config}.yaml", *flags], build) == 0
    return json.loads((folder / "out/recordmill.json").read_bytes())


def decode(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def read_features(folder):
    """Yields the split and the features of each record."""
    for path in (folder / "out").glob("*.tfrecord*"):
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            yield path.name.partition("-")[0], features


def stored_in(folder):
    """The split and the ids of each image, by its name."""
    found = {}
    for split, features in read_features(folder):
        (name,) = features["image/filename"].bytes_list.value
        (mask,) = features["image/segmentation/class/encoded"].bytes_list.value
        found[name.decode()] = split, decode(mask)
    return found


def expect(files, pairs):
    """What is stored of some pairs: the split of each image, and its mask."""
    return {image.rpartition("/")[2]: (split, decode(files[mask])) for image, mask, split in pairs}


def same(one, other):
    return one.keys() == other.keys() and all(
        one[name][0] == other[name][0] and np.array_equal(one[name][1], other[name][1])
        for name in one
    )


def test_cityscapes(tmp_path):
    files = of.cityscapes()
    marker = convert(tmp_path, files, "cityscapes")
    images = [path for path in files if path.startswith("leftImg8bit")]
    pairs = [
        (
            path,
            path.replace("leftImg8bit/", "gtFine/").replace("_leftImg8bit", "_gtFine_labelIds"),
            "train" if "/train/" in path else "validation",
        )
        for path in images
    ]
    assert same(stored_in(tmp_path), expect(files, pairs))
    assert (marker["labels"]["road"], marker["labels"]["bicycle"]) == (7, 33)
    assert marker["ledger"]["rejected"] == {}
    assert (
        "not stored: masks of objects (6), outlines of objects (6); "
        "--config configs/cityscapes_objects.yaml stores masks of objects"
    ) in marker["notes"]


def test_the_classes_of_training_of_cityscapes(tmp_path):
    files = {
        path.replace("_gtFine_labelIds", "_gtFine_labelTrainIds"): data
        for path, data in of.cityscapes().items()
    }
    text = (CONFIGS / "cityscapes.yaml").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if "labelTrainIds" in line)
    names = line.partition("source.class_names=")[2].rstrip("'")
    masks = "source.masks=gtFine/{split}/{name}_gtFine_labelTrainIds"
    more = ["--set", masks, "--set", f"source.class_names={names}"]
    marker = convert(tmp_path, files, "cityscapes", *more)
    assert len(stored_in(tmp_path)) == 6
    assert (marker["labels"]["road"], marker["labels"]["bicycle"]) == (0, 18)


def test_the_objects_of_cityscapes(tmp_path):
    files = of.cityscapes_objects()
    marker = convert(tmp_path, files, "cityscapes_objects")
    found = {}
    for _, features in read_features(tmp_path):
        name = features["image/filename"].bytes_list.value[0].decode()
        labels = features["image/object/class/text"].bytes_list.value
        masks = map(decode, features["image/object/mask"].bytes_list.value)
        found[name] = dict(zip((24_000, 26_000, 26_001), masks, strict=True))
        assert list(labels) == [b"person", b"car", b"car"]
    assert len(found) == 6
    for path, data in files.items():
        if path.endswith("_instanceIds.png"):
            name = path.rpartition("/")[2].replace("_gtFine_instanceIds", "_leftImg8bit")
            assert all(
                np.array_equal(mask, decode(data) == number) for number, mask in found[name].items()
            )
    assert marker["ledger"]["rejected"] == {}
    assert "not stored: outlines of objects (6)" in marker["notes"]


def test_camvid(tmp_path):
    files = of.camvid()
    marker = convert(tmp_path, files, "camvid")
    splits = {"train": "train", "val": "validation", "test": "test"}
    pairs = [
        (f"{word}_{n}.png", f"{word}annot/{word}_{n}.png", split)
        for word, split in splits.items()
        for n in range(3)
    ]
    assert same(stored_in(tmp_path), expect(files, pairs))
    assert (marker["labels"]["sky"], marker["labels"]["unlabeled"]) == (0, 11)


def test_camvid_in_colors(tmp_path):
    colors = np.array([[128, 128, 128], [128, 0, 0], [0, 0, 0]], np.uint8)
    files = of.camvid()
    painted = {"label_colors.txt": b"128 128 128\tSky\n128 0 0\tBuilding\n0 0 0\tVoid\n"}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        if folder.endswith("annot"):
            image = Image.fromarray(colors[decode(data) % 3])
            place = f"{folder.removesuffix('annot')}_labels/{name.replace('.png', '_L.png')}"
            painted[place] = of.encode(image, "PNG")
        elif folder:
            painted[path] = data
    more = [
        "--set=source.masks={split}_labels/{name}_L",
        "--set=source.class_names=[]",
        "--set=source.mask_colors=label_colors.txt",
    ]
    marker = convert(tmp_path, painted, "camvid", *more)
    found = stored_in(tmp_path)
    assert len(found) == 9
    assert np.array_equal(found["val_1.png"][1], decode(files["valannot/val_1.png"]) % 3)
    assert marker["labels"] == {"Sky": 0, "Building": 1, "Void": 2}


def test_oxford_pets(tmp_path):
    files = of.oxford_pets()
    marker = convert(tmp_path, files, "oxford_pets")
    pairs = [
        (f"Bengal_{n}.jpg", f"annotations/trimaps/Bengal_{n}.png", "train" if n < 4 else "test")
        for n in range(6)
    ]
    assert same(stored_in(tmp_path), expect(files, pairs))
    assert marker["labels"] == {"unused": 0, "pet": 1, "background": 2, "border": 3}
    assert marker["ledger"]["rejected"] == {}
    assert marker["ledger"]["ignored"]["in_no_set"] == 2


def test_masks_of_two_levels(tmp_path):
    files = of.masks_of_two_levels()
    marker = convert(tmp_path, files, "binary_masks")
    found = stored_in(tmp_path)
    assert found.keys() == {f"{n}.jpg" for n in (1, 2, 4, 5, 6, 7)}
    for name, (_, ids) in found.items():
        mask = decode(files[f"masks/{name[0]}.png"])
        assert np.array_equal(ids, mask // 255)
    assert marker["labels"] == {"background": 0, "object": 1}
    assert marker["ledger"]["rejected"] == {"mask_size": 1, "no_image": 1, "no_mask_file": 1}
    assert marker["annotations"]["segmentation"] == {
        "unit": "semantic mask",
        "listed": 9,
        "written": 6,
        "dropped": {"mask_size": 1, "no_mask_file": 1, "with_rejected_images": 1},
    }


def test_voc_segmentation(tmp_path):
    above = "VOCdevkit/VOC2012"
    files = {f"{above}/{path}": data for path, data in of.voc_segmentation().items()}
    marker = convert(tmp_path, files, "voc_segmentation")
    masks = {n: f"{above}/SegmentationClass/2007_{n}.png" for n in range(5)}
    pairs = [
        (f"2007_{n}.jpg", mask, "train" if n < 3 else "validation") for n, mask in masks.items()
    ]
    assert same(stored_in(tmp_path), expect(files, pairs))
    labels = marker["labels"]
    assert (labels["background"], labels["person"], labels["tvmonitor"]) == (0, 15, 20)
    assert marker["ledger"]["rejected"] == {}
    assert marker["ledger"]["ignored"]["in_no_set"] == 4  # three images, and the mask of one
    assert "noted" not in marker["annotations"]["segmentation"]


def test_voc_masks(tmp_path):
    files = of.voc_everything()
    marker = convert(tmp_path, files, "voc_masks")
    found = {}
    for _, features in read_features(tmp_path):
        values = {key: features[key].bytes_list.value for key in features}
        name = values["image/filename"][0].decode().removesuffix(".jpg")
        ids = features["objects/label"].int64_list.value
        found[name] = (
            values["segmentation_mask"][0],
            dict(zip(values["objects/mask"], ids, strict=True)),
        )
    assert sorted(found) == ["a", "c", "d", "e"]
    for name, (semantic, objects) in found.items():
        numbers = decode(files[f"SegmentationObject/{name}.png"])
        inside = (numbers > 0) & (numbers < 255)
        expected = np.where(numbers == 255, 255, 0)
        for mask, class_id in objects.items():
            expected[decode(mask) == 1] = class_id
        assert np.array_equal(decode(semantic), expected)
        assert sum(np.count_nonzero(decode(mask)) for mask in objects) == np.count_nonzero(inside)
    assert (marker["labels"]["cat"], marker["labels"]["dog"]) == (8, 12)
    assert marker["ledger"]["rejected"] == {}
    assert marker["annotations"]["segmentation"]["written"] == 4
    assert marker["names_pixel_ids"] is True
    named = [
        tmp_path / "out" / f"{key}.labels.txt" for key in ("segmentation_mask", "objects.label")
    ]
    assert [path.read_text().split()[8] for path in named] == ["cat", "cat"]
