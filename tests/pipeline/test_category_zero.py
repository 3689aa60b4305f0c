"""COCO's categories may count from 0, and readers of `label_map.pbtxt` refuse the id 0."""

import json

import pytest

from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NOTE = (
    "class cat has the id 1, not 0, and all others are higher, too: ids begin at 1 in the "
    "convention "
    "(TensorFlow's Object Detection API); labels.ids=integers keeps the source's numbers"
)
SPLITS = {"splits.fractions": {"train": 1.0}}


@pytest.fixture
def pets(tmp_path):
    """`pets([0, 1])`: a collection whose boxes have these categories, of 0 (cat), 1 (dog) and 4
    (emu)."""

    def write(used):
        root = tmp_path / "pets"
        (root / "images").mkdir(parents=True)
        (root / "annotations").mkdir()
        images = [{"id": number, "file_name": f"{number}.jpg"} for number in used]
        for image in images:
            (root / "images" / image["file_name"]).write_bytes(encode_picture(image["file_name"]))
        annotations = [
            {"id": number, "image_id": number, "category_id": number, "bbox": [1, 1, 5, 5]}
            for number in used
        ]
        categories = [
            {"id": number, "name": name} for name, number in (("cat", 0), ("dog", 1), ("emu", 4))
        ]
        text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
        (root / "annotations/instances_default.json").write_text(text)
        return root

    return write


def test_classes_count_from_1_where_the_first_has_boxes(convert, pets):
    done = convert(pets([0, 1]), settings=SPLITS)
    assert (done.code, done.marker["labels"]) == (0, {"cat": 1, "dog": 2, "emu": 5})
    assert NOTE in done.marker["notes"]
    assert "id: 0" not in (done.output / "label_map.pbtxt").read_text()


def test_the_sources_numbers_stay_where_no_box_has_the_first(convert, pets):
    done = convert(pets([1, 4]), settings=SPLITS)
    assert (done.code, done.marker["labels"]) == (0, {"cat": 0, "dog": 1, "emu": 4})
    assert "id: 0" not in (done.output / "label_map.pbtxt").read_text()


def test_the_note_tells_no_new_name_from_a_raised_id(convert, pets):
    rename = {"labels.rename": {"dog": "emu"}}
    done = convert(pets([1, 4]), settings={**SPLITS, **rename})
    assert (done.code, done.marker["labels"]) == (0, {"cat": 0, "emu": 1})
    assert not [note for note in done.marker["notes"] if "has the id" in note]


def test_they_stay_where_the_user_says_so_and_where_readers_take_0(convert, pets):
    root = pets([0, 1])
    assert convert(root, settings={**SPLITS, "labels.ids": "integers"}).marker["labels"]["cat"] == 0
    other = root.parent / "other"
    assert (
        convert(root, output=other, settings={**SPLITS, "convention": "tfds"}).marker["labels"][
            "cat"
        ]
        == 0
    )
