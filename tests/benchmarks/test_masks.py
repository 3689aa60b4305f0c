import json
import struct

import numpy as np
import pytest
from PIL import Image

from benchmarks import masks, measure
from benchmarks.frames import masked
from benchmarks.measure import BenchmarkError, Run
from recordmill.imaging.masks.mask_file import encode_values
from recordmill.schemas.features import Feature, encode_example

FEATURES = (
    Feature("image/filename", "bytes", "name", ""),
    Feature("image/object/mask", "bytes", "masks", "", many=True),
)
WIDTH, HEIGHT = masks.SIZE


def test_each_image_has_objects_that_the_scripts_can_read():
    content = masks.annotate([f"{number}.jpg" for number in range(20)])
    assert [image["id"] for image in content["images"]] == list(range(1, 21))
    assert len(content["annotations"]) == 20 * masks.OBJECTS
    crowds = [each for each in content["annotations"] if each["iscrowd"]]
    assert [each["image_id"] for each in crowds] == [10, 20]
    assert all(sum(each["segmentation"]["counts"]) == WIDTH * HEIGHT for each in crowds)
    for each in content["annotations"]:
        left, top, width, height = each["bbox"]
        assert 0 <= left < left + width <= WIDTH
        assert 0 <= top < top + height <= HEIGHT
    assert content == masks.annotate([f"{number}.jpg" for number in range(20)])


def test_a_collection_is_made_once(tmp_path, monkeypatch):
    for number in range(3):
        (tmp_path / "own").mkdir(exist_ok=True)
        Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / f"own/{number}.jpg")
    folder = masks.make(5, tmp_path / "work", tmp_path / "own")
    path = folder / "annotations/instances_train2017.json"
    content = json.loads(path.read_bytes())
    names = {image["file_name"] for image in content["images"]}
    assert names == {each.name for each in (folder / "train2017").iterdir()}
    assert len(names) == 5
    monkeypatch.setattr(masks, "annotate", None)
    assert masks.make(5, tmp_path / "work", tmp_path / "own") == folder


def test_other_masks_are_an_error(tmp_path, monkeypatch):
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)

    def run(command):
        program, output = command[0], tmp_path / "output"
        mask[0, 0] = program == "wrong"
        record = {"name": b"a.jpg", "masks": [encode_values(mask)] * masks.OBJECTS}
        data = encode_example(FEATURES, record)
        length = struct.pack("<Q", len(data))
        checks = [struct.pack("<I", masked(each)) for each in (length, data)]
        output.mkdir()
        (output / "train.tfrecord").write_bytes(length + checks[0] + data + checks[1])
        return Run(1, 1, 1, 0, {})

    monkeypatch.setattr(measure, "run", run)
    masks.check_masks({"ours": ["ours"], "same": ["same"]}, tmp_path, tmp_path)
    with pytest.raises(BenchmarkError, match="masks of 1 images differ from those of other"):
        masks.check_masks({"ours": ["ours"], "other": ["wrong"]}, tmp_path, tmp_path)
